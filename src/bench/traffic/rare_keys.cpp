#include "bench/traffic/rare_keys.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "measure/order_statistics.h"

namespace tilewright::traffic {
namespace {

std::vector<KeyUse> uses_in_order(const Trace& trace, const KeyPolicy& policy, const ServiceModel& model) {
  std::vector<KeyUse> uses;
  std::unordered_map<int64_t, size_t> at;
  for (const Request& request : trace.requests) {
    const int64_t key = policy.key(request.prompt);
    const auto [it, is_new] = at.emplace(key, uses.size());
    if (is_new) uses.push_back({.key = key, .first_s = request.t_s});
    KeyUse& use = uses[it->second];
    ++use.count;
    use.gain_s +=
        model.per_token_s * (model.fallback_factor * static_cast<double>(request.prompt) - static_cast<double>(key));
  }
  return uses;
}

int64_t quantile_of(const std::vector<double>& values, double p) {
  return values.empty() ? 0 : static_cast<int64_t>(measure::percentile(values, p));
}

double variation_of_gaps(const std::vector<Request>& requests) {
  if (requests.size() < 3) return 0;
  double sum = 0, squares = 0;
  for (size_t i = 1; i < requests.size(); ++i) {
    const double gap = requests[i].t_s - requests[i - 1].t_s;
    sum += gap;
    squares += gap * gap;
  }
  const double n = static_cast<double>(requests.size() - 1);
  const double mean = sum / n;
  return mean > 0 ? std::sqrt(std::max(0.0, squares / n - mean * mean)) / mean : 0;
}

}  // namespace

RareReport find_rare_keys(const Trace& trace, const KeyPolicy& policy, const ServiceModel& model) {
  RareReport report;
  report.policy = policy.name();
  report.requests = static_cast<int64_t>(trace.requests.size());
  report.keys = uses_in_order(trace, policy, model);
  const double total = std::max<double>(1, static_cast<double>(report.requests));
  double cumulative = 0;
  for (KeyUse& use : report.keys) {
    use.share = static_cast<double>(use.count) / total;
    use.cumulative = cumulative += use.share;
    use.worth_jit = use.gain_s > model.compile_s;
    if (use.gain_s > 0) use.break_even_calls = model.compile_s / (use.gain_s / static_cast<double>(use.count));
    report.singletons += use.count == 1;
    report.net_all_s += use.gain_s - model.compile_s;
    if (use.worth_jit) {
      report.net_chosen_s += use.gain_s - model.compile_s;
    } else {
      ++report.never_pay;
      report.never_pay_requests += use.share;
    }
  }
  return report;
}

nlohmann::json to_json(const RareReport& report, const ServiceModel& model) {
  nlohmann::json keys = nlohmann::json::array();
  for (const KeyUse& use : report.keys) {
    keys.push_back(
        {{"key", use.key},
         {"count", use.count},
         {"share", use.share},
         {"cumulative", use.cumulative},
         {"first_s", use.first_s},
         {"compile_ms", model.compile_s * 1e3},
         {"gain_s", use.gain_s},
         {"break_even_calls", use.break_even_calls ? nlohmann::json(*use.break_even_calls) : nlohmann::json("never")},
         {"worth_jit", use.worth_jit}});
  }
  const double key_count = std::max<double>(1, static_cast<double>(report.keys.size()));
  return {{"state", "simulated"},
          {"policy", report.policy},
          {"requests", report.requests},
          {"key_count", report.keys.size()},
          {"singletons", report.singletons},
          {"never_pay", report.never_pay},
          {"never_pay_share_of_keys", static_cast<double>(report.never_pay) / key_count},
          {"never_pay_share_of_requests", report.never_pay_requests},
          {"net_all_s", report.net_all_s},
          {"net_chosen_s", report.net_chosen_s},
          {"keys", std::move(keys)}};
}

TraceStats describe(const Trace& trace) {
  TraceStats stats;
  std::vector<double> prompts, outputs;
  std::unordered_map<int64_t, int64_t> counts;
  for (const Request& request : trace.requests) {
    prompts.push_back(static_cast<double>(request.prompt));
    outputs.push_back(static_cast<double>(request.output));
    ++counts[request.prompt];
  }
  std::sort(prompts.begin(), prompts.end());
  std::sort(outputs.begin(), outputs.end());
  stats.requests = static_cast<int64_t>(trace.requests.size());
  stats.out_of_order = trace.out_of_order;
  stats.span_s = trace.span_s();
  stats.rate_per_s = stats.span_s > 0 ? static_cast<double>(stats.requests) / stats.span_s : 0;
  stats.gap_cv = variation_of_gaps(trace.requests);
  stats.prompt_min = quantile_of(prompts, 1e-12);
  stats.prompt_p50 = quantile_of(prompts, 0.5);
  stats.prompt_p90 = quantile_of(prompts, 0.9);
  stats.prompt_p99 = quantile_of(prompts, 0.99);
  stats.prompt_max = quantile_of(prompts, 1);
  stats.output_p50 = quantile_of(outputs, 0.5);
  stats.output_p99 = quantile_of(outputs, 0.99);
  std::vector<int64_t> by_count;
  for (const auto& [prompt, count] : counts) {
    by_count.push_back(count);
    stats.singleton_prompts += count == 1;
  }
  stats.distinct_prompts = static_cast<int64_t>(by_count.size());
  std::sort(by_count.rbegin(), by_count.rend());
  for (size_t i = 0; i < std::min<size_t>(10, by_count.size()); ++i) {
    stats.top10_share += static_cast<double>(by_count[i]) / std::max<double>(1, static_cast<double>(stats.requests));
  }
  return stats;
}

nlohmann::json to_json(const TraceStats& s) {
  return {{"requests", s.requests},
          {"out_of_order", s.out_of_order},
          {"span_s", s.span_s},
          {"rate_per_s", s.rate_per_s},
          {"gap_cv", s.gap_cv},
          {"prompt",
           {{"min", s.prompt_min},
            {"p50", s.prompt_p50},
            {"p90", s.prompt_p90},
            {"p99", s.prompt_p99},
            {"max", s.prompt_max}}},
          {"output", {{"p50", s.output_p50}, {"p99", s.output_p99}}},
          {"distinct_prompts", s.distinct_prompts},
          {"singleton_prompts", s.singleton_prompts},
          {"top10_share", s.top10_share}};
}

nlohmann::json snapshot(const Trace& trace, const KeyPolicy& policy) {
  struct Use {
    int64_t count = 0;
    double real = 0;
  };
  std::map<int64_t, Use> uses;
  for (const Request& request : trace.requests) {
    Use& use = uses[policy.key(request.prompt)];
    ++use.count;
    use.real += static_cast<double>(request.prompt);
  }
  std::vector<std::pair<int64_t, Use>> ordered(uses.begin(), uses.end());
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const auto& a, const auto& b) { return a.second.count > b.second.count; });
  nlohmann::json keys = nlohmann::json::array();
  const double total = std::max<double>(1, static_cast<double>(trace.requests.size()));
  for (const auto& [key, use] : ordered) {
    keys.push_back({{"key", key},
                    {"count", use.count},
                    {"share", static_cast<double>(use.count) / total},
                    {"mean_prompt", use.real / static_cast<double>(use.count)}});
  }
  return {{"kind", "traffic-snapshot"}, {"schema", 1},
          {"trace", trace.name},        {"trace_sha256", trace.sha256},
          {"policy", policy.name()},    {"requests", trace.requests.size()},
          {"span_s", trace.span_s()},   {"keys", std::move(keys)}};
}

}  // namespace tilewright::traffic
