#include "bench/traffic/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>
#include <utility>

#include "bench/traffic/latency.h"
#include "measure/order_statistics.h"
#include "measure/paired.h"

namespace tilewright::traffic {
namespace {

const char* name(ServingPolicy policy) {
  switch (policy) {
    case ServingPolicy::Jit: return "jit";
    case ServingPolicy::Pinned: return "pinned";
    case ServingPolicy::Adaptive: return "adaptive";
  }
  return "";
}

/// What is known of one key.
struct Kernel {
  bool is_compiled = false;
  double ready_s = 0;       ///< on the trace's clock
  bool is_serving = false;  ///< adaptive: promoted
  bool is_barred = false;   ///< adaptive: rolled back
  int64_t requests = 0;
  std::vector<double> ours, general;  ///< adaptive: paired times
};

class Replayer {
 public:
  Replayer(const Trace& trace, const KeyPolicy& policy, ReplayOperator& kernels, const ReplayOptions& options)
      : trace_(trace), policy_(policy), kernels_(kernels), options_(options), serving_(options.serving) {}

  Result<ReplayReport> run() {
    if (Status status = prepare_pinned(); !status) return std::unexpected(status.error());
    int64_t done = 0;
    for (const Request& request : trace_.requests) {
      if (Status status = serve(request); !status) return std::unexpected(status.error());
      if (options_.progress) options_.progress(++done, std::ssize(trace_.requests));
    }
    if (Status status = price_misses(); !status) return std::unexpected(status.error());
    summarise();
    return std::move(report_);
  }

 private:
  Status prepare_pinned() {
    if (options_.serving != ServingPolicy::Pinned) return {};
    for (const int64_t key : options_.pinned_keys) {
      // Prebuilt: made before the service starts, and no event of it.
      if (const Result<double> seconds = kernels_.compile(key); !seconds) return std::unexpected(seconds.error());
      known_[key].is_compiled = true;
    }
    return {};
  }

  Status serve(const Request& request) {
    ServedRequest served{request.t_s, std::max(request.t_s, free_s_), 0, policy_.key(request.prompt), false, false};
    double seconds = 0;
    Status status;
    switch (serving_) {
      case ServingPolicy::Jit: status = serve_jit(request, served, seconds); break;
      case ServingPolicy::Pinned: status = serve_pinned(request, served, seconds); break;
      case ServingPolicy::Adaptive: status = serve_adaptive(request, served, seconds); break;
    }
    if (!status) return status;
    served.finish_s = free_s_ = served.start_s + seconds;
    report_.service.timeline.push_back(served);
    return {};
  }

  Result<double> compile(int64_t key) {
    Result<double> seconds = kernels_.compile(key);
    if (!seconds) return seconds;
    ++report_.jit_events;
    report_.compile_s += *seconds;
    known_[key].is_compiled = true;
    return seconds;
  }

  Status run_kernel(int64_t key, int64_t prompt, double& seconds) {
    const Result<ReplayOperator::Run> run = kernels_.run(key, prompt);
    if (!run) return std::unexpected(run.error());
    seconds += run->seconds;
    last_kernel_s_ = run->seconds;
    outputs_[prompt].insert(run->output_digest);
    return {};
  }

  Status run_fallback(int64_t prompt, double& seconds) {
    const Result<ReplayOperator::Run> run = kernels_.run_fallback(prompt);
    if (!run) return std::unexpected(run.error());
    seconds += run->seconds;
    last_fallback_s_ = run->seconds;
    outputs_[prompt].insert(run->output_digest);
    fallback_rate_.push_back(run->seconds / static_cast<double>(prompt));
    return {};
  }

  Status serve_jit(const Request& request, ServedRequest& served, double& seconds) {
    Kernel& kernel = known_[served.key];
    if (!kernel.is_compiled) {
      const Result<double> compiled = compile(served.key);
      if (!compiled) return std::unexpected(compiled.error());
      served.compiled = true;
      if (options_.handling == MissHandling::Block) {
        seconds += *compiled;
        served.missed = true;
      } else {
        kernel.ready_s = compiler_free_s_ = std::max(compiler_free_s_, served.start_s) + *compiled;
      }
    }
    if (options_.handling == MissHandling::Background && served.start_s < kernel.ready_s) {
      served.missed = true;
      ++report_.fallbacks;
      return run_fallback(request.prompt, seconds);
    }
    return run_kernel(served.key, request.prompt, seconds);
  }

  Status serve_pinned(const Request& request, ServedRequest& served, double& seconds) {
    if (known_[served.key].is_compiled) return run_kernel(served.key, request.prompt, seconds);
    served.missed = true;
    ++report_.fallbacks;
    if (Status status = run_fallback(request.prompt, seconds); !status) return status;
    missed_[served.key].push_back(request.prompt);
    return {};
  }

