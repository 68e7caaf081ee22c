// `tilewright roofline`: the ceilings of this machine, measured now, and where given operators lie under them.
#include "bench/roofline.h"

#include <fmt/core.h>

#include <memory>

#include "bench/oracle/arguments.h"
#include "tools/command.h"
#include "tools/workload_options.h"

namespace tilewright::tools {
namespace {

struct Options {
  WorkloadOptions workload;
  bool json = false;
};

}  // namespace

Run add_roofline(CLI::App& app, Session& session) {
  auto options = std::make_shared<Options>();
  add_workload_options(app, options->workload);
  app.add_flag("--json", options->json, "print as JSON");
  app.footer(
      "Examples:\n  tilewright roofline\n  tilewright roofline --op gemm:1024x1024x1024 --op softmax:4096x4096 "
      "--threads 1");
  return [options, &session]() -> Result<ExitCode> {
    auto workloads = parse_workloads(options->workload, session);
    if (!workloads) return std::unexpected(workloads.error());
    const bench::Roofline roof = bench::measure_roofline(thread_count(options->workload));
    nlohmann::json json = bench::to_json(roof);
    json["operators"] = nlohmann::json::array();
    if (!options->json) {
      fmt::print("{} threads: {:.4g} GFLOP/s (f32 multiply-adds), read {:.4g} GB/s, copy {:.4g} GB/s\n", roof.threads,
                 roof.f32_gflops, roof.read_gb_per_s, roof.copy_gb_per_s);
    }
    for (const bench::Workload& workload : *workloads) {
      const bench::Cost cost = bench::minimal_cost(workload);
      const double compute_ms = cost.flops / (roof.f32_gflops * 1e6),
                   memory_ms = cost.bytes / (std::max(roof.read_gb_per_s, roof.copy_gb_per_s) * 1e6);
      const char* bound = compute_ms > memory_ms ? "compute" : "memory";
      json["operators"].push_back({{"shape", bench::workload_key(workload)},
                                   {"flops", cost.flops},
                                   {"bytes", cost.bytes},
                                   {"compute_ms", compute_ms},
                                   {"memory_ms", memory_ms},
                                   {"bound", bound}});
      if (!options->json) {
        fmt::print("{}: {:.4g} GFLOP, {:.4g} MB, {:.3g} FLOP/B → bound by {}, at least {:.4g} ms\n",
                   bench::workload_key(workload), cost.flops * 1e-9, cost.bytes * 1e-6, cost.flops / cost.bytes, bound,
                   std::max(compute_ms, memory_ms));
      }
    }
    if (options->json) fmt::print("{}\n", json.dump(2));
    return ExitCode::Ok;
  };
}

}  // namespace tilewright::tools
