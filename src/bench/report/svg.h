// A little SVG: scales, axes and marks, coloured by CSS classes so that one drawing serves light and dark.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::report {

std::string escape(std::string_view text);  ///< for HTML text and attributes

/// Three significant digits, no exponent between 1e-4 and 1e6: "0.0123", "4.56", "1 230".
std::string shown(double value);

/// Maps data to pixels. A log scale needs lo > 0.
struct Scale {
  double lo = 0, hi = 1;
  double from = 0, to = 1;
  bool is_log = false;

  double operator()(double value) const;  ///< clamped to [from, to]
  std::vector<double> ticks(int about = 5) const;
};

class Svg {
 public:
  Svg(double width, double height) : width_(width), height_(height) {}

  double width() const { return width_; }
  double height() const { return height_; }

  void text(double x, double y, std::string_view content, std::string_view css = "t");
  void line(double x1, double y1, double x2, double y2, std::string_view css);
  void rect(double x, double y, double w, double h, std::string_view css, std::string_view tip = {});
  void dot(double x, double y, double radius, std::string_view css, std::string_view tip = {});
  void cross(double x, double y, double radius, std::string_view css, std::string_view tip = {});
  /// Straight segments through the points; `is_closed` fills.
  void path(const std::vector<std::pair<double, double>>& points, std::string_view css, bool is_closed = false);
  /// What `draw` draws leads to the record of this seq (0: nowhere).
  void linked(uint64_t seq, const std::function<void()>& draw);

  struct AxisLabels {
    std::string title;
    std::function<std::string(double)> label = shown;
    int about = 5;
  };
  /// Ticks below `y`, grid lines up to `top`.
  void x_axis(const Scale& scale, double y, double top, const AxisLabels& labels);
  /// Ticks left of `x`, grid lines up to `right`.
  void y_axis(const Scale& scale, double x, double right, const AxisLabels& labels);

  /// The element; `label` is read by screen readers.
  std::string str(std::string_view label) const;

 private:
  double width_, height_;
  std::string body_;
};

}  // namespace tilewright::report
