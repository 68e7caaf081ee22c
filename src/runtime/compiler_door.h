// How the C ABI reaches a compiler, when the library has one. The run-time library knows no compiler: the whole library
// defines open_compiler(); in libtilewright_runtime the symbol is missing and its address is null.
#pragma once

#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/tilewright.h"

namespace tilewright::runtime {

/// An error of the compiler with its own code: 1001, "unexpected_token", the rendered text with its caret.
struct CompilerFailure {
  int32_t code = 3010;
  std::string name;
  std::string message;
};

struct CompilerRequest {
  std::string path;
  std::string source;  ///< used when has_source
  bool has_source = false;
  std::string kernel;  ///< empty: the only one
  std::string target;  ///< empty: this CPU
  std::vector<std::string> parameters;
  const tw_arguments* arguments = nullptr;
  std::string cache_folder;  ///< used when has_cache_folder; empty then: no cache
  bool has_cache_folder = false;
};

struct CompilerOutput {
  std::string bytes;
  bool is_from_cache = false;
};

class CompilerDoor {
 public:
  virtual ~CompilerDoor() = default;
  /// The JSON that tilewright.h describes.
  virtual std::expected<CompilerOutput, CompilerFailure> describe(std::string_view path) = 0;
  /// A serialised artefact.
  virtual std::expected<CompilerOutput, CompilerFailure> compile(const CompilerRequest& request) = 0;
};

#if defined(__GNUC__)
__attribute__((weak))
#endif
std::unique_ptr<CompilerDoor>
open_compiler();

}  // namespace tilewright::runtime
