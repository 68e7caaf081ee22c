// What the rows of hopper measured, as lines with goals met or missed: pure functions of the stages' reports.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "bench/suite/hopper_suite.h"
#include "bench/text_table.h"
#include "measure/machine.h"
#include "measure/order_statistics.h"

namespace tilewright::bench {
namespace {

using nlohmann::json;

struct Limit {
  std::string what, unit;
  double most = 0;
};
std::vector<Limit> limits() {
  std::vector<Limit> out;
#define TW_LIMIT(what, most, unit) out.push_back({what, unit, most});
#include "bench/suite/hopper.def"
  return out;
}
std::map<std::string, double> mean_goals() {
  std::map<std::string, double> out;
#define TW_MEAN(group_name, speed) out[#group_name] = speed;
#include "bench/suite/hopper.def"
  return out;
}

double median(const std::vector<double>& samples) { return measure::median(measure::sorted(samples)); }
std::vector<double> samples_of(const json& object, const char* field) {
  return object.value(field, std::vector<double>());
}
std::string span(const std::vector<double>& samples, const char* unit) {
  const auto [least, most] = std::ranges::minmax(samples);
  return fmt::format("{:.3g}–{:.3g} {}", least, most, unit);
}
const char* state(bool is_met) { return is_met ? "met" : "missed"; }

/// A race's figures as the table needs them.
class RaceFigures {
 public:
  RaceFigures(const HopperRow& row, const json& result) : row_(row), result_(result) {
    const bool computes = !row.is_flushed && !row.workload.starts_with("gemv") && !is_decode();
    work_ = result.value(computes ? "flops" : "bytes", 0.0) * 1e-9;
    unit_ = computes ? "TFLOP/s" : "TB/s";
  }
  bool is_timed(const json& who) const { return !samples_of(who, main_field()).empty(); }
  const json& ours() const { return result_.at("contenders").at(0); }
  const char* main_field() const { return row_.is_flushed ? "flushed_ms" : "steady_ms"; }

  /// "645 / 796" in the unit.
  std::string rates(const json& who) const {
    std::string out = fmt::format("{:.3g}", work_ / median(samples_of(who, main_field())));
    if (!row_.is_flushed) out += fmt::format(" / {:.3g}", work_ / median(samples_of(who, "burst_ms")));
    return out;
  }
  const std::string& unit() const { return unit_; }

  const json* best_rival() const {
    const json* best = nullptr;
    for (size_t i = 1; i < result_.at("contenders").size(); ++i) {
      const json& who = result_.at("contenders")[i];
      if (is_timed(who) && (!best || median(samples_of(who, main_field())) < median(samples_of(*best, main_field()))))
        best = &who;
    }
    return best;
  }
  /// Median of the rounds' ratios against the best rival: rounds are taken in turn, so a drift meets both.
  std::vector<double> ratios() const {
    const json* rival = best_rival();
    std::vector<double> out;
    if (!rival || !is_timed(ours())) return out;
    const auto a = samples_of(ours(), main_field()), b = samples_of(*rival, main_field());
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) out.push_back(b[i] / a[i]);
    return out;
  }
  double goal_rate() const { return work_ / median(samples_of(ours(), row_.is_flushed ? "flushed_ms" : "burst_ms")); }

  std::string rivals() const {
    std::vector<std::string> out;
    for (size_t i = 1; i < result_.at("contenders").size(); ++i) {
      const json& who = result_.at("contenders")[i];
      const std::string name = who.value("name", who.value("candidate", ""));
      if (is_timed(who))
        out.push_back(fmt::format("{} {}{}", name, rates(who), &who == best_rival() ? " *" : ""));
      else if (who.contains("wrong"))
        out.push_back(name + " WRONG");
    }
    return fmt::format("{}", fmt::join(out, ", "));
  }

