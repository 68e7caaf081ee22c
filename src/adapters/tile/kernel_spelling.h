// How a kernel of ours is named on the command line: `FILE.tile[:KERNEL][?param=value,…]`, and what its file offers.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "bench/oracle/workload.h"
#include "lang/source.h"

namespace tilewright::adapters {

struct KernelSpelling {
  std::string path;
  std::string kernel;  ///< empty: whichever of the file fits
  std::map<std::string, std::string> params;
};

/// E1804 when a parameter is not PARAM=VALUE.
Result<KernelSpelling> parse_kernel_spelling(std::string text);
std::string to_string(const KernelSpelling& spelling);

/// The file, or without one the kernel of that name built into this binary.
Result<lang::Source> open_kernel_source(const KernelSpelling& spelling);

/// A kernel with the workload it states itself: its reference at the sizes of its example.
struct KernelOffer {
  KernelSpelling spelling;
  std::optional<bench::Workload> workload;
  std::string why_not;  ///< there is no workload: no reference that can be checked, or no example
};
/// Every kernel of the file, or the one that is named. `dims` replace sizes of its example. An unreadable file is an
/// error, and so is a dimension that no kernel has (E1801).
Result<std::vector<KernelOffer>> kernel_offers(const KernelSpelling& spelling,
                                               const std::map<std::string, int64_t>& dims = {});

}  // namespace tilewright::adapters
