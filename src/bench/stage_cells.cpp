#include "bench/stage_cells.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "bench/clock_check.h"
#include "measure/paired.h"
#include "measure/process_summary.h"

namespace tilewright::bench {
namespace {

using nlohmann::json;

constexpr double kNothingMs = 20;        // a compile that counts nothing and takes less is none
constexpr size_t kStoredSamples = 1000;  // per process; evenly thinned beyond

std::vector<double> thinned(const std::vector<double>& samples) {
  if (samples.size() <= kStoredSamples) return samples;
  std::vector<double> out;
  for (size_t i = 0; i < kStoredSamples; ++i) out.push_back(samples[i * samples.size() / kStoredSamples]);
  return out;
}

/// Fills value, interval, counts and samples from several processes.
void set_summary(Cell& cell, const std::vector<std::vector<double>>& samples) {
  const measure::ProcessSummary summary = measure::summarize(samples);
  cell.state = State::Measured;
  cell.value = summary.value;
  if (summary.interval) cell.ci = Interval{summary.interval->low, summary.interval->high, summary.interval->level};
  cell.n = summary.samples;
  cell.procs = static_cast<int>(samples.size());
  for (const auto& group : samples) cell.samples.push_back(thinned(group));
  cell.detail["process_medians"] = summary.process_medians;
  cell.detail["between_share"] = summary.between_share;
  cell.detail["outliers"] = summary.outliers;
  const bool is_thinned = std::ranges::any_of(samples, [](const auto& group) { return group.size() > kStoredSamples; });
  if (is_thinned) cell.detail["samples_stored_per_process"] = kStoredSamples;
  if (cell.stop_reason.empty()) cell.stop_reason = "fixed";
}

std::vector<std::vector<double>> one_each(const std::vector<double>& values) {
  std::vector<std::vector<double>> out;
  for (double v : values) out.push_back({v});
  return out;
}

void fail_cell(Cell& cell, std::string reason) {
  cell.state = State::Failed;
  cell.reason = std::move(reason);
  cell.value.reset();
  cell.ci.reset();
}

double first_call_excess(const json& result) {
  const auto launches = result.at("launch_ms").get<std::vector<double>>();
  return launches.front() - *std::max_element(launches.begin() + 1, launches.end());
}

/// The worst of several stop reasons: one process that timed out makes the cell a timeout.
std::string worst_stop(const std::vector<json>& results, const char* field) {
  std::string worst = "precision";
  for (const json& result : results) {
    const std::string stop = result.value(field, "");
    if (stop == "timeout" || (stop == "noise-floor" && worst == "precision")) worst = stop;
  }
  return worst;
}

std::vector<std::vector<double>> gather(const std::vector<json>& results, const char* field) {
  std::vector<std::vector<double>> out;
  for (const json& result : results) out.push_back(result.at(field).get<std::vector<double>>());
  return out;
}

std::optional<std::string> refusal(const std::vector<json>& results, const std::vector<std::vector<double>>& warm,
                                   double floor_ms) {
  for (const json& result : results) {
    const json& clocks = result.at("clocks");
    if (!clocks.value("agree", false)) return disagreement(parse_clock_check(clocks));
    const json& after = result.at("check_after");
    if (!after.empty() && !after.value("accepted", false)) return "wrong-after-timing: " + after.value("reason", "");
  }
  for (const auto& group : warm) {
    if (floor_ms > 0 && *std::min_element(group.begin(), group.end()) < floor_ms) return "faster-than-floor";
  }
  return std::nullopt;
}

}  // namespace

Cell cell_like(const Cell& base, Stage stage) {
  Cell cell = base;
  cell.seq = 0;
  cell.stage = stage;
  cell.state = State::NotRun;
  cell.unit = info(stage).unit;
  cell.started_at = base.started_at;
  cell.ended_at = utc_now();
  return cell;
}

Cell install_cell(const Cell& base, const std::vector<std::string>& paths) {
  namespace fs = std::filesystem;
  Cell cell = cell_like(base, Stage::Install);
  int64_t total = 0;
  std::error_code error;
  for (const std::string& path : paths) {
    if (fs::is_regular_file(path, error)) total += static_cast<int64_t>(fs::file_size(path, error));
    for (fs::recursive_directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
      if (it->is_regular_file(error) && !it->is_symlink(error)) total += static_cast<int64_t>(it->file_size(error));
    }
    error.clear();
  }
  cell.detail["paths"] = paths;
  if (paths.empty()) {
    cell.reason = "the candidate declares no paths";
    return cell;
  }
  cell.state = State::Measured;
  cell.value = static_cast<double>(total);
  cell.n = cell.procs = 1;
  return cell;
}

Cell import_cell(const Cell& base, const std::vector<double>& ready_ms, const std::vector<double>& floor_ms) {
  Cell cell = cell_like(base, Stage::Import);
  set_summary(cell, one_each(ready_ms));
  const auto interval = measure::median_interval(measure::sorted(ready_ms), 0.95);
  cell.ci.reset();
  if (interval) cell.ci = Interval{interval->low, interval->high, interval->level};
  cell.detail["process_floor_ms"] = measure::median(measure::sorted(floor_ms));
  return cell;
}

double compile_ms_of(const json& result) {
  return result.at("compile_call_ms").get<double>() + std::max(0.0, first_call_excess(result));
}

/// A library its vendor compiled has no compile to measure; what its first call takes longer is first_call_ms.
static Cell precompiled_cell(const Cell& base) {
  Cell cell = cell_like(base, Stage::Compile);
  cell.reason = "precompiled: nothing is compiled";
  cell.detail["precompiled"] = true;
  return cell;
}

std::vector<Cell> compile_cells(const Cell& base, const std::vector<json>& results, int64_t outside_bytes) {
  Cell compile = cell_like(base, Stage::Compile), init = cell_like(base, Stage::DeviceInit),
       first = cell_like(base, Stage::FirstCall);
  std::vector<double> compile_ms, init_ms, first_ms, call_ms;
  bool is_cold = true;
  for (const json& result : results) {
    compile_ms.push_back(compile_ms_of(result));
    call_ms.push_back(result.at("compile_call_ms"));
    init_ms.push_back(result.at("device_init_ms"));
    first_ms.push_back(std::max(0.0, first_call_excess(result)));
    is_cold &= result.value("compiles", 0) >= 1 && result.value("cache_hits", 0) == 0;
  }
  set_summary(compile, one_each(compile_ms));
  set_summary(init, one_each(init_ms));
  set_summary(first, one_each(first_ms));
  compile.detail["compile_call_ms"] = call_ms;
  compile.detail["phases_ms"] = results.front().at("phases");
  compile.detail["compiles"] = results.front().value("compiles", 0);
  compile.detail["artefact_digest"] = results.front().value("digest", "");
  const bool counts_nothing = results.front().value("compiles", 0) == 0 && results.front().value("cache_hits", 0) == 0;
  if (counts_nothing && *compile.value < kNothingMs)
    compile = precompiled_cell(base);
  else if (counts_nothing)
    compile.detail["uncounted"] = true;  // what takes so long is work, whatever the counter says
  else if (!is_cold)
    fail_cell(compile, "cache-not-empty");
  if (outside_bytes > 0) {
    fail_cell(compile, "persisting-cache");
    compile.detail["bytes_written_outside_cache"] = outside_bytes;
  }
  return {init, compile, first};
}

Cell load_cell(const Cell& base, const std::vector<json>& results, const json& cold) {
  Cell cell = cell_like(base, Stage::Load);
  std::vector<double> ms;
  for (const json& result : results) ms.push_back(compile_ms_of(result));
  if (cold.value("compiles", 0) == 0) {
    cell.reason = "nothing is compiled, so nothing is cached";
    return cell;
  }
  const bool recompiled = std::ranges::any_of(results, [](const json& r) { return r.value("compiles", 0) != 0; });
  if (recompiled) {
    cell.reason = "the candidate keeps no cache in the folder it was given";
    return cell;
  }
  set_summary(cell, one_each(ms));
  const bool same =
      std::ranges::all_of(results, [&](const json& r) { return r.value("digest", "") == cold.value("digest", ""); });
  if (!same) fail_cell(cell, "artefact-differs");
  return cell;
}

double least_sample(const std::vector<json>& results, const char* field) {
  double least = 1e300;
  for (const std::vector<double>& group : gather(results, field)) {
    for (const double ms : group) least = std::min(least, ms);
  }
  return least;
}

void take_model(Cell& cell, const Cell& measured) {
  cell.state = measured.state;
  cell.reason = measured.reason;
  cell.how_to_run = measured.how_to_run;
  cell.value = measured.value;
  cell.unit = measured.unit;
  cell.ci = measured.ci;
  cell.n = measured.n;
  cell.procs = measured.procs;
  cell.stop_reason = measured.stop_reason;
  cell.samples = measured.samples;
  if (measured.detail.empty()) return;
  cell.detail["model"] = measured.detail;
  if (measured.detail.contains("share")) cell.detail["share"] = measured.detail["share"];
}

void hold_to_check(json& after, const json& check_detail) {
  if (!after.is_object() || after.value("accepted", true)) return;
  const json oracle = check_detail.value("oracle", json::object());
  const json allowed = oracle.value("main", json::object()).value("judgements", json::array());
  const json found = after.value("judgements", json::array());
  if (found.empty() || found.size() != allowed.size()) return;
  for (size_t o = 0; o < found.size(); ++o) {
    const json findings = found[o].value("findings", json::array());
    const bool is_relative =
        std::ranges::all_of(findings, [](const json& f) { return f.value("rule", "") == "relative"; });
    const bool holds = found[o].value("max_error", 1e300) <= allowed[o].value("max_allowed", 0.0) &&
                       found[o].value("rmse", 1e300) <= allowed[o].value("rmse_allowed", 0.0);
    if (!is_relative || (!findings.empty() && !holds)) return;
  }
  after["accepted"] = true;
  after["held_to"] = "the errors the check allowed";
}

std::vector<Cell> warm_cells(const Cell& base, const std::vector<json>& results, double floor_ms) {
  Cell warm = cell_like(base, Stage::Warm), hot = cell_like(base, Stage::Hot);
  const auto warm_samples = gather(results, "warm_ms"), hot_samples = gather(results, "hot_ms");
  warm.stop_reason = worst_stop(results, "warm_stop");
  hot.stop_reason = worst_stop(results, "hot_stop");
  set_summary(warm, warm_samples);
  set_summary(hot, hot_samples);
  json clocks = json::array();
  for (const json& result : results) clocks.push_back(result.at("clocks"));
  warm.detail["clocks"] = clocks;
  warm.detail["flush"] = results.front().value("flush", "");
  warm.detail["floor_ms"] = floor_ms;
  warm.detail["check_after"] = results.back().at("check_after");
  json device_clocks = json::array();
  for (const json& result : results) {
    if (result.contains("device_clocks")) device_clocks.push_back(result["device_clocks"]);
  }
  if (!device_clocks.empty()) warm.detail["device_clocks"] = device_clocks;
  if (const auto why = refusal(results, warm_samples, floor_ms)) {
    fail_cell(warm, *why);
    fail_cell(hot, *why);
  }
  return {warm, hot};
}

std::vector<Cell> sustained_cells(const Cell& base, const json& result) {
  Cell host = cell_like(base, Stage::Host), least = cell_like(base, Stage::LaunchFloor),
       steady = cell_like(base, Stage::Steady), burst = cell_like(base, Stage::Burst);
  host.reason = "a launch on a CPU returns when it is done: all of it is host time";
  if (result.empty()) {
    for (Cell* cell : {&least, &steady, &burst}) {
      cell->reason = "no time in this budget";
      cell->how_to_run = "--budget quick or more";
    }
    return {host, least, steady, burst};
  }
  if (result.contains("floor_ms"))
    set_summary(least, {{result.at("floor_ms").get<double>()}});
  else
    least.reason = "not at extents of 1: " + result.value("floor_refused", "");
  if (result.contains("host_ms")) {
    host.reason.clear();
    set_summary(host, {result.at("host_ms").get<std::vector<double>>()});
  }
  if (result.contains("device_clocks")) steady.detail["device_clocks"] = result["device_clocks"];
  set_summary(steady, {result.at("steady_ms").get<std::vector<double>>()});
  set_summary(burst, {result.at("burst_ms").get<std::vector<double>>()});
  return {host, least, steady, burst};
}

Cell peak_cell(const Cell& base, const json& result) {
  Cell cell = cell_like(base, Stage::Peak);
  set_summary(cell, {{result.at("peak_bytes").get<double>() / (1024.0 * 1024.0)}});
  for (const char* counter : {"declared", "vm_hwm_bytes", "tensor_bytes", "workspace_bytes", "allocator_bytes",
                              "device_bytes", "cgroup_bytes", "host_growth_bytes"}) {
    if (result.contains(counter)) cell.detail[counter] = result[counter];
  }
  return cell;
}

/// Times by a clock that was bent are none.
static bool fail_by_clock(Cell& cell, const json& result) {
  const json clocks = result.value("clocks", json::array());
  for (size_t who = 0; who < clocks.size(); ++who) {
    if (clocks[who].value("agree", true)) continue;
    cell.detail["clock"] = clocks[who];
    fail_cell(cell, fmt::format("{} ({})", disagreement(parse_clock_check(clocks[who])),
                                result.value(who == 0 ? "a_name" : "b_name", "")));
    return true;
  }
  return false;
}

Cell ratio_cell(const Cell& base, const json& result, double delta) {
  Cell cell = cell_like(base, Stage::Ratio);
  cell.detail["rival"] = result.value("b_name", "");
  cell.detail["rival_version"] = result.value("b_version", "");
  if (fail_by_clock(cell, result)) return cell;
  const auto a = result.at("a").get<std::vector<double>>(), b = result.at("b").get<std::vector<double>>();
  const measure::PairedResult paired = measure::compare_paired(a, b, {.delta = delta});
  const auto aa = result.at("aa").get<std::vector<std::vector<double>>>();
  const measure::GateResult gate = measure::judge_identical(aa.at(0), aa.at(1), {.delta = delta});
  cell.state = State::Measured;
  cell.value = paired.ratio;
  if (paired.interval95.level > 0)
    cell.ci = Interval{paired.interval95.low, paired.interval95.high, paired.interval95.level};
  cell.n = paired.rounds;
  cell.procs = 1;
  cell.stop_reason = "fixed";
  cell.samples = {thinned(a), thinned(b)};
  cell.detail["verdict"] = measure::name(paired.verdict);
  cell.detail["ci90"] = {paired.interval90.low, paired.interval90.high};
  cell.detail["delta"] = delta;
  cell.detail["sigma"] = paired.sigma;
  cell.detail["seed"] = result.value("seed", uint64_t{0});
  cell.detail["aa"] = {
      {"ratio", gate.result.ratio}, {"low", gate.result.interval95.low},          {"high", gate.result.interval95.high},
      {"passed", gate.passed},      {"attempts", result.value("aa_attempts", 1)}, {"why", gate.why}};
  cell.detail["aa"]["rounds"] = gate.result.rounds;
  cell.detail["aa_samples"] = aa;
  // Where identical code cannot be told to be the same within the margin, nothing else can.
  if (paired.verdict == measure::Verdict::Same && gate.result.verdict != measure::Verdict::Same) {
    cell.detail["verdict"] = measure::name(measure::Verdict::Inconclusive);
    cell.detail["is_gate_too_wide"] = true;
  }
  if (!gate.passed) {
    fail_cell(cell, fmt::format("noise: A/A gate, {}: the same code against itself gave {:.3g} [{:.3g}, {:.3g}] in the "
                                "last of {} attempts",
                                gate.why, gate.result.ratio, gate.result.interval95.low, gate.result.interval95.high,
                                result.value("aa_attempts", 1)));
  }
  return cell;
}

bool is_missing_device(const Diagnostic& why) {
  return why.code == DiagnosticCode::E3051 || why.code == DiagnosticCode::E3052;
}

Cell broken_cell(const Cell& base, Stage stage, const Diagnostic& why) {
  Cell cell = cell_like(base, stage);
  cell.reason = why.message;
  cell.how_to_run = why.help;
  const bool was_impossible =
      why.code == DiagnosticCode::E3204 || why.code == DiagnosticCode::E3201 || is_missing_device(why);
  cell.state = was_impossible ? State::NotRun : State::Failed;
  cell.detail["error"] = std::string(code_text(why.code));
  return cell;
}

}  // namespace tilewright::bench
