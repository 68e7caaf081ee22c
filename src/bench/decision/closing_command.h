// The command that would close an open clause, as the user would type it: the candidate as the command line spells it,
// the workload, the threads, and the folder of the record when it is not the default one. Pure text.
#pragma once

#include <string>

#include "bench/decision/evidence.h"

namespace tilewright::decision {

/// Measures `stage`; a cell that says how it is measured (a whole model) is believed.
std::string bench_command(const Evidence& evidence, bench::Stage stage);
/// Pairs candidate and reference for as long as a comparison may take.
std::string compare_command(const Evidence& evidence);
/// Checks the saved winners again and writes what that took into the cost.
std::string validate_command(const Evidence& evidence);
std::string cost_command(const Evidence& evidence);

}  // namespace tilewright::decision
