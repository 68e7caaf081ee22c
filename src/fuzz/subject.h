// What is tested: something that compiles a kernel and runs it on arrays.
#pragma once

#include <memory>
#include <string>

#include "base/plant.h"
#include "interp/interpreter.h"

namespace tilewright::fuzz {

class Subject {
 public:
  virtual ~Subject() = default;
  virtual std::string name() const = 0;
  /// Outputs in place. A refusal (E2xxx: not possible in this configuration) is not a failure of the subject.
  virtual Status run(const ir::Kernel& kernel, const interp::Call& call, const Plant& plant) = 0;
};

/// The CPU planner's low-level kernels on the interpreter: every access is checked; needs no code generator.
std::unique_ptr<Subject> make_planned_subject();

/// The whole CPU path: planner, code generator, run-time library.
Result<std::unique_ptr<Subject>> make_native_subject();

}  // namespace tilewright::fuzz
