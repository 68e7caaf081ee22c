// What the tuner tunes: something that can load a configuration, check it and launch it once.
//
// Loading happens in a child process that the tuner may kill; `TrialRunner` itself lives in the tuner's process and
// must not have started threads before the tuner forks. Everything else about the kernel (compiler, oracle, buffers) is
// the implementer's.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "tune/config.h"

namespace tilewright::tune {

/// What a record depends on beside the space. Every field is compared when a log is resumed or a record verified.
struct Identity {
  std::string source;     ///< digest of the kernel's source
  std::string workload;   ///< workload key
  std::string toolchain;  ///< compiler name, version and flags
  std::string arch;       ///< "x86-64-v3", "sm_90a"
  std::string device;     ///< "cpu:<model>:2c"
  std::string driver;     ///< device driver or kernel release
  std::string harness;    ///< version of the measuring code
  friend bool operator==(const Identity&, const Identity&) = default;
};

nlohmann::json to_json(const Identity& identity);
Result<Identity> identity_from_json(const nlohmann::json& json);
/// "toolchain: recorded 'LLVM 19.1', here 'LLVM 20'", one per differing field.
std::vector<std::string> differences(const Identity& recorded, const Identity& here);

/// A loaded configuration, in the child process.
class LoadedTrial {
 public:
  virtual ~LoadedTrial() = default;
  virtual std::string artefact_digest() const = 0;
  /// Runs once on data of this seed and compares with the oracle; gives the digest of the output's bits.
  virtual Result<std::string> check(uint64_t seed) = 0;
  /// One launch, timed; flushing and the like stay outside the returned time.
  virtual Result<double> launch_ms() = 0;
};

class TrialRunner {
 public:
  virtual ~TrialRunner() = default;
  virtual Identity identity() const = 0;
  /// Why the target cannot run it, when that is known without compiling.
  virtual std::optional<std::string> prune(const Config&) const { return std::nullopt; }
  /// Compiles and loads. An E2xxx means the target cannot; any other error is a failure of the compiler.
  virtual Result<std::unique_ptr<LoadedTrial>> load(const Config& config) = 0;
};

}  // namespace tilewright::tune
