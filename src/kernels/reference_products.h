// The words of references that multiply: products, convolution, attention. Private to the evaluator.
#pragma once

#include "kernels/reference_call.h"
#include "kernels/reference_product.h"

namespace tilewright::kernels {

/// Row-major A[m × k], B[k × n] with errors: |A||B| bounds the sum's own rounding in any order.
template <typename R>
std::vector<R> product(const std::vector<R>& a, const std::vector<R>& b, ProductShape shape) {
  if constexpr (!kIsBounded<R>) {
    return multiply(a, b, shape);
  } else {
    const auto part = [](const std::vector<R>& of, auto f) {
      std::vector<double> out(of.size());
      std::ranges::transform(of, out.begin(), f);
      return out;
    };
    const auto value = [](const R& x) { return x.value; };
    const auto error = [](const R& x) { return x.error; };
    const auto size = [](const R& x) { return std::fabs(x.value); };
    const auto most = [](const R& x) { return std::fabs(x.value) + x.error; };
    const auto is_exact = [](const std::vector<R>& of) {
      return std::ranges::all_of(of, [](const R& x) { return x.error == 0; });
    };
    const auto values = multiply(part(a, value), part(b, value), shape);
    auto errors = multiply(part(a, size), part(b, size), shape);
    for (double& e : errors) e *= static_cast<double>(shape.k) * R::kUnit;
    const auto add = [&](const std::vector<double>& more) {
      for (size_t i = 0; i < errors.size(); ++i) errors[i] += more[i];
    };
    if (!is_exact(a)) add(multiply(part(a, error), part(b, most), shape));
    if (!is_exact(b)) add(multiply(part(a, size), part(b, error), shape));
    std::vector<R> out;
    out.reserve(values.size());
    for (size_t i = 0; i < values.size(); ++i) out.emplace_back(values[i], errors[i]);
    return out;
  }
}

/// The last two dimensions swapped.
template <typename R>
Tensor<R> swapped(const Tensor<R>& x) {
  Tensor<R> out = x;
  const int64_t rows = x.extent(1), columns = x.extent(0), each = rows * columns;
  std::swap(out.shape[out.shape.size() - 2], out.shape.back());
  for (int64_t at = 0; each > 0 && at < x.size(); at += each) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j)
        out.data[static_cast<size_t>(at + j * rows + i)] = x.data[static_cast<size_t>(at + i * columns + j)];
    }
  }
  return out;
}

/// Batches of B may be fewer: a B of 2 dimensions is used for every batch.
template <typename R>
Tensor<R> matmul(const Call<R>& call, const Tensor<R>& given_a, const Tensor<R>& given_b, bool ta, bool tb) {
  const bool is_shared = given_b.shape.size() == 2;
  call.need(given_a.shape.size() >= 2 && (given_b.shape.size() == given_a.shape.size() || is_shared),
            "two tensors of 2 or more dimensions");
  const Tensor<R> a = ta ? swapped(given_a) : given_a, b = tb ? swapped(given_b) : given_b;
  const ProductShape shape{a.extent(1), b.extent(0), a.extent(0)};
  call.need(b.extent(1) == shape.k, "one inner extent");
  for (size_t d = 0; !is_shared && d + 2 < a.shape.size(); ++d)
    call.need(a.shape[d] == b.shape[d], "the same batches of both");
  std::vector<int64_t> out_shape = a.shape;
  out_shape.back() = shape.n;
  Tensor<R> out = Tensor<R>::zeros(out_shape);
  const int64_t batches = std::accumulate(a.shape.begin(), a.shape.end() - 2, int64_t{1}, std::multiplies<>());
  for (int64_t i = 0; i < batches; ++i) {
    const auto slice = [&](const std::vector<R>& of, int64_t at, int64_t size) {
      return std::vector<R>(of.begin() + at * size, of.begin() + (at + 1) * size);
    };
    const auto c =
        product(slice(a.data, i, shape.m * shape.k), slice(b.data, is_shared ? 0 : i, shape.k * shape.n), shape);
    std::ranges::copy(c, out.data.begin() + i * shape.m * shape.n);
  }
  return out;
}

