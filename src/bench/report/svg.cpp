#include "bench/report/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tilewright::report {

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out.push_back(c);
    }
  }
  return out;
}

std::string shown(double value) {
  if (value == 0) return "0";
  if (!std::isfinite(value)) return value > 0 ? "∞" : value < 0 ? "−∞" : "–";
  const double size = std::abs(value);
  std::string text;
  if (size < 1e-4 || size >= 1e7) {
    text = fmt::format("{:.3g}", value);
  } else {
    const int decimals = std::clamp(2 - static_cast<int>(std::floor(std::log10(size))), 0, 7);
    text = fmt::format("{:.{}f}", value, decimals);
    if (text.find('.') != std::string::npos) {
      while (text.ends_with('0')) text.pop_back();
      if (text.ends_with('.')) text.pop_back();
    }
    // Thin spaces between thousands.
    const size_t whole = std::min(text.find('.'), text.size());
    const size_t first = text[0] == '-' ? 1 : 0;
    for (size_t at = whole; at > first + 3;) text.insert(at -= 3, "\u2009");
  }
  if (text[0] == '-') text.replace(0, 1, "−");
  return text;
}

double Scale::operator()(double value) const {
  const double a = is_log ? std::log(lo) : lo, b = is_log ? std::log(hi) : hi;
  const double v = is_log ? std::log(std::max(value, lo * 1e-9)) : value;
  const double t = b > a ? std::clamp((v - a) / (b - a), 0.0, 1.0) : 0.5;
  return from + t * (to - from);
}

std::vector<double> Scale::ticks(int about) const {
  std::vector<double> found;
  if (!(hi > lo)) return {lo};
  if (is_log) {
    const double decades = std::log10(hi / lo);
    // Every step-th power of ten; where too few of those lie inside, the steps are shorter.
    for (int step = std::max(1, static_cast<int>(std::ceil(decades / about))); step >= 1; --step) {
      found.clear();
      for (int e = static_cast<int>(std::floor(std::log10(lo))); e <= static_cast<int>(std::ceil(std::log10(hi)));
           ++e) {
        for (const double m : {1.0, 2.0, 5.0}) {
          const bool wanted = m == 1.0 ? e % step == 0 : decades < 1.6;
          const double v = m * std::pow(10.0, e);
          if (wanted && v >= lo * 0.999 && v <= hi * 1.001) found.push_back(v);
        }
      }
      if (found.size() >= 2) return found;
    }
    found.clear();
  }
  const double raw = (hi - lo) / about, power = std::pow(10.0, std::floor(std::log10(raw)));
  double step = 10 * power;
  for (const double m : {1.0, 2.0, 2.5, 5.0}) {
    if (m * power >= raw) {
      step = m * power;
      break;
    }
  }
  for (double v = std::ceil(lo / step - 1e-9) * step; v <= hi + 1e-9 * step; v += step)
    found.push_back(std::abs(v) < 1e-12 * step ? 0 : v);
  return found;
}

void Svg::text(double x, double y, std::string_view content, std::string_view css) {
  body_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\">{}</text>", x, y, css, escape(content));
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view css) {
  body_ +=
      fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>", x1, y1, x2, y2, css);
}

namespace {

std::string closed(std::string_view tag, std::string_view tip) {
  return tip.empty() ? "/>" : fmt::format("><title>{}</title></{}>", escape(tip), tag);
}

}  // namespace

void Svg::rect(double x, double y, double w, double h, std::string_view css, std::string_view tip) {
  body_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" class=\"{}\"{}", x, y,
                       std::max(w, 0.0), std::max(h, 0.0), css, closed("rect", tip));
}

void Svg::dot(double x, double y, double radius, std::string_view css, std::string_view tip) {
  body_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" class=\"{}\"{}", x, y, radius, css,
                       closed("circle", tip));
}

void Svg::cross(double x, double y, double r, std::string_view css, std::string_view tip) {
  body_ += fmt::format("<path d=\"M{:.1f} {:.1f}l{:.1f} {:.1f}m0 {:.1f}l{:.1f} {:.1f}\" class=\"{}\"{}", x - r, y - r,
                       2 * r, 2 * r, -2 * r, -2 * r, 2 * r, css, closed("path", tip));
}

void Svg::path(const std::vector<std::pair<double, double>>& points, std::string_view css, bool is_closed) {
  if (points.empty()) return;
  std::string d;
  for (const auto& [x, y] : points) d += fmt::format("{}{:.1f} {:.1f}", d.empty() ? "M" : "L", x, y);
  body_ += fmt::format("<path d=\"{}{}\" class=\"{}\"/>", d, is_closed ? "Z" : "", css);
}

void Svg::linked(uint64_t seq, const std::function<void()>& draw) {
  if (seq) body_ += fmt::format("<a href=\"#seq-{}\">", seq);
  draw();
  if (seq) body_ += "</a>";
}

void Svg::x_axis(const Scale& scale, double y, double top, const AxisLabels& labels) {
  for (const double tick : scale.ticks(labels.about)) {
    const double x = scale(tick);
    line(x, top, x, y, "grid");
    text(x, y + 15, labels.label(tick), "t mid soft");
  }
  line(scale.from, y, scale.to, y, "axis");
  if (!labels.title.empty()) text(scale.to, y + 31, labels.title, "t end soft");
}

void Svg::y_axis(const Scale& scale, double x, double right, const AxisLabels& labels) {
  for (const double tick : scale.ticks(labels.about)) {
    const double y = scale(tick);
    line(x, y, right, y, "grid");
    text(x - 7, y + 4, labels.label(tick), "t end soft");
  }
  if (!labels.title.empty()) text(x, std::min(scale.from, scale.to) - 9, labels.title, "t soft");
}

std::string Svg::str(std::string_view label) const {
  return fmt::format(
      "<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{}\" xmlns=\"http://www.w3.org/2000/svg\">{}</svg>",
      width_, height_, escape(label), body_);
}

}  // namespace tilewright::report
