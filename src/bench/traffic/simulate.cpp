#include "bench/traffic/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "bench/traffic/latency.h"
#include "measure/order_statistics.h"

namespace tilewright::traffic {
namespace {

class Server {
 public:
  Server(const KeyPolicy& policy, MissHandling handling, const ServiceModel& model)
      : policy_(policy), handling_(handling), model_(model) {}

  ServedRequest serve(const Request& request) {
    ServedRequest served{request.t_s, std::max(request.t_s, free_s_), 0, policy_.key(request.prompt), false, false};
    const double service =
        handling_ == MissHandling::Block ? blocking_service(served) : background_service(served, request);
    served.finish_s = free_s_ = served.start_s + service;
    return served;
  }

  int64_t keys() const { return static_cast<int64_t>(ready_s_.size()); }

 private:
  double warm_service(int64_t key) const { return model_.base_s + model_.per_token_s * static_cast<double>(key); }

  double blocking_service(ServedRequest& served) {
    served.compiled = served.missed = ready_s_.emplace(served.key, 0).second;
    return warm_service(served.key) + (served.compiled ? model_.compile_s : 0);
  }

  double background_service(ServedRequest& served, const Request& request) {
    const auto [ready, is_new] = ready_s_.emplace(served.key, 0);
    if (is_new) ready->second = compiler_free_s_ = std::max(compiler_free_s_, served.start_s) + model_.compile_s;
    served.compiled = is_new;
    served.missed = served.start_s < ready->second;
    if (!served.missed) return warm_service(served.key);
    return model_.base_s + model_.fallback_factor * model_.per_token_s * static_cast<double>(request.prompt);
  }

