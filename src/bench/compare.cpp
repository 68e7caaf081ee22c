#include "bench/compare.h"

#include <fmt/core.h>

#include "bench/oracle/contract.h"
#include "bench/stage_cells.h"
#include "bench/stage_runner.h"
#include "measure/machine.h"

namespace tilewright::bench {
namespace {

StageRequest request_of(const CompareOptions& options, StageKind kind, const std::string& candidate) {
  StageRequest r;
  r.kind = kind;
  r.candidate = candidate;
  r.rival = options.b;
  r.workload = workload_key(options.workload);
  r.dtypes = to_string(options.workload.dtypes);
  r.lengths = options.workload.lengths;
  r.question = options.workload.question;
  r.device = options.device;
  r.threads = options.threads;
  r.config = options.config;
  r.seed = options.seed;
  r.rounds = options.rounds;
  r.rounds_limit = std::max(options.rounds, options.rounds_limit);
  r.delta = options.delta;
  r.fuzz_shapes = 0;
  r.timeout_ms = options.timeout_ms;
  return r;
}

}  // namespace

Result<CompareReport> run_compare(const CompareOptions& options) {
  const StageRunner runner(options.executable, std::chrono::milliseconds(options.timeout_ms), {});
  CompareReport report;
  for (const std::string& spelling : {options.a, options.b}) {
    if (!options.check) break;
    auto outcome = runner.run(request_of(options, StageKind::Check, spelling));
    if (!outcome && outcome.error().code != DiagnosticCode::E1606) return std::unexpected(outcome.error());
    const std::string why = outcome ? outcome->result.value("reason", "") : outcome.error().message;
    const bool accepted = outcome && outcome->result.value("accepted", false);
    if (!accepted) report.incorrect = fmt::format("{}: {}", spelling, why);
    if (!accepted) return report;
  }
  const std::string started_at = utc_now();
  auto outcome = runner.run(request_of(options, StageKind::Pair, options.a));
  if (!outcome) return std::unexpected(outcome.error());
  report.a_name = outcome->result.value("a_name", options.a);
  report.b_name = outcome->result.value("b_name", options.b);
  Cell base;
  const std::string device = outcome->result.value("device", "");
  base.subject = {workload_key(options.workload), to_string(options.workload.dtypes),
                  options.device == "cpu" ? measure::cpu_device_name(options.threads)
                  : device.empty()        ? options.device
                                          : device};
  base.candidate = report.a_name;
  ContractOptions contract;
  contract.device = options.device;
  contract.data.seed = options.seed;
  base.contract_digest = contract_text(options.workload, contract).digest;
  base.detail["spelling"] = options.a;
  base.detail["threads"] = options.threads;
  base.detail["config"] = options.config;
  base.command = options.command;
  base.started_at = started_at;
  base.environment_digest = environment_digest(options.threads);
  report.ratio = ratio_cell(base, outcome->result, options.delta);
  report.ratio.ended_at = utc_now();
  return report;
}

}  // namespace tilewright::bench
