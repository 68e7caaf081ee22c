#include "tune/trial_process.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "measure/clock.h"
#include "measure/latin_square.h"
#include "measure/order_statistics.h"
#include "tune/forked_process.h"

namespace tilewright::tune {
namespace {

using nlohmann::json;

int64_t after(double seconds) { return measure::kernel_ns() + static_cast<int64_t>(seconds * 1e9); }
double ms_since(int64_t start_ns) { return static_cast<double>(measure::kernel_ns() - start_ns) * 1e-6; }

TrialState state_of(const Diagnostic& diagnostic) {
  const bool is_refusal = code_text(diagnostic.code).starts_with("E2") || diagnostic.code == DiagnosticCode::E3201;
  return is_refusal ? TrialState::Refused : TrialState::CompileFailed;
}

json failure_line(TrialState state, const std::string& reason) { return {{"state", name(state)}, {"reason", reason}}; }

/// Loads and says so; null after having told the parent why not.
std::unique_ptr<LoadedTrial> load_and_tell(TrialRunner& runner, const Config& config, ParentChannel& channel) {
  const int64_t start_ns = measure::kernel_ns();
  Result<std::unique_ptr<LoadedTrial>> loaded = runner.load(config);
  if (!loaded) {
    const Diagnostic& error = loaded.error();
    channel.send(failure_line(state_of(error), fmt::format("[{}] {}", code_text(error.code), error.message)).dump());
    return nullptr;
  }
  channel.send(
      json{{"state", "loaded"}, {"compile_ms", ms_since(start_ns)}, {"artefact_digest", (*loaded)->artefact_digest()}}
          .dump());
  return std::move(*loaded);
}

/// Check, samples, check again.
json measure_trial(LoadedTrial& trial, const TrialLimits& limits) {
  const Result<std::string> before = trial.check(limits.seed);
  if (!before) return failure_line(TrialState::Wrong, before.error().message);
  measure::StopMachine stop(limits.stop);
  const int64_t start_ns = measure::kernel_ns();
  measure::StopReason reason = measure::StopReason::Continue;
  while (reason == measure::StopReason::Continue) {
    const Result<double> sample = trial.launch_ms();
    if (!sample) return failure_line(TrialState::Wrong, sample.error().message);
    reason = stop.add(*sample, ms_since(start_ns));
  }
  const Result<std::string> afterwards = trial.check(limits.seed + 1);
  if (!afterwards) return failure_line(TrialState::Wrong, "after timing: " + afterwards.error().message);
  return {
      {"state", "ok"}, {"samples", stop.samples()}, {"stop_reason", measure::name(reason)}, {"output_digest", *before}};
}

void trial_body(TrialRunner& runner, const Config& config, const TrialLimits& limits, ParentChannel& channel) {
  const std::unique_ptr<LoadedTrial> loaded = load_and_tell(runner, config, channel);
  if (!loaded || !channel.receive()) return;
  channel.send(measure_trial(*loaded, limits).dump());
}

void end_badly(Trial& trial, const ForkedProcess& child, const char* when) {
  trial.state = child.end() == ForkedProcess::End::TimedOut ? TrialState::Hung : TrialState::Crashed;
  trial.reason = fmt::format("{}: {}", when, child.describe_end());
}

void take_failure(Trial& trial, const json& line) {
  trial.state = parse_trial_state(line.value("state", "")).value_or(TrialState::Crashed);
  trial.reason = line.value("reason", "");
}

void summarise(Trial& trial, const json& line) {
  trial.state = TrialState::Ok;
  trial.samples_ms = line.at("samples").get<std::vector<double>>();
  trial.stop_reason = line.at("stop_reason").get<std::string>();
  trial.output_digest = line.at("output_digest").get<std::string>();
  const std::vector<double> ascending = measure::sorted(trial.samples_ms);
  trial.median_ms = measure::median(ascending);
  const auto interval = measure::median_interval(ascending, 0.95);
  trial.ci_low_ms = interval ? interval->low : ascending.front();
  trial.ci_high_ms = interval ? interval->high : ascending.back();
}

struct RunningTrial {
  Trial trial;
  ForkedProcess child;
  bool is_loaded = false;
};

void await_load(RunningTrial& running, int64_t deadline_ns) {
  const std::optional<std::string> line = running.child.read_line(deadline_ns);
  if (!line) return end_badly(running.trial, running.child, "while compiling");
  const json said = json::parse(*line, nullptr, false);
  if (!said.is_object() || said.value("state", "") != "loaded")
    return take_failure(running.trial, said.is_object() ? said : json::object());
  running.trial.compile_ms = said.value("compile_ms", 0.0);
  running.trial.artefact_digest = said.value("artefact_digest", "");
  running.is_loaded = true;
}

void await_measurement(RunningTrial& running, double timeout_s) {
  const int64_t start_ns = measure::kernel_ns();
  running.child.send("go");
  const std::optional<std::string> line = running.child.read_line(after(timeout_s));
  const json said = line ? json::parse(*line, nullptr, false) : json();
  if (!line) {
    end_badly(running.trial, running.child, "while running");
  } else if (said.is_object() && said.value("state", "") == "ok" && !said.value("samples", json::array()).empty()) {
    summarise(running.trial, said);
  } else {
    take_failure(running.trial, said.is_object() ? said : json::object());
  }
  running.trial.spent_ms += ms_since(start_ns);
}

}  // namespace

Status run_trials(TrialRunner& runner, const Space& space, const std::vector<size_t>& points, int jobs,
                  const TrialLimits& limits, const std::function<Status(const Trial&)>& done) {
  const size_t width = static_cast<size_t>(std::max(1, jobs));
  for (size_t begin = 0; begin < points.size(); begin += width) {
    std::vector<RunningTrial> batch;
    const int64_t start_ns = measure::kernel_ns();
    for (size_t i = begin; i < std::min(begin + width, points.size()); ++i) {
      const Config& config = space.points()[points[i]];
      Result<ForkedProcess> child =
          ForkedProcess::start([&](ParentChannel& channel) { trial_body(runner, config, limits, channel); });
      if (!child) return std::unexpected(child.error());
      batch.push_back({Trial{.point = points[i], .config = config}, std::move(*child)});
    }
    for (RunningTrial& running : batch)
      await_load(running, start_ns + static_cast<int64_t>(limits.compile_timeout_s * 1e9));
    // The batch compiled side by side: its wall time is shared, so that the sum of all trials is the time spent.
    const double share_ms = ms_since(start_ns) / static_cast<double>(batch.size());
    for (RunningTrial& running : batch) {
      running.trial.spent_ms = share_ms;
      if (running.is_loaded) await_measurement(running, limits.run_timeout_s);
      running.child.kill();
      if (Status status = done(running.trial); !status) return status;
    }
  }
  return {};
}

namespace {

/// Tells what it is about to do, so that the parent knows who is to blame for a death.
void runoff_body(TrialRunner& runner, const Space& space, const std::vector<size_t>& points, const TrialLimits& limits,
                 ParentChannel& channel) {
  std::vector<std::unique_ptr<LoadedTrial>> loaded;
  const auto blame = [&](size_t at, TrialState state, const std::string& reason) {
    json line = failure_line(state, reason);
    line["failed"] = at;
    channel.send(line.dump());
  };
  const auto about_to = [&](size_t at) { channel.send(json{{"at", at}}.dump()); };
  for (size_t i = 0; i < points.size(); ++i) {
    about_to(i);
    Result<std::unique_ptr<LoadedTrial>> one = runner.load(space.points()[points[i]]);
    if (!one) return blame(i, state_of(one.error()), one.error().message);
    const Result<std::string> checked = (*one)->check(limits.seed);
    if (!checked) return blame(i, TrialState::Wrong, checked.error().message);
    loaded.push_back(std::move(*one));
  }
  std::vector<std::vector<double>> samples(points.size());
  for (const std::vector<int>& round :
       measure::latin_rounds(static_cast<int>(points.size()), limits.runoff_rounds, limits.seed)) {
    for (const int i : round) {
      about_to(static_cast<size_t>(i));
      const Result<double> sample = loaded[static_cast<size_t>(i)]->launch_ms();
      if (!sample) return blame(static_cast<size_t>(i), TrialState::Wrong, sample.error().message);
      samples[static_cast<size_t>(i)].push_back(*sample);
    }
  }
  for (size_t i = 0; i < points.size(); ++i) {
    about_to(i);
    const Result<std::string> checked = loaded[i]->check(limits.seed + 1);
    if (!checked) return blame(i, TrialState::Wrong, "after timing: " + checked.error().message);
  }
  channel.send(json{{"samples", samples}}.dump());
}

/// One attempt: the samples, or who failed.
struct Attempt {
  std::vector<std::vector<double>> samples;
  size_t failed = 0;
  Trial trial;
};

Result<Attempt> attempt_runoff(TrialRunner& runner, const Space& space, const std::vector<size_t>& points,
                               const TrialLimits& limits) {
  Result<ForkedProcess> child =
      ForkedProcess::start([&](ParentChannel& channel) { runoff_body(runner, space, points, limits, channel); });
  if (!child) return std::unexpected(child.error());
  Attempt attempt;
  for (;;) {
    const std::optional<std::string> line = child->read_line(after(limits.compile_timeout_s + limits.run_timeout_s));
    if (!line) {
      end_badly(attempt.trial, *child, "in the runoff");
      return attempt;
    }
    const json said = json::parse(*line, nullptr, false);
    if (!said.is_object()) continue;
    if (said.contains("at")) attempt.failed = said["at"].get<size_t>();
    if (said.contains("samples")) {
      attempt.samples = said["samples"].get<std::vector<std::vector<double>>>();
      return attempt;
    }
    if (said.contains("failed")) {
      take_failure(attempt.trial, said);
      return attempt;
    }
  }
}

}  // namespace

Result<RunoffTimes> run_runoff(TrialRunner& runner, const Space& space, std::vector<size_t> points,
                               const TrialLimits& limits) {
  RunoffTimes times;
  while (!points.empty()) {
    Result<Attempt> attempt = attempt_runoff(runner, space, points, limits);
    if (!attempt) return std::unexpected(attempt.error());
    if (attempt->samples.size() == points.size()) {
      for (size_t i = 0; i < points.size(); ++i)
        times.contestants.push_back({points[i], std::move(attempt->samples[i])});
      return times;
    }
    const size_t lost = std::min(attempt->failed, points.size() - 1);
    attempt->trial.point = points[lost];
    attempt->trial.config = space.points()[points[lost]];
    times.lost.push_back(std::move(attempt->trial));
    points.erase(points.begin() + static_cast<ptrdiff_t>(lost));
  }
  return times;
}

}  // namespace tilewright::tune