 private:
  bool is_decode() const { return row_.group == "decode"; }
  const HopperRow& row_;
  const json& result_;
  double work_ = 0;
  std::string unit_;
};

HopperLine race_line(const HopperRow& row, const json& result) {
  const RaceFigures figures(row, result);
  HopperLine line{.work = row.name};
  const json& ours = figures.ours();
  if (!figures.is_timed(ours)) {
    line.ours = ours.contains("wrong") ? "WRONG: " + ours.value("wrong", "") : "not-run: " + ours.value("refused", "");
    line.state = ours.contains("wrong") ? "missed" : "not-run";
    return line;
  }
  line.ours = fmt::format("{} {}", figures.rates(ours), figures.unit());
  line.spread = span(samples_of(ours, figures.main_field()), "ms");
  line.rivals = figures.rivals();
  const auto ratios = figures.ratios();
  if (!ratios.empty())
    line.ratio =
        fmt::format("{:.3f} [{:.3f}–{:.3f}]", median(ratios), std::ranges::min(ratios), std::ranges::max(ratios));
  std::vector<std::string> goals;
  bool is_met = true;
  if (row.speed_goal > 0) {
    goals.push_back(fmt::format("≥ {:g}×", row.speed_goal));
    if (ratios.empty()) line.state = "not-run";
    is_met &= !ratios.empty() && median(ratios) >= row.speed_goal;
  }
  if (row.rate_goal > 0) {
    goals.push_back(fmt::format("≥ {:g} {}", row.rate_goal, figures.unit()));
    is_met &= figures.goal_rate() >= row.rate_goal;
  }
  line.goal = fmt::format("{}", fmt::join(goals, ", "));
  if (line.state.empty()) line.state = state(is_met);
  return line;
}

std::vector<HopperLine> cold_lines(const HopperRow& row, const json& result) {
  const auto line = [&](const std::string& what, const char* field, double most, const std::string& unit) {
    const auto samples = samples_of(result, field);
    const double middle = median(samples);
    return HopperLine{.work = what,
                      .ours = fmt::format("{:.3g} {}", middle, unit),
                      .spread = span(samples, unit.c_str()),
                      .rivals = "",
                      .ratio = "",
                      .goal = fmt::format("≤ {:g} {}", most, unit),
                      .state = state(middle <= most)};
  };
  const std::string of = fmt::format("{} {}", row.workload, row.dtypes);
  std::vector<HopperLine> out = {line(row.name, "compile_ms", row.most, "ms")};
  const char* fields[] = {"load_ms", "start_ms", "cached_peak_mb"};
  const auto all = limits();
  for (size_t i = 0; i < all.size(); ++i)
    out.push_back(line(fmt::format("{} {}", all[i].what, of), fields[i], all[i].most, all[i].unit));
  return out;
}

HopperLine rare_line(const HopperRow& row, const json& result) {
  const double total = result.value("total_ms", 0.0);
  const int compiles = result.value("compiles", 0);
  const size_t wrong = result.value("wrong", json::array()).size();
  return {.work = fmt::format("{} rare shapes, {} {}", row.shapes, row.kernel, row.dtypes),
          .ours = fmt::format("{:.3g} ms, {} compiles{}", total, compiles,
                              wrong ? fmt::format(", {} WRONG", wrong) : std::string()),
          .spread = span(samples_of(result, "each_ms"), "ms each"),
          .rivals = "",
          .ratio = "",
          .goal = fmt::format("≤ {:g} ms, {} compiles", row.most, row.compiles),
          .state = state(total <= row.most && compiles <= row.compiles && wrong == 0)};
}

HopperLine launch_line(const HopperRow& row, const json& result) {
  const auto ours = samples_of(result, "launch_ns"), driver = samples_of(result, "driver_ns");
  std::vector<double> own;
  for (size_t i = 0; i < std::min(ours.size(), driver.size()); ++i) own.push_back(ours[i] - driver[i]);
  return {.work = row.name,
          .ours = fmt::format("{:.3g} ns above the driver's {:.4g} ns", median(own), median(driver)),
          .spread = span(own, "ns"),
          .rivals = "",
          .ratio = "",
          .goal = fmt::format("≤ {:g} ns", row.most),
          .state = state(median(own) <= row.most)};
}

std::vector<HopperLine> lines_of(const HopperRow& row, const HopperRecord& record) {
  if (record.result.is_null())
    return {{.work = row.name,
             .ours = "not-run: " + record.not_run,
             .spread = "",
             .rivals = "",
             .ratio = "",
             .goal = "",
             .state = "not-run"}};
  switch (row.kind) {
    case HopperKind::Race: return {race_line(row, record.result)};
    case HopperKind::Cold: return cold_lines(row, record.result);
    case HopperKind::Rare: return {rare_line(row, record.result)};
    case HopperKind::Launch: return {launch_line(row, record.result)};
  }
  return {};
}

/// The geometric means of groups with a goal, over the rows that were timed.
std::vector<HopperLine> mean_lines(const HopperReport& report) {
  std::vector<HopperLine> out;
  for (const auto& [group, goal] : mean_goals()) {
    double sum = 0;
    int rows = 0, all = 0;
    for (size_t i = 0; i < report.rows.size(); ++i) {
      if (report.rows[i].kind != HopperKind::Race || report.rows[i].group != group) continue;
      ++all;
      if (report.records[i].result.is_null()) continue;
      const auto ratios = RaceFigures(report.rows[i], report.records[i].result).ratios();
      if (ratios.empty()) continue;
      sum += std::log(median(ratios));
      ++rows;
    }
    if (rows == 0) continue;
    const double mean = std::exp(sum / rows);
    out.push_back({.work = fmt::format("{}: geometric mean of {} of {} rows", group, rows, all),
                   .ours = "",
                   .spread = "",
                   .rivals = "",
                   .ratio = fmt::format("{:.3f}", mean),
                   .goal = fmt::format("≥ {:g}×", goal),
                   .state = state(mean >= goal)});
  }
  return out;
}

std::string versions(const HopperReport& report) {
  std::map<std::string, std::string> found, refused;
  for (const HopperRecord& record : report.records) {
    if (!record.result.contains("contenders")) continue;
    for (const json& who : record.result["contenders"]) {
      if (who.contains("name")) found[who.value("name", "")] = who.value("version", "");
      if (who.contains("refused")) refused[who.value("candidate", "")] = who.value("refused", "");
    }
  }
  std::string out = "versions:";
  for (const auto& [name, version] : found) out += fmt::format(" {} {} ·", name, version);
  out += " " + report.device + "\n";
  for (const auto& [who, why] : refused) out += fmt::format("not run somewhere: {}: {}\n", who, why);
  return out;
}

}  // namespace