  Status serve_adaptive(const Request& request, ServedRequest& served, double& seconds) {
    Kernel& kernel = known_[served.key];
    ++kernel.requests;
    if (!kernel.is_compiled) {
      const Result<double> compiled = compile(served.key);
      if (!compiled) return std::unexpected(compiled.error());
      served.compiled = true;
      kernel.ready_s = compiler_free_s_ = std::max(compiler_free_s_, served.start_s) + *compiled;
    }
    const bool is_ready = served.start_s >= kernel.ready_s && !kernel.is_barred;
    if (is_ready && kernel.is_serving) {
      if (Status status = run_kernel(served.key, request.prompt, seconds); !status) return status;
      return watch(served, seconds);
    }
    served.missed = true;
    ++report_.fallbacks;
    if (Status status = run_fallback(request.prompt, seconds); !status) return status;
    const double limit = options_.explore_share * static_cast<double>(report_.service.timeline.size() + 1);
    if (!is_ready || static_cast<double>(report_.explored) + 1 > std::max(limit, 1.0)) return {};
    return served.key == explored_key(served.start_s) ? explore(request, served, kernel, seconds) : Status{};
  }

  /// Explored requests are few, so they go to one key until it is decided: the most asked for.
  int64_t explored_key(double now_s) const {
    const auto is_open = [&](const Kernel& kernel) {
      const bool is_settled = std::ssize(kernel.ours) >= kPatience * options_.pairs;
      return kernel.is_compiled && now_s >= kernel.ready_s && !kernel.is_serving && !kernel.is_barred && !is_settled;
    };
    int64_t best = -1;
    for (const auto& [key, kernel] : known_) {
      if (is_open(kernel) && (best < 0 || kernel.requests > known_.at(best).requests)) best = key;
    }
    return best;
  }

  /// Runs the same request on the compiled kernel too, and promotes it when the pairs say so.
  Status explore(const Request& request, const ServedRequest& served, Kernel& kernel, double& seconds) {
    ++report_.explored;
    if (Status status = run_kernel(served.key, request.prompt, seconds); !status) return status;
    kernel.ours.push_back(last_kernel_s_);
    kernel.general.push_back(last_fallback_s_);
    if (std::ssize(kernel.ours) < options_.pairs) return {};
    const measure::PairedResult paired = measure::compare_paired(kernel.ours, kernel.general);
    if (paired.verdict != measure::Verdict::Faster) return {};
    return change(served, kernel, true, fmt::format("FASTER, ratio {:.3f} of {} pairs", paired.ratio, paired.rounds));
  }

  /// The promoted kernels' latencies: above the SLO they are taken back.
  Status watch(const ServedRequest& served, double seconds) {
    if (options_.slo_s <= 0) return {};
    recent_.push_back(served.start_s + seconds - served.arrival_s);
    constexpr size_t kWindow = 200;
    if (recent_.size() < kWindow) return {};
    const double p99 = measure::percentile(measure::sorted(recent_), 0.99);
    recent_.clear();
    if (p99 <= options_.slo_s) return {};
    ++report_.rollbacks;
    Kernel& kernel = known_[served.key];
    kernel.is_barred = true;
    return change(served, kernel, false, fmt::format("p99 {:.4f} s above the SLO of {:.4f} s", p99, options_.slo_s));
  }

  Status change(const ServedRequest& served, Kernel& kernel, bool serves, const std::string& why) {
    const nlohmann::json event = {
        {"at_s", served.start_s}, {"key", served.key}, {"event", serves ? "promote" : "rollback"}, {"why", why}};
    if (options_.telemetry && options_.telemetry(event.dump())) {
      kernel.is_serving = serves;
      ++report_.switches;
      return {};
    }
    // What cannot be written down must not happen: back to what was verified.
    kernel.is_serving = false;
    serving_ = ServingPolicy::Pinned;
    report_.fell_to_pinned = true;
    for (auto& [key, known] : known_)
      known.is_compiled = std::ranges::find(options_.pinned_keys, key) != options_.pinned_keys.end();
    return {};
  }

  /// What a kernel of the missed keys would have saved, or cost: compiled after the service, then run in turns with the
  /// fallback on the key's first prompt. Differences keep their sign: noise alone sums to nothing.
  Status price_misses() {
    for (const auto& [key, prompts] : missed_) {
      if (const Result<double> compiled = kernels_.compile(key); !compiled) return std::unexpected(compiled.error());
      const Result<std::vector<double>> saved = pair_with_fallback(key, prompts.front());
      if (!saved) return std::unexpected(saved.error());
      const std::vector<double> sorted = measure::sorted(*saved);
      const double median = measure::median(sorted), misses = static_cast<double>(prompts.size());
      const auto interval = measure::median_interval(sorted, 0.95);
      report_.left_on_table_s += misses * median;
      report_.left_low_s += misses * (interval ? interval->low : sorted.front());
      report_.left_high_s += misses * (interval ? interval->high : sorted.back());
    }
    return {};
  }

