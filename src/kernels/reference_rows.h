// The words of references that work along the last dimension or move elements. Private to the evaluator.
#pragma once

#include "base/narrow_float.h"
#include "kernels/reference_call.h"

namespace tilewright::kernels {

template <typename R>
R exponential(const R& x) {
  return apply(x, [](double v) { return std::exp(v); });
}
template <typename R>
R root(const R& x) {
  return apply(x, [](double v) { return std::sqrt(v); });
}
template <typename R>
R row_sum(const R* x, int64_t n) {
  Sum<R> sum;
  for (int64_t i = 0; i < n; ++i) sum.add(x[i]);
  return sum.get();
}
template <typename R>
R row_max(const R* x, int64_t n) {
  R most = R(-std::numeric_limits<double>::infinity());
  for (int64_t i = 0; i < n; ++i) most = largest_of(most, x[i]);
  return most;
}
template <typename R>
R row_min(const R* x, int64_t n) {
  R least = R(std::numeric_limits<double>::infinity());
  for (int64_t i = 0; i < n; ++i) least = smallest_of(least, x[i]);
  return least;
}
template <typename R>
R row_prod(const R* x, int64_t n) {
  R product = R(1.0);
  for (int64_t i = 0; i < n; ++i) product = product * x[i];
  return product;
}

/// The first of the largest (or smallest); nothing is known when another is as near as rounding.
template <typename R>
R row_argbest(const R* x, int64_t n, double sign) {
  int64_t best = 0;
  const auto at = [&](int64_t i) { return sign * value_of(x[i]); };
  for (int64_t i = 1; i < n; ++i) {
    if (!std::isnan(at(best)) && (std::isnan(at(i)) || at(i) > at(best))) best = i;
  }
  if constexpr (kIsBounded<R>) {
    for (int64_t i = 0; i < n; ++i) {
      const double reach = x[i].error + x[best].error;
      if (i != best && reach > 0 && at(i) + reach >= at(best))
        return {static_cast<double>(best), std::numeric_limits<double>::infinity()};
    }
  }
  return R(static_cast<double>(best));
}

template <typename R>
void softmax_row(const R* x, int64_t n, R* y, bool is_log) {
  const R most = row_max(x, n);
  Sum<R> sum;
  for (int64_t i = 0; i < n; ++i) {
    y[i] = exponential(x[i] - R(value_of(most)));
    sum.add(y[i]);
  }
  const R total = is_log ? apply(sum.get(), [](double v) { return std::log(v); }, {4, 1}) : sum.get();
  for (int64_t i = 0; i < n; ++i) y[i] = is_log ? (x[i] - R(value_of(most))) - total : y[i] / total;
}

template <typename R>
Tensor<R> rmsnorm(const Call<R>& call) {
  const Tensor<R>& weight = call[1];
  const R eps = call.number(2);
  call.need(weight.shape.size() == 1 && !call[0].shape.empty() && weight.shape[0] == call[0].extent(0),
            "a weight as long as a row");
  return by_row(call, [&](const R* x, int64_t n, R* y) {
    Sum<R> sum;
    for (int64_t i = 0; i < n; ++i) sum.add(x[i] * x[i]);
    const R divisor = root(sum.get() / R(static_cast<double>(n)) + eps);
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] / divisor * weight.data[static_cast<size_t>(i)];
  });
}

/// The variance may have been taken as E[x²] − mean², which cancels.
template <typename R>
Tensor<R> layernorm(const Call<R>& call) {
  const Tensor<R>&weight = call[1], &bias = call[2];
  const R eps = call.number(3);
  const auto fits = [&](const Tensor<R>& t) { return t.shape.size() == 1 && t.shape[0] == call[0].extent(0); };
  call.need(!call[0].shape.empty() && fits(weight) && fits(bias), "weight and bias as long as a row");
  return by_row(call, [&](const R* x, int64_t n, R* y) {
    const R count = R(static_cast<double>(n)), mean = row_sum(x, n) / count;
    Sum<R> sum, squares;
    for (int64_t i = 0; i < n; ++i) {
      sum.add((x[i] - mean) * (x[i] - mean));
      squares.add(x[i] * x[i]);
    }
    R variance = sum.get() / count;
    if constexpr (kIsBounded<R>) {
      const R other = squares.get() / count - mean * mean;
      variance.error = std::max(variance.error, other.error);
    }
    const R divisor = root(variance + eps);
    for (int64_t i = 0; i < n; ++i)
      y[i] = (x[i] - mean) / divisor * weight.data[static_cast<size_t>(i)] + bias.data[static_cast<size_t>(i)];
  });
}

