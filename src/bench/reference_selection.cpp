#include "bench/reference_selection.h"

#include <fmt/core.h>

#include <algorithm>

#include "bench/text_table.h"
#include "measure/order_statistics.h"

namespace tilewright::bench {
namespace {

using nlohmann::json;

constexpr int kRounds = 7;
constexpr double kLimitMs = 3000;

/// A line each: those that were timed from fast to slow, then the others with their reasons.
std::string describe(const json& tried) {
  std::vector<json> lines(tried.begin(), tried.end());
  std::ranges::stable_sort(lines, {}, [](const json& one) { return one.value("ms", 1e300); });
  std::string out;
  for (const json& one : lines) {
    const std::string who = one.value("candidate", "");
    const std::string what = one.contains("ms") ? duration_text(one.value("ms", 0.0)) : "not-run";
    const std::string why = !one.contains("ms")           ? "  " + one.value("not_run", "")
                            : !one.value("chosen", false) ? ""
                            : is_framework(who)           ? "  best framework"
                                                          : "  best library";
    out += fmt::format("\n  {:<33} {:>9}{}", who, what, why);
  }
  return out;
}

}  // namespace

bool is_framework(const std::string& spelling) { return spelling.starts_with("worker:") || spelling.ends_with(".py"); }

ReferenceSelection select_references(const json& contest) {
  ReferenceSelection out;
  out.tried = json::array();
  const json* best[2] = {nullptr, nullptr};  // framework, library
  for (const json& entrant : contest.at("contenders")) {
    const std::string spelling = entrant.value("candidate", "");
    json one{{"candidate", spelling}, {"name", entrant.value("name", "")}, {"version", entrant.value("version", "")}};
    const auto samples = entrant.value("ms", std::vector<double>());
    if (samples.empty())
      one["not_run"] = entrant.value("wrong", entrant.value("refused", "not timed"));
    else
      one["ms"] = measure::median(measure::sorted(samples));
    out.tried.push_back(std::move(one));
  }
  for (const json& one : out.tried) {
    const json*& leader = best[is_framework(one.value("candidate", "")) ? 0 : 1];
    if (one.contains("ms") && (leader == nullptr || one.value("ms", 0.0) < leader->value("ms", 0.0))) leader = &one;
  }
  for (const json* leader : best) {
    if (leader != nullptr) out.chosen.push_back(leader->value("candidate", ""));
  }
  for (json& one : out.tried)
    one["chosen"] = std::ranges::find(out.chosen, one.value("candidate", "")) != out.chosen.end();
  out.text = describe(out.tried);
  return out;
}

Result<ReferenceSelection> try_references(const BenchOptions& options, const StageRunner& runner,
                                          const Workload& workload, const std::string& cache_dir) {
  StageRequest r;
  r.kind = StageKind::Contest;
  r.workload = workload_key(workload);
  r.dtypes = to_string(workload.dtypes);
  r.lengths = workload.lengths;
  r.question = workload.question;
  r.device = options.device;
  r.threads = options.threads;
  r.seed = options.seed;
  r.cache_dir = cache_dir;
  r.rounds = kRounds;
  r.warm.timeout_ms = kLimitMs;
  r.is_flushed = true;
  r.timeout_ms = options.timeout_ms;
  for (const std::string& spelling : options.references) {
    if (std::ranges::find(options.candidates, spelling) == options.candidates.end())
      r.contenders.push_back({spelling, r.workload, r.dtypes});
  }
  if (r.contenders.empty()) return ReferenceSelection{};
  auto outcome = runner.run(r);
  if (!outcome) return std::unexpected(outcome.error());
  return select_references(outcome->result);
}

}  // namespace tilewright::bench