  const KeyPolicy& policy_;
  MissHandling handling_;
  const ServiceModel& model_;
  std::unordered_map<int64_t, double> ready_s_;
  double free_s_ = 0;
  double compiler_free_s_ = 0;
};

std::optional<double> p99_between(std::span<const double> latencies, size_t begin, size_t end) {
  std::vector<double> part(latencies.begin() + static_cast<ptrdiff_t>(begin),
                           latencies.begin() + static_cast<ptrdiff_t>(end));
  std::sort(part.begin(), part.end());
  if (part.empty()) return std::nullopt;
  return measure::percentile(part, 0.99);
}

}  // namespace

void summarise_service(SimulationResult& result) {
  std::vector<double> latencies;
  std::vector<uint8_t> missed;
  for (const ServedRequest& served : result.timeline) {
    latencies.push_back(served.finish_s - served.arrival_s);
    missed.push_back(served.missed);
  }
  const std::optional<int64_t> steady = steady_index(missed);
  if (steady) {
    const size_t at = static_cast<size_t>(*steady);
    result.steady_at_s = result.timeline[at].arrival_s;
    result.warmup_p99_s = p99_between(latencies, 0, at);
    result.steady_p99_s = p99_between(latencies, at, latencies.size());
  } else {
    result.warmup_p99_s = p99_between(latencies, 0, latencies.size());
  }
  result.miss_rate_per_500 = miss_rates(missed);
  std::sort(latencies.begin(), latencies.end());
  if (latencies.empty()) return;
  result.p50_s = measure::percentile(latencies, 0.50);
  result.p99_s = measure::percentile(latencies, 0.99);
}

Status check(const ServiceModel& model) {
  const auto refuse = [](const char* what, double value, const char* range) {
    return fail(DiagnosticCode::E1646, fmt::format("the service model's {} is {}; expected {}", what, value, range));
  };
  const auto is_time = [](double v) { return std::isfinite(v) && v >= 0; };
  if (!is_time(model.base_s)) return refuse("base time", model.base_s, "a time >= 0");
  if (!is_time(model.per_token_s)) return refuse("time per token", model.per_token_s, "a time >= 0");
  if (!is_time(model.compile_s)) return refuse("compile time", model.compile_s, "a time >= 0");
  if (!std::isfinite(model.fallback_factor) || model.fallback_factor <= 0) {
    return refuse("fallback factor", model.fallback_factor, "a number > 0");
  }
  return {};
}

Result<MissHandling> parse_miss_handling(const std::string& text) {
  if (text == "block") return MissHandling::Block;
  if (text == "background") return MissHandling::Background;
  return fail(DiagnosticCode::E1644, fmt::format("unknown miss handling '{}'", text), "use block or background");
}

std::string to_string(MissHandling handling) { return handling == MissHandling::Block ? "block" : "background"; }

SimulationResult simulate(const Trace& trace, const KeyPolicy& policy, MissHandling handling,
                          const ServiceModel& model) {
  SimulationResult result;
  result.policy = policy.name();
  result.handling = handling;
  result.requests = static_cast<int64_t>(trace.requests.size());
  result.timeline.reserve(trace.requests.size());
  Server server(policy, handling, model);
  double real = 0, padded = 0, fallbacks = 0;
  for (const Request& request : trace.requests) {
    result.timeline.push_back(server.serve(request));
    real += static_cast<double>(request.prompt);
    padded += static_cast<double>(result.timeline.back().key);
    fallbacks += handling == MissHandling::Background && result.timeline.back().missed;
  }
  result.keys = server.keys();
  result.compile_load = trace.span_s() > 0 ? static_cast<double>(result.keys) * model.compile_s / trace.span_s() : 0;
  result.pad_waste = padded > 0 ? 1 - real / padded : 0;
  result.fallback_share = result.requests ? fallbacks / static_cast<double>(result.requests) : 0;
  summarise_service(result);
  return result;
}

nlohmann::json to_json(const SimulationResult& result, const ServiceModel& model) {
  nlohmann::json json = {{"state", "simulated"},
                         {"policy", result.policy},
                         {"miss", to_string(result.handling)},
                         {"requests", result.requests},
                         {"keys", result.keys},
                         {"compile_load", result.compile_load},
                         {"pad_waste", result.pad_waste},
                         {"p50_s", result.p50_s},
                         {"p99_s", result.p99_s},
                         {"fallback_share", result.fallback_share},
                         {"miss_rate_per_500", result.miss_rate_per_500}};
  const auto part = [&](const char* field, const std::optional<double>& p99_s, const char* why_not) {
    json[field] = p99_s ? nlohmann::json(*p99_s) : nlohmann::json(nullptr);
    if (!p99_s) json[std::string(field) + "_not_run"] = why_not;
  };
  part("warmup_p99_s", result.warmup_p99_s, "steady from the first request");
  part("steady_p99_s", result.steady_p99_s,
       result.requests < kSteadyWindow ? "fewer requests than one window of 500"
                                       : "never steady: the last 500 requests have 5 misses or more");
  json["steady_at_s"] = result.steady_at_s ? nlohmann::json(*result.steady_at_s) : nlohmann::json("never");
  json["model"] = {{"base_s", model.base_s},
                   {"per_token_s", model.per_token_s},
                   {"fallback_factor", model.fallback_factor},
                   {"compile_s", model.compile_s}};
  return json;
}

nlohmann::json sampled_timeline(const SimulationResult& result, size_t limit) {
  const std::vector<ServedRequest>& all = result.timeline;
  const size_t stride = std::max<size_t>(1, all.size() / std::max<size_t>(1, limit));
  nlohmann::json points = nlohmann::json::array();
  for (size_t begin = 0; begin < all.size(); begin += stride) {
    const auto first = all.begin() + static_cast<ptrdiff_t>(begin);
    const auto last = all.begin() + static_cast<ptrdiff_t>(std::min(begin + stride, all.size()));
    const auto slowest = std::max_element(first, last, [](const ServedRequest& a, const ServedRequest& b) {
      return a.finish_s - a.arrival_s < b.finish_s - b.arrival_s;
    });
    for (auto it = first; it != last; ++it) {
      const bool keep = it == slowest || it->compiled;
      if (keep) points.push_back({it->arrival_s, it->finish_s - it->arrival_s, it->compiled ? 2 : it->missed ? 1 : 0});
    }
  }
  return points;
}

}  // namespace tilewright::traffic
