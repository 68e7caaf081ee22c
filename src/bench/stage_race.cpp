#include "bench/stage_race.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "bench/row_sample.h"
#include "bench/stage_check.h"
#include "bench/stage_sustained.h"
#include "measure/latin_square.h"

namespace tilewright::bench {
namespace {

using nlohmann::json;

StageRequest request_for(const StageRequest& request, const Contender& contender) {
  StageRequest own = request;
  own.workload = contender.workload;
  own.dtypes = contender.dtypes;
  own.config = contender.config;
  return own;
}

/// Judges outputs of one workload on given inputs, all of it or a sample of its rows.
class RaceJudge {
 public:
  RaceJudge(const Workload& workload, const std::vector<HostTensor>& inputs, uint64_t seed)
      : sample_(sample_rows(workload, inputs, seed)),
        judge_(sample_ ? sample_->workload : workload, sample_ ? sample_->inputs : inputs, {.max_flops = 1e10}) {}

  /// Why the outputs are wrong; empty when they are accepted.
  std::string judge(Ready& ready) const {
    if (auto fetched = ready.memory.fetch(); !fetched) return fetched.error().message;
    if (!ready.memory.margins_intact()) return "wrote outside its tensors";
    const std::vector<HostTensor> outputs = ready.memory.copy_outputs();
    if (has_unwritten(outputs)) return "left elements unwritten";
    const json verdict = judge_.judge(sample_ ? sample_->of_outputs(outputs) : outputs);
    return verdict.value("accepted", false) ? "" : verdict.value("reason", "wrong result");
  }

 private:
  std::optional<RowSample> sample_;
  OutputJudge judge_;
};

/// Candidates of the whole race, opened when a row first names them.
class Paddock {
 public:
  Paddock(const StageRequest& request, const candidate::Kinds& kinds, StageChannel& channel)
      : request_(request), kinds_(kinds), channel_(channel) {}

  Result<Ready*> ready_for(const Contender& contender, const std::vector<HostTensor>& inputs) {
    const StageRequest own = request_for(request_, contender);
    auto found = open_.find(contender.candidate);
    if (found == open_.end()) {
      auto opened = open_ready(own, contender.candidate, kinds_, channel_);
      if (!opened) return std::unexpected(opened.error());
      found = open_.emplace(contender.candidate, std::move(*opened)).first;
    }
    if (auto renewed = renew(found->second, own, channel_, &inputs); !renewed) {
      if (renewed.error().code == DiagnosticCode::E3202 || renewed.error().code == DiagnosticCode::E3203)
        open_.erase(found);  // a worker that died is started again for the next row
      return std::unexpected(renewed.error());
    }
    return &found->second;
  }
  void release_memory() {
    for (auto& [spelling, ready] : open_) release_tensors(ready);
  }

 private:
  const StageRequest& request_;
  const candidate::Kinds& kinds_;
  StageChannel& channel_;
  std::map<std::string, Ready> open_;
};

struct Entrant {
  Contender contender;
  Ready* ready = nullptr;
  std::unique_ptr<LaunchTimer> timer;
  double one_ms = 0;
  std::vector<double> steady, burst, flushed;
  std::string refused, wrong;

  bool takes_part() const { return refused.empty() && wrong.empty(); }
};

class Row {
 public:
  Row(const StageRequest& request, const Race& race, Paddock& paddock, StageChannel& channel)
      : request_(request), race_(race), paddock_(paddock), channel_(channel) {}

  Result<json> run() {
    auto workload = requested_workload(request_for(request_, race_.contenders.front()));
    if (!workload) return std::unexpected(workload.error());
    channel_.step("oracle");
    const std::vector<HostTensor> inputs = make_inputs(*workload, contract_options(request_).data);
    judge_ = std::make_unique<RaceJudge>(*workload, inputs, request_.seed);
    for (const Contender& contender : race_.contenders) {
      if (auto entered = enter(contender, inputs); !entered) return std::unexpected(entered.error());
    }
    if (auto timed = time_all(); !timed) return std::unexpected(timed.error());
    for (Entrant& entrant : entrants_) {
      if (!entrant.takes_part()) continue;
      entrant.ready->memory.poison_outputs();
      if (auto judged = launch_and_judge(entrant); !judged) return std::unexpected(judged.error());
    }
    return result(minimal_cost(*workload));
  }

 private:
  Status enter(const Contender& contender, const std::vector<HostTensor>& inputs) {
    Entrant& entrant = entrants_.emplace_back();
    entrant.contender = contender;
    auto ready = paddock_.ready_for(contender, inputs);
    if (!ready) {
      if (ready.error().code == DiagnosticCode::E3053) return std::unexpected(ready.error());
      entrant.refused = ready.error().message;
      return {};
    }
    entrant.ready = *ready;
    if (auto judged = launch_and_judge(entrant); !judged || !entrant.takes_part()) return judged;
    entrant.timer = std::make_unique<LaunchTimer>(*entrant.ready, channel_, request_.seed);
    if (auto awake = entrant.timer->warm_up(); !awake) return awake;
    auto one = entrant.timer->span(3);
    if (!one) return std::unexpected(one.error());
    entrant.one_ms = *one;
    return {};
  }

