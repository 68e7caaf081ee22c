#include "kernels/reference.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>

#include "base/narrow_float.h"
#include "lang/foreign.h"

namespace tilewright::kernels {
namespace {

using enum DiagnosticCode;
using lang::Reference;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// One call: its positional tensors and what its named arguments are.
struct Call {
  const Reference& reference;
  std::vector<std::optional<DoubleTensor>> arguments;  ///< empty for `none` and for words

  const DoubleTensor& operator[](size_t i) const {
    if (i < arguments.size() && arguments[i]) return *arguments[i];
    refuse(fmt::format("argument {} is missing", i + 1));
  }
  bool has(size_t i) const { return i < arguments.size() && arguments[i]; }
  double number(size_t i) const { return (*this)[i].data.at(0); }
  const Reference* named(std::string_view name) const {
    for (const auto& [label, value] : reference.named) {
      if (label == name) return &value;
    }
    return nullptr;
  }
  bool flag(std::string_view name) const {
    const Reference* found = named(name);
    return found && found->flag;
  }
  std::string word(std::string_view name, std::string_view otherwise) const {
    const Reference* found = named(name);
    return found ? found->name : std::string(otherwise);
  }
  [[noreturn]] void refuse(const std::string& why) const {
    Diagnostic d;
    d.code = E1080;
    d.location = reference.location;
    d.message = fmt::format("reference {} cannot be computed: {}", lang::to_string(reference), why);
    throw d;
  }
  void need(bool holds, const char* what) const {
    if (!holds) refuse(fmt::format("{} is needed", what));
  }
};

DoubleTensor map(const DoubleTensor& x, const std::function<double(double)>& f) {
  DoubleTensor out = x;
  std::ranges::transform(out.data, out.data.begin(), f);
  return out;
}

/// Shapes are equal, or y is a scalar, or y has x's last extent (a row added to every row).
DoubleTensor zip(const Call& call, const DoubleTensor& x, const DoubleTensor& y,
                 const std::function<double(double, double)>& f) {
  if (x.shape.size() < y.shape.size()) {
    return zip(call, y, x, [&](double a, double b) { return f(b, a); });
  }
  const bool row = y.shape.size() == 1 && !x.shape.empty() && y.shape[0] == x.extent(0);
  call.need(y.shape == x.shape || y.shape.empty() || row, "equal shapes, a row or a scalar");
  DoubleTensor out = x;
  for (size_t i = 0; i < out.data.size(); ++i)
    out.data[i] = f(x.data[i], y.shape.empty() ? y.data[0] : y.data[i % y.data.size()]);
  return out;
}

double gelu(double x) { return 0.5 * x * std::erfc(-x * M_SQRT1_2); }
double gelu_tanh(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }
double silu(double x) { return x / (1 + std::exp(-x)); }
double larger(double a, double b) { return std::isnan(a) || std::isnan(b) ? std::nan("") : std::max(a, b); }

DoubleTensor matmul(const DoubleTensor& a, const DoubleTensor& b, bool ta, bool tb, const Call& call) {
  call.need(a.shape.size() >= 2 && b.shape.size() == a.shape.size(), "two tensors of 2 or more dimensions");
  const int64_t m = a.extent(ta ? 0 : 1), k = a.extent(ta ? 1 : 0), n = b.extent(tb ? 1 : 0);
  call.need(b.extent(tb ? 0 : 1) == k, "one inner extent");
  std::vector<int64_t> shape = a.shape;
  shape[shape.size() - 2] = m, shape.back() = n;
  DoubleTensor out = DoubleTensor::zeros(shape);
  const int64_t batches = std::accumulate(shape.begin(), shape.end() - 2, int64_t{1}, std::multiplies<>());
  for (int64_t batch = 0; batch < batches; ++batch) {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t p = 0; p < k; ++p) {
          sum += a.data[static_cast<size_t>(batch * m * k + (ta ? p * m + i : i * k + p))] *
                 b.data[static_cast<size_t>(batch * k * n + (tb ? j * k + p : p * n + j))];
        }
        out.data[static_cast<size_t>((batch * m + i) * n + j)] = sum;
      }
    }
  }
  return out;
}

