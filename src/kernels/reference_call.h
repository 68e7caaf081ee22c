// One call of a word in a reference, with its tensors evaluated; and how tensors are joined. Private to the evaluator.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>

#include "kernels/reference.h"
#include "kernels/reference_number.h"

namespace tilewright::kernels {

template <typename R>
struct Call {
  const lang::Reference& reference;
  std::vector<std::optional<Tensor<R>>> arguments;  ///< empty for `none` and for words
  /// Keeps a value between two steps as the declared types do.
  std::function<R(const R&)> keep;

  const Tensor<R>& operator[](size_t i) const {
    if (i < arguments.size() && arguments[i]) return *arguments[i];
    refuse(fmt::format("argument {} is missing", i + 1));
  }
  bool has(size_t i) const { return i < arguments.size() && arguments[i]; }
  R number(size_t i) const {
    if ((*this)[i].data.empty()) refuse(fmt::format("argument {} is empty", i + 1));
    return (*this)[i].data[0];
  }
  int64_t integer(size_t i) const { return static_cast<int64_t>(value_of(number(i))); }
  const lang::Reference* named(std::string_view name) const {
    for (const auto& [label, value] : reference.named) {
      if (label == name) return &value;
    }
    return nullptr;
  }
  bool flag(std::string_view name) const {
    const lang::Reference* found = named(name);
    return found && found->flag;
  }
  int64_t option(std::string_view name, int64_t otherwise) const {
    const lang::Reference* found = named(name);
    return found ? static_cast<int64_t>(found->number) : otherwise;
  }
  std::string word(std::string_view name, std::string_view otherwise) const {
    const lang::Reference* found = named(name);
    return found ? found->name : std::string(otherwise);
  }
  [[noreturn]] void refuse(const std::string& why) const {
    Diagnostic d;
    d.code = DiagnosticCode::E1080;
    d.location = reference.location;
    d.message = fmt::format("reference {} cannot be computed: {}", lang::to_string(reference), why);
    throw d;
  }
  void need(bool holds, const char* what) const {
    if (!holds) refuse(fmt::format("{} is needed", what));
  }
};

template <typename R, typename F>
Tensor<R> map(Tensor<R> x, F f) {
  for (R& v : x.data) v = f(v);
  return x;
}

/// The shape two tensors have together: aligned at the last dimension, an extent of 1 is repeated.
template <typename R>
std::vector<int64_t> joined_shape(const Call<R>& call, const std::vector<int64_t>& x, const std::vector<int64_t>& y) {
  std::vector<int64_t> out(std::max(x.size(), y.size()));
  for (size_t d = 0; d < out.size(); ++d) {
    const int64_t a = d < x.size() ? x[x.size() - 1 - d] : 1, b = d < y.size() ? y[y.size() - 1 - d] : 1;
    call.need(a == b || a == 1 || b == 1, "equal shapes, a row, a scalar or extents of 1");
    out[out.size() - 1 - d] = a == 1 ? b : a;
  }
  return out;
}

/// Where each element of a tensor of `shape` lies in one of `from`, in order.
class Repeated {
 public:
  Repeated(const std::vector<int64_t>& shape, const std::vector<int64_t>& from)
      : shape_(shape), strides_(shape.size()), at_(shape.size()) {
    int64_t stride = 1;
    for (size_t d = 0; d < from.size(); ++d) {
      const int64_t extent = from[from.size() - 1 - d];
      if (extent != 1) strides_[shape.size() - 1 - d] = stride;
      stride *= extent;
    }
  }
  size_t next() {
    const size_t here = offset_;
    for (size_t d = shape_.size(); d-- > 0;) {
      offset_ += static_cast<size_t>(strides_[d]);
      if (++at_[d] < shape_[d]) break;
      offset_ -= static_cast<size_t>(strides_[d] * shape_[d]);
      at_[d] = 0;
    }
    return here;
  }

 private:
  std::vector<int64_t> shape_, strides_, at_;
  size_t offset_ = 0;
};

template <typename R, typename F>
Tensor<R> zip(const Call<R>& call, const Tensor<R>& x, const Tensor<R>& y, F f) {
  Tensor<R> out = Tensor<R>::zeros(joined_shape(call, x.shape, y.shape));
  Repeated in_x(out.shape, x.shape), in_y(out.shape, y.shape);
  for (R& v : out.data) v = f(x.data[in_x.next()], y.data[in_y.next()]);
  return out;
}

/// Calls `f(row, length, out row)` for every row of the last dimension.
template <typename R, typename F>
Tensor<R> by_row(const Call<R>& call, F f) {
  const Tensor<R>& x = call[0];
  call.need(!x.shape.empty(), "a tensor");
  Tensor<R> out = x;
  const int64_t n = x.extent(0);
  for (int64_t at = 0; n > 0 && at < x.size(); at += n) f(x.data.data() + at, n, out.data.data() + at);
  return out;
}

/// `f(row, length)` of every row; with `keep = true` the last dimension stays, with extent 1.
template <typename R, typename F>
Tensor<R> row_reduce(const Call<R>& call, F f) {
  const Tensor<R>& x = call[0];
  call.need(!x.shape.empty(), "a tensor");
  std::vector<int64_t> shape(x.shape.begin(), x.shape.end() - 1);
  if (call.flag("keep")) shape.push_back(1);
  Tensor<R> out = Tensor<R>::zeros(shape);
  for (size_t r = 0; r < out.data.size(); ++r)
    out.data[r] = f(x.data.data() + r * static_cast<size_t>(x.extent(0)), x.extent(0));
  return out;
}

}  // namespace tilewright::kernels
