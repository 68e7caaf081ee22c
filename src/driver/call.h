// Calling a compiled kernel on host arrays: sizes, data, execution.
//
// Guarantees: arrays fit the kernel's argument list (errors name the argument); random data are a pure function of the
// seed and the argument's name; outputs are poisoned before a call. Does not: time (measure/) or judge results
// (check.h).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/tensor_file.h"
#include "driver/compile.h"
#include "ir/ir.h"
#include "runtime/plan.h"

namespace tilewright::driver {

enum class DataKind : uint8_t {
  Normal,  ///< seeded standard normal (integers: small uniform)
  Dyadic,  ///< small integers, so that every order of summation is exact
};

/// Arguments in the kernel's order: tensors (workspaces excluded) and scalars.
struct Arrays {
  std::vector<HostTensor> tensors;
  std::vector<bool> present;  ///< optional tensors may be absent
  std::vector<ir::ConstantAttributes> scalars;
};

struct ArrayOptions {
  std::map<std::string, HostTensor> given;  ///< by argument name
  std::map<std::string, std::string> scalars;  ///< numbers as written, by argument name
  std::map<std::string, int64_t> dims;
  uint64_t seed = 0;
  DataKind data = DataKind::Normal;
};

/// The value of every dimension of `kernel`: constants, `dims`, shapes of `given`. E1802 when two disagree.
Result<std::map<std::string, int64_t>> resolve_dimensions(const ir::Kernel& kernel, const ArrayOptions& options);

Result<Arrays> make_arrays(const ir::Kernel& kernel, const ArrayOptions& options);

/// Fills every output with a pattern no kernel writes by chance (NaN, or 0x5A bytes for integers).
void poison_outputs(const ir::Kernel& kernel, Arrays& arrays);

/// A kernel loaded on a device, with its workspace.
class LoadedKernel {
 public:
  static Result<LoadedKernel> load(runtime::Device& device, const runtime::Artefact& artefact);
  /// Runs on the arrays; E14xx when they do not fit.
  Status run(const ir::Kernel& kernel, Arrays& arrays);
  const runtime::Plan& plan() const { return *plan_; }

 private:
  std::unique_ptr<runtime::Plan> plan_;
  std::vector<std::byte> workspace_;
};

/// A run-time failure in the compiler's terms.
Diagnostic to_diagnostic(const runtime::Failure& failure);

}  // namespace tilewright::driver
