#include "models/weights.h"

#include <fmt/format.h>

#include "base/narrow_float.h"
#include "bench/oracle/data.h"

namespace tilewright::models {

Result<Weights> Weights::read(const std::string& path) {
  auto file = SafetensorsFile::open(path);
  if (!file) return std::unexpected(file.error());
  Weights weights;
  for (const auto& [name, entry] : file->entries()) {
    if (!is_float(entry.dtype)) continue;
    HostTensor tensor = zeros(DType::F32, entry.shape);
    load_floats(entry.dtype, entry.data.data(), tensor.as<float>(), static_cast<size_t>(tensor.numel()));
    weights.add(name, std::move(tensor));
  }
  return weights;
}

void Weights::add_random(const std::string& name, std::vector<int64_t> shape, float deviation, uint64_t seed) {
  const bool norm = shape.size() == 1 && name.ends_with("norm.weight");
  HostTensor tensor =
      bench::make_tensor({name, DType::F32, std::move(shape), norm ? bench::Role::Weight : bench::Role::Data},
                         {bench::Distribution::Normal, seed});
  if (!norm) {
    float* values = tensor.as<float>();
    for (int64_t i = 0; i < tensor.numel(); ++i) values[i] *= deviation;
  }
  add(name, std::move(tensor));
}

Result<const float*> Weights::find(const std::string& name, const std::vector<int64_t>& shape) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) {
    return fail(DiagnosticCode::E3313, fmt::format("the weights have no tensor '{}'", name),
                "is this another architecture?");
  }
  if (found->second.shape != shape) {
    return fail(DiagnosticCode::E1608,
                fmt::format("'{}' is {}, the configuration asks for {}", name,
                            to_string(DType::F32, found->second.shape), to_string(DType::F32, shape)),
                "check config.json against the weights");
  }
  return found->second.as<float>();
}

Status Weights::write(const std::string& path) const {
  std::vector<std::pair<std::string, HostTensor>> tensors(tensors_.begin(), tensors_.end());
  return write_safetensors(path, tensors, {{"format", "pt"}});
}

int64_t Weights::parameter_count() const {
  int64_t count = 0;
  for (const auto& [name, tensor] : tensors_) count += tensor.numel();
  return count;
}

}  // namespace tilewright::models
