// What the cases of a campaign exercised: how many kernels contained each operation on each dtype.
#pragma once

#include <map>
#include <set>
#include <string>

#include "ir/ir.h"

namespace tilewright::fuzz {

class Coverage {
 public:
  /// Counts every (operation, dtype) pair of the kernel once.
  void add(const ir::Kernel& kernel);
  /// A table: one row per operation, one column per dtype, "." where there was none.
  std::string table() const;
  const std::map<std::string, std::map<DType, int64_t>>& counts() const { return counts_; }

 private:
  std::map<std::string, std::map<DType, int64_t>> counts_;
};

}  // namespace tilewright::fuzz
