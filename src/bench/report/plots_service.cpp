// Plots of the service and the decision: traffic, break-even, model, flips, claims.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/report/plots.h"
#include "bench/report/svg.h"

namespace tilewright::report {

using bench::Cell;

namespace {

constexpr double kWidth = 640, kLeft = 74, kRight = kWidth - 18;

std::string percent(double share) { return fmt::format("{} %", shown(100 * share)); }

/// A latency with the unit that reads best.
std::string latency(double seconds) { return seconds < 1 ? shown(1e3 * seconds) + " ms" : shown(seconds) + " s"; }

std::string count(double value) {
  if (value >= 1e9) return shown(value / 1e9) + " G";
  if (value >= 1e6) return shown(value / 1e6) + " M";
  if (value >= 1e3) return shown(value / 1e3) + " k";
  return shown(value);
}

}  // namespace

Drawing plot_shapes(const ReportView& view) {
  const nlohmann::json& traffic = view.input.traffic;
  if (!traffic.is_object() || !traffic.contains("keys") || traffic["keys"].empty()) {
    return {
        "", "no traffic was given",
        fmt::format("tilewright traffic snapshot trace.csv --policy exact --out {}/traffic.json", view.input.folder)};
  }
  std::vector<std::pair<double, int64_t>> uses;
  double total = 0;
  for (const nlohmann::json& key : traffic["keys"]) {
    uses.emplace_back(key.value("count", 0.0), key.value("key", int64_t{0}));
    total += uses.back().first;
  }
  std::ranges::sort(uses, std::greater<>());
  Svg svg(kWidth, 260);
  const Scale x{1, std::max(2.0, static_cast<double>(uses.size())), kLeft, kRight - 40, true},
      y{0.7, uses.front().first * 1.4, 212, 26, true};
  const Scale share{0, 1, 212, 26};
  svg.y_axis(y, kLeft, kRight - 40, {.title = "requests per shape", .label = count, .about = 5});
  svg.x_axis(x, 212, 26,
             {.title = fmt::format("rank of the shape ({}, {} shapes)", traffic.value("policy", ""), uses.size()),
              .label = count,
              .about = 6});
  for (const double tick : {0.0, 0.5, 1.0})
    svg.text(kRight - 34, share(tick) + 4, fmt::format("{:.0f} %", 100 * tick), "t k-open-text");
  std::vector<std::pair<double, double>> covered;
  double sum = 0;
  size_t rank = 0;
  for (const auto& [requests, key] : uses) {
    ++rank;
    sum += requests;
    covered.emplace_back(x(static_cast<double>(rank)), share(sum / total));
    // Far ranks overlap on a log axis: every shape below 200, then ever fewer.
    if (rank > 200 && rank % (rank / 100) != 0 && rank != uses.size()) continue;
    svg.dot(x(static_cast<double>(rank)), y(requests), 2.6, "f0",
            fmt::format("shape {}: {} requests", key, shown(requests)));
  }
  svg.path(covered, "curve k-open");
  svg.text(kRight - 46, share(0.86), "share served", "t end k-open-text");
  return {svg.str("rank and frequency of shapes"), "", ""};
}

Drawing plot_service(const ReportView& view) {
  nlohmann::json runs = view.input.service;
  if (runs.is_object()) runs = nlohmann::json::array({runs});
  if (!runs.is_array() || runs.empty() || !runs[0].contains("timeline")) {
    return {"", "no service was simulated or replayed",
            fmt::format("tilewright traffic simulate trace.csv --compare --out {}/service.json", view.input.folder)};
  }
  const size_t panels = std::min<size_t>(runs.size(), 4);
  const double height = 150;
  Svg svg(2 * kWidth + 20, height * static_cast<double>((panels + 1) / 2) + 46);
  for (size_t i = 0; i < panels; ++i) {
    const nlohmann::json& run = runs[i];
    const double left = kLeft + (i % 2 ? kWidth + 20 : 0);
    const double right = left + kRight - kLeft + (panels == 1 ? kWidth + 20 : 0);
    const double top = 30 + height * static_cast<double>(i / 2), bottom = top + height - 56;
    double end = 1, lo = INFINITY, hi = 0;
    for (const nlohmann::json& p : run["timeline"]) {
      end = std::max(end, p.at(0).get<double>());
      lo = std::min(lo, std::max(1e-6, p.at(1).get<double>()));
      hi = std::max(hi, p.at(1).get<double>());
    }
    const Scale x{0, end / 60, left, right}, y{lo * 0.8, std::max(hi * 1.2, lo * 2), bottom, top, true};
    svg.y_axis(
        y, left, right,
        {.title = "", .label = [](double v) { return v < 1 ? shown(v * 1e3) + " ms" : shown(v) + " s"; }, .about = 3});
    svg.x_axis(x, bottom, top, {.title = "", .label = [](double v) { return shown(v) + " min"; }, .about = 6});
    const std::string serving = run.value("serving", "");
    svg.text(left, top - 9,
             fmt::format("{} / {}{}", run.value("policy", ""), run.value("miss", ""),
                         serving.empty() ? "" : " / " + serving),
             "t strong");
    const nlohmann::json steady = run.value("steady_at_s", nlohmann::json("never"));
    svg.text(right, top - 9,
             fmt::format(
                 "p50 {} · p99 {} · steady {} · {}", latency(run.value("p50_s", 0.0)), latency(run.value("p99_s", 0.0)),
                 steady.is_number() ? "at " + shown(steady.get<double>()) + " s" : "never", run.value("state", "")),
             "t end soft");
    for (const nlohmann::json& p : run["timeline"]) {
      const int kind = p.at(2).get<int>();
      const double px = x(p.at(0).get<double>() / 60), py = y(p.at(1).get<double>());
      if (kind == 2) svg.line(px, bottom, px, py, "stall");
      svg.dot(px, py, kind ? 2.2 : 1.3, kind == 2 ? "f-open" : kind == 1 ? "f-open faint2" : "f0 faint2");
    }
    if (steady.is_number()) svg.line(x(steady.get<double>() / 60), top, x(steady.get<double>() / 60), bottom, "steady");
  }
  svg.dot(kLeft + 4, svg.height() - 9, 2.6, "f0");
  svg.text(kLeft + 12, svg.height() - 5, "served warm", "t soft");
  svg.dot(kLeft + 112, svg.height() - 9, 2.6, "f-open");
  svg.text(kLeft + 120, svg.height() - 5, "waited for a compile, or ran the fallback", "t soft");
  svg.line(kLeft + 380, svg.height() - 14, kLeft + 380, svg.height() - 3, "steady");
  svg.text(kLeft + 388, svg.height() - 5, "steady from here", "t soft");
  return {svg.str("service latency over time with compile stalls"), "", ""};
}

Drawing plot_break_even(const ReportView& view) {
  const nlohmann::json& d = view.input.decision;
  if (!d.is_object() || !d.contains("saving_ms") || !d["saving_ms"].contains("reference")) {
    return {"", "no decision was taken", fmt::format("tilewright decide objective.json --out {}", view.input.folder)};
  }
  const double reference = d["saving_ms"].value("reference", 0.0),
               horizon = std::max(1.0, d.value("horizon_calls", 1.0));
  const double middle = d["saving_ms"].value("value", 0.0), low = d["saving_ms"]["ci"].at(0).get<double>(),
               high = d["saving_ms"]["ci"].at(1).get<double>();
  struct Line {
    const char* name;
    double cost;
    int colour;
  };
  std::vector<Line> lines;
  double first = horizon;
  for (const auto& [field, name, colour] : {std::tuple{"per_start", "per process start", 0},
                                            {"per_upgrade", "per upgrade", 2},
                                            {"per_adoption", "per adoption", 3}}) {
    const nlohmann::json& cost = d["costs_ms"].value(field, nlohmann::json());
    if (!cost.is_number() || reference <= 0 || cost.get<double>() <= 0) continue;
    lines.push_back({name, cost.get<double>(), colour});
    first = std::min(first, cost.get<double>() / reference);
  }
  if (lines.empty())
    return {"", "no cost was measured", fmt::format("tilewright bench {}", d.value("candidate", "CANDIDATE"))};
  const double start = std::max(1.0, first / 4), end = std::max(horizon * 3, start * 1e3);
  constexpr double kTop = 54, kBottom = 246;
  Svg svg(kWidth, kBottom + 48);
  const Scale x{start, end, kLeft, kRight, true}, y{0.2, 5, kBottom, kTop, true};
  svg.y_axis(y, kLeft, kRight,
             {.title = "all that was spent ÷ staying with the reference", .label = shown, .about = 4});
  svg.x_axis(x, kBottom, kTop, {.title = "calls", .label = count, .about = 6});
  svg.line(kLeft, y(1), kRight, y(1), "axis");
  const auto ratio = [&](double cost, double saving, double calls) {
    return (cost / calls + reference - saving) / reference;
  };
  constexpr int kSteps = 90;
  double label_x = 20;
  for (const Line& line : lines) {
    std::vector<std::pair<double, double>> curve, band;
    for (int i = 0; i <= kSteps; ++i) {
      const double calls = start * std::pow(end / start, static_cast<double>(i) / kSteps);
      curve.emplace_back(x(calls), y(ratio(line.cost, middle, calls)));
      band.emplace_back(x(calls), y(ratio(line.cost, high, calls)));
    }
    for (int i = kSteps; i >= 0; --i) {
      const double calls = start * std::pow(end / start, static_cast<double>(i) / kSteps);
      band.emplace_back(x(calls), y(ratio(line.cost, low, calls)));
    }
    svg.path(band, fmt::format("f{} veil", line.colour), true);
    svg.path(curve, fmt::format("curve k{}", line.colour));
    if (middle > 0)
      svg.dot(x(line.cost / middle), y(1), 4, fmt::format("f{}", line.colour),
              fmt::format("{}: {} calls", line.name, shown(std::ceil(line.cost / middle))));
    svg.dot(label_x, 12, 4, fmt::format("f{}", line.colour));
    svg.text(label_x + 9, 16,
             middle > 0 ? fmt::format("{}: {} calls", line.name, count(std::ceil(line.cost / middle)))
                        : fmt::format("{}: never", line.name),
             fmt::format("t c{}", line.colour));
    label_x += 208;
  }
  svg.line(x(horizon), kTop, x(horizon), kBottom, "steady");
  svg.text(x(horizon) - 5, kBottom - 6, "horizon", "t end soft");
  return {svg.str("relative cost against calls"), "", ""};
}

namespace {

/// Of the decision; without one, of the model the candidate was measured in. Null: neither.
nlohmann::json amdahl_of(const ReportView& view) {
  const nlohmann::json& d = view.input.decision;
  if (d.is_object() && d.contains("amdahl")) return d["amdahl"];
  const Cell* cell = view.candidates.empty() ? nullptr : view.measured(view.candidates.front(), bench::Stage::Model);
  if (!cell || !cell->detail.contains("model") || !cell->detail["model"].is_object()) return nullptr;
  const nlohmann::json& model = cell->detail["model"];
  const double predicted = model.value("predicted_speedup", 0.0), measured = model.value("measured_speedup", 0.0);
  if (predicted <= 0) return nullptr;
  nlohmann::json a{{"share", model.value("operator_share", 0.0)}, {"predicted_gain", 1 - 1 / predicted}};
  if (measured > 0 && model.value("gate", nlohmann::json::object()).value("passed", false))
    a["measured_gain"] = 1 - 1 / measured;
  const nlohmann::json phases = model.value("phases", nlohmann::json::array());
  if (a.contains("measured_gain") && !phases.empty() && phases.back().contains("paired")) {
    const nlohmann::json& whole = phases.back()["paired"];
    a["measured_ci"] = {1 - whole.value("high95", 1.0), 1 - whole.value("low95", 1.0)};
  }
  return a;
}

/// The measured gain with its interval; what lies below the plot stands at its lower edge.
void draw_measured_gain(Svg& svg, const nlohmann::json& a, const Scale& x, const Scale& y) {
  const nlohmann::json measured = a.value("measured_gain", nlohmann::json());
  if (!measured.is_number()) return;
  const double gain = measured.get<double>(), at = x(a.value("share", 0.0));
  std::string text = fmt::format("measured {}", percent(gain));
  if (const nlohmann::json ci = a.value("measured_ci", nlohmann::json()); ci.is_array()) {
    const double low = ci[0].get<double>(), high = ci[1].get<double>();
    svg.line(at, y(low), at, y(high), "whisker k-open");
    text += fmt::format(" [{}, {}]", percent(low), percent(high));
  }
  svg.dot(at, y(gain), 5, "f-open", text);
  const bool is_above = gain >= a.value("predicted_gain", 0.0);
  const bool is_right = at - x.from > 6.5 * static_cast<double>(text.size());  // the text goes where there is room
  svg.text(is_right ? at - 12 : at + 12, is_above ? y(gain) - 6 : std::min(y(gain) + 16, y.from - 8), text,
           is_right ? "t end k-open-text" : "t k-open-text");
}

}  // namespace

Drawing plot_amdahl(const ReportView& view) {
  const nlohmann::json a = amdahl_of(view);
  if (a.is_null()) {
    const Cell* cell = view.candidates.empty() ? nullptr : view.find(view.candidates.front(), bench::Stage::Model);
    return {"", cell && !cell->reason.empty() ? cell->reason : "the operator's share of a model is not known",
            "tilewright model profile, then tilewright bench … --model tiny"};
  }
  const double share = a.value("share", 0.0), predicted = a.value("predicted_gain", 0.0);
  const double slope = share > 0 ? predicted / share : 0;
  Svg svg(kWidth, 250);
  const double measured_gain =
      a.value("measured_gain", nlohmann::json()).is_number() ? a["measured_gain"].get<double>() : 0;
  const double reach = std::min(1.0, std::max({0.04, 2.2 * predicted, 1.6 * measured_gain, 1.15 * slope}));
  constexpr double kLowest = -1;
  const Scale x{0, 1, kLeft, kRight}, y{std::max(kLowest, std::min({0.0, slope, measured_gain})), reach, 202, 26};
  svg.y_axis(y, kLeft, kRight, {.title = "gain of the whole model", .label = percent, .about = 5});
  svg.x_axis(x, 202, 26, {.title = "share of the model's time spent in the operator", .label = percent, .about = 5});
  svg.path({{x(0), y(0)}, {x(reach), y(reach)}}, "curve k-soft dashed");
  svg.text(x(reach) + 10, y(reach) + 12, "if the operator were free", "t soft");
  svg.path({{x(0), y(0)}, {x(1), y(slope)}}, "curve k0");
  svg.dot(x(share), y(predicted), 5, "ring k0", fmt::format("predicted {}", percent(predicted)));
  svg.text(x(share) + 12, y(predicted) + (measured_gain >= predicted ? 18 : -8),
           fmt::format("predicted {}", percent(predicted)), "t c0");
  draw_measured_gain(svg, a, x, y);
  return {svg.str("predicted and measured gain of the model"), "", ""};
}

namespace {

/// The cell a measured knob stands for; 0 for those that come from the objective.
uint64_t knob_source(const ReportView& view, const std::string& knob) {
  const nlohmann::json& d = view.input.decision;
  const std::string reference = d.value("reference", "");
  for (const Cell& cell : view.latest) {
    const std::string name(bench::info(cell.stage).metric);
    const bool is_ours = !view.candidates.empty() && cell.candidate == view.candidates.front();
    if (cell.subject != view.subject) continue;
    if (is_ours && (knob == name || knob == "candidate " + name)) return cell.seq;
    if (cell.candidate == reference && knob == "reference " + name) return cell.seq;
  }
  return 0;
}

}  // namespace

Drawing plot_flips(const ReportView& view) {
  const nlohmann::json& d = view.input.decision;
  if (!d.is_object())
    return {"", "no decision was taken", fmt::format("tilewright decide objective.json --out {}", view.input.folder)};
  if (d.value("flips", nlohmann::json::array()).empty())
    return {"", "no single number within a factor of 1000 changes the verdict", ""};
  std::vector<nlohmann::json> flips(d["flips"].begin(), d["flips"].end());
  const auto distance = [](const nlohmann::json& f) {
    return std::abs(std::log(f.value("at", 1.0) / std::max(1e-300, f.value("now", 1.0))));
  };
  std::ranges::stable_sort(flips, [&](const auto& a, const auto& b) { return distance(a) < distance(b); });
  if (flips.size() > 10) flips.resize(10);
  double reach = 1.3;
  for (const nlohmann::json& f : flips) reach = std::max(reach, std::exp(distance(f)) * 1.15);
  const double top = 22, row = 24, bottom = top + row * static_cast<double>(flips.size()), left = 172;
  Svg svg(kWidth, bottom + 44);
  const Scale x{1 / reach, reach, left, kRight - 116, true};
  svg.x_axis(x, bottom, top - 6, {.title = "× its value now", .label = shown, .about = 5});
  svg.line(x(1), top - 6, x(1), bottom, "axis");
  double y = top + row / 2;
  for (const nlohmann::json& f : flips) {
    const double now = f.value("now", 1.0), at = f.value("at", 1.0);
    const uint64_t source = knob_source(view, f.value("knob", ""));
    const std::string becomes = f.value("becomes", "");
    const std::string css = becomes == "ADOPT" ? "good" : becomes == "REJECT" ? "bad" : "open";
    svg.text(left - 10, y + 4, f.value("knob", ""), "t end");
    svg.line(x(1), y, x(at / now), y, "whisker k-" + css);
    svg.dot(x(at / now), y, 4.5, "f-" + css, fmt::format("{} → {}: {}", shown(now), shown(at), becomes));
    svg.linked(source, [&] { svg.text(kRight - 108, y + 4, fmt::format("{} → {}", count(now), count(at)), "t soft"); });
    y += row;
  }
  return {svg.str("what would flip the verdict"), "", ""};
}

Drawing plot_claims(const ReportView& view) {
  std::vector<const Cell*> rows;
  for (const Cell& cell : view.claims) {
    if (cell.value && *cell.value > 0 && rows.size() < 14) rows.push_back(&cell);
  }
  if (rows.empty())
    return {"", "no claim is on file",
            "tilewright claims import table.md --device D --candidate C --source URL --as-of DATE"};
  double lo = INFINITY, hi = 0;
  for (const Cell* cell : rows) {
    lo = std::min(lo, *cell->value);
    hi = std::max(hi, *cell->value);
  }
  const double top = 12, row = 24, bottom = top + row * static_cast<double>(rows.size()), left = 250;
  Svg svg(kWidth, bottom + 44);
  const Scale x{lo / 3, hi * 1.5, left, kRight - 168, true};
  svg.x_axis(x, bottom, top - 4, {.title = "claimed ms, not measured here", .label = shown, .about = 4});
  double y = top;
  for (const Cell* cell : rows) {
    std::string lints;
    for (const nlohmann::json& lint : cell->detail.value("lint", nlohmann::json::array())) {
      if (lint.value("code", "") != "unchecked") lints += lint.value("code", "") + " ";
    }
    svg.text(left - 10, y + 15, cell->candidate.substr(0, 10) + " " + cell->subject.shape.substr(0, 26), "t end");
    svg.linked(cell->seq, [&] {
      svg.rect(left, y + 3, x(*cell->value) - left, row - 8, lints.empty() ? "hatch" : "hatch bad",
               fmt::format("{} ms, {} as of {}", shown(*cell->value), cell->detail.value("source", ""),
                           cell->detail.value("as_of", "")));
      svg.text(x(*cell->value) + 6, y + 15, fmt::format("{} {}", shown(*cell->value), lints),
               lints.empty() ? "t soft" : "t k-bad-text");
    });
    y += row;
  }
  return {svg.str("claims, not measurements"), "", ""};
}

}  // namespace tilewright::report
