// The shapes one `tune` works on: the one that was named, or the heaviest of a traffic; of any candidate, or of a
// `.tile` kernel whose space is its own parameters.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/oracle/workload.h"
#include "tools/command.h"
#include "tune/space.h"

namespace tilewright::tools {

/// What the command line says about them.
struct CaseWords {
  std::string candidate;  ///< "lib:./gemm.so", or a kernel file
  std::string shape, dtype = "f32", space;
  std::string kernel;  ///< of a kernel file
  std::vector<std::string> dims, params;
  std::string traffic, policy = "pad128", key_dim = "M";
  int most_cases = 4;
};

/// One shape to tune for.
struct TuneCase {
  int64_t key = 0;  ///< 0 without traffic
  double share = 1;
  std::string candidate;  ///< spelling
  bench::Workload workload;
  std::string when;           ///< the bucket's condition
  std::string log;            ///< file name
  nlohmann::json space;       ///< as Space::from_json takes it
  nlohmann::json space_word;  ///< what best.json remembers: the file's name, or the space itself
  tune::Space::Pruner prune;  ///< may be empty
  std::vector<std::string> fixed;
};

struct CaseList {
  std::vector<TuneCase> cases;
  nlohmann::json traffic;  ///< which traffic, or null
  double requests_per_s = 0;
};

Result<CaseList> make_cases(const CaseWords& words, const Session& session);

}  // namespace tilewright::tools
