// A tuning space: ordered parameters with value lists, constraints, and its digest.
//
// The points are enumerated in declared order (the first parameter varies slowest); a point that breaks a constraint is
// pruned and kept with the reason. Equal parameters, values, order, constraints and dimensions give an equal digest on
// every machine; any other difference changes it. Pure: no clock, no I/O.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "tune/config.h"
#include "tune/constraint.h"

namespace tilewright::tune {

struct Parameter {
  std::string name;
  std::vector<Value> values;
  std::optional<Value> default_value;  ///< the first value when none is given
};

struct PrunedPoint {
  Config config;
  std::string reason;
};

class Space {
 public:
  /// Why the target cannot run a configuration, or nullopt.
  using Pruner = std::function<std::optional<std::string>(const Config&)>;

  /// `{"params": [{"name": "block_M", "values": [64, 128], "default": 64}], "constraints": ["…", {"expr": "…",
  /// "reason": "…"}]}`; `dims` are names the constraints may use beside the parameters.
  static Result<Space> from_json(const nlohmann::json& json, std::vector<std::pair<std::string, int64_t>> dims = {});
  static Result<Space> make(std::vector<Parameter> parameters, std::vector<Constraint> constraints,
                            std::vector<std::pair<std::string, int64_t>> dims = {});

  /// Removes the points `pruner` objects to; they join pruned(). Does not change the digest: what a target cannot run
  /// is a fact of the target, which records name by itself.
  void prune(const Pruner& pruner);

  const std::vector<Parameter>& parameters() const { return parameters_; }
  const std::vector<Config>& points() const { return points_; }
  const std::vector<PrunedPoint>& pruned() const { return pruned_; }
  const std::string& digest() const { return digest_; }  ///< SHA-256
  std::optional<size_t> find(const Config& config) const;
  std::optional<size_t> default_point() const;  ///< every parameter at its default, when that point is admitted
  /// Points that differ from `point` by one step in the value list of one parameter, in declared order.
  std::vector<size_t> neighbours(size_t point) const;

 private:
  Status enumerate();

  std::vector<Parameter> parameters_;
  std::vector<Constraint> constraints_;
  std::vector<std::pair<std::string, int64_t>> dims_;
  std::vector<Config> points_;
  std::vector<PrunedPoint> pruned_;
  std::string digest_;
};

}  // namespace tilewright::tune
