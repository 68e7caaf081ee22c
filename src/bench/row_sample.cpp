#include "bench/row_sample.h"

#include <algorithm>
#include <cstring>

#include "measure/random.h"

namespace tilewright::bench {
namespace {

constexpr int64_t kRows = 256;

HostTensor rows_of(const HostTensor& tensor, const std::vector<int64_t>& rows) {
  HostTensor out = zeros(tensor.dtype, {static_cast<int64_t>(rows.size()), tensor.shape.at(1)});
  const size_t width = out.data.size() / rows.size();
  for (size_t i = 0; i < rows.size(); ++i)
    std::memcpy(out.data.data() + i * width, tensor.data.data() + static_cast<size_t>(rows[i]) * width, width);
  return out;
}

bool is_sampled(const HostTensor& tensor, int64_t rows) { return tensor.shape.size() == 2 && tensor.shape[0] == rows; }

}  // namespace

std::vector<HostTensor> RowSample::of_outputs(const std::vector<HostTensor>& outputs) const {
  std::vector<HostTensor> out;
  for (const HostTensor& tensor : outputs) out.push_back(rows_of(tensor, rows));
  return out;
}

std::optional<RowSample> sample_rows(const Workload& workload, const std::vector<HostTensor>& inputs, uint64_t seed) {
  switch (workload.operation) {
    case Operation::Softmax:
    case Operation::RmsNorm:
    case Operation::LayerNorm: break;
    default: return std::nullopt;
  }
  const int64_t all = workload.dim("R");
  if (all <= 4 * kRows) return std::nullopt;
  RowSample out{workload, {0, 1, all - 2, all - 1}, {}};
  measure::Random random(seed);
  while (static_cast<int64_t>(out.rows.size()) < kRows)
    out.rows.push_back(static_cast<int64_t>(random.below(static_cast<uint64_t>(all))));
  std::ranges::sort(out.rows);
  out.rows.erase(std::unique(out.rows.begin(), out.rows.end()), out.rows.end());
  for (auto& [name, extent] : out.workload.dims) {
    if (name == "R") extent = static_cast<int64_t>(out.rows.size());
  }
  for (const HostTensor& tensor : inputs)
    out.inputs.push_back(is_sampled(tensor, all) ? rows_of(tensor, out.rows) : tensor);
  return out;
}

bool has_unwritten(const std::vector<HostTensor>& outputs) {
  for (const HostTensor& tensor : outputs) {
    if (!is_float(tensor.dtype)) continue;
    const auto width = static_cast<size_t>(bytes(tensor.dtype));
    const std::byte* at = tensor.data.data();
    for (size_t i = 0; i + width <= tensor.data.size(); i += width) {
      size_t same = 0;
      while (same < width && at[i + same] == std::byte{0xff}) ++same;
      if (same == width) return true;
    }
  }
  return false;
}

}  // namespace tilewright::bench
