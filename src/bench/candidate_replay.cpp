#include "bench/candidate_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/hash.h"
#include "bench/oracle/check.h"
#include "bench/oracle/contract.h"

namespace tilewright::bench {

struct CandidateReplay::Ready {
  candidate::CandidatePtr candidate;
  std::vector<candidate::Tensor> tensors;
  std::vector<std::byte> workspace;
  size_t row_bytes = 0;  ///< of the first output, along the key's dimension

  void* aligned_workspace() {
    const auto address = reinterpret_cast<uintptr_t>(workspace.data());
    return workspace.data() + (64 - address % 64) % 64;
  }
};

CandidateReplay::CandidateReplay(const candidate::Kinds& kinds, CandidateReplayOptions options)
    : kinds_(kinds), options_(std::move(options)) {}
CandidateReplay::~CandidateReplay() = default;

Status CandidateReplay::allocate(int64_t longest) {
  Workload workload = options_.workload;
  set_key_dims(workload, options_.dim, longest);
  if (Status status = validate(workload); !status) return status;
  for (const HostTensor& input : make_inputs(workload, DataSpec{})) buffers_.push_back(input.data);
  for (const Argument& argument : arguments(workload)) {
    if (argument.is_output()) buffers_.emplace_back(static_cast<size_t>(argument.byte_count()));
  }
  return {};
}

Result<std::unique_ptr<CandidateReplay::Ready>> CandidateReplay::prepare(const Order& order, double* compile_s) {
  const auto& [spelling, rows, config, cache] = order;
  Workload workload = options_.workload;
  set_key_dims(workload, options_.dim, rows);
  Result<candidate::CandidatePtr> made = kinds_.make(spelling);
  if (!made) return std::unexpected(made.error());
  auto ready = std::make_unique<Ready>();
  ready->candidate = std::move(*made);
  candidate::OpenOptions open;
  open.threads = options_.threads;
  open.cache_dir = fmt::format("{}/{}", options_.scratch, cache);
  std::error_code ignored;
  std::filesystem::create_directories(open.cache_dir, ignored);
  if (Status status = ready->candidate->open(open); !status) return std::unexpected(status.error());
  if (ready->candidate->is_remote()) {
    return fail(DiagnosticCode::E1647, fmt::format("'{}' runs in another process", spelling),
                "replay serves with in-process candidates: lib:…, tile:…");
  }
  if (Status status = ready->candidate->init_device(); !status) return std::unexpected(status.error());
  const candidate::ContractText contract = contract_text(workload, {});
  const int64_t start = clock_.now_ns();
  Result<candidate::Echo> echo = ready->candidate->prepare(contract);
  if (!echo) return std::unexpected(echo.error());
  if (Status status = check_fair(contract, *echo, spelling); !status) return std::unexpected(status.error());
  const Result<candidate::Compiled> compiled = ready->candidate->compile(config);
  if (!compiled) return std::unexpected(compiled.error());
  if (compile_s) *compile_s = static_cast<double>(clock_.now_ns() - start) * 1e-9;
  const Result<int64_t> bytes = ready->candidate->workspace_bytes();
  if (!bytes) return std::unexpected(bytes.error());
  ready->workspace.resize(static_cast<size_t>(std::max<int64_t>(0, *bytes)) + 64);
  const std::vector<Argument> all = arguments(workload);
  for (size_t i = 0; i < all.size(); ++i) {
    if (static_cast<size_t>(all[i].byte_count()) > buffers_[i].size()) {
      return fail(DiagnosticCode::E1647, fmt::format("{} rows need {} bytes of {}, {} were made", rows,
                                                     all[i].byte_count(), all[i].name, buffers_[i].size()));
    }
    ready->tensors.push_back(
        {all[i].name, all[i].dtype, all[i].shape, all[i].strides(), all[i].is_output(), buffers_[i].data()});
    if (all[i].is_output() && !ready->row_bytes)
      ready->row_bytes = static_cast<size_t>(all[i].byte_count() / std::max<int64_t>(1, rows));
  }
  if (Status status = check(order, workload, *ready, *echo); !status) return std::unexpected(status.error());
  return ready;
}

Status CandidateReplay::check(const Order& order, const Workload& workload, Ready& ready, const candidate::Echo& echo) {
  PreparedKernel kernel;
  kernel.echo = echo;
  kernel.launch = [&](std::span<const candidate::Tensor> tensors) {
    return ready.candidate->launch(tensors, ready.aligned_workspace(), nullptr);
  };
  CheckOptions options;
  options.fuzz = options.mutants = false;
  options.candidate_name = order.spelling;
  options.reference.max_flops = 2e8;  // a sample of rows: a key is checked in milliseconds
  const ShapeReport report = check_prepared(workload, kernel, options);
  if (report.state == ShapeReport::State::Accepted) return {};
  wrong_ = fmt::format("{} at {}: {}", order.spelling, workload_key(workload),
                       report.findings.empty()
                           ? std::string(name(report.state))
                           : fmt::format("{}: {}", report.findings.front().rule, report.findings.front().text));
  return fail(DiagnosticCode::E1647, "not timed: " + wrong_,
              "nothing is served by a kernel that computes wrong results; tilewright bench shows the whole check");
}

Result<traffic::ReplayOperator::Run> CandidateReplay::launch(Ready& ready, int64_t prompt) {
  void* workspace = ready.aligned_workspace();
  const int64_t start = clock_.now_ns();
  const Status status = ready.candidate->launch(ready.tensors, workspace, nullptr);
  const int64_t end = clock_.now_ns();
  if (!status) return std::unexpected(status.error());
  // The first rows stand for all: a digest of everything would cost more than the kernel.
  constexpr int64_t kRows = 16;
  const auto output = std::ranges::find_if(ready.tensors, &candidate::Tensor::is_output);
  const size_t bytes = ready.row_bytes * static_cast<size_t>(std::min(prompt, kRows));
  return Run{static_cast<double>(end - start) * 1e-9, to_hex(hash128({static_cast<const char*>(output->data), bytes}))};
}

Result<double> CandidateReplay::compile(int64_t key) {
  double seconds = 0;
  const auto own = options_.configs.find(key);
  const std::string& config = own != options_.configs.end() ? own->second : options_.config;
  Result<std::unique_ptr<Ready>> ready =
      prepare({options_.kernel, key, config, fmt::format("kernel-{}", key)}, &seconds);
  if (!ready) return std::unexpected(ready.error());
  kernels_[key] = std::move(*ready);
  return seconds;
}

Result<traffic::ReplayOperator::Run> CandidateReplay::run(int64_t key, int64_t prompt) {
  const auto it = kernels_.find(key);
  if (it == kernels_.end()) return fail(DiagnosticCode::E1647, fmt::format("key {} was not compiled", key));
  return launch(*it->second, prompt);
}

Result<traffic::ReplayOperator::Run> CandidateReplay::run_fallback(int64_t prompt) {
  std::unique_ptr<Ready>& ready = fallbacks_[prompt];
  if (!ready) {
    // One cache for all lengths: the general kernel is compiled before the service, not during it.
    Result<std::unique_ptr<Ready>> made = prepare({options_.fallback, prompt, options_.config, "fallback"}, nullptr);
    if (!made) return std::unexpected(made.error());
    ready = std::move(*made);
    if (Result<Run> first = launch(*ready, prompt); !first) return first;  // its first call is no service
  }
  return launch(*ready, prompt);
}

void set_key_dims(Workload& workload, const std::string& list, int64_t key) {
  for (size_t at = 0; at <= list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    workload.set_dim(list.substr(at, end - at), key);
    at = end + 1;
  }
}

}  // namespace tilewright::bench