DoubleTensor gemv(const Call& call) {
  DoubleTensor x = call[1];
  call.need(x.shape.size() == 1, "a vector");
  x.shape = {x.shape[0], 1};
  DoubleTensor out = matmul(call[0], x, call.flag("transpose_a"), false, call);
  out.shape.pop_back();
  return out;
}

DoubleTensor matmul_w4(const Call& call) {
  const DoubleTensor& packed = call[1];
  const DoubleTensor& scales = call[2];
  const auto group = static_cast<int64_t>(call.named("group") ? call.named("group")->number : 128);
  const int64_t n = packed.extent(1), k = packed.extent(0) * 2;
  call.need(scales.extent(1) == n && scales.extent(0) * group == k, "one scale per group");
  DoubleTensor w = DoubleTensor::zeros({n, k});
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < k; ++j) {
      const auto pair = static_cast<int>(packed.data[static_cast<size_t>(i * (k / 2) + j / 2)]);
      const int code = j % 2 ? pair >> 4 : pair & 15;
      w.data[static_cast<size_t>(i * k + j)] =
          (code - 8) * scales.data[static_cast<size_t>(i * (k / group) + j / group)];
    }
  }
  return matmul(call[0], w, false, true, call);
}

DoubleTensor epilogue(const Call& call) {
  DoubleTensor out = call[0];
  const auto add = [](double a, double b) { return a + b; };
  if (call.has(1)) out = zip(call, out, call[1], add);
  if (call.flag("relu")) out = map(out, [](double x) { return larger(x, 0); });
  if (call.flag("gelu")) out = map(out, gelu);
  if (call.has(2)) out = zip(call, out, call[2], add);
  return out;
}

DoubleTensor attention(const Call& call) {
  const DoubleTensor &q = call[0], &k = call[1], &v = call[2];
  const double scale = call.number(3);
  const std::string mask = call.word("mask", "none");
  const bool heads_first = call.word("layout", "bshd") == "bhsd";
  call.need(q.shape.size() == 4 && k.shape.size() == 4 && v.shape == k.shape, "tensors of 4 dimensions");
  const size_t sequence = heads_first ? 2 : 1, head = heads_first ? 1 : 2;
  const int64_t batches = q.shape[0], queries = q.shape[sequence], heads = q.shape[head], d = q.shape[3];
  const int64_t keys = k.shape[sequence], key_heads = k.shape[head];
  call.need(key_heads > 0 && heads % key_heads == 0, "query heads a multiple of key heads");
  const auto offset = [&](const DoubleTensor& t, int64_t b, int64_t s, int64_t h) {
    const int64_t row = heads_first ? (b * t.shape[1] + h) * t.shape[2] + s : (b * t.shape[1] + s) * t.shape[2] + h;
    return static_cast<size_t>(row * d);
  };
  const int64_t last = mask == "causal_bottom_right" ? keys - queries : mask == "causal_top_left" ? 0 : keys;
  DoubleTensor out = DoubleTensor::zeros(q.shape);
  std::vector<double> weights(static_cast<size_t>(keys));
  for (int64_t b = 0; b < batches; ++b) {
    for (int64_t h = 0; h < heads; ++h) {
      const int64_t kh = h / (heads / key_heads);
      for (int64_t i = 0; i < queries; ++i) {
        const int64_t seen = std::clamp<int64_t>(i + last + 1, 0, keys);
        double most = -kInfinity, sum = 0;
        for (int64_t j = 0; j < seen; ++j) {
          double dot = 0;
          for (int64_t x = 0; x < d; ++x) {
            dot += q.data[offset(q, b, i, h) + static_cast<size_t>(x)] *
                   k.data[offset(k, b, j, kh) + static_cast<size_t>(x)];
          }
          weights[static_cast<size_t>(j)] = dot * scale;
          most = larger(most, dot * scale);
        }
        for (int64_t j = 0; j < seen; ++j)
          sum += weights[static_cast<size_t>(j)] = std::exp(weights[static_cast<size_t>(j)] - most);
        for (int64_t j = 0; j < seen; ++j) {
          for (int64_t x = 0; x < d; ++x) {
            out.data[offset(out, b, i, h) + static_cast<size_t>(x)] +=
                weights[static_cast<size_t>(j)] / sum * v.data[offset(v, b, j, kh) + static_cast<size_t>(x)];
          }
        }
      }
    }
  }
  return out;
}