  Result<std::vector<double>> pair_with_fallback(int64_t key, int64_t prompt) {
    std::vector<double> saved;
    for (int round = -1; round < options_.pricing_rounds; ++round) {
      const bool kernel_first = round % 2 == 0;
      double seconds[2] = {};
      for (const bool is_kernel : {kernel_first, !kernel_first}) {
        const Result<ReplayOperator::Run> run = is_kernel ? kernels_.run(key, prompt) : kernels_.run_fallback(prompt);
        if (!run) return std::unexpected(run.error());
        seconds[is_kernel] = run->seconds;
      }
      if (round >= 0) saved.push_back(seconds[0] - seconds[1]);  // the first pair warms both up
    }
    return saved;
  }

  void summarise() {
    report_.serving = name(options_.serving);
    SimulationResult& service = report_.service;
    service.policy = policy_.name();
    service.handling = options_.handling;
    service.keys = std::ssize(known_);
    service.requests = std::ssize(service.timeline);
    summarise_service(service);
    const double n = std::max<double>(1, static_cast<double>(service.requests));
    service.fallback_share = static_cast<double>(report_.fallbacks) / n;
    service.compile_load = trace_.span_s() > 0 ? report_.compile_s / trace_.span_s() : 0;
    double real = 0, padded = 0, good = 0;
    for (size_t i = 0; i < service.timeline.size(); ++i) {
      real += static_cast<double>(trace_.requests[i].prompt);
      padded += static_cast<double>(service.timeline[i].key);
      good += service.timeline[i].finish_s - service.timeline[i].arrival_s <= options_.goodput_limit_s;
    }
    service.pad_waste = padded > 0 ? 1 - real / padded : 0;
    report_.goodput = good / n;
    for (const auto& [prompt, digests] : outputs_)
      report_.distinct_outputs = std::max(report_.distinct_outputs, std::ssize(digests));
    find_break_even();
  }

  /// The fallback's time per token, as measured, stands for what each request would have cost without our kernels.
  void find_break_even() {
    if (fallback_rate_.empty() || report_.compile_s <= 0) return;
    const double per_token = measure::median(measure::sorted(fallback_rate_));
    double balance = -report_.compile_s;
    for (size_t i = 0; i < report_.service.timeline.size(); ++i) {
      const ServedRequest& served = report_.service.timeline[i];
      if (served.missed || served.compiled) continue;
      balance += per_token * static_cast<double>(trace_.requests[i].prompt) - (served.finish_s - served.start_s);
      if (balance >= 0) {
        report_.break_even_s = served.finish_s;
        return;
      }
    }
  }

  static constexpr int64_t kPatience = 3;  ///< times the pairs a promotion needs, before a key is left alone

  const Trace& trace_;
  const KeyPolicy& policy_;
  ReplayOperator& kernels_;
  const ReplayOptions& options_;
  ServingPolicy serving_;
  ReplayReport report_;
  std::map<int64_t, Kernel> known_;
  std::map<int64_t, std::vector<int64_t>> missed_;  ///< prompts that took the fallback
  std::unordered_map<int64_t, std::set<std::string>> outputs_;
  std::vector<double> fallback_rate_, recent_;
  double free_s_ = 0, compiler_free_s_ = 0;
  double last_kernel_s_ = 0, last_fallback_s_ = 0;
};

}  // namespace

Result<ReplayReport> replay(const Trace& trace, const KeyPolicy& policy, ReplayOperator& kernels,
                            const ReplayOptions& options) {
  return Replayer(trace, policy, kernels, options).run();
}

nlohmann::json to_json(const ReplayReport& report) {
  nlohmann::json json = to_json(report.service, ServiceModel{});
  json.erase("model");
  json["state"] = "measured";
  json["serving"] = report.serving;
  json["jit_events"] = report.jit_events;
  json["compile_s"] = report.compile_s;
  json["goodput"] = report.goodput;
  json["break_even_s"] = report.break_even_s ? nlohmann::json(*report.break_even_s) : nlohmann::json("never");
  json["left_on_table_ms"] = report.left_on_table_s * 1e3;
  json["left_on_table_ci_ms"] = {report.left_low_s * 1e3, report.left_high_s * 1e3};
  json["fallbacks"] = report.fallbacks;
  json["switches"] = report.switches;
  json["unexplained_switches"] = report.unexplained_switches;
  json["rollbacks"] = report.rollbacks;
  json["explored"] = report.explored;
  json["distinct_outputs"] = report.distinct_outputs;
  json["fell_to_pinned"] = report.fell_to_pinned;
  return json;
}

}  // namespace tilewright::traffic