  /// A device fault ends the process; any other failure is this entrant's.
  Status launch_and_judge(Entrant& entrant) {
    Status launched = entrant.ready->launch();
    if (launched && entrant.ready->session) launched = entrant.ready->session->synchronize();
    if (!launched && launched.error().code == DiagnosticCode::E3053) return launched;
    channel_.step("oracle");
    entrant.wrong = launched ? judge_->judge(*entrant.ready) : launched.error().message;
    channel_.step("judged");
    return {};
  }

  Status time_all() {
    std::vector<Entrant*> who;
    for (Entrant& entrant : entrants_) {
      if (entrant.takes_part()) who.push_back(&entrant);
    }
    if (who.empty()) return {};
    for (const auto& order : measure::latin_rounds(static_cast<int>(who.size()), request_.rounds, request_.seed)) {
      if (auto timed = race_.is_flushed ? round_flushed(who, order) : round_sustained(who, order); !timed) return timed;
      channel_.step("round");
    }
    return {};
  }

  static Status keep(std::vector<double>& samples, const Result<double>& ms) {
    if (!ms) return std::unexpected(ms.error());
    samples.push_back(*ms);
    return {};
  }

  Status round_sustained(const std::vector<Entrant*>& who, const std::vector<int>& order) {
    for (int i : order) {
      Entrant& e = *who[static_cast<size_t>(i)];
      if (auto kept = keep(e.steady, steady_ms(*e.timer, e.one_ms, race_.in_graphs)); !kept) return kept;
    }
    for (int i : order) {
      Entrant& e = *who[static_cast<size_t>(i)];
      if (auto kept = keep(e.burst, burst_ms(*e.timer, true)); !kept) return kept;
    }
    return {};
  }

  /// The median of several launches, each after a flush.
  Status round_flushed(const std::vector<Entrant*>& who, const std::vector<int>& order) {
    constexpr int kLaunches = 15;
    for (int i : order) {
      Entrant& e = *who[static_cast<size_t>(i)];
      std::vector<double> samples;
      for (int k = 0; k < kLaunches; ++k) {
        if (auto kept = keep(samples, e.timer->sample_flushed()); !kept) return kept;
      }
      e.flushed.push_back(measure::median(measure::sorted(samples)));
    }
    return {};
  }

  json result(const Cost& cost) const {
    json out{{"row", race_.id}, {"seed", request_.seed}, {"flops", cost.flops}, {"bytes", cost.bytes}};
    for (const Entrant& e : entrants_) {
      json one{{"candidate", e.contender.candidate}};
      if (e.ready) {
        const candidate::Identity identity = e.ready->candidate->identity();
        one["name"] = identity.name;
        one["version"] = identity.version;
        one["libraries"] = identity.libraries;
        if (e.ready->session) one["device_clocks"] = e.ready->session->clocks();
      }
      if (!e.refused.empty()) one["refused"] = e.refused;
      if (!e.wrong.empty()) one["wrong"] = e.wrong;
      if (e.takes_part() && !e.flushed.empty()) one["flushed_ms"] = e.flushed;
      if (e.takes_part() && !e.steady.empty()) one["steady_ms"] = e.steady, one["burst_ms"] = e.burst;
      out["contenders"].push_back(std::move(one));
    }
    return out;
  }

