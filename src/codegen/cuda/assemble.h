// PTX to machine code in process, by nvJitLink (opened at run time; a CUDA toolkit or the PyPI package nvidia-nvjitlink
// has it). Needs no GPU and no driver. Guarantees: warnings that mean a wrong or slow kernel (serialised wgmma, ignored
// setmaxnreg) and register spills are in the result as numbers; what it does not do: load the code (runtime/cuda does,
// and can assemble PTX with the driver).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/diagnostic.h"

namespace tilewright::codegen {

struct Resources {
  int registers = 0;    ///< per thread
  int stack_bytes = 0;  ///< local memory per thread; our kernels declare none, so this is spills
  int static_shared_bytes = 0;
  std::vector<std::string> warnings;  ///< ptxas lines such as "C7510: Potential Performance Loss: wgmma.mma_async …"
};

struct Cubin {
  std::string image;
  Resources resources;
};

/// Reads registers and stack from the ELF image of one kernel. E2552 when it is not a cubin of ours.
Result<Resources> read_resources(const std::string& image);

class Assembler {
 public:
  /// Opens libnvJitLink: `path` if not empty, else the usual names, /usr/local/cuda*, and Python's site-packages. E3050
  /// lists what was tried.
  static Result<Assembler> open(const std::string& path = {});
  /// `architecture` is "sm_90a". E2553 carries the assembler's own log.
  Result<Cubin> assemble(const std::string& ptx, const std::string& architecture) const;
  const std::string& library() const { return path_; }
  std::string version() const;  ///< "13.0"

 private:
  struct Api;
  std::shared_ptr<const Api> api_;
  std::string path_;
};

}  // namespace tilewright::codegen
