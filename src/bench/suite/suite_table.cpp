#include "bench/suite/suite_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "bench/text_table.h"
#include "measure/machine.h"

namespace tilewright::bench {
namespace {

using nlohmann::json;

std::string time_text(const Contestant& c) {
  std::string out = duration_text(c.median_ms());
  const measure::Interval ci = c.interval();
  if (ci.level > 0 && c.median_ms() > 0) out += fmt::format(" ±{:.1f}%", 50 * (ci.high - ci.low) / c.median_ms());
  return out;
}

std::string rate_text(const Contestant& c, CeilingProbe::Kind kind) {
  const double rate = c.rate(kind);
  if (kind == CeilingProbe::Kind::Copy) return fmt::format("{:.3g} GB/s", rate);
  return rate >= 1000 ? fmt::format("{:.3g} TFLOP/s", rate / 1000) : fmt::format("{:.3g} GFLOP/s", rate);
}

std::string speed_text(const measure::PairedResult& speed) {
  if (speed.interval95.level <= 0) return fmt::format("{:.3f}", speed.ratio);
  return fmt::format("{:.3f} [{:.3f}, {:.3f}]", speed.ratio, speed.interval95.low, speed.interval95.high);
}

/// Names of rivals in the order they first appear: the columns.
std::vector<std::string> rival_columns(const SuiteReport& report) {
  std::vector<std::string> out;
  for (const SuiteRow& row : report.rows) {
    for (size_t i = 1; i < row.contestants.size(); ++i) {
      const Contestant& c = row.contestants[i];
      if (c.is_timed() && std::find(out.begin(), out.end(), c.name) == out.end()) out.push_back(c.name);
    }
  }
  return out;
}

std::string goal_text(const SuiteRow& row, CeilingProbe::Kind kind) {
  std::string out;
  if (speed_goal(row) != Goal::None) out = fmt::format("≥ {:g}× {}", row.what.goal, name(speed_goal(row)));
  if (share_goal(row, kind) != Goal::None)
    out += fmt::format("{}≥ {:g} % {}", out.empty() ? "" : ", ", row.what.share_goal, name(share_goal(row, kind)));
  return out.empty() ? "-" : out;
}

TextLine line_of(const SuiteRow& row, CeilingProbe::Kind kind, const std::vector<std::string>& rivals) {
  TextLine out{fmt::format("{} {}", row.what.workload, row.what.dtypes), std::to_string(row.threads)};
  const bool is_timed = row.is_timed();
  out.push_back(is_timed ? time_text(row.ours()) : "not-run");
  out.push_back(is_timed ? rate_text(row.ours(), kind) : "-");
  out.push_back(is_timed && kind != CeilingProbe::Kind::None ? fmt::format("{:.0f} %", row.ours().share(kind)) : "-");
  for (const std::string& rival : rivals) {
    std::string cell = "-";
    for (size_t i = 1; is_timed && i < row.contestants.size(); ++i) {
      const Contestant& c = row.contestants[i];
      if (c.is_timed() && c.name == rival)
        cell = speed_text(row.speed_over(i)) + (i == row.best_rival() && row.contestants.size() > 2 ? " *" : "");
    }
    out.push_back(cell);
  }
  out.push_back(goal_text(row, kind));
  return out;
}

std::string means_text(const SuiteReport& report) {
  std::string out;
  for (int threads : report.threads) {
    const SuiteMean mean = mean_of(report.rows, threads, report.seed);
    if (mean.rows == 0) continue;
    out +=
        fmt::format("{} thread{}: geometric mean over {} rows, against the best rival of each: {:.3f} [{:.3f}, {:.3f}]",
                    threads, threads == 1 ? "" : "s", mean.rows, mean.speed, mean.interval.low, mean.interval.high);
    if (report.suite.mean_goal > 0)
      out += fmt::format(" (goal {:g}: {})", report.suite.mean_goal,
                         mean.speed >= report.suite.mean_goal ? "met" : "missed");
    out += fmt::format("; worst {} {:.3f}\n", mean.worst->what.workload,
                       mean.worst->speed_over(mean.worst->best_rival()).ratio);
  }
  return out;
}

/// What took part, with versions; who did not, and why.
std::string contestants_text(const SuiteReport& report) {
  std::map<std::string, std::string> present, absent;
  for (const SuiteRow& row : report.rows) {
    if (!row.not_run.empty()) {
      std::string& rows = absent[row.not_run];
      rows += fmt::format("{}{} {}", rows.empty() ? "" : ", ", row.what.workload, row.what.dtypes);
    }
    for (const Contestant& c : row.contestants) {
      if (c.is_timed()) present[c.name] = c.version;
      if (!c.wrong.empty()) absent[fmt::format("{} on {} is WRONG", c.name, row.what.workload)] = c.wrong;
      if (!c.refused.empty())
        absent[fmt::format("{} on {} {}", c.spelling, row.what.workload, row.what.dtypes)] = c.refused;
    }
  }
  std::string out = "versions:";
  for (const auto& [name, version] : present) out += fmt::format(" {} {} ·", name, version);
  out += fmt::format(" {}\n", measure::cpu_model());
  if (!absent.empty()) out += "not run:\n";
  for (const auto& [what, why] : absent) out += fmt::format("  {}: {}\n", what, why);
  return out;
}

const char* ceiling_title(CeilingProbe::Kind kind) { return kind == CeilingProbe::Kind::Copy ? "of copy" : "of peak"; }

}  // namespace

std::string render_suite(const SuiteReport& report, bool markdown) {
  const CeilingProbe::Kind kind = report.suite.ceiling;
  const std::vector<std::string> rivals = rival_columns(report);
  TextLine head{"workload", "threads", "ours", "rate", ceiling_title(kind)};
  for (const std::string& rival : rivals) head.push_back("× " + rival);
  head.emplace_back("goal");
  std::vector<TextLine> lines{head};
  for (const SuiteRow& row : report.rows) lines.push_back(line_of(row, kind, rivals));
  std::string out = fmt::format("{}{}: {}\n\n", markdown ? "### " : "", report.suite.name, report.suite.summary);
  out += draw_table(lines, markdown) + "\n";
  out += "× name: its time / ours, median of paired samples with 95 % interval; * the best rival of the row\n";
  out += means_text(report) + contestants_text(report);
  return out;
}

json to_json(const SuiteReport& report) {
  const CeilingProbe::Kind kind = report.suite.ceiling;
  json out{{"suite", report.suite.name},
           {"seed", report.seed},
           {"environment", measure::environment_facts()},
           {"ceiling", name(kind)},
           {"rows", json::array()},
           {"means", json::array()},
           {"caches", report.suite.is_flushed ? "flushed before each launch" : "as the launch before left them"}};
  for (const SuiteRow& row : report.rows) out["rows"].push_back(to_json(row, kind));
  for (int threads : report.threads) {
    const SuiteMean mean = mean_of(report.rows, threads, report.seed);
    if (mean.rows == 0) continue;
    out["means"].push_back({{"threads", threads},
                            {"rows", mean.rows},
                            {"speed", mean.speed},
                            {"low", mean.interval.low},
                            {"high", mean.interval.high},
                            {"goal", report.suite.mean_goal},
                            {"worst", mean.worst->what.workload}});
  }
  return out;
}

}  // namespace tilewright::bench
