// What one `tilewright run` found out, for people and as JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "driver/check.h"
#include "driver/compile.h"
#include "driver/program.h"
#include "tools/compiler/reference_check.h"

namespace tilewright::tools {

struct RunReport {
  const driver::Program& program;
  driver::Compilation compilation;
  driver::Arrays arrays;
  double run_ms = 0;
  std::string printed;  ///< what `print` of the compiled kernel said
  std::optional<driver::CheckReport> check;
  std::vector<ReferenceCheck> reference;
  std::vector<driver::OutputCheck> expected;

  bool passed() const;
  /// Nothing could be compared: an address or a loop of the kernel depends on rounding, and no --expect was given.
  bool undecided() const { return check && check->inconclusive && expected.empty(); }
};

void print_report(const RunReport& report, bool explain);
void print_json(const RunReport& report);

}  // namespace tilewright::tools