/// Calls `f(row, out_row)` for every row of the last dimension.
DoubleTensor by_row(const DoubleTensor& x, const std::function<void(const double*, int64_t, double*)>& f) {
  DoubleTensor out = x;
  const int64_t n = x.extent(0);
  for (int64_t at = 0; n > 0 && at < x.size(); at += n) f(x.data.data() + at, n, out.data.data() + at);
  return out;
}

DoubleTensor softmax(const Call& call) {
  return by_row(call[0], [](const double* x, int64_t n, double* y) {
    const double most = std::accumulate(x, x + n, -kInfinity, larger);
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += y[i] = std::exp(x[i] - most);
    for (int64_t i = 0; i < n; ++i) y[i] /= sum;
  });
}

DoubleTensor rmsnorm(const Call& call) {
  const DoubleTensor& weight = call[1];
  const double eps = call.number(2);
  return by_row(call[0], [&](const double* x, int64_t n, double* y) {
    const double mean = std::inner_product(x, x + n, x, 0.0) / static_cast<double>(n);
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] / std::sqrt(mean + eps) * weight.data[static_cast<size_t>(i)];
  });
}

DoubleTensor layernorm(const Call& call) {
  const DoubleTensor &weight = call[1], &bias = call[2];
  const double eps = call.number(3);
  return by_row(call[0], [&](const double* x, int64_t n, double* y) {
    const double mean = std::accumulate(x, x + n, 0.0) / static_cast<double>(n);
    double variance = 0;
    for (int64_t i = 0; i < n; ++i) variance += (x[i] - mean) * (x[i] - mean) / static_cast<double>(n);
    for (int64_t i = 0; i < n; ++i) {
      y[i] = (x[i] - mean) / std::sqrt(variance + eps) * weight.data[static_cast<size_t>(i)] +
             bias.data[static_cast<size_t>(i)];
    }
  });
}

using Reduce = double (*)(const double*, int64_t);
DoubleTensor row_reduce(const DoubleTensor& x, Reduce reduce) {
  std::vector<int64_t> shape(x.shape.begin(), x.shape.end() - 1);
  DoubleTensor out = DoubleTensor::zeros(shape);
  for (size_t r = 0; r < out.data.size(); ++r)
    out.data[r] = reduce(x.data.data() + r * static_cast<size_t>(x.extent(0)), x.extent(0));
  return out;
}

DoubleTensor transpose(const Call& call) {
  const DoubleTensor& x = call[0];
  call.need(x.shape.size() == 2, "a matrix");
  DoubleTensor out = DoubleTensor::zeros({x.shape[1], x.shape[0]});
  for (int64_t i = 0; i < x.shape[0]; ++i) {
    for (int64_t j = 0; j < x.shape[1]; ++j)
      out.data[static_cast<size_t>(j * x.shape[0] + i)] = x.data[static_cast<size_t>(i * x.shape[1] + j)];
  }
  return out;
}

