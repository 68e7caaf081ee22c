// Is A faster than B? Both right first, then both resident in one process, launched in turn; a gate of A against itself
// before.
#pragma once

#include "bench/harness.h"

namespace tilewright::bench {

struct CompareOptions {
  std::string executable;
  std::vector<std::string> command;
  std::string a, b;  ///< spellings
  Workload workload;
  std::string device = "cpu";
  int threads = 1;
  std::string config = "{}";
  uint64_t seed = 1;
  int rounds = 52;  ///< at least; a pilot may ask for more
  int rounds_limit = 400;
  double delta = 0.02;
  bool check = true;  ///< correctness before timing; off only for a comparison that was just checked
  int64_t timeout_ms = 120'000;
};

struct CompareReport {
  std::string a_name, b_name;
  std::string incorrect;  ///< which one is wrong and why; then nothing was timed
  Cell ratio;             ///< value = time of A / time of B; detail.verdict
};

Result<CompareReport> run_compare(const CompareOptions& options);

}  // namespace tilewright::bench
