// What is tested: something that compiles a kernel and runs it on arrays.
#pragma once

#include <memory>
#include <string>

#include "base/plant.h"
#include "interp/interpreter.h"
#include "target/gpu.h"

namespace tilewright::fuzz {

class Subject {
 public:
  virtual ~Subject() = default;
  virtual std::string name() const = 0;
  /// Outputs in place. A refusal (E2xxx: not possible in this configuration) is not a failure of the subject.
  virtual Status run(const ir::Kernel& kernel, const interp::Call& call, const Plant& plant) = 0;
  /// What kind of code the last run was, for the coverage of a campaign; empty when there is one kind only.
  virtual std::string form() const { return {}; }
  /// After a failure this process can do no more (a device fault), and even good cases share one only for a while.
  virtual bool needs_fresh_process() const { return false; }
};

/// The CPU planner's low-level kernels on the interpreter: every access is checked; needs no code generator.
std::unique_ptr<Subject> make_planned_subject();

/// The whole CPU path: planner, code generator, run-time library.
Result<std::unique_ptr<Subject>> make_native_subject();

/// The GPU planner's thread programs on the interpreter, at every moment asynchronous operations may take effect.
struct ThreadSubjectOptions {
  bool assembles = false;  ///< nvJitLink must take every program as well; E3050 where it is not installed
};
std::unique_ptr<Subject> make_thread_subject(const target::Gpu& gpu, const ThreadSubjectOptions& options = {});

/// The whole CUDA path on a device of this machine, opened by the first run.
std::unique_ptr<Subject> make_device_subject(int ordinal);

}  // namespace tilewright::fuzz
