#include "tune/session.h"

#include <fmt/format.h>

#include <algorithm>

#include "measure/clock.h"

namespace tilewright::tune {
namespace {

class Session {
 public:
  Session(const Space& space, TrialRunner& runner, const TuneOptions& options,
          const std::function<void(const TuneProgress&)>& progress)
      : space_(space), runner_(runner), options_(options), progress_(progress) {}

  Result<TuneOutcome> run() {
    if (space_.points().empty()) {
      return fail(DiagnosticCode::E1650,
                  fmt::format("no point of the space is left: all {} are pruned", space_.pruned().size()),
                  "read the reasons and widen the space");
    }
    if (Status status = find_incumbent(); !status) return std::unexpected(status.error());
    Result<TrialLog> log = TrialLog::open(options_.log, {runner_.identity(), space_.digest(), options_.seed});
    if (!log) return std::unexpected(log.error());
    const int64_t start_ns = measure::kernel_ns();
    if (Status status = search(*log); !status) return std::unexpected(status.error());
    if (Status status = hold_runoff(*log); !status) return std::unexpected(status.error());
    if (Status status = confirm(); !status) return std::unexpected(status.error());
    outcome_.spent_ms = earlier_ms_ + static_cast<double>(measure::kernel_ns() - start_ns) * 1e-6;
    for (const Trial& trial : outcome_.trials) outcome_.compile_ms += trial.compile_ms;
    return std::move(outcome_);
  }

 private:
  Status find_incumbent() {
    outcome_.incumbent = options_.incumbent ? space_.find(*options_.incumbent) : space_.default_point();
    if (options_.incumbent && !outcome_.incumbent) {
      return fail(DiagnosticCode::E1650,
                  fmt::format("the required incumbent {} is not a point of the space", to_string(*options_.incumbent)),
                  "add its values to the space, or tune without --require");
    }
    return {};
  }

  Status search(TrialLog& log) {
    std::map<size_t, Trial> known;
    for (const Trial& trial : log.resumed()) {
      if (trial.point < space_.points().size() && space_.points()[trial.point] == trial.config)
        known[trial.point] = trial;
    }
    Search search(
        space_,
        {.runs = options_.runs, .seed = options_.seed, .budget_s = options_.budget_s, .incumbent = outcome_.incumbent});
    for (std::vector<size_t> batch = search.next(0); !batch.empty(); batch = search.next(spent_ms_ / 1e3)) {
      std::vector<size_t> fresh;
      std::map<size_t, Trial> results;
      for (const size_t point : batch) {
        if (const auto it = known.find(point); it != known.end()) {
          ++outcome_.resumed;
          earlier_ms_ += it->second.spent_ms;
          results[point] = it->second;
          spent_ms_ += it->second.spent_ms;
        } else {
          fresh.push_back(point);
        }
      }
      const Status status =
          run_trials(runner_, space_, fresh, options_.jobs, options_.limits, [&](const Trial& trial) -> Status {
            results[trial.point] = trial;
            spent_ms_ += trial.spent_ms;
            report(static_cast<int64_t>(outcome_.trials.size() + results.size()), search.planned(), trial);
            return log.append(trial);
          });
      if (!status) return status;
      for (const size_t point : batch) {
        const Trial& trial = results.at(point);
        search.record(point, trial.is_ok(), trial.median_ms);
        outcome_.trials.push_back(trial);
      }
    }
    outcome_.out_of_budget = search.ran_out_of_budget();
    finalists_ = search.best(options_.top);
    if (!finalists_.empty()) return {};
    std::string states;
    for (const auto& [state, count] : count_states(outcome_.trials))
      states += fmt::format("{}{} {}", states.empty() ? "" : ", ", count, state);
    return fail(DiagnosticCode::E1654,
                fmt::format("none of {} configurations gives a correct result: {}", outcome_.trials.size(), states),
                fmt::format("the reasons are in {}", options_.log.string()));
  }

  void report(int64_t done, int64_t planned, const Trial& trial) const {
    if (progress_) progress_({done, planned, spent_ms_ / 1e3, &trial});
  }