double row_sum(const double* x, int64_t n) { return std::accumulate(x, x + n, 0.0); }
double row_max(const double* x, int64_t n) { return std::accumulate(x, x + n, -kInfinity, larger); }
double row_argmax(const double* x, int64_t n) {
  int64_t best = 0;
  for (int64_t i = 1; i < n; ++i) {
    if (!std::isnan(x[best]) && (std::isnan(x[i]) || x[i] > x[best])) best = i;
  }
  return static_cast<double>(best);
}

double row_argmin(const double* x, int64_t n) {
  int64_t best = 0;
  for (int64_t i = 1; i < n; ++i) {
    if (!std::isnan(x[best]) && (std::isnan(x[i]) || x[i] < x[best])) best = i;
  }
  return static_cast<double>(best);
}

DoubleTensor column_sum(const Call& call) {
  DoubleTensor out = DoubleTensor::zeros({call[0].extent(0)});
  for (size_t i = 0; i < call[0].data.size(); ++i) out.data[i % out.data.size()] += call[0].data[i];
  return out;
}

/// Values or positions of the n largest of every row, descending, ties by the lower position.
DoubleTensor topk(const Call& call, bool values) {
  const DoubleTensor& x = call[0];
  const auto n = static_cast<int64_t>(call.number(1));
  const int64_t columns = x.extent(0);
  call.need(n <= columns, "n of at most the row's length");
  DoubleTensor out = DoubleTensor::zeros({x.shape[0], n});
  std::vector<int64_t> order(static_cast<size_t>(columns));
  for (int64_t r = 0; r < x.shape[0]; ++r) {
    const double* row = x.data.data() + r * columns;
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](int64_t a, int64_t b) { return row[a] > row[b]; });
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = order[static_cast<size_t>(i)];
      out.data[static_cast<size_t>(r * n + i)] = values ? row[at] : static_cast<double>(at);
    }
  }
  return out;
}

DoubleTensor cast(const Call& call) {
  if (call.reference.arguments.size() != 2 || call.reference.arguments[1].kind != Reference::Kind::DType)
    call.refuse("a dtype is needed");
  DType dtype = call.reference.arguments[1].dtype;
  DoubleTensor out = call[0];
  std::vector<std::byte> storage(out.data.size() * static_cast<size_t>(bytes(dtype)));
  store_doubles(dtype, out.data.data(), storage.data(), out.data.size());
  load_doubles(dtype, storage.data(), out.data.data(), out.data.size());
  return out;
}

using Word = std::function<DoubleTensor(const Call&)>;
Word elementwise(double (*f)(double)) {
  return [f](const Call& c) { return map(c[0], f); };
}
Word joined(double (*f)(double, double)) {
  return [f](const Call& c) { return zip(c, c[0], c[1], f); };
}
Word reduced(Reduce f) {
  return [f](const Call& c) { return row_reduce(c[0], f); };
}

