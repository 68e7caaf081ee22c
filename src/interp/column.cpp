#include "interp/column.h"

namespace tilewright::interp {
namespace {

template <typename T>
void repeat(std::vector<T>& values, size_t count) {
  if (values.size() != 1) return;
  const T v = values[0];
  values.assign(count, v);
}

}  // namespace

void widen(Column& column, int64_t count) {
  if (!column.is_uniform() || count == 1) return;
  const auto n = static_cast<size_t>(count);
  if (column.is_real()) {
    column.real.resize(1), repeat(column.real, n);
  } else {
    column.integer.resize(1), repeat(column.integer, n);
  }
  repeat(column.bound, n);
  repeat(column.taint, n);
  column.lanes = count;
}

void merge(Column& out, const Column& yes, const std::vector<uint8_t>& mask) {
  const auto count = static_cast<int64_t>(mask.size());
  widen(out, count);
  const auto n = static_cast<size_t>(count);
  if (!yes.bound.empty() && out.bound.empty()) out.bound.assign(n, 0);
  if (!yes.taint.empty() && out.taint.empty()) out.taint.assign(n, 0);
  for (int64_t i = 0; i < count; ++i) {
    const auto k = static_cast<size_t>(i);
    if (!mask[k]) continue;
    if (out.is_real()) {
      out.real[k] = yes.real_at(i);
      if (!out.bound.empty()) out.bound[k] = yes.bound_at(i);
    } else {
      out.integer[k] = yes.integer_at(i);
      if (!out.taint.empty()) out.taint[k] = yes.taint_at(i);
    }
  }
}

}  // namespace tilewright::interp