  Trial* find_trial(size_t point) {
    const auto it = std::ranges::find(outcome_.trials, point, &Trial::point);
    return it != outcome_.trials.end() ? &*it : nullptr;
  }

  Status hold_runoff(TrialLog& log) {
    const Trial* incumbent = outcome_.incumbent ? find_trial(*outcome_.incumbent) : nullptr;
    std::vector<size_t> points;
    if (incumbent && incumbent->is_ok()) points.push_back(incumbent->point);
    for (const size_t point : finalists_) {
      if (points.empty() || point != points.front() || !(incumbent && incumbent->is_ok())) points.push_back(point);
    }
    Result<RunoffTimes> times = run_runoff(runner_, space_, points, options_.limits);
    if (!times) return std::unexpected(times.error());
    for (const Trial& lost : times->lost) {
      if (Status status = log.append(lost); !status) return status;
      if (Trial* trial = find_trial(lost.point)) *trial = lost;
    }
    if (times->contestants.empty()) {
      return fail(DiagnosticCode::E1654, fmt::format("none of {} contestants came through the runoff", points.size()),
                  fmt::format("the reasons are in {}", options_.log.string()));
    }
    const bool incumbent_lives =
        incumbent && incumbent->is_ok() && times->contestants.front().point == incumbent->point;
    outcome_.runoff =
        judge_runoff(times->contestants, {.paired = options_.paired, .first_is_incumbent = incumbent_lives});
    outcome_.winner = *find_trial(outcome_.runoff.winner);
    return {};
  }

  Status confirm() {
    Result<measure::ProcessSummary> winner =
        measure_in_processes(space_, runner_, outcome_.winner.point, options_.confirm_processes, options_.limits);
    if (!winner) return std::unexpected(winner.error());
    outcome_.confirmed = std::move(*winner);
    const std::optional<size_t> initial = space_.default_point();
    if (initial == outcome_.winner.point) outcome_.confirmed_default = outcome_.confirmed;
    const Trial* tried = initial ? find_trial(*initial) : nullptr;
    if (!tried || !tried->is_ok() || initial == outcome_.winner.point) return {};
    Result<measure::ProcessSummary> usual =
        measure_in_processes(space_, runner_, *initial, options_.confirm_processes, options_.limits);
    if (usual) outcome_.confirmed_default = std::move(*usual);
    return {};
  }

  const Space& space_;
  TrialRunner& runner_;
  const TuneOptions& options_;
  const std::function<void(const TuneProgress&)>& progress_;
  TuneOutcome outcome_;
  std::vector<size_t> finalists_;
  double spent_ms_ = 0;
  double earlier_ms_ = 0;
};

}  // namespace

Result<TuneOutcome> tune(const Space& space, TrialRunner& runner, const TuneOptions& options,
                         const std::function<void(const TuneProgress&)>& progress) {
  return Session(space, runner, options, progress).run();
}

Result<measure::ProcessSummary> measure_in_processes(const Space& space, TrialRunner& runner, size_t point,
                                                     int processes, const TrialLimits& limits, Trial* last) {
  std::vector<std::vector<double>> samples;
  for (int i = 0; i < processes; ++i) {
    Trial seen;
    const Status status = run_trials(runner, space, {point}, 1, limits, [&](const Trial& trial) -> Status {
      seen = trial;
      return {};
    });
    if (!status) return std::unexpected(status.error());
    if (!seen.is_ok()) {
      return fail(DiagnosticCode::E1654,
                  fmt::format("{} was correct in the search and is {} in process {} of {}: {}", to_string(seen.config),
                              name(seen.state), i + 1, processes, seen.reason));
    }
    samples.push_back(seen.samples_ms);
    if (last) *last = std::move(seen);
  }
  return measure::summarize(samples);
}

std::map<std::string, int64_t> count_states(const std::vector<Trial>& trials) {
  std::map<std::string, int64_t> counts;
  for (const Trial& trial : trials) ++counts[std::string(name(trial.state))];
  return counts;
}

}  // namespace tilewright::tune
