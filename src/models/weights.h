// The named f32 tensors of a model: read from .safetensors (f16 and bf16 widened), or drawn from a seed.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/tensor_file.h"

namespace tilewright::models {

class Weights {
 public:
  static Result<Weights> read(const std::string& safetensors_path);

  /// N(0, deviation²); norms' weights (one dimension, name ends in "norm.weight") are 1 + N(0, 0.1²).
  void add_random(const std::string& name, std::vector<int64_t> shape, float deviation, uint64_t seed);
  void add(const std::string& name, HostTensor tensor) { tensors_[name] = std::move(tensor); }

  /// E3313 when absent, E1608 when the shape is another.
  Result<const float*> find(const std::string& name, const std::vector<int64_t>& shape) const;
  bool contains(const std::string& name) const { return tensors_.contains(name); }
  Status write(const std::string& path) const;
  int64_t parameter_count() const;

 private:
  std::map<std::string, HostTensor> tensors_;
};

}  // namespace tilewright::models