template <typename R>
Tensor<R> gemv(const Call<R>& call) {
  Tensor<R> x = call[1];
  call.need(x.shape.size() == 1, "a vector");
  x.shape = {x.shape[0], 1};
  Tensor<R> out = matmul(call, call[0], x, call.flag("transpose_a"), false);
  out.shape.pop_back();
  return out;
}

template <typename R>
Tensor<R> matmul_w4(const Call<R>& call) {
  const Tensor<R>&packed = call[1], &scales = call[2];
  const int64_t group = call.option("group", 128);
  call.need(packed.shape.size() == 2 && scales.shape.size() == 2, "packed weights and scales of 2 dimensions");
  const int64_t n = packed.extent(1), k = packed.extent(0) * 2;
  call.need(scales.extent(1) == n && scales.extent(0) * group == k, "one scale per group");
  Tensor<R> w = Tensor<R>::zeros({n, k});
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < k; ++j) {
      const auto pair = static_cast<int>(value_of(packed.data[static_cast<size_t>(i * (k / 2) + j / 2)]));
      const int code = j % 2 ? pair >> 4 : pair & 15;
      w.data[static_cast<size_t>(i * k + j)] =
          call.keep(R(static_cast<double>(code - 8)) * scales.data[static_cast<size_t>(i * (k / group) + j / group)]);
    }
  }
  return matmul(call, call[0], w, false, true);
}

/// X[N, C, H, W] (or [N, C, L]) with W[F, C, R, S] (or [F, C, R]): correlation, as frameworks call convolution.
template <typename R>
Tensor<R> convolution(const Call<R>& call) {
  Tensor<R> x = call[0], w = call[1];
  const bool is_line = x.shape.size() == 3;
  call.need((is_line || x.shape.size() == 4) && w.shape.size() == x.shape.size(), "X[N, C, H, W] and W[F, C, R, S]");
  if (is_line) x.shape.insert(x.shape.begin() + 2, 1), w.shape.insert(w.shape.begin() + 2, 1);
  const int64_t stride = call.option("stride", 1), pad = call.option("pad", 0), dilation = call.option("dilation", 1);
  const int64_t groups = call.option("groups", 1);
  call.need(stride > 0 && dilation > 0 && groups > 0 && pad >= 0, "a positive stride");
  call.need(x.shape[1] == w.shape[1] * groups && w.shape[0] % groups == 0, "as many channels as the weights have");
  const int64_t pad_h = is_line ? 0 : pad, stride_h = is_line ? 1 : stride;
  const int64_t h = (x.shape[2] + 2 * pad_h - dilation * (w.shape[2] - 1) - 1) / stride_h + 1;
  const int64_t l = (x.shape[3] + 2 * pad - dilation * (w.shape[3] - 1) - 1) / stride + 1;
  call.need(h > 0 && l > 0, "a kernel that fits");
  Tensor<R> out = Tensor<R>::zeros({x.shape[0], w.shape[0], h, l});
  const int64_t channels = w.shape[1], filters = w.shape[0] / groups;
  R* to = out.data.data();
  for (int64_t n = 0; n < x.shape[0]; ++n) {
    for (int64_t f = 0; f < w.shape[0]; ++f) {
      for (int64_t i = 0; i < h; ++i) {
        for (int64_t j = 0; j < l; ++j) {
          Sum<R> sum;
          for (int64_t c = 0; c < channels; ++c) {
            const R* plane = x.data.data() + (n * x.shape[1] + f / filters * channels + c) * x.shape[2] * x.shape[3];
            const R* taps = w.data.data() + (f * channels + c) * w.shape[2] * w.shape[3];
            for (int64_t r = 0; r < w.shape[2]; ++r) {
              for (int64_t s = 0; s < w.shape[3]; ++s) {
                const int64_t row = i * stride_h + r * dilation - pad_h, column = j * stride + s * dilation - pad;
                if (row < 0 || row >= x.shape[2] || column < 0 || column >= x.shape[3]) continue;
                sum.add(plane[row * x.shape[3] + column] * taps[r * w.shape[3] + s]);
              }
            }
          }
          *to++ = sum.get();
        }
      }
    }
  }
  if (is_line) out.shape.erase(out.shape.begin() + 2);
  return out;
}

