#include "bench/stage_contest.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "bench/ceiling.h"
#include "bench/stage_check.h"
#include "bench/stage_timing.h"
#include "measure/latin_square.h"

namespace tilewright::bench {
namespace {

using nlohmann::json;

struct Entrant {
  Contender contender;
  std::unique_ptr<Ready> ready;
  std::unique_ptr<LaunchTimer> timer;
  int launches = 1;  ///< per sample: long against the clock and a wake-up
  std::vector<double> ms, ceiling;
  std::string refused, wrong;

  bool takes_part() const { return refused.empty() && wrong.empty(); }
};

class Contest {
 public:
  Contest(const StageRequest& request, StageChannel& channel) : request_(request), channel_(channel) {}

  Status enter(const Contender& contender, const candidate::Kinds& kinds) {
    Entrant& entrant = entrants_.emplace_back();
    entrant.contender = contender;
    StageRequest own = request_;
    own.workload = contender.workload;
    own.dtypes = contender.dtypes;
    own.config = contender.config;
    auto ready = make_ready(own, contender.candidate, kinds, channel_);
    if (!ready) {
      entrant.refused = ready.error().message;
      return {};
    }
    entrant.ready = std::make_unique<Ready>(std::move(*ready));
    if (auto launched = entrant.ready->launch(); !launched) {
      entrant.wrong = launched.error().message;
      return {};
    }
    if (auto judged = judge(entrant); !judged) return judged;
    if (!entrant.takes_part()) return {};
    entrant.timer = std::make_unique<LaunchTimer>(*entrant.ready, channel_, request_.seed);
    return set_launches(entrant);
  }

  Status run() {
    std::vector<Entrant*> who;
    for (Entrant& entrant : entrants_) {
      if (entrant.takes_part()) who.push_back(&entrant);
    }
    if (who.empty()) return {};
    const Workload& first = who.front()->ready->workload;
    CeilingProbe probe(parse_ceiling(request_.ceiling), request_.threads, minimal_cost(first).bytes,
                       request_.is_flushed);
    auto rounds = affordable_rounds(who);
    if (!rounds) return std::unexpected(rounds.error());
    for (const auto& order : measure::latin_rounds(static_cast<int>(who.size()), *rounds, request_.seed)) {
      for (int i : order) {
        Entrant& entrant = *who[static_cast<size_t>(i)];
        auto ms = sample(entrant);
        if (!ms) return std::unexpected(ms.error());
        entrant.ms.push_back(*ms);
        let_threads_sleep();
        entrant.ceiling.push_back(probe.sample());
      }
      channel_.step("round");
    }
    for (Entrant* entrant : who) {
      entrant->ready->memory.poison_outputs();
      if (auto again = entrant->ready->launch(); !again) return again;
      if (auto judged = judge(*entrant); !judged) return judged;
    }
    return {};
  }

  json result() const {
    json out{{"seed", request_.seed}, {"contenders", json::array()}};
    for (const Entrant& e : entrants_) {
      json one{
          {"candidate", e.contender.candidate}, {"workload", e.contender.workload}, {"dtypes", e.contender.dtypes}};
      if (!e.refused.empty()) one["refused"] = e.refused;
      if (e.ready) {
        const candidate::Identity identity = e.ready->candidate->identity();
        one["name"] = identity.name;
        one["version"] = identity.version;
        one["libraries"] = identity.libraries;
        const Cost cost = minimal_cost(e.ready->workload);
        one["flops"] = cost.flops;
        one["bytes"] = cost.bytes;
      }
      if (!e.wrong.empty()) one["wrong"] = e.wrong;
      if (e.takes_part()) {
        one["ms"] = e.ms;
        one["ceiling"] = e.ceiling;
        one["launches"] = e.launches;
      }
      out["contenders"].push_back(std::move(one));
    }
    return out;
  }

 private:
  /// All contenders of one workload get the same inputs, so one oracle serves them all.
  Status judge(Entrant& entrant) {
    channel_.step("oracle");
    Ready& ready = *entrant.ready;
    if (auto fetched = ready.memory.fetch(); !fetched) return fetched;
    const std::string key = entrant.contender.workload + " " + entrant.contender.dtypes;
    auto& oracle = oracles_[key];
    if (!oracle) oracle = std::make_unique<OutputJudge>(ready.workload, ready.memory.copy_inputs());
    const json verdict = oracle->judge(ready.memory.copy_outputs());
    if (!verdict.value("accepted", false)) entrant.wrong = verdict.value("reason", "wrong result");
    if (!ready.memory.margins_intact()) entrant.wrong = "wrote outside its tensors";
    channel_.step("judged");
    return {};
  }

  Status set_launches(Entrant& entrant) {
    if (auto awake = entrant.timer->warm_up(); !awake) return awake;
    if (request_.is_flushed) return {};
    auto pilot = entrant.timer->batch(1);
    for (int i = 0; pilot && i < 3; ++i) {
      const int count = std::clamp(static_cast<int>(0.5 / std::max(*pilot, 1e-5)), 1, 50'000);
      pilot = entrant.timer->batch(count);
    }
    if (!pilot) return std::unexpected(pilot.error());
    entrant.launches = std::clamp(static_cast<int>(1.0 / std::max(*pilot, 2e-5)), 1, 50'000);
    return {};
  }

  /// As many rounds as asked for, fewer when they would take longer than the time limit; never under kLeast.
  Result<int> affordable_rounds(const std::vector<Entrant*>& who) {
    constexpr int kLeast = 9;
    const int64_t start = measure::kernel_ns();
    for (Entrant* entrant : who) {
      if (auto ms = sample(*entrant); !ms) return std::unexpected(ms.error());
    }
    const double round_ms = static_cast<double>(measure::kernel_ns() - start) * 1e-6;
    const int affordable = static_cast<int>(request_.warm.timeout_ms / std::max(round_ms, 0.1));
    return std::clamp(request_.rounds, std::min(kLeast, request_.rounds), std::max(affordable, kLeast));
  }

  Result<double> sample(Entrant& entrant) {
    let_threads_sleep();
    // Wakes this contender's threads and code, untimed.
    if (auto again = entrant.timer->sample(false); !again) return again;
    if (request_.is_flushed) return entrant.timer->sample_flushed();
    if (entrant.ready->candidate->is_remote() && entrant.launches == 1) return entrant.timer->sample(false);
    return entrant.timer->batch(entrant.launches);
  }

  const StageRequest& request_;
  StageChannel& channel_;
  std::vector<Entrant> entrants_;
  std::map<std::string, std::unique_ptr<OutputJudge>> oracles_;
};

}  // namespace

Result<json> run_contest(const StageRequest& request, const candidate::Kinds& kinds, StageChannel& channel) {
  Contest contest(request, channel);
  for (const Contender& contender : request.contenders) {
    if (auto entered = contest.enter(contender, kinds); !entered) return std::unexpected(entered.error());
  }
  if (auto ran = contest.run(); !ran) return std::unexpected(ran.error());
  return contest.result();
}

}  // namespace tilewright::bench
