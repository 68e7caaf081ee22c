// The suites as values: what `tilewright bench --suite NAME` times, read off suites.def.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/ceiling.h"
#include "bench/stage_message.h"

namespace tilewright::bench {

struct SuiteCase {
  std::string_view kernel;    ///< "matmul.tile:matmul", of kernels/
  std::string_view workload;  ///< a workload key
  std::string_view dtypes;
  std::vector<std::string> rivals;
  bool against_libraries = false;  ///< counts in the geometric mean
  double goal = 0;                 ///< least speed over the best rival; 0: none
  double share_goal = 0;           ///< least percent of the ceiling; 0: none

  /// Ours first, then the rivals.
  std::vector<Contender> contenders() const;
};

struct Suite {
  std::string_view name;
  std::string_view device;  ///< "cpu", "cuda:0"
  CeilingProbe::Kind ceiling = CeilingProbe::Kind::None;
  bool is_flushed = false;
  double mean_goal = 0;
  std::string_view summary;
  std::vector<SuiteCase> cases;
};

std::vector<Suite> all_suites();
std::optional<Suite> find_suite(std::string_view name);

}  // namespace tilewright::bench
