// The oracle's own test, as a command runs it: every named mutant must be rejected and every clean control accepted.
#pragma once

#include <string>
#include <vector>

#include "bench/oracle/check.h"

namespace tilewright::bench {

struct SelftestLine {
  std::string name;      ///< of the mutant, or "control"
  std::string workload;  ///< key and dtypes
  bool as_expected = false;
  std::string detail;  ///< the finding, or what went wrong
};

struct MutantSelftest {
  std::vector<SelftestLine> mutants;   ///< one per named mutant
  std::vector<SelftestLine> controls;  ///< 16
  bool passed() const;
};

MutantSelftest run_mutant_selftest(const DataSpec& data);

}  // namespace tilewright::bench
