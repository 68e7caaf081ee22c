#include "bench/harness.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "base/hash.h"
#include "bench/candidate_run.h"
#include "bench/record/cell_log.h"
#include "bench/reference_selection.h"
#include "bench/stage_cells.h"
#include "measure/machine.h"

namespace tilewright::bench {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr double kSelectionMs = 6000;

std::string device_name(const BenchOptions& options, const Roofline& roofline) {
  if (options.device == "cpu") return measure::cpu_device_name(options.threads);
  return roofline.device.empty() ? options.device : roofline.device;
}

bool takes_part(const BenchOptions& options, const std::string& candidate, const Workload& workload) {
  return !options.is_wanted || options.is_wanted(candidate, workload);
}

/// No library has an operator for a kernel's own expression; what the user names is asked.
bool tries_references(const BenchOptions& options, const Workload& workload) {
  return !options.references.empty() && (workload.operation != Operation::Kernel || options.references_are_named);
}

/// How many candidates and references will run their whole life: only the progress line asks.
double planned_ms(const BenchOptions& options) {
  double total = 1500;
  for (const Workload& workload : options.workloads) {
    const bool tries = tries_references(options, workload);
    if (tries) total += kSelectionMs;
    const double references = tries ? std::min<double>(2, static_cast<double>(options.references.size())) : 0;
    total += references * expected_ms(options.budget, true);
    for (const std::string& candidate : options.candidates) {
      if (takes_part(options, candidate, workload)) total += expected_ms(options.budget, false);
    }
  }
  return total;
}

/// The references of this workload; why there are fewer than were named goes into the notes.
Result<ReferenceSelection> choose_references(const BenchOptions& options, const StageRunner& runner,
                                             const Workload& workload, BenchReport& report) {
  if (!tries_references(options, workload)) return ReferenceSelection{};
  auto folder = PrivateFolder::create(options.out, "work");
  if (!folder) return std::unexpected(folder.error());
  auto selection = try_references(options, runner, workload, folder->path().string());
  if (!selection) {
    report.notes.push_back(fmt::format("no reference for {}: {}", workload_key(workload), selection.error().message));
    return ReferenceSelection{};
  }
  if (!selection->text.empty())
    report.notes.push_back(fmt::format("references tried on {}:{}", workload_key(workload), selection->text));
  return selection;
}

/// Whether any candidate of this workload can be opened at all: if not, its references would be measured for nothing.
Result<bool> any_opens(const BenchOptions& options, const StageRunner& runner, const Workload& workload) {
  bool any = false;
  for (const std::string& spelling : options.candidates) {
    if (!takes_part(options, spelling, workload)) continue;
    StageRequest r;
    r.kind = StageKind::Import;
    r.candidate = spelling;
    r.workload = workload_key(workload);
    r.dtypes = to_string(workload.dtypes);
    r.lengths = workload.lengths;
    r.question = workload.question;
    r.device = options.device;
    r.threads = options.threads;
    r.timeout_ms = options.timeout_ms;
    const auto opened = runner.run(r);
    // What is no candidate at all is a mistake of the command line, told before anything is measured.
    if (!opened && opened.error().code == DiagnosticCode::E3200) return std::unexpected(opened.error());
    any |= opened.has_value();
  }
  return any;
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

/// Warm times of separate processes and times in turn within one need not agree; when they are far apart, the reader
/// should know before believing either.
void note_disagreement(const Outcome& outcome, const Outcome* best, BenchReport& report) {
  constexpr double kFar = 1.5;
  const auto pairs = outcome.value(Stage::Ratio);
  if (!pairs || best == nullptr) return;
  const double alone = *outcome.value(Stage::Warm) / *best->value(Stage::Warm);
  if (std::max(*pairs / alone, alone / *pairs) < kFar) return;
  report.notes.push_back(
      fmt::format("{} on {}: × {:.3g} against {} in turn within one process, but × {:.3g} by the warm times of each "
                  "alone: one of them suffers from the other's threads or from other work here; use --threads 1 or an "
                  "idle machine",
                  outcome.candidate, outcome.subject.shape, 1 / *pairs, best->candidate, 1 / alone));
}

}  // namespace

/// Our own stage: the patience with candidates is not meant for it.
Result<Roofline> find_roofline(const BenchOptions& options) {
  const StageRunner runner(options.executable, std::chrono::minutes(2), {});
  StageRequest request;
  request.kind = StageKind::Roofline;
  request.device = options.device;
  request.rounds = options.budget.roofline_repeats;
  request.threads = options.threads;
  auto outcome = runner.run(request);
  if (!outcome) return std::unexpected(outcome.error());
  return parse_roofline(outcome->result);
}

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

namespace {

json environment_of(int threads) {
  auto facts = measure::environment_facts();
  facts["threads"] = std::to_string(threads);
  return facts;
}

}  // namespace

std::string environment_digest(int threads) { return sha256_hex(environment_of(threads).dump()); }

std::string record_environment(int threads, const fs::path& out) {
  const std::string text = environment_of(threads).dump(2) + "\n";
  const std::string digest = environment_digest(threads);
  std::error_code error;
  const fs::path path = out / fmt::format("environment-{}.json", digest.substr(0, 12));
  if (!fs::exists(path, error)) std::ofstream(path) << text;
  return digest;
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
  Progress progress(options.show_progress, planned_ms(options));
  const StageRunner runner(options.executable, std::chrono::milliseconds(options.timeout_ms), [&] { progress.tick(); });
  const std::string environment = record_environment(options.threads, options.out);
  progress.begin("ceilings of this machine", 1500);
  auto roofline = find_roofline(options);
  if (roofline)
    report.roofline = *roofline;
  else
    report.notes.push_back(fmt::format("ceilings not-run: {}", roofline.error().message));

  RunContext context{
      options, *log, runner, progress, environment, report.roofline, {}, device_name(options, report.roofline)};
  for (const Workload& workload : options.workloads) {
    std::vector<Outcome> rivals, judged;
    const auto opens = any_opens(options, runner, workload);
    if (!opens) return std::unexpected(opens.error());
    const bool has_rivals = tries_references(options, workload) && *opens;
    if (has_rivals) progress.begin("references on " + workload_key(workload), kSelectionMs);
    auto selection = has_rivals ? choose_references(options, runner, workload, report) : ReferenceSelection{};
    if (!selection) return std::unexpected(selection.error());
    context.references = *selection;
    for (const std::string& spelling : selection->chosen) {
      auto outcome = run_candidate(context, workload, spelling, true);
      if (!outcome) return std::unexpected(outcome.error());
      rivals.push_back(std::move(*outcome));
    }
    for (const std::string& spelling : options.candidates) {
      if (!takes_part(options, spelling, workload)) continue;
      auto outcome = run_candidate(context, workload, spelling, false);
      if (!outcome) return std::unexpected(outcome.error());
      const Outcome* best = best_reference(rivals, outcome->subject, spelling);
      if (auto ok = run_ratio(context, workload, *outcome, best); !ok) return std::unexpected(ok.error());
      note_disagreement(*outcome, best, report);
      judged.push_back(std::move(*outcome));
    }
    std::ranges::move(judged, std::back_inserter(report.outcomes));
    std::ranges::move(rivals, std::back_inserter(report.outcomes));
  }
  return report;
}

}  // namespace tilewright::bench
