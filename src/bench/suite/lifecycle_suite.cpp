#include "bench/suite/lifecycle_suite.h"

#include <fmt/core.h>

#include "bench/progress.h"
#include "bench/stage_runner.h"
#include "bench/suite/suite_result.h"
#include "bench/text_table.h"
#include "measure/machine.h"

namespace tilewright::bench {
namespace {

using nlohmann::json;

constexpr double kLoadGoalMs = 1, kStartGoalMs = 15, kPeakGoalMib = 100 * 1e6 / 1048576;

std::vector<LifecycleRow> rows_of_table() {
  std::vector<LifecycleRow> out;
#define TW_SUITE(id, name, device, ceiling, flushed, mean_goal, summary)
#define TW_RIVALS(id, spellings)
#define TW_CASE(suite, kernel, workload, dtypes, rivals, goal, share)
#define TW_LIFE(kernel_name, key, goal) out.push_back({kernel_name, key, goal, "", {}, {}, {}, {}, {}});
#include "bench/suite/suites.def"
#undef TW_SUITE
#undef TW_RIVALS
#undef TW_CASE
#undef TW_LIFE
  return out;
}

StageRequest request_of(const LifecycleOptions& options, const LifecycleRow& row) {
  StageRequest r;
  r.kind = StageKind::Compile;
  r.candidate = "tile:kernels/" + std::string(row.kernel);
  r.workload = row.workload;
  r.dtypes = "f32";
  r.seed = options.seed;
  r.timeout_ms = options.timeout_ms;
  return r;
}

/// One process with an empty cache, one with the cache it left.
Status add_pair(const StageRunner& runner, StageRequest request, LifecycleRow& row) {
  auto folder = PrivateFolder::create(std::filesystem::temp_directory_path(), "tilewright-lifecycle");
  if (!folder) return std::unexpected(folder.error());
  request.cache_dir = folder->path().string();
  auto cold = runner.run(request);
  if (!cold) return std::unexpected(cold.error());
  auto cached = runner.run(request);
  if (!cached) return std::unexpected(cached.error());
  if (cold->result.value("compiles", 0) < 1 || cached->result.value("compiles", 1) != 0)
    return fail(DiagnosticCode::E9001, "the cold process compiled nothing, or the second compiled again");
  row.compile_ms.push_back(cold->result.at("compile_call_ms"));
  row.init_ms.push_back(cold->result.at("device_init_ms"));
  row.peak_mib.push_back(cold->result.at("peak_resident_bytes").get<double>() / 1048576);
  row.load_ms.push_back(cached->result.at("compile_call_ms"));
  row.start_ms.push_back(cached->mark_ms.at("first-result"));
  return {};
}

void measure_execute(const StageRunner& runner, const LifecycleOptions& options, LifecycleReport& report) {
  StageRequest r;
  r.kind = StageKind::Contest;
  r.contenders = {{"tile:kernels/elementwise.tile:add", "add:1", "f32"}};
  r.workload = "add:1";
  r.dtypes = "f32";
  r.rounds = 21;
  r.seed = options.seed;
  auto outcome = runner.run(r);
  if (!outcome) {
    report.execute_not_run = outcome.error().message;
    return;
  }
  const Contestant add = parse_contest(outcome->result).front();
  report.execute_not_run = add.refused + add.wrong;
  for (double ms : add.ms) report.execute_ns.push_back(ms * 1e6);
}

double middle(const std::vector<double>& samples) { return measure::median(measure::sorted(samples)); }

std::string cell(const std::vector<double>& samples, double goal, const char* unit) {
  if (samples.empty()) return "not-run";
  const auto ci = measure::median_interval(measure::sorted(samples), 0.95);
  std::string out = fmt::format("{:.3g} {}", middle(samples), unit);
  if (ci) out += fmt::format(" [{:.3g}, {:.3g}]", ci->low, ci->high);
  if (goal > 0) out += fmt::format(" {}", middle(samples) <= goal ? "met" : "missed");
  return out;
}

json samples_json(const std::vector<double>& samples, double goal) {
  if (samples.empty()) return "not-run";
  json out{{"median", middle(samples)}, {"samples", samples}};
  if (goal > 0) out["goal"] = {{"most", goal}, {"state", middle(samples) <= goal ? "met" : "missed"}};
  return out;
}

}  // namespace

Result<LifecycleReport> run_lifecycle_suite(const LifecycleOptions& options) {
  LifecycleReport report;
  for (LifecycleRow& row : rows_of_table()) {
    const std::string text = fmt::format("{} {}", row.kernel, row.workload);
    if (text.find(options.filter) != std::string::npos) report.rows.push_back(std::move(row));
  }
  if (report.rows.empty())
    return fail(DiagnosticCode::E1600,
                fmt::format("no row of suite {} has '{}' in it", kLifecycleSuite, options.filter),
                "rows are named by kernel and workload, e.g. matmul or softmax");
  constexpr double kPairMs = 350;
  const double row_ms = kPairMs * options.processes;
  Progress progress(options.show_progress, row_ms * static_cast<double>(report.rows.size()) + 2000);
  const StageRunner runner(options.executable, std::chrono::milliseconds(options.timeout_ms), [&] { progress.tick(); });
  for (LifecycleRow& row : report.rows) {
    progress.begin(fmt::format("{} in fresh processes", row.kernel), row_ms);
    for (int i = 0; i < options.processes && row.not_run.empty(); ++i) {
      if (auto added = add_pair(runner, request_of(options, row), row); !added) row.not_run = added.error().message;
      if (auto empty = runner.run(StageRequest{}); empty) report.empty_start_ms.push_back(empty->mark_ms.at("ready"));
    }
  }
  progress.begin("one launch", 2000);
  measure_execute(runner, options, report);
  return report;
}

std::string render_lifecycle(const LifecycleReport& report, bool markdown) {
  std::vector<TextLine> lines{{"kernel", "compile, cold", "goal", "opening LLVM", "load, cached",
                               "start to first result", "peak of the compiling process"}};
  for (const LifecycleRow& row : report.rows) {
    lines.push_back({std::string(row.kernel), cell(row.compile_ms, row.goal_ms, "ms"),
                     fmt::format("{:g} ms", row.goal_ms), cell(row.init_ms, 0, "ms"),
                     cell(row.load_ms, kLoadGoalMs, "ms"), cell(row.start_ms, kStartGoalMs, "ms"),
                     cell(row.peak_mib, kPeakGoalMib, "MiB")});
  }
  std::string out = fmt::format("{}{}: our compiler and run time, medians of fresh processes with 95 % intervals\n\n",
                                markdown ? "### " : "", kLifecycleSuite);
  out += draw_table(lines, markdown) + "\n";
  out += fmt::format("goals: load {:g} ms, start {:g} ms, peak 100 MB; a process that opens nothing starts in {}\n",
                     kLoadGoalMs, kStartGoalMs, cell(report.empty_start_ms, 0, "ms"));
  out += fmt::format("one launch on one element, the kernel included: {} (own work alone: runtime_test, Overhead.*)\n",
                     cell(report.execute_ns, 0, "ns"));
  for (const LifecycleRow& row : report.rows) {
    if (!row.not_run.empty()) out += fmt::format("not run: {}: {}\n", row.kernel, row.not_run);
  }
  if (!report.execute_not_run.empty()) out += fmt::format("not run: one launch: {}\n", report.execute_not_run);
  return out + fmt::format("versions: {}\n", measure::cpu_model());
}

json to_json(const LifecycleReport& report) {
  json out{{"suite", kLifecycleSuite},
           {"environment", measure::environment_facts()},
           {"empty_start_ms", samples_json(report.empty_start_ms, 0)},
           {"execute_ns", samples_json(report.execute_ns, 0)},
           {"rows", json::array()}};
  for (const LifecycleRow& row : report.rows) {
    json one{{"kernel", row.kernel},
             {"workload", row.workload},
             {"compile_ms", samples_json(row.compile_ms, row.goal_ms)},
             {"open_llvm_ms", samples_json(row.init_ms, 0)},
             {"load_ms", samples_json(row.load_ms, kLoadGoalMs)},
             {"start_ms", samples_json(row.start_ms, kStartGoalMs)},
             {"peak_mib", samples_json(row.peak_mib, kPeakGoalMib)}};
    if (!row.not_run.empty()) one["not_run"] = row.not_run;
    out["rows"].push_back(std::move(one));
  }
  return out;
}

}  // namespace tilewright::bench
