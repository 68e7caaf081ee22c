#include "bench/stage_pair.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "bench/stage_timing.h"
#include "measure/latin_square.h"
#include "measure/paired.h"

namespace tilewright::bench {
namespace {

using nlohmann::json;

constexpr int kPilotRounds = 10;
constexpr int kGateRounds = 24;
constexpr int kGateAttempts = 3;
constexpr int kClockSamples = 15;
constexpr auto kCalm = std::chrono::milliseconds(500);  // between two attempts

struct Rounds {
  std::vector<double> a, b;
};

constexpr double kThreadedMs = 0.2;  // work below this has woken no threads

/// Short kernels are launched several times per round, so that one round is long against the clock and an interrupt.
int launches_per_round(double sample_ms) {
  return std::clamp(static_cast<int>(1.0 / std::max(sample_ms, 1e-4)), 1, 100);
}

class Pair {
 public:
  Pair(Ready& a, Ready& b, StageChannel& channel, uint64_t seed)
      : channel_(channel), seed_(seed), timers_{LaunchTimer(a, channel, seed), LaunchTimer(b, channel, seed)} {}

  Status warm_up() {
    for (LaunchTimer& timer : timers_) {
      if (auto awake = timer.warm_up(); !awake) return awake;
    }
    auto pilot = timers_[0].sample(false);
    if (!pilot) return std::unexpected(pilot.error());
    pilot_ms_ = *pilot;
    return {};
  }

  /// The clock of either contender, by a batch timed from outside.
  Result<json> check_clocks() {
    json out = json::array();
    for (LaunchTimer& timer : timers_) {
      std::vector<double> samples;
      for (int i = 0; i < kClockSamples; ++i) {
        auto ms = timer.sample(false);
        if (!ms) return std::unexpected(ms.error());
        samples.push_back(*ms);
      }
      channel_.step("clock");
      auto check = timer.check_clock(measure::median(measure::sorted(samples)));
      if (!check) return std::unexpected(check.error());
      out.push_back(to_json(*check));
    }
    return out;
  }

  /// Timer 0 against timer `other` (0: against itself).
  Status run(int rounds, int other, Rounds& out) {
    const size_t first = out.a.size();
    out.a.resize(first + static_cast<size_t>(rounds));
    out.b.resize(first + static_cast<size_t>(rounds));
    const auto order = measure::latin_rounds(2, rounds, seed_ + first * 2 + static_cast<uint64_t>(other));
    for (size_t round = 0; round < order.size(); ++round) {
      for (int who : order[round]) {
        auto ms = sample(timers_[who == 0 ? 0 : static_cast<size_t>(other)]);
        if (!ms) return std::unexpected(ms.error());
        (who == 0 ? out.a : out.b)[first + round] = *ms;
      }
      channel_.step("round");
    }
    return {};
  }

 private:
  Result<double> sample(LaunchTimer& timer) {
    if (pilot_ms_ > kThreadedMs) let_threads_sleep();
    if (auto again = timer.sample(false); !again) return again;  // wakes this contender's threads and code, untimed
    std::vector<double> samples;
    for (int i = 0; i < launches_per_round(pilot_ms_); ++i) {
      auto ms = timer.sample(true);
      if (!ms) return ms;
      samples.push_back(*ms);
    }
    return measure::median(measure::sorted(samples));
  }

  StageChannel& channel_;
  uint64_t seed_;
  LaunchTimer timers_[2];
  double pilot_ms_ = 0;
};

/// The candidate against itself, again when a disturbance of the moment spoiled it; how often is told.
Result<int> pass_gate(Pair& pair, double delta, Rounds& gate) {
  for (int attempt = 1;; ++attempt) {
    gate = {};
    if (auto ok = pair.run(kGateRounds, 0, gate); !ok) return std::unexpected(ok.error());
    const bool passed = measure::judge_identical(gate.a, gate.b, {.delta = delta}).passed;
    if (passed || attempt == kGateAttempts) return attempt;
    std::this_thread::sleep_for(kCalm);
  }
}

/// A gate that passed with an interval wider than the margin is too blunt for the verdict: it goes on, nothing is drawn
/// again, until it is fine enough or has as many rounds as the comparison.
Status extend_gate(Pair& pair, double delta, int64_t rounds, Rounds& gate) {
  const auto is_fine = [&] {
    const auto judged = measure::judge_identical(gate.a, gate.b, {.delta = delta});
    return !judged.passed || judged.result.verdict == measure::Verdict::Same;
  };
  while (!is_fine() && std::ssize(gate.a) < rounds) {
    const int more = static_cast<int>(std::min<int64_t>(kGateRounds, rounds - std::ssize(gate.a)));
    if (auto ok = pair.run(more, 0, gate); !ok) return ok;
  }
  return {};
}

Status time_rounds(Pair& pair, const StageRequest& request, json& out) {
  Rounds gate, rounds;
  const auto attempts = pass_gate(pair, request.delta, gate);
  if (!attempts) return std::unexpected(attempts.error());
  if (auto ok = pair.run(kPilotRounds, 1, rounds); !ok) return ok;
  const double sigma = measure::compare_paired(rounds.a, rounds.b).sigma;
  const int wanted =
      std::clamp(measure::rounds_needed(sigma), std::min(request.rounds, request.rounds_limit), request.rounds_limit);
  if (auto ok = pair.run(std::max(wanted - kPilotRounds, 0), 1, rounds); !ok) return ok;
  // Only as many rounds of the gate as the verdict has can carry a SAME.
  if (auto ok = extend_gate(pair, request.delta, std::ssize(rounds.a), gate); !ok) return ok;
  out["a"] = rounds.a;
  out["b"] = rounds.b;
  out["aa"] = {gate.a, gate.b};
  out["aa_attempts"] = *attempts;
  return {};
}

}  // namespace

Result<json> run_pair(const StageRequest& request, const candidate::Kinds& kinds, StageChannel& channel) {
  auto a = make_ready(request, request.candidate, kinds, channel);
  if (!a) return std::unexpected(a.error());
  auto b = make_ready(request, request.rival, kinds, channel);
  if (!b) return std::unexpected(b.error());
  Pair pair(*a, *b, channel, request.seed);
  if (auto awake = pair.warm_up(); !awake) return std::unexpected(awake.error());
  const auto clocks = pair.check_clocks();
  if (!clocks) return std::unexpected(clocks.error());
  json out{{"device", a->session   ? a->session->name()
                      : b->session ? b->session->name()
                                   : std::string()},
           {"clocks", *clocks},
           {"seed", request.seed},
           {"a_name", a->candidate->identity().name},
           {"b_name", b->candidate->identity().name},
           {"b_version", b->candidate->identity().version}};
  const bool may_time = std::ranges::all_of(*clocks, [](const json& clock) { return clock.value("agree", false); });
  if (!may_time) return out;
  if (auto timed = time_rounds(pair, request, out); !timed) return std::unexpected(timed.error());
  return out;
}

}  // namespace tilewright::bench
