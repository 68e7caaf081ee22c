// Kernel sources to tile IR, and what a source says about its kernels.
//
// `instantiate` gives the kernel of one configuration and target; parameters, `fn`, `import` and compile-time `if` are
// gone. Nothing here depends on the machine. A dimension that shapes a tile becomes a constant and must be in
// Configuration::dims (E1060 names it); every other dimension stays a run-time value unless `specialise` is set.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/diagnostic.h"
#include "base/dtype.h"
#include "ir/ir.h"
#include "lang/source.h"

namespace tilewright::lang {

enum class Target : uint8_t { Cpu, Cuda };

/// An integer, a flag or a dtype.
using ParamValue = std::variant<int64_t, bool, DType>;
std::string to_string(const ParamValue& value);
/// "64", "true", "f16", PyTorch's dtype names.
std::optional<ParamValue> parse_param_value(std::string_view text);

struct Configuration {
  Target target = Target::Cpu;
  std::map<std::string, ParamValue> params;  ///< override `config` rows and defaults
  std::map<std::string, int64_t> dims;       ///< sizes known now
  bool specialise = false;                   ///< every dimension in `dims` becomes a constant
  std::set<std::string> absent;              ///< optional tensors the caller does not pass
};

/// E1xxx: the program or the configuration is wrong. E2xxx: this configuration is not allowed (the tuner prunes it).
Result<ir::Kernel> instantiate(const Source& source, std::string_view kernel, const Configuration& configuration);

struct ParamInfo {
  std::string name;
  ParamValue value;                ///< chosen for the configuration
  std::vector<ParamValue> domain;  ///< allowed values; empty: any
  Location location;
};

struct ArgumentInfo {
  std::string name;
  ArgumentKind kind = ArgumentKind::In;
  bool is_tensor = false;
  bool optional = false;
  DType dtype = DType::F32;
  std::vector<std::string> shape;  ///< as written
  std::optional<std::string> default_value;
};

/// One row of `config`: the condition and the settings as written.
struct ConfigInfo {
  std::string target;  ///< "cpu", "cuda" or empty for both
  std::string when;    ///< empty: always
  std::vector<std::pair<std::string, std::string>> settings;
};

/// The expression after `reference`, with parameters replaced by their values and compile-time `select` taken.
struct NamedReference;
struct Reference {
  enum class Kind : uint8_t { Call, Name, Number, Flag, DType, Text };
  Kind kind = Kind::Name;
  std::string name;  ///< Call, Name (an argument, a dimension, or a word: `none` is also an absent tensor), Text
  double number = 0;
  bool flag = false;
  tilewright::DType dtype = tilewright::DType::F32;
  std::vector<Reference> arguments;
  std::vector<NamedReference> named;
  Location location = {};
};
struct NamedReference {
  std::string label;
  Reference value;
};
std::string to_string(const Reference& reference);

/// Everything a source says about one kernel, resolved for a configuration.
struct KernelInfo {
  std::string name;
  std::string doc;  ///< the comment above
  Location location;
  std::vector<ArgumentInfo> arguments;
  std::vector<std::string> dims;
  std::vector<ParamInfo> params;
  std::vector<ConfigInfo> configs;
  int config_row = -1;  ///< the row taken, or -1
  std::vector<std::map<std::string, int64_t>> examples;
  std::vector<Reference> references;  ///< one per output, or empty
};
Result<KernelInfo> describe(const Source& source, std::string_view kernel, const Configuration& configuration);

}  // namespace tilewright::lang
