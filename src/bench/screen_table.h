// The result of a bench as people read it: a table on the screen, markdown to paste, JSON for programs. All say the
// same.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "bench/harness.h"

namespace tilewright::bench {

/// Rows of one line each, columns aligned; `markdown` draws it with pipes.
std::string render_table(const BenchReport& report, bool markdown);

/// What was not run and how to run it, one line each; "" when everything was.
std::string render_not_run(const BenchReport& report);

nlohmann::json report_json(const BenchReport& report);

/// "1.234 ms ± 0.5 %", "12.3 µs", "not-run", "failed".
std::string render_time(const Cell* cell);

}  // namespace tilewright::bench
