#include "tools/workload_options.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "measure/machine.h"

namespace tilewright::tools {
namespace {

Result<std::vector<bench::SequenceLengths>> parse_lengths(const std::string& text) {
  std::vector<bench::SequenceLengths> out;
  size_t at = 0;
  while (at < text.size()) {
    const size_t end = std::min(text.find(';', at), text.size());
    long long q = 0, k = 0;
    int used = 0;
    const std::string part = text.substr(at, end - at);
    if (std::sscanf(part.c_str(), "%lld,%lld%n", &q, &k, &used) != 2 || static_cast<size_t>(used) != part.size()) {
      return fail(DiagnosticCode::E1600, fmt::format("--lens: '{}' is not q,k", part),
                  "for example --lens '128,512;64,512'");
    }
    out.push_back({q, k});
    at = end + 1;
  }
  return out;
}

}  // namespace

void add_workload_options(CLI::App& app, WorkloadOptions& options) {
  app.add_option("--op", options.keys,
                 "what to compute, as op:dims[:layout][:mask], e.g. gemm:1024x1024x1024 or "
                 "attn:b1hq8hkv8sq512sk512d64:bshd:causal-br; or what a kernel's own reference says: FILE.tile:KERNEL; "
                 "may be repeated")
      ->allow_extra_args(false)  // what follows the key may be a candidate
      ->type_name("KEY");
  app.add_option("--dim", options.dims,
                 "sizes of kernels that state their own workload: M=64,N=32 (else their example)")
      ->allow_extra_args(false)
      ->type_name("NAME=SIZE");
  app.add_option("--dtype", options.dtype, "element types: in/acc/out, or short f32, f16, bf16, i8")
      ->capture_default_str();
  app.add_option("--lens", options.lengths, "lengths of the sequences of a padded batch: 'q,k;q,k;…'");
  app.add_option("--device", options.device, "cpu, or cuda:N")
      ->check(
          [](const std::string& text) {
            const bool is_cuda = text.starts_with("cuda:") && text.size() > 5 &&
                                 text.find_first_not_of("0123456789", 5) == std::string::npos;
            return text == "cpu" || is_cuda ? "" : "'" + text + "' is no device: cpu, or cuda:N";
          },
          "", "")
      ->capture_default_str();
  app.add_option("--threads", options.threads, "CPU threads candidates may use (default: all of this process)")
      ->check(CLI::Range(0, 4096));
  app.add_option("--seed", options.seed, "of data, orders and fuzz shapes")->capture_default_str();
}

bool names_kernel(const std::string& text) {
  return text.starts_with("tile:") || text.ends_with(".tile") || text.find(".tile:") != std::string::npos ||
         text.find(".tile?") != std::string::npos;
}

namespace {

Result<std::vector<bench::Workload>> stated_workloads(const std::string& kernel, const WorkloadOptions& options,
                                                      const Session& session) {
  if (!session.kernels.offers) {
    return fail(DiagnosticCode::E1600, fmt::format("{} is a kernel, and this build has no compiler", kernel),
                "build with -DTILEWRIGHT_COMPILER=ON");
  }
  auto dims = parse_sizes(options.dims);
  if (!dims) return std::unexpected(dims.error());
  auto offers = session.kernels.offers(kernel, *dims);
  if (!offers) return std::unexpected(offers.error());
  std::vector<bench::Workload> out;
  std::string why_not;
  for (OfferedKernel& offer : *offers) {
    if (offer.workload) out.push_back(std::move(*offer.workload));
    if (!offer.why_not.empty() && why_not.empty()) why_not = offer.why_not;
  }
  if (out.empty()) return fail(DiagnosticCode::E1810, fmt::format("--op {}: {}", kernel, why_not));
  return out;
}

}  // namespace

Result<std::vector<bench::Workload>> parse_workloads(const WorkloadOptions& options, const Session& session) {
  auto dtypes = bench::parse_dtypes(options.dtype);
  if (!dtypes) return std::unexpected(dtypes.error());
  auto lengths = parse_lengths(options.lengths);
  if (!lengths) return std::unexpected(lengths.error());
  std::vector<bench::Workload> out;
  for (const std::string& key : options.keys) {
    if (names_kernel(key)) {
      auto stated = stated_workloads(key, options, session);
      if (!stated) return std::unexpected(stated.error());
      std::ranges::move(*stated, std::back_inserter(out));
      continue;
    }
    // The lengths are named by a digest in the key; people give them apart and leave the digest out.
    std::string full = key;
    if (!lengths->empty() && key.find(":lens=") == std::string::npos)
      full += ":lens=" + bench::lengths_digest(*lengths);
    auto workload = bench::parse_workload(full, *dtypes, *lengths);
    if (!workload) return std::unexpected(workload.error());
    out.push_back(std::move(*workload));
  }
  return out;
}

int thread_count(const WorkloadOptions& options) {
  return options.threads > 0 ? options.threads : measure::usable_cpus();
}

}  // namespace tilewright::tools
