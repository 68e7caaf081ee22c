#include "bench/screen_table.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "bench/text_table.h"

namespace tilewright::bench {
namespace {

using nlohmann::json;
using Line = TextLine;

const Line kHead = {"candidate", "correct", "import",     "compile",      "load",    "first call",
                    "warm",      "rate",    "of ceiling", "× best rival", "peak MiB"};

std::string word(const Cell* cell) {
  if (cell == nullptr) return "not-run";
  return std::string(name(cell->state));
}

std::string render_check(const Outcome& outcome) {
  const Cell* cell = outcome.find(Stage::Check);
  if (cell == nullptr || cell->state == State::NotRun) return "not-run";
  return cell->state == State::Measured ? "true" : "false";
}

/// Multiply-adds for what computes, bytes for what moves data: the side of the roofline the work is on.
bool is_compute_bound(const Outcome& outcome, const Roofline& roofline) {
  if (roofline.f32_gflops <= 0) return outcome.cost.flops > 100 * outcome.cost.bytes;
  return outcome.cost.flops / std::max(roofline.f32_gflops, 1e-9) >
         outcome.cost.bytes / std::max(roofline.copy_gb_per_s, 1e-9);
}

std::pair<std::string, std::string> render_rate(const Outcome& outcome, const Roofline& roofline) {
  const auto warm = outcome.value(Stage::Warm);
  if (!warm || *warm <= 0) return {"-", "-"};
  if (is_compute_bound(outcome, roofline)) {
    const double gflops = outcome.cost.flops / (*warm * 1e6);
    return {gflops >= 1000 ? fmt::format("{:.3g} TFLOP/s", gflops / 1000) : fmt::format("{:.3g} GFLOP/s", gflops),
            roofline.f32_gflops > 0 ? fmt::format("{:.0f} %", 100 * gflops / roofline.f32_gflops) : "-"};
  }
  const double rate = outcome.cost.bytes / (*warm * 1e6);
  return {fmt::format("{:.3g} GB/s", rate),
          fmt::format("{:.0f} %", 100 * rate / std::max(roofline.copy_gb_per_s, roofline.read_gb_per_s))};
}

std::string render_ratio(const Outcome& outcome) {
  const Cell* cell = outcome.find(Stage::Ratio);
  if (outcome.is_reference) return "reference";
  if (cell != nullptr && cell->state == State::Failed && cell->reason.starts_with("noise")) return "too noisy";
  if (cell == nullptr || cell->state != State::Measured) return word(cell);
  const double speed = 1 / *cell->value;
  std::string text = fmt::format("{:.3g}", speed);
  if (cell->ci) text += fmt::format(" [{:.3g}, {:.3g}]", 1 / cell->ci->high, 1 / cell->ci->low);
  return text + fmt::format(" {}", cell->detail.value("rival", ""));
}

std::string render_peak(const Outcome& outcome) {
  const auto value = outcome.value(Stage::Peak);
  return value ? fmt::format("{:.4g}", *value) : word(outcome.find(Stage::Peak));
}

/// What the first launch took more than the slowest of the next three: often nothing.
std::string render_first_call(const Cell* cell) {
  const bool is_nothing = cell != nullptr && cell->state == State::Measured && cell->value == 0;
  return is_nothing ? "as later" : render_time(cell);
}

std::string render_compile(const Cell* cell) {
  return cell != nullptr && is_precompiled(*cell) ? "precompiled" : render_time(cell);
}

Line row_of(const Outcome& outcome, const Roofline& roofline) {
  const auto [rate, share] = render_rate(outcome, roofline);
  std::string title = outcome.candidate;
  if (!outcome.version.empty()) title += " " + outcome.version;
  return {title,
          render_check(outcome),
          render_time(outcome.find(Stage::Import)),
          render_compile(outcome.find(Stage::Compile)),
          render_time(outcome.find(Stage::Load)),
          render_first_call(outcome.find(Stage::FirstCall)),
          render_time(outcome.find(Stage::Warm)),
          rate,
          share,
          render_ratio(outcome),
          render_peak(outcome)};
}

json outcome_json(const Outcome& outcome) {
  json cells = json::array();
  for (const Cell& cell : outcome.cells) {
    json j = to_json(cell);
    j.erase("samples");
    if (j.contains("detail")) j["detail"].erase("aa_samples");
    cells.push_back(std::move(j));
  }
  return {{"candidate", outcome.candidate},
          {"spelling", outcome.spelling},
          {"version", outcome.version},
          {"is_reference", outcome.is_reference},
          {"shape", outcome.subject.shape},
          {"dtype", outcome.subject.dtype},
          {"device", outcome.subject.device},
          {"reference_ok", render_check(outcome)},
          {"flops", outcome.cost.flops},
          {"bytes", outcome.cost.bytes},
          {"cells", cells}};
}

}  // namespace

std::string render_time(const Cell* cell) {
  if (cell == nullptr || cell->state != State::Measured || !cell->value) return word(cell);
  std::string text = duration_text(*cell->value);
  if (cell->ci && *cell->value > 0) {
    const double half_percent = 50 * (cell->ci->high - cell->ci->low) / *cell->value;
    text += half_percent > 100 ? " ±>100%" : fmt::format(" ±{:.1f}%", half_percent);
  }
  if (cell->stop_reason == "timeout") text += " (timeout)";
  return text;
}

static std::string render_ceilings(const Roofline& r) {
  if (!r.device.empty())
    return fmt::format("ceiling measured beside it, {}: copy {:.4g} GB/s\n", r.device, r.copy_gb_per_s);
  return fmt::format(
      "ceilings measured beside it, {} threads: {:.3g} GFLOP/s f32, read {:.3g} GB/s, copy {:.3g} GB/s\n", r.threads,
      r.f32_gflops, r.read_gb_per_s, r.copy_gb_per_s);
}

/// The times that warm_ms is not, each under its own name, and what a whole model and the search took; nothing when
/// none was measured.
static std::string render_sustained(const BenchReport& report, bool markdown) {
  std::vector<Line> lines{{"candidate", "shape", "hot (no flush)", "steady", "burst", "host time", "launch floor",
                           "whole model", "tuning"}};
  for (const Outcome& outcome : report.outcomes) {
    if (outcome.is_reference || !outcome.value(Stage::Hot)) continue;
    Line line{outcome.candidate, outcome.subject.shape};
    for (Stage stage :
         {Stage::Hot, Stage::Steady, Stage::Burst, Stage::Host, Stage::LaunchFloor, Stage::Model, Stage::Tune})
      line.push_back(render_time(outcome.find(stage)));
    lines.push_back(std::move(line));
  }
  return lines.size() == 1 ? "" : "\n" + draw_table(lines, markdown) + "\n";
}

/// With what probability the intervals on the screen cover their medians: few processes cover little.
static std::string render_levels(const BenchReport& report) {
  std::map<int, std::set<std::string>> metrics;  // by level in tenths of a percent
  for (const Outcome& outcome : report.outcomes) {
    for (const Stage stage : {Stage::Compile, Stage::Load, Stage::FirstCall, Stage::Warm, Stage::Hot}) {
      const Cell* cell = outcome.find(stage);
      if (cell != nullptr && cell->state == State::Measured && cell->ci && cell->ci->level > 0)
        metrics[static_cast<int>(1000 * cell->ci->level + 0.5)].insert(std::string(info(stage).metric));
    }
  }
  std::string out;
  for (const auto& [level, names] : metrics)
    out += fmt::format("{}{:g} % ({})", out.empty() ? "" : ", ", level / 10.0, fmt::join(names, ", "));
  return out.empty() ? out : fmt::format("± half the interval of process medians; it covers the median with {}\n", out);
}

/// What a kernel's own question was judged by; empty for operators that libraries know.
static std::string own_reference(const BenchReport& report, const Subject& subject) {
  for (const Outcome& outcome : report.outcomes) {
    if (outcome.subject != subject) continue;
    for (const Cell& cell : outcome.cells) {
      if (cell.detail.is_object() && cell.detail.contains("reference")) return cell.detail.value("reference", "");
    }
  }
  return "";
}

std::string render_table(const BenchReport& report, bool markdown) {
  std::vector<Subject> subjects;
  std::map<Subject, std::vector<Line>> tables;
  for (const Outcome& outcome : report.outcomes) {
    if (!tables.contains(outcome.subject)) subjects.push_back(outcome.subject);
    tables[outcome.subject].push_back(row_of(outcome, report.roofline));
  }
  std::string out;
  for (const Subject& subject : subjects) {
    out += fmt::format("{}{} · {} · {}\n{}", markdown ? "### " : "\n", subject.shape, subject.dtype, subject.device,
                       markdown ? "\n" : "");
    if (const std::string reference = own_reference(report, subject); !reference.empty())
      out += fmt::format("reference: {}{}\n", reference, markdown ? "\n" : "");
    std::vector<Line> lines{kHead};
    std::ranges::move(tables[subject], std::back_inserter(lines));
    out += draw_table(lines, markdown) + (markdown ? "\n" : "");
  }
  out += render_sustained(report, markdown);
  out += render_levels(report);
  if (report.roofline.copy_gb_per_s > 0) out += render_ceilings(report.roofline);
  return out;
}

std::string render_not_run(const BenchReport& report) {
  std::map<std::string, std::pair<std::string, std::set<std::string>>> lines;  // "metric: reason" → how, candidates
  for (const Outcome& outcome : report.outcomes) {
    for (const Cell& cell : outcome.cells) {
      if (cell.state == State::Measured) continue;
      auto& [how, who] = lines[fmt::format("{}: {} ({})", info(cell.stage).metric, name(cell.state), cell.reason)];
      how = cell.how_to_run;
      who.insert(outcome.candidate);
    }
  }
  std::string out;
  for (const auto& [what, entry] : lines) {
    std::string who;
    for (const std::string& candidate : entry.second) who += (who.empty() ? "" : ", ") + candidate;
    out += fmt::format("  {} [{}]{}\n", what, who, entry.first.empty() ? "" : " → " + entry.first);
  }
  return out.empty() ? out : "not measured:\n" + out;
}

json report_json(const BenchReport& report) {
  json out{{"out", report.out.string()},
           {"roofline", to_json(report.roofline)},
           {"notes", report.notes},
           {"outcomes", json::array()}};
  for (const Outcome& outcome : report.outcomes) out["outcomes"].push_back(outcome_json(outcome));
  return out;
}

}  // namespace tilewright::bench
