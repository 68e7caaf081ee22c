// A `.tile` file and what is asked of it, turned into one instantiated kernel.
//
// Sizes come, in this order, from `--dim`, from the shapes of given inputs, and from the kernel's `example`; what is
// still open is E1801 with the dimension's name. Does not compile or run.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/ir.h"
#include "lang/elaborate.h"

namespace tilewright::driver {

struct KernelRequest {
  std::string path;
  std::string kernel;  ///< empty: the only one of the file
  std::map<std::string, std::string> params;
  std::map<std::string, int64_t> dims;
  lang::Target target = lang::Target::Cpu;
  bool specialise = false;       ///< every dimension a constant
  std::set<std::string> absent;  ///< optional tensors that are not passed
  bool use_example = true;       ///< fill open dimensions from the kernel's example
};

struct Program {
  lang::Source source;
  lang::KernelInfo info;
  lang::Configuration configuration;
  ir::Kernel kernel;
};

/// Errors carry locations into `source` when it could be read; `rendered` is the full text with carets.
struct ProgramError {
  Diagnostic diagnostic;
  std::string rendered;
};

std::expected<Program, ProgramError> load_program(const KernelRequest& request);

/// What the source says about the kernel asked for, sizes still open.
std::expected<lang::KernelInfo, ProgramError> describe_program(const KernelRequest& request);

/// Instantiates again for other sizes or parameters.
std::expected<Program, ProgramError> load_program(const lang::Source& source, const KernelRequest& request);

}  // namespace tilewright::driver