std::vector<HopperLine> hopper_lines(const HopperReport& report) {
  std::vector<HopperLine> out;
  for (size_t i = 0; i < report.rows.size(); ++i)
    std::ranges::move(lines_of(report.rows[i], report.records[i]), std::back_inserter(out));
  std::ranges::move(mean_lines(report), std::back_inserter(out));
  return out;
}

std::string render_hopper(const HopperReport& report, bool markdown) {
  std::vector<TextLine> lines{{"work", "ours", "least–most", "rivals", "× best rival", "goal", "state"}};
  int met = 0, missed = 0, open = 0;
  for (HopperLine& line : hopper_lines(report)) {
    (line.state == "met" ? met : line.state == "missed" ? missed : open) += 1;
    lines.push_back({line.work, line.ours, line.spread, line.rivals, line.ratio, line.goal, line.state});
  }
  std::string out = fmt::format("{}{}: our kernels on {}\n\n", markdown ? "### " : "", kHopperSuite, report.device);
  out += draw_table(lines, markdown) + "\n";
  out += fmt::format("{} met, {} missed, {} not run\n", met, missed, open);
  out +=
      "rates: steady / burst, or after a flush of L2; × best rival: its time / ours, median of the rounds "
      "[least–most]; "
      "* the best rival\n";
  return out + versions(report);
}

json to_json(const HopperReport& report) {
  json out{{"suite", kHopperSuite},
           {"device", report.device},
           {"environment", measure::environment_facts()},
           {"lines", json::array()},
           {"rows", json::array()}};
  if (!report.device_missing.empty()) out["not_run"] = report.device_missing;
  for (const HopperLine& line : hopper_lines(report)) {
    out["lines"].push_back({{"work", line.work},
                            {"ours", line.ours},
                            {"spread", line.spread},
                            {"rivals", line.rivals},
                            {"ratio", line.ratio},
                            {"goal", line.goal},
                            {"state", line.state}});
  }
  for (size_t i = 0; i < report.rows.size(); ++i) {
    json row{{"row", report.rows[i].name}, {"kernel", report.rows[i].kernel}};
    if (report.records[i].result.is_null())
      row["not_run"] = report.records[i].not_run;
    else
      row["result"] = report.records[i].result;
    out["rows"].push_back(std::move(row));
  }
  return out;
}

}  // namespace tilewright::bench
