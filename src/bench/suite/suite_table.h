// A suite's report for people and for programs.
#pragma once

#include "bench/suite/suite_run.h"

namespace tilewright::bench {

std::string render_suite(const SuiteReport& report, bool markdown);
nlohmann::json to_json(const SuiteReport& report);

}  // namespace tilewright::bench