/// The rows of one head of one batch entry, as a matrix [sequence × d].
template <typename R>
std::vector<R> head_of(const Tensor<R>& t, int64_t batch, int64_t head, bool heads_first) {
  const int64_t s = t.shape[heads_first ? 2 : 1], heads = t.shape[heads_first ? 1 : 2], d = t.shape[3];
  std::vector<R> out(static_cast<size_t>(s * d));
  for (int64_t i = 0; i < s; ++i) {
    const int64_t row = heads_first ? (batch * heads + head) * s + i : (batch * s + i) * heads + head;
    std::copy_n(t.data.begin() + row * d, d, out.begin() + i * d);
  }
  return out;
}

template <typename R>
Tensor<R> attention(const Call<R>& call) {
  const Tensor<R>&q = call[0], &k = call[1], &v = call[2];
  const R scale = call.number(3);
  const std::string mask = call.word("mask", "none");
  const bool heads_first = call.word("layout", "bshd") == "bhsd";
  call.need(q.shape.size() == 4 && k.shape.size() == 4 && v.shape == k.shape, "tensors of 4 dimensions");
  const size_t sequence = heads_first ? 2 : 1, head = heads_first ? 1 : 2;
  const int64_t queries = q.shape[sequence], heads = q.shape[head], d = q.shape[3];
  const int64_t keys = k.shape[sequence], key_heads = k.shape[head];
  call.need(key_heads > 0 && heads % key_heads == 0, "query heads a multiple of key heads");
  const int64_t last = mask == "causal_bottom_right" ? keys - queries : mask == "causal_top_left" ? 0 : keys;
  Tensor<R> out = Tensor<R>::zeros(q.shape);
  for (int64_t b = 0; b < q.shape[0]; ++b) {
    for (int64_t h = 0; h < heads; ++h) {
      const int64_t kh = h / (heads / key_heads);
      Tensor<R> own_keys{{keys, d}, head_of(k, b, kh, heads_first)};
      std::vector<R> scores =
          product(head_of(q, b, h, heads_first), swapped(own_keys).data, ProductShape{queries, keys, d});
      for (int64_t i = 0; i < queries; ++i) {
        R* row = scores.data() + i * keys;
        const int64_t seen = std::clamp<int64_t>(i + last + 1, 0, keys);
        double most = -std::numeric_limits<double>::infinity();
        Sum<R> sum;
        for (int64_t j = 0; j < seen; ++j) most = larger(most, value_of(row[j] = row[j] * scale));
        for (int64_t j = 0; j < seen; ++j) {
          row[j] = apply(row[j] - R(most), [](double x) { return std::exp(x); });
          sum.add(row[j]);
        }
        for (int64_t j = 0; j < keys; ++j) row[j] = j < seen ? call.keep(row[j] / sum.get()) : R(0);
      }
      const auto o = product(scores, head_of(v, b, kh, heads_first), ProductShape{queries, d, keys});
      for (int64_t i = 0; i < queries; ++i) {
        const int64_t row = heads_first ? (b * heads + h) * queries + i : (b * queries + i) * heads + h;
        std::copy_n(o.begin() + i * d, d, out.data.begin() + row * d);
      }
    }
  }
  return out;
}

}  // namespace tilewright::kernels
