#include "bench/harness.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "base/hash.h"
#include "bench/candidate_run.h"
#include "bench/record/cell_log.h"
#include "measure/machine.h"

namespace tilewright::bench {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string device_name(const BenchOptions& options) {
  return options.device == "cpu" ? measure::cpu_device_name(options.threads) : options.device;
}

/// References that can be opened here; the others become notes.
std::vector<std::string> usable_references(const BenchOptions& options, const StageRunner& runner,
                                           std::vector<std::string>& notes) {
  std::vector<std::string> out;
  for (const std::string& spelling : options.references) {
    StageRequest request;
    request.kind = StageKind::Import;
    request.candidate = spelling;
    request.device = options.device;
    request.threads = options.threads;
    request.timeout_ms = options.timeout_ms;
    const auto outcome = runner.run(request);
    if (outcome)
      out.push_back(spelling);
    else
      notes.push_back(fmt::format("reference {} is left out: {}{}{}", spelling, outcome.error().message,
                                  outcome.error().help.empty() ? "" : " · ", outcome.error().help));
  }
  return out;
}

Result<Roofline> find_roofline(const BenchOptions& options, const StageRunner& runner) {
  StageRequest request;
  request.kind = StageKind::Roofline;
  request.threads = options.threads;
  auto outcome = runner.run(request);
  if (!outcome) return std::unexpected(outcome.error());
  return parse_roofline(outcome->result);
}

std::string record_environment(const BenchOptions& options) {
  auto facts = measure::environment_facts();
  facts["threads"] = std::to_string(options.threads);
  const std::string text = json(facts).dump(2) + "\n";
  const std::string digest = sha256_hex(json(facts).dump());
  std::error_code error;
  const fs::path path = options.out / fmt::format("environment-{}.json", digest.substr(0, 12));
  if (!fs::exists(path, error)) std::ofstream(path) << text;
  return digest;
}

/// What one candidate on one workload takes, roughly; only the progress line uses it.
double expected_ms(const BenchOptions& options) {
  const Budget& b = options.budget;
  return 3000 + b.import_processes * 300 + 2.0 * b.compile_processes * 300 +
         b.warm_processes * (b.warm.timeout_ms * 0.4 + 700) + 4000;
}

/// Fastest measured reference on the same subject: what the candidate has to beat.
const Outcome* best_reference(const std::vector<Outcome>& outcomes, const Subject& subject,
                              const std::string& not_this) {
  const Outcome* best = nullptr;
  for (const Outcome& outcome : outcomes) {
    if (!outcome.is_reference || outcome.subject != subject || outcome.spelling == not_this ||
        !outcome.value(Stage::Warm))
      continue;
    if (best == nullptr || *outcome.value(Stage::Warm) < *best->value(Stage::Warm)) best = &outcome;
  }
  return best;
}

}  // namespace

const Cell* Outcome::find(Stage stage) const {
  for (const Cell& cell : cells) {
    if (cell.stage == stage) return &cell;
  }
  return nullptr;
}

std::optional<double> Outcome::value(Stage stage) const {
  const Cell* cell = find(stage);
  return cell != nullptr && cell->state == State::Measured ? cell->value : std::nullopt;
}

Result<BenchReport> run_bench(const BenchOptions& options) {
  std::error_code error;
  fs::create_directories(options.out, error);
  if (error)
    return fail(DiagnosticCode::E3300, fmt::format("cannot create {}: {}", options.out.string(), error.message()));
  auto log = CellLog::open(options.out / "cells.jsonl");
  if (!log) return std::unexpected(log.error());
  for (const auto& entry : fs::directory_iterator(options.out, error)) {
    if (entry.path().filename().string().starts_with("work-")) fs::remove_all(entry.path(), error);  // of a killed run
  }
  BenchReport report;
  report.out = options.out;
  const size_t pairs = options.workloads.size() * (options.candidates.size() + options.references.size());
  Progress progress(options.show_progress, expected_ms(options) * static_cast<double>(pairs));
  const StageRunner runner(options.executable, std::chrono::milliseconds(options.timeout_ms), [&] { progress.tick(); });
  const std::string environment = record_environment(options);
  const std::vector<std::string> references = usable_references(options, runner, report.notes);
  auto roofline = find_roofline(options, runner);
  if (!roofline) return std::unexpected(roofline.error());
  report.roofline = *roofline;

  RunContext context{options, *log, runner, progress, environment, report.roofline, references, device_name(options)};
  for (const Workload& workload : options.workloads) {
    std::vector<Outcome> rivals, judged;
    for (const std::string& spelling : references) {
      if (std::ranges::find(options.candidates, spelling) != options.candidates.end()) continue;
      auto outcome = run_candidate(context, workload, spelling, true);
      if (!outcome) return std::unexpected(outcome.error());
      rivals.push_back(std::move(*outcome));
    }
    for (const std::string& spelling : options.candidates) {
      auto outcome = run_candidate(context, workload, spelling, false);
      if (!outcome) return std::unexpected(outcome.error());
      const Outcome* best = best_reference(rivals, outcome->subject, spelling);
      if (auto ok = run_ratio(context, workload, *outcome, best); !ok) return std::unexpected(ok.error());
      judged.push_back(std::move(*outcome));
    }
    std::ranges::move(judged, std::back_inserter(report.outcomes));
    std::ranges::move(rivals, std::back_inserter(report.outcomes));
  }
  return report;
}

}  // namespace tilewright::bench