  const StageRequest& request_;
  const Race& race_;
  Paddock& paddock_;
  StageChannel& channel_;
  std::unique_ptr<RaceJudge> judge_;
  std::vector<Entrant> entrants_;
};

struct RareCase {
  StageRequest request;
  Workload workload;
  candidate::ContractText contract;
  ArgumentMemory memory;
};

Result<std::vector<RareCase>> rare_cases(const StageRequest& request, Ready& ready) {
  std::vector<RareCase> out;
  for (const Contender& contender : request.contenders) {
    RareCase& c = out.emplace_back();
    c.request = request_for(request, contender);
    auto workload = requested_workload(c.request);
    if (!workload) return std::unexpected(workload.error());
    c.workload = std::move(*workload);
    c.contract = contract_text(c.workload, contract_options(c.request));
    auto memory = ArgumentMemory::allocate(nullptr, c.workload, ready.session);
    if (!memory) return std::unexpected(memory.error());
    c.memory = std::move(*memory);
    c.memory.fill(make_inputs(c.workload, contract_options(c.request).data));
  }
  return out;
}

/// From the compile call to the result; what the candidate thinks of the contract is the harness's affair.
Result<double> first_use_ms(Ready& ready, RareCase& c, std::shared_ptr<std::byte>& workspace, int64_t& size) {
  auto echo = ready.candidate->prepare(c.contract);
  if (!echo) return std::unexpected(echo.error());
  if (auto fair = check_fair(c.contract, *echo, ready.candidate->identity().name); !fair)
    return std::unexpected(fair.error());
  const int64_t start = measure::kernel_ns();
  auto compiled = ready.candidate->compile("{}");
  if (!compiled) return std::unexpected(compiled.error());
  ready.compiled.compiles += compiled->compiles;
  ready.compiled.cache_hits += compiled->cache_hits;
  auto wanted = ready.candidate->workspace_bytes();
  if (!wanted) return std::unexpected(wanted.error());
  if (*wanted > size) {
    auto made = allocate_workspace(ready.session, *wanted);
    if (!made) return std::unexpected(made.error());
    workspace = std::move(*made);
    size = *wanted;
  }
  void* stream = ready.session ? ready.session->stream() : nullptr;
  if (auto ok = ready.candidate->launch(c.memory.tensors(), workspace.get(), stream); !ok)
    return std::unexpected(ok.error());
  if (ready.session) {
    if (auto ok = ready.session->synchronize(); !ok) return std::unexpected(ok.error());
  }
  return static_cast<double>(measure::kernel_ns() - start) * 1e-6;
}

}  // namespace

Result<json> run_race(const StageRequest& request, const candidate::Kinds& kinds, StageChannel& channel) {
  Paddock paddock(request, kinds, channel);
  for (const Race& race : request.races) {
    channel.step(race.id);
    auto row = Row(request, race, paddock, channel).run();
    if (!row) return std::unexpected(row.error());
    channel.part(std::move(*row));
    paddock.release_memory();
  }
  return json::object();
}

Result<json> run_rare(const StageRequest& request, const candidate::Kinds& kinds, StageChannel& channel) {
  auto ready = open_ready(request, request.candidate, kinds, channel);
  if (!ready) return std::unexpected(ready.error());
  auto cases = rare_cases(request, *ready);
  if (!cases) return std::unexpected(cases.error());
  std::shared_ptr<std::byte> workspace;
  int64_t size = -1;
  std::vector<double> each;
  for (RareCase& c : *cases) {
    auto ms = first_use_ms(*ready, c, workspace, size);
    if (!ms) return std::unexpected(ms.error());
    each.push_back(*ms);
  }
  json wrong = json::array();
  for (RareCase& c : *cases) {
    channel.step("oracle");
    if (auto fetched = c.memory.fetch(); !fetched) return std::unexpected(fetched.error());
    const json verdict = OutputJudge(c.workload, c.memory.copy_inputs()).judge(c.memory.copy_outputs());
    if (!verdict.value("accepted", false) || !c.memory.margins_intact()) wrong.push_back(workload_key(c.workload));
  }
  return json{{"total_ms", std::accumulate(each.begin(), each.end(), 0.0)},
              {"each_ms", each},
              {"compiles", ready->compiled.compiles},
              {"cache_hits", ready->compiled.cache_hits},
              {"wrong", wrong}};
}

Result<json> run_launch_cost(const StageRequest& request, const candidate::Kinds& kinds, StageChannel& channel) {
  constexpr int kBatches = 31, kLaunches = 200;
  auto ready = make_ready(request, request.candidate, kinds, channel);
  if (!ready) return std::unexpected(ready.error());
  if (!ready->session) return fail(DiagnosticCode::E3201, "a launch has a cost of its own on a device only");
  LaunchTimer timer(*ready, channel, request.seed);
  if (auto awake = timer.warm_up(); !awake) return std::unexpected(awake.error());
  const auto verdict = check_present_outputs(*ready);
  if (!verdict) return std::unexpected(verdict.error());
  if (!verdict->value("accepted", false))
    return fail(DiagnosticCode::E3206, "not timed: " + verdict->value("reason", "wrong result"));
  json out{{"launch_ns", json::array()}, {"driver_ns", json::array()}};
  const auto ours = [&]() -> Status {
    for (int i = 0; i < kLaunches; ++i) {
      if (auto launched = ready->launch(); !launched) return launched;
    }
    return {};
  };
  const auto drivers = [&]() -> Status { return ready->session->launch_empty(kLaunches); };
  if (auto loaded = drivers(); !loaded) return std::unexpected(loaded.error());
  for (int batch = 0; batch < kBatches; ++batch) {
    for (const char* who : {"launch_ns", "driver_ns"}) {
      auto ms = ready->session->host_timed(who[0] == 'l' ? std::function<Status()>(ours) : drivers);
      if (!ms) return std::unexpected(ms.error());
      out[who].push_back(*ms * 1e6 / kLaunches);
    }
  }
  return out;
}

}  // namespace tilewright::bench
