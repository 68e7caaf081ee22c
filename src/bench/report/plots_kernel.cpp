// Plots of the kernel itself: start, samples, ratios, error, tuning.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "bench/oracle/workload.h"
#include "bench/report/plots.h"
#include "bench/report/svg.h"
#include "measure/order_statistics.h"

namespace tilewright::report {

using bench::Cell;
using bench::Stage;
using bench::State;

namespace {

constexpr double kWidth = 640;
constexpr double kLeft = 186, kRight = kWidth - 18;

/// Both ends of a long name: what tells two of a family apart is often the last part.
std::string short_name(const std::string& name, size_t limit = 23) {
  if (name.size() <= limit) return name;
  const size_t tail = limit / 3;
  return name.substr(0, limit - 1 - tail) + "…" + name.substr(name.size() - tail);
}

std::string command_for(const ReportView& view) {
  const std::string candidate = view.candidates.empty() ? "CANDIDATE" : view.candidates.front();
  return fmt::format("tilewright bench {} --op {} --budget full", candidate, view.subject.shape);
}

struct Segment {
  const Cell* cell;
  const char* css;
};

struct Bar {
  std::string candidate, label;
  std::vector<Segment> segments;
  double total = 0;
};

std::vector<Bar> start_bars(const ReportView& view) {
  struct Part {
    Stage stage;
    const char* css;
  };
  constexpr std::array<Part, 4> kCold = {
      {{Stage::Import, "s0"}, {Stage::DeviceInit, "s1"}, {Stage::Compile, "s2"}, {Stage::FirstCall, "s4"}}};
  constexpr std::array<Part, 4> kCached = {
      {{Stage::Import, "s0"}, {Stage::DeviceInit, "s1"}, {Stage::Load, "s3"}, {Stage::FirstCall, "s4"}}};
  std::vector<Bar> bars;
  for (const std::string& candidate : view.candidates) {
    for (const auto& [label, parts] : {std::pair{"cold", kCold}, std::pair{"cached", kCached}}) {
      Bar bar{candidate, label, {}, 0};
      for (const Part& part : parts) {
        if (const Cell* cell = view.measured(candidate, part.stage)) {
          bar.segments.push_back({cell, part.css});
          bar.total += std::max(0.0, *cell->value);
        }
      }
      const Stage own = label == std::string("cold") ? Stage::Compile : Stage::Load;
      const Cell* cell = view.find(candidate, own);
      if (cell && (cell->state == bench::State::Measured || bench::is_precompiled(*cell)))
        bars.push_back(std::move(bar));
    }
  }
  return bars;
}

}  // namespace

Drawing plot_waterfall(const ReportView& view) {
  const std::vector<Bar> bars = start_bars(view);
  if (bars.empty()) return {"", "no first compile was measured", command_for(view)};
  double longest = 0;
  for (const Bar& bar : bars) longest = std::max(longest, bar.total);
  const double top = 34, row = 26;
  Svg svg(kWidth, top + row * static_cast<double>(bars.size()) + 48);
  const Scale x{0, longest * 1.12, kLeft, kRight};
  const double bottom = top + row * static_cast<double>(bars.size()) + 4;
  double legend = kLeft;
  for (const auto& [css, label] :
       {std::pair{"s0", "import"}, {"s1", "device"}, {"s2", "compile"}, {"s3", "load"}, {"s4", "first call"}}) {
    svg.rect(legend, 6, 11, 11, css);
    svg.text(legend + 16, 15.5, label, "t soft");
    legend += 34 + 7.2 * static_cast<double>(std::string_view(label).size());
  }
  svg.x_axis(x, bottom, top - 4, {.title = "ms from process start", .label = shown, .about = 6});
  std::string last;
  double y = top;
  for (const Bar& bar : bars) {
    if (bar.candidate != last) svg.text(kLeft - 58, y + 16, short_name(bar.candidate, 16), "t end strong");
    last = bar.candidate;
    svg.text(kLeft - 8, y + 16, bar.label, "t end soft");
    double at = 0;
    for (const Segment& segment : bar.segments) {
      const double value = std::max(0.0, *segment.cell->value), width = x(at + value) - x(at);
      const std::string_view metric = bench::info(segment.cell->stage).metric;
      svg.linked(segment.cell->seq, [&] {
        svg.rect(x(at), y + 2, std::max(width - 1, 0.8), row - 7, segment.css,
                 fmt::format("{} {} ms", metric, shown(value)));
        if (width > 44) svg.text(x(at) + width / 2, y + 16, shown(value), "t mid on");
      });
      at += value;
    }
    svg.text(x(at) + 6, y + 16, fmt::format("{} ms", shown(bar.total)), "t soft");
    y += row;
  }
  return {svg.str("cold and cached start of each candidate"), "", ""};
}

Drawing plot_samples(const ReportView& view) {
  struct Strip {
    const Cell* cell;
    std::string candidate;
  };
  std::vector<Strip> strips;
  double lo = INFINITY, hi = 0;
  size_t rows = 0;
  for (const std::string& candidate : view.candidates) {
    const Cell* cell = view.measured(candidate, Stage::Warm);
    if (!cell || cell->samples.empty() || strips.size() == 6) continue;
    strips.push_back({cell, candidate});
    rows += cell->samples.size();
    for (const std::vector<double>& process : cell->samples) {
      if (process.empty()) continue;
      const std::vector<double> ascending = measure::sorted(process);
      lo = std::min(lo, ascending.front());
      hi = std::max(hi, measure::percentile(ascending, 0.995));
    }
  }
  if (strips.empty()) return {"", "no warm samples were kept", command_for(view)};
  const double row = rows > 24 ? 9 : 15, gap = 14, top = 14;
  const double bottom = top + row * static_cast<double>(rows) + gap * static_cast<double>(strips.size());
  Svg svg(kWidth, bottom + 44);
  const bool is_wide = hi > 6 * lo;
  const Scale x{is_wide ? lo * 0.9 : std::max(0.0, lo - 0.06 * (hi - lo)), hi + 0.04 * (hi - lo), kLeft, kRight,
                is_wide};
  svg.x_axis(x, bottom, top - 6,
             {.title = "warm_ms of single calls; the bar is a process's median", .label = shown, .about = 6});
  double y = top;
  for (const Strip& strip : strips) {
    svg.text(kLeft - 10, y + row * static_cast<double>(strip.cell->samples.size()) / 2 + 4, short_name(strip.candidate),
             "t end strong");
    svg.linked(strip.cell->seq, [&] {
      for (size_t process = 0; process < strip.cell->samples.size(); ++process, y += row) {
        const std::vector<double>& samples = strip.cell->samples[process];
        if (samples.empty()) continue;
        const size_t stride = std::max<size_t>(1, samples.size() / 120);
        for (size_t i = 0; i < samples.size(); i += stride) {
          // A fixed scatter across the row's height: the order of the samples is not lost to a random one.
          const double jitter = row * 0.62 * (static_cast<double>((i * 2654435761u) % 1000) / 1000 - 0.5);
          svg.dot(x(samples[i]), y + row / 2 + jitter, 1.7, fmt::format("f{} faint", view.colour(strip.candidate)));
        }
        const double middle = measure::median(measure::sorted(samples));
        svg.rect(x(middle) - 1.25, y + 1, 2.5, row - 2, fmt::format("f{}", view.colour(strip.candidate)),
                 fmt::format("process {}: median {} ms of {}", process + 1, shown(middle), samples.size()));
      }
    });
    y += gap;
  }
  return {svg.str("warm samples of every process"), "", ""};
}

namespace {

/// One line of the forest: a comparison, or the A/A gate that came before it.
struct ForestRow {
  const Cell* cell;
  std::string label;
  double ratio, low, high;
  bool is_gate;
};

std::vector<ForestRow> forest_rows(const ReportView& view) {
  std::vector<ForestRow> rows;
  for (const Cell& cell : view.latest) {
    if (cell.stage != Stage::Ratio || !cell.detail.is_object()) continue;
    const std::string rival = cell.detail.value("rival", "");
    if (const auto aa = cell.detail.find("aa"); aa != cell.detail.end() && aa->is_object() && aa->contains("low")) {
      rows.push_back({&cell, "A/A " + short_name(cell.candidate, 14), aa->value("ratio", 1.0), aa->value("low", 1.0),
                      aa->value("high", 1.0), true});
    }
    if (cell.state != State::Measured || !cell.value || !cell.ci) continue;
    rows.push_back({&cell, short_name(cell.candidate, 10) + " / " + short_name(rival, 10), *cell.value, cell.ci->low,
                    cell.ci->high, false});
  }
  std::ranges::stable_partition(rows, &ForestRow::is_gate);
  return rows;
}

/// Why a comparison has a gate but no ratio.
std::string missing_ratio(const ReportView& view) {
  for (const Cell& cell : view.latest) {
    if (cell.stage == Stage::Ratio && cell.state == State::Failed)
      return fmt::format("{}: no ratio ({})", short_name(cell.candidate), cell.reason.substr(0, cell.reason.find(':')));
  }
  return "";
}

}  // namespace

Drawing plot_forest(const ReportView& view) {
  const std::vector<ForestRow> rows = forest_rows(view);
  if (rows.empty()) {
    const std::string a = view.candidates.empty() ? "A" : view.candidates.front();
    const std::string b = view.candidates.size() > 1 ? view.candidates[1] : "B";
    return {"", "nothing was compared side by side",
            fmt::format("tilewright compare {} {} --op {}", a, b, view.subject.shape)};
  }
  double lo = 0.9, hi = 1.12;
  for (const ForestRow& row : rows) {
    lo = std::min(lo, row.low * 0.93);
    hi = std::max(hi, row.high * 1.07);
  }
  const std::string missing = missing_ratio(view);
  const double top = 26, height = 28, bottom = top + height * static_cast<double>(rows.size()), left = 178;
  Svg svg(kWidth, bottom + (missing.empty() ? 44 : 64));
  if (!missing.empty()) svg.text(left - 166, bottom + 56, missing, "t k-bad-text");
  const Scale x{lo, hi, left, kRight - 124, true};
  svg.rect(x(1 / 1.02), top - 8, x(1.02) - x(1 / 1.02), bottom - top + 8, "band");
  svg.x_axis(x, bottom, top - 8, {.title = "time ÷ rival's time", .label = shown, .about = 5});
  svg.line(x(1), top - 8, x(1), bottom, "axis");
  svg.text(x(1) - 8, top - 13, "← faster", "t end soft");
  svg.text(x(1) + 8, top - 13, "slower →", "t soft");
  double y = top + height / 2;
  for (const ForestRow& row : rows) {
    const std::string css = row.is_gate ? "soft" : row.high < 1 / 1.02 ? "good" : row.low > 1.02 ? "bad" : "open";
    svg.text(left - 12, y + 4, row.label, row.is_gate ? "t end soft" : "t end strong");
    svg.linked(row.cell->seq, [&] {
      svg.line(x(row.low), y, x(row.high), y, "whisker k-" + css);
      svg.dot(x(row.ratio), y, 5, "f-" + css,
              fmt::format("{} [{}, {}], n = {}", shown(row.ratio), shown(row.low), shown(row.high), row.cell->n));
      svg.text(kRight, y + 4, fmt::format("{} [{}, {}]", shown(row.ratio), shown(row.low), shown(row.high)), "t end");
    });
    y += height;
  }
  return {svg.str("paired ratios with 95 % intervals"), "", ""};
}

namespace {

struct ErrorPoint {
  double depth, error, bound;
  std::string key;
};

/// The extent that sums run over: K of a product, the row of a reduction.
double depth_of(const std::string& key, const std::string& dtype) {
  const Result<bench::DTypes> dtypes = bench::parse_dtypes(dtype);
  if (!dtypes) return 0;
  const Result<bench::Workload> workload = bench::parse_workload(key, *dtypes);
  if (!workload) return 0;
  for (const char* name : {"K", "SK", "C"}) {
    for (const auto& [dim, extent] : workload->dims) {
      std::string upper = dim;
      std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
      if (upper == name) return static_cast<double>(extent);
    }
  }
  return 0;
}

std::vector<ErrorPoint> error_points(const Cell& check) {
  std::vector<ErrorPoint> points;
  const auto add = [&](const nlohmann::json& shape) {
    if (!shape.is_object()) return;
    for (const nlohmann::json& j : shape.value("judgements", nlohmann::json::array())) {
      const ErrorPoint point{depth_of(shape.value("key", ""), check.subject.dtype), j.value("max_error", 0.0),
                             j.value("max_allowed", 0.0), shape.value("key", "")};
      if (point.depth > 0 && point.error > 0 && std::isfinite(point.error)) points.push_back(point);
    }
  };
  const nlohmann::json& report = check.detail.contains("oracle") ? check.detail["oracle"] : check.detail;
  if (!report.is_object()) return points;
  add(report.value("main", nlohmann::json()));
  for (const nlohmann::json& shape : report.value("fuzz", nlohmann::json::array())) add(shape);
  std::ranges::sort(points, {}, &ErrorPoint::depth);
  return points;
}

}  // namespace

Drawing plot_error(const ReportView& view) {
  double k_lo = INFINITY, k_hi = 0, e_lo = INFINITY, e_hi = 0;
  std::vector<std::pair<const Cell*, std::vector<ErrorPoint>>> series;
  for (const std::string& candidate : view.candidates) {
    const Cell* cell = view.find(candidate, Stage::Check);
    if (!cell) continue;
    std::vector<ErrorPoint> points = error_points(*cell);
    for (const ErrorPoint& p : points) {
      k_lo = std::min(k_lo, p.depth);
      k_hi = std::max(k_hi, p.depth);
      e_lo = std::min(e_lo, p.error);
      e_hi = std::max({e_hi, p.error, p.bound});
    }
    if (!points.empty()) series.emplace_back(cell, std::move(points));
  }
  if (series.empty()) return {"", "the oracle's shapes are not in the record", command_for(view)};
  Svg svg(kWidth, 260);
  const Scale x{std::max(0.7, k_lo * 0.8), k_hi * 1.3, 74, kRight, true}, y{e_lo * 0.5, e_hi * 2, 212, 26, true};
  svg.y_axis(y, 74, kRight,
             {.title = "largest error; – the bound of that shape",
              .label = [](double v) { return fmt::format("{:.0e}", v); },
              .about = 5});
  svg.x_axis(x, 212, 26, {.title = "K: how many products are summed", .label = shown, .about = 6});
  for (const auto& [cell, points] : series) {
    svg.linked(cell->seq, [&, cell = cell, &points = points] {
      for (const ErrorPoint& p : points) {
        const std::string tip = fmt::format("{}: {:.2e}, allowed {:.2e}", p.key, p.error, p.bound);
        if (p.bound > 0) svg.line(x(p.depth) - 6, y(p.bound), x(p.depth) + 6, y(p.bound), "bound");
        svg.dot(x(p.depth), y(p.error), 3.4,
                p.bound > 0 && p.error > p.bound ? "f-bad" : fmt::format("f{}", view.colour(cell->candidate)), tip);
      }
    });
  }
  return {svg.str("error against K with bounds"), "", ""};
}

Drawing plot_tuning(const ReportView& view) {
  const std::vector<nlohmann::json>& trials = view.input.trials;
  if (trials.empty())
    return {"", "nothing was tuned", "tilewright tune CANDIDATE --space space.json --out " + view.input.folder};
  double spent = 0, lo = INFINITY, hi = 0;
  struct Point {
    double at, median;
    std::string state, tip;
  };
  std::vector<Point> points;
  for (const nlohmann::json& trial : trials) {
    spent += trial.value("spent_ms", 0.0) / 1e3;
    const double median = trial.value("median_ms", 0.0);
    std::string config;
    for (const nlohmann::json& pair : trial.value("config", nlohmann::json::array())) {
      if (pair.is_array() && pair.size() == 2)
        config += fmt::format("{}={} ", pair[0].get<std::string>(), pair[1].dump());
    }
    points.push_back({spent, median, trial.value("state", ""), config + trial.value("reason", "")});
    if (points.back().state == "ok" && median > 0) {
      lo = std::min(lo, median);
      hi = std::max(hi, median);
    }
  }
  if (hi == 0) return {"", "no configuration was correct", "tilewright tune …"};
  Svg svg(kWidth, 260);
  const Scale x{0, spent * 1.03, 74, kRight}, y{lo * 0.93, hi * 1.08, 212, 58, hi > 4 * lo};
  svg.text(74, 22, "ms per call: ● each configuration, line = best so far, × failed", "t soft");
  svg.y_axis(y, 74, kRight, {.title = "", .label = shown, .about = 5});
  svg.x_axis(x, 212, 34, {.title = "seconds spent, compile and checks included", .label = shown, .about = 6});
  std::vector<std::pair<double, double>> best;
  double least = INFINITY;
  for (const Point& p : points) {
    if (p.state != "ok") {
      svg.cross(x(p.at), 42, 3.2, "k-bad", fmt::format("{}: {}", p.state, p.tip));
      continue;
    }
    svg.dot(x(p.at), y(p.median), 3, "f0 faint2", fmt::format("{} ms  {}", shown(p.median), p.tip));
    if (p.median < least) {
      if (!best.empty()) best.emplace_back(x(p.at), y(least));
      least = p.median;
      best.emplace_back(x(p.at), y(least));
    }
  }
  best.emplace_back(x(spent), y(least));
  svg.path(best, "curve k0");
  svg.text(kRight, y(least) + 15, fmt::format("{} ms", shown(least)), "t end strong");
  return {svg.str("best time against time spent tuning"), "", ""};
}

}  // namespace tilewright::report
