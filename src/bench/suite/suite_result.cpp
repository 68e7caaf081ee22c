#include "bench/suite/suite_result.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "measure/random.h"

namespace tilewright::bench {
namespace {

using nlohmann::json;

double work_of(const Contestant& c, CeilingProbe::Kind kind) {
  return kind == CeilingProbe::Kind::Copy ? c.bytes : c.flops;
}

std::vector<double> log_speeds(const SuiteRow& row) {
  const Contestant& best = row.contestants[row.best_rival()];
  std::vector<double> out;
  for (size_t i = 0; i < std::min(row.ours().ms.size(), best.ms.size()); ++i)
    out.push_back(std::log(best.ms[i] / row.ours().ms[i]));
  return out;
}

double resampled_median(const std::vector<double>& values, measure::Random& random) {
  std::vector<double> drawn;
  for (size_t i = 0; i < values.size(); ++i) drawn.push_back(values[random.below(values.size())]);
  return measure::median(measure::sorted(drawn));
}

json interval_json(const measure::Interval& i) {
  return i.level > 0 ? json{{"low", i.low}, {"high", i.high}, {"level", i.level}} : json();
}

json contestant_json(const SuiteRow& row, size_t index, CeilingProbe::Kind kind) {
  const Contestant& c = row.contestants[index];
  json out{{"candidate", c.spelling}, {"name", c.name}, {"version", c.version}, {"libraries", c.libraries}};
  if (!c.refused.empty()) out["refused"] = c.refused;
  if (!c.wrong.empty()) out["wrong"] = c.wrong;
  if (!c.is_timed()) return out;
  out["ms"] = c.median_ms();
  out["ms_interval"] = interval_json(c.interval());
  out["rate"] = c.rate(kind);
  if (kind != CeilingProbe::Kind::None) out["percent_of_ceiling"] = c.share(kind);
  out["samples_ms"] = c.ms;
  out["ceiling"] = c.ceiling;
  if (index == 0 || !row.ours().is_timed()) return out;
  const measure::PairedResult speed = row.speed_over(index);
  out["speed"] = speed.ratio;
  out["speed_interval"] = interval_json(speed.interval95);
  return out;
}

}  // namespace

double Contestant::median_ms() const { return ms.empty() ? 0 : measure::median(measure::sorted(ms)); }

measure::Interval Contestant::interval() const {
  return measure::median_interval(measure::sorted(ms), 0.95).value_or(measure::Interval{});
}

double Contestant::rate(CeilingProbe::Kind kind) const {
  return ms.empty() ? 0 : work_of(*this, kind) / (median_ms() * 1e6);
}

double Contestant::share(CeilingProbe::Kind kind) const {
  std::vector<double> shares;
  for (size_t i = 0; i < std::min(ms.size(), ceiling.size()); ++i) {
    if (ceiling[i] > 0) shares.push_back(100 * work_of(*this, kind) / (ms[i] * 1e6) / ceiling[i]);
  }
  return shares.empty() ? 0 : measure::median(measure::sorted(shares));
}

size_t SuiteRow::best_rival() const {
  size_t best = 0;
  for (size_t i = 1; i < contestants.size(); ++i) {
    if (!contestants[i].is_timed()) continue;
    if (best == 0 || contestants[i].median_ms() < contestants[best].median_ms()) best = i;
  }
  return best;
}

measure::PairedResult SuiteRow::speed_over(size_t i) const {
  return measure::compare_paired(contestants[i].ms, ours().ms);
}

std::string_view name(Goal goal) {
  constexpr std::array<std::string_view, 4> kNames = {"", "met", "missed", "not-run"};
  return kNames[static_cast<size_t>(goal)];
}

Goal speed_goal(const SuiteRow& row) {
  if (row.what.goal <= 0) return Goal::None;
  if (!row.is_timed() || row.best_rival() == 0) return Goal::Unknown;
  return row.speed_over(row.best_rival()).ratio >= row.what.goal ? Goal::Met : Goal::Missed;
}

Goal share_goal(const SuiteRow& row, CeilingProbe::Kind kind) {
  if (row.what.share_goal <= 0) return Goal::None;
  if (!row.is_timed()) return Goal::Unknown;
  return row.ours().share(kind) >= row.what.share_goal ? Goal::Met : Goal::Missed;
}

SuiteMean mean_of(const std::vector<SuiteRow>& rows, int threads, uint64_t seed) {
  SuiteMean out;
  std::vector<std::vector<double>> logs;
  double sum = 0, worst = 0;
  for (const SuiteRow& row : rows) {
    if (row.threads != threads || !row.what.against_libraries || !row.is_timed() || row.best_rival() == 0) continue;
    logs.push_back(log_speeds(row));
    const double speed = measure::median(measure::sorted(logs.back()));
    sum += speed;
    if (out.worst == nullptr || speed < worst) {
      worst = speed;
      out.worst = &row;
    }
  }
  out.rows = static_cast<int>(logs.size());
  if (logs.empty()) return out;
  out.speed = std::exp(sum / out.rows);
  constexpr int kResamples = 1000;
  measure::Random random(seed);
  std::vector<double> means;
  for (int r = 0; r < kResamples; ++r) {
    double total = 0;
    for (const auto& row : logs) total += resampled_median(row, random);
    means.push_back(std::exp(total / out.rows));
  }
  means = measure::sorted(means);
  out.interval = {measure::percentile(means, 0.025), measure::percentile(means, 0.975), 0.95};
  return out;
}

std::vector<Contestant> parse_contest(const json& result) {
  std::vector<Contestant> out;
  for (const json& one : result.at("contenders")) {
    Contestant& c = out.emplace_back();
    c.spelling = one.value("candidate", "");
    c.name = one.value("name", c.spelling);
    c.version = one.value("version", "");
    c.libraries = one.value("libraries", json::object());
    c.refused = one.value("refused", "");
    c.wrong = one.value("wrong", "");
    c.ms = one.value("ms", std::vector<double>());
    c.ceiling = one.value("ceiling", std::vector<double>());
    c.flops = one.value("flops", 0.0);
    c.bytes = one.value("bytes", 0.0);
    if (out.size() > 1 && c.spelling.starts_with("tile:"))
      c.name = one.value("dtypes", "") != result["contenders"][0].value("dtypes", "") ? "own " + one.value("dtypes", "")
                                                                                      : "own unmasked";
  }
  return out;
}

json to_json(const SuiteRow& row, CeilingProbe::Kind kind) {
  json out{{"workload", row.what.workload},
           {"dtypes", row.what.dtypes},
           {"threads", row.threads},
           {"kernel", row.what.kernel},
           {"contestants", json::array()}};
  if (!row.not_run.empty()) out["not_run"] = row.not_run;
  for (size_t i = 0; i < row.contestants.size(); ++i) out["contestants"].push_back(contestant_json(row, i, kind));
  if (row.what.goal > 0) out["speed_goal"] = {{"least", row.what.goal}, {"state", name(speed_goal(row))}};
  if (row.what.share_goal > 0)
    out["share_goal"] = {{"least", row.what.share_goal}, {"state", name(share_goal(row, kind))}};
  if (row.is_timed() && row.best_rival() != 0) out["best_rival"] = row.contestants[row.best_rival()].name;
  return out;
}

}  // namespace tilewright::bench
