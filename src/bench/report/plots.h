// The plots of the report, one function each: a view in, a drawing out. A plot without data says what to run instead.
#pragma once

#include <string>

#include "bench/report/report_input.h"

namespace tilewright::report {

struct Drawing {
  std::string svg;      ///< empty: nothing to draw
  std::string missing;  ///< then: why
  std::string command;  ///< and what would measure it
};

Drawing plot_waterfall(const ReportView& view);   ///< cold start and cached start, stage after stage
Drawing plot_samples(const ReportView& view);     ///< warm samples of every process
Drawing plot_forest(const ReportView& view);      ///< paired ratios with intervals, the A/A among them
Drawing plot_error(const ReportView& view);       ///< error against K with its bound
Drawing plot_tuning(const ReportView& view);      ///< best time so far against time spent
Drawing plot_shapes(const ReportView& view);      ///< rank and frequency of the traffic's shapes
Drawing plot_service(const ReportView& view);     ///< latency over the day, compile stalls marked
Drawing plot_break_even(const ReportView& view);  ///< relative cost against calls, with its band
Drawing plot_amdahl(const ReportView& view);      ///< the model's gain, predicted and measured
Drawing plot_flips(const ReportView& view);       ///< how far each number is from changing the verdict
Drawing plot_claims(const ReportView& view);      ///< claims, hatched

}  // namespace tilewright::report