template <typename R>
Tensor<R> cumsum(const Call<R>& call) {
  return by_row(call, [](const R* x, int64_t n, R* y) {
    Sum<R> sum;
    for (int64_t i = 0; i < n; ++i) {
      sum.add(x[i]);
      y[i] = sum.get();
    }
  });
}

template <typename R>
Tensor<R> column_sum(const Call<R>& call) {
  call.need(!call[0].shape.empty(), "a tensor");
  std::vector<Sum<R>> sums(static_cast<size_t>(call[0].extent(0)));
  for (size_t i = 0; i < call[0].data.size(); ++i) sums[i % sums.size()].add(call[0].data[i]);
  Tensor<R> out = Tensor<R>::zeros({call[0].extent(0)});
  for (size_t i = 0; i < sums.size(); ++i) out.data[i] = sums[i].get();
  return out;
}

/// Values or positions of the n largest of every row, descending, ties by the lower position.
template <typename R>
Tensor<R> topk(const Call<R>& call, bool values) {
  const Tensor<R>& x = call[0];
  const int64_t n = call.integer(1);
  call.need(x.shape.size() == 2, "a matrix");
  const int64_t columns = x.extent(0);
  call.need(n <= columns, "n of at most the row's length");
  Tensor<R> out = Tensor<R>::zeros({x.shape[0], n});
  std::vector<int64_t> order(static_cast<size_t>(columns));
  for (int64_t r = 0; r < x.shape[0]; ++r) {
    const R* row = x.data.data() + r * columns;
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](int64_t a, int64_t b) { return value_of(row[a]) > value_of(row[b]); });
    double reach = 0;
    for (int64_t i = 0; i < columns; ++i) reach = std::max(reach, error_of(row[i]));
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = order[static_cast<size_t>(i)];
      R& to = out.data[static_cast<size_t>(r * n + i)];
      to = values ? row[at] : R(static_cast<double>(at));
      if constexpr (kIsBounded<R>) {
        if (reach > 0) to.error = values ? reach : std::numeric_limits<double>::infinity();
      }
    }
  }
  return out;
}

/// permute(X, 1, 0, 2): the dimensions in another order; transpose(X) of a matrix.
template <typename R>
Tensor<R> permuted(const Call<R>& call, const std::vector<int64_t>& order) {
  const Tensor<R>& x = call[0];
  const size_t rank = x.shape.size();
  std::vector<bool> seen(rank);
  bool is_order = order.size() == rank;
  for (const int64_t d : order) {
    is_order = is_order && d >= 0 && d < static_cast<int64_t>(rank) && !seen[static_cast<size_t>(d)];
    if (is_order) seen[static_cast<size_t>(d)] = true;
  }
  call.need(is_order, "every dimension once");
  std::vector<int64_t> strides(rank, 1), shape(rank);
  for (size_t d = rank; d-- > 1;) strides[d - 1] = strides[d] * x.shape[d];
  for (size_t d = 0; d < rank; ++d) shape[d] = x.shape[static_cast<size_t>(order[d])];
  Tensor<R> out = Tensor<R>::zeros(shape);
  for (int64_t i = 0; i < out.size(); ++i) {
    int64_t rest = i, from = 0;
    for (size_t d = rank; d-- > 0;) {
      from += rest % shape[d] * strides[static_cast<size_t>(order[d])];
      rest /= shape[d];
    }
    out.data[static_cast<size_t>(i)] = x.data[static_cast<size_t>(from)];
  }
  return out;
}