const std::map<std::string, Word, std::less<>>& words() {
  static const std::map<std::string, Word, std::less<>> kWords = {
      {"matmul", [](const Call& c) { return matmul(c[0], c[1], c.flag("transpose_a"), c.flag("transpose_b"), c); }},
      {"matmul_scaled",
       [](const Call& c) {
         DoubleTensor out = matmul(c[0], c[1], false, true, c);
         for (double& x : out.data) x *= c.number(2) * c.number(3);
         return out;
       }},
      {"gemv", gemv},
      {"matmul_w4", matmul_w4},
      {"epilogue", epilogue},
      {"attention", attention},
      {"softmax", softmax},
      {"rmsnorm", rmsnorm},
      {"layernorm", layernorm},
      {"transpose", transpose},
      {"column_sum", column_sum},
      {"cast", cast},
      {"row_sum", reduced(row_sum)},
      {"row_mean", reduced([](const double* x, int64_t n) { return row_sum(x, n) / static_cast<double>(n); })},
      {"row_max", reduced(row_max)},
      {"row_min", reduced([](const double* x, int64_t n) {
         return std::accumulate(x, x + n, kInfinity,
                                [](double a, double b) { return std::isnan(a + b) ? a + b : std::min(a, b); });
       })},
      {"row_prod",
       reduced([](const double* x, int64_t n) { return std::accumulate(x, x + n, 1.0, std::multiplies<>()); })},
      {"row_argmax", reduced(row_argmax)},
      {"row_argmin", reduced(row_argmin)},
      {"sum",
       [](const Call& c) {
         return DoubleTensor{{1}, {row_sum(c[0].data.data(), c[0].size())}};
       }},
      {"cumsum",
       [](const Call& c) {
         return by_row(c[0], [](const double* x, int64_t n, double* y) { std::partial_sum(x, x + n, y); });
       }},
      {"topk_values", [](const Call& c) { return topk(c, true); }},
      {"topk_indices", [](const Call& c) { return topk(c, false); }},
      {"add", joined([](double a, double b) { return a + b; })},
      {"sub", joined([](double a, double b) { return a - b; })},
      {"mul", joined([](double a, double b) { return a * b; })},
      {"div", joined([](double a, double b) { return a / b; })},
      {"swiglu", joined([](double a, double b) { return silu(a) * b; })},
      {"relu", elementwise([](double x) { return larger(x, 0); })},
      {"gelu", [](const Call& c) { return map(c[0], c.flag("by_tanh") ? gelu_tanh : gelu); }},
      {"silu", elementwise(silu)},
      {"exp", elementwise([](double x) { return std::exp(x); })},
      {"neg", elementwise([](double x) { return -x; })},
  };
  return kWords;
}

/// How a word may be called: positional arguments and names.
struct Usage {
  std::string_view word;
  size_t fewest, most;
  std::string_view names;
};
constexpr Usage kUsages[] = {
    {"matmul", 2, 2, "transpose_a transpose_b"},
    {"matmul_scaled", 4, 4, ""},
    {"gemv", 2, 2, "transpose_a"},
    {"matmul_w4", 3, 3, "group"},
    {"epilogue", 1, 3, "bias residual relu gelu"},
    {"attention", 4, 4, "mask layout"},
    {"softmax", 1, 1, ""},
    {"rmsnorm", 3, 3, ""},
    {"layernorm", 4, 4, ""},
    {"transpose", 1, 1, ""},
    {"column_sum", 1, 1, ""},
    {"cast", 2, 2, ""},
    {"row_sum", 1, 1, ""},
    {"row_mean", 1, 1, ""},
    {"row_max", 1, 1, ""},
    {"row_min", 1, 1, ""},
    {"row_prod", 1, 1, ""},
    {"row_argmax", 1, 1, ""},
    {"row_argmin", 1, 1, ""},
    {"sum", 1, 1, ""},
    {"cumsum", 1, 1, ""},
    {"topk_values", 2, 2, ""},
    {"topk_indices", 2, 2, ""},
    {"gelu", 1, 1, "by_tanh"},
    {"add", 2, 2, ""},
    {"sub", 2, 2, ""},
    {"mul", 2, 2, ""},
    {"div", 2, 2, ""},
    {"swiglu", 2, 2, ""},
    {"relu", 1, 1, ""},
    {"silu", 1, 1, ""},
    {"exp", 1, 1, ""},
    {"neg", 1, 1, ""},
};

const Usage* usage_of(std::string_view word) {
  const auto* found = std::ranges::find(kUsages, word, &Usage::word);
  return found == std::end(kUsages) ? nullptr : found;
}

bool is_listed(std::string_view list, std::string_view name) {
  for (size_t at = list.find(name); at != std::string_view::npos; at = list.find(name, at + 1)) {
    const size_t end = at + name.size();
    if ((at == 0 || list[at - 1] == ' ') && (end == list.size() || list[end] == ' ')) return true;
  }
  return false;
}

[[noreturn]] void refuse_at(const Reference& r, std::string message, std::string help) {
  Diagnostic d;
  d.code = E1080;
  d.location = r.location;
  d.message = std::move(message);
  d.help = std::move(help);
  throw d;
}

