// Where a thread stands in a distribution.
#include "plan/gpu/lowering.h"

namespace tilewright::plan::gpu {

Operand Lowering::thread_coordinate(const Distribution& d, int dim) {
  uint64_t key = mix(77, static_cast<uint64_t>(dim));
  for (const auto& digit : d.digits)
    key = mix(key, static_cast<uint64_t>(digit.extent * 1000003 + (digit.dim == dim ? digit.stride + 1 : 0)));
  if (const Operand* known = index_.find(key)) return *known;
  Operand rest = thread_, out = 0;
  for (size_t i = 0; i < d.digits.size(); ++i) {
    const auto& digit = d.digits[i];
    if (digit.dim == dim) {
      const Operand value = i + 1 == d.digits.size() ? rest : b_.rem(Scalar::U32, rest, digit.extent);
      out = b_.add(Scalar::U32, out, b_.mul(Scalar::U32, value, digit.stride));
    }
    rest = b_.div(Scalar::U32, rest, digit.extent);
  }
  index_.remember(key, out);
  return out;
}

Operand Lowering::owns(const Distribution& d) {
  if (options_.plant.is("gpu_layouts", 1)) return 1;  // plant 1: every replica acts
  Operand out = 1, rest = thread_;
  for (size_t i = 0; i < d.digits.size(); ++i) {
    const auto& digit = d.digits[i];
    if (digit.dim < 0 && digit.extent > 1)
      out =
          b_.logical_and(out, b_.compare(Compare::Eq, Scalar::U32,
                                         i + 1 == d.digits.size() ? rest : b_.rem(Scalar::U32, rest, digit.extent), 0));
    rest = b_.div(Scalar::U32, rest, digit.extent);
  }
  return out;
}

Operand Lowering::valid(const Distribution& d, int r) {
  Operand out = 1;
  for (int dim = 0; dim < d.rank(); ++dim) {
    const auto k = static_cast<size_t>(dim);
    int64_t last = d.registers[static_cast<size_t>(r)][k];
    for (const auto& digit : d.digits)
      if (digit.dim == dim) last += int64_t{digit.extent - 1} * digit.stride;
    if (last < d.shape[k]) continue;
    const bool one_more = options_.plant.is("gpu_layouts", 2);  // plant 2: one element of padding counts
    const int64_t limit = d.shape[k] - d.registers[static_cast<size_t>(r)][k] + (one_more ? 1 : 0);
    out = b_.logical_and(out, b_.compare(Compare::Lt, Scalar::S32, thread_coordinate(d, dim), limit));
  }
  return out;
}

}  // namespace tilewright::plan::gpu