template <typename R>
std::vector<int64_t> integers_from(const Call<R>& call, size_t first) {
  std::vector<int64_t> out;
  for (size_t i = first; i < call.arguments.size(); ++i) out.push_back(call.integer(i));
  return out;
}

template <typename R>
Tensor<R> reshape(const Call<R>& call) {
  Tensor<R> out{integers_from(call, 1), call[0].data};
  int64_t n = 1;
  for (const int64_t extent : out.shape) n *= extent;
  call.need(n == out.size(), "as many elements as there are");
  return out;
}

/// slice(X, from, to): of the last dimension.
template <typename R>
Tensor<R> slice(const Call<R>& call) {
  const Tensor<R>& x = call[0];
  const int64_t from = call.integer(1), to = call.integer(2);
  call.need(!x.shape.empty() && 0 <= from && from <= to && to <= x.extent(0), "0 ≤ from ≤ to ≤ the last extent");
  Tensor<R> out;
  out.shape = x.shape;
  out.shape.back() = to - from;
  for (int64_t at = 0; x.extent(0) > 0 && at < x.size(); at += x.extent(0))
    out.data.insert(out.data.end(), x.data.begin() + at + from, x.data.begin() + at + to);
  return out;
}

/// concat(A, B, …): along the last dimension.
template <typename R>
Tensor<R> concat(const Call<R>& call) {
  Tensor<R> out;
  out.shape = call[0].shape;
  call.need(!out.shape.empty(), "a tensor");
  out.shape.back() = 0;
  int64_t rows = 1;
  for (size_t d = 0; d + 1 < out.shape.size(); ++d) rows *= out.shape[d];
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    std::vector<int64_t> shape = call[i].shape;
    call.need(shape.size() == out.shape.size(), "the same number of dimensions");
    out.shape.back() += shape.back();
    shape.back() = out.shape.back();
    call.need(shape == out.shape, "equal shapes but for the last dimension");
  }
  for (int64_t r = 0; r < rows; ++r) {
    for (size_t i = 0; i < call.arguments.size(); ++i) {
      const int64_t n = call[i].extent(0);
      out.data.insert(out.data.end(), call[i].data.begin() + r * n, call[i].data.begin() + (r + 1) * n);
    }
  }
  return out;
}

/// Through the dtype's own storage; a bound grows by the rounding, and by what the rounded ends of it say.
template <typename R>
Tensor<R> cast(const Call<R>& call) {
  const auto& given = call.reference.arguments;
  if (given.size() != 2 || given[1].kind != lang::Reference::Kind::DType) call.refuse("a dtype is needed");
  const DType dtype = given[1].dtype;
  const auto through = [dtype](std::vector<double> values) {
    std::vector<std::byte> storage(values.size() * static_cast<size_t>(bytes(dtype)));
    store_doubles(dtype, values.data(), storage.data(), values.size());
    load_doubles(dtype, storage.data(), values.data(), values.size());
    return values;
  };
  Tensor<R> out = call[0];
  const auto shifted = [&](double sign) {
    std::vector<double> values;
    for (const R& x : call[0].data) values.push_back(value_of(x) + (sign == 0 ? 0 : sign * error_of(x)));
    return through(std::move(values));
  };
  const auto values = shifted(0);
  if constexpr (kIsBounded<R>) {
    const auto below = shifted(-1), above = shifted(1);
    for (size_t i = 0; i < out.data.size(); ++i) {
      const bool is_exact = out.data[i].error == 0;
      out.data[i] = {values[i],
                     is_exact ? 0 : std::max(std::fabs(above[i] - values[i]), std::fabs(below[i] - values[i]))};
    }
  } else {
    for (size_t i = 0; i < out.data.size(); ++i) out.data[i] = static_cast<R>(values[i]);
  }
  return out;
}

}  // namespace tilewright::kernels