void check_call(const Reference& r) {
  const Usage* usage = usage_of(r.name);
  if (!usage) {
    std::vector<std::string> known;
    for (const Usage& u : kUsages) known.emplace_back(u.word);
    const std::string near = lang::closest(r.name, known);
    refuse_at(r, fmt::format("`{}` is not a word of references", r.name),
              near.empty() ? "docs/grammar.md lists them" : fmt::format("did you mean `{}`?", near));
  }
  if (r.arguments.size() < usage->fewest || r.arguments.size() > usage->most) {
    refuse_at(r,
              fmt::format("`{}` takes {} argument{}, got {}", r.name,
                          usage->fewest == usage->most ? fmt::format("{}", usage->most)
                                                       : fmt::format("{} to {}", usage->fewest, usage->most),
                          usage->most == 1 ? "" : "s", r.arguments.size()),
              "docs/grammar.md lists the words of references");
  }
  for (const auto& [label, value] : r.named) {
    if (is_listed(usage->names, label)) continue;
    refuse_at(r, fmt::format("`{}` has no argument `{}`", r.name, label),
              usage->names.empty() ? "it takes positional arguments only"
                                   : fmt::format("its named arguments are: {}", usage->names));
  }
}

/// Words after `name =` are of the word called, not arguments.
void check_all(const Reference& r, std::span<const std::string> names) {
  if (r.kind == Reference::Kind::Name && r.name != "none" && std::ranges::find(names, r.name) == names.end()) {
    const std::string near = lang::closest(r.name, names);
    refuse_at(
        r, fmt::format("`{}` is not an argument or dimension of this kernel", r.name),
        near.empty() ? fmt::format("it has: {}", fmt::join(names, ", ")) : fmt::format("did you mean `{}`?", near));
  }
  if (r.kind != Reference::Kind::Call) return;
  check_call(r);
  for (const Reference& a : r.arguments) check_all(a, names);
}

std::optional<DoubleTensor> evaluate(const Reference& r, const std::map<std::string, DoubleTensor>& arguments) {
  switch (r.kind) {
    case Reference::Kind::Number: return DoubleTensor::scalar(r.number);
    case Reference::Kind::Flag: return DoubleTensor::scalar(r.flag);
    case Reference::Kind::DType:
    case Reference::Kind::Text: return std::nullopt;
    case Reference::Kind::Name: {
      const auto found = arguments.find(r.name);
      return found == arguments.end() ? std::nullopt : std::optional(found->second);
    }
    case Reference::Kind::Call: break;
  }
  Call call{r, {}};
  for (const Reference& argument : r.arguments) call.arguments.push_back(evaluate(argument, arguments));
  const auto word = words().find(r.name);
  if (word == words().end()) call.refuse(fmt::format("`{}` is not a word of references", r.name));
  return word->second(call);
}

}  // namespace

DoubleTensor DoubleTensor::zeros(std::vector<int64_t> shape) {
  int64_t n = 1;
  for (const int64_t extent : shape) n *= extent;
  return {std::move(shape), std::vector<double>(static_cast<size_t>(n))};
}

Status check_words(const Reference& reference, std::span<const std::string> names) {
  try {
    check_all(reference, names);
    return {};
  } catch (Diagnostic& d) {
    return std::unexpected(std::move(d));
  }
}

Result<DoubleTensor> evaluate_reference(const Reference& reference,
                                        const std::map<std::string, DoubleTensor>& arguments) {
  try {
    if (std::optional<DoubleTensor> out = evaluate(reference, arguments)) return std::move(*out);
    return fail(E1080, fmt::format("reference {} cannot be computed: it names nothing that was passed",
                                   lang::to_string(reference)));
  } catch (Diagnostic& d) {
    return std::unexpected(std::move(d));
  }
}

}  // namespace tilewright::kernels
