// The report itself: one self-contained HTML page (inline SVG and CSS, no script, no network), the same as Markdown,
// the same as JSON. Every number leads to the record it comes from; what was not measured says `not-run` and how to run
// it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "bench/report/report_input.h"

namespace tilewright::report {

std::string render_html(const ReportInput& input);
std::string render_markdown(const ReportInput& input);
nlohmann::json render_json(const ReportInput& input);

}  // namespace tilewright::report
