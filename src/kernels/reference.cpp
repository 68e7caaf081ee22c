#include "kernels/reference.h"

#include <fmt/format.h>

#include "base/narrow_float.h"
#include "kernels/reference_call.h"
#include "kernels/reference_products.h"
#include "kernels/reference_rows.h"
#include "lang/source.h"

namespace tilewright::kernels {
namespace {

using enum DiagnosticCode;
using lang::Reference;

double gelu(double x) { return 0.5 * x * std::erfc(-x * M_SQRT1_2); }
double gelu_tanh(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }
double silu(double x) { return x / (1 + std::exp(-x)); }

template <typename R, typename F>
Tensor<R> elementwise(const Call<R>& call, F f, Roundings roundings) {
  return map(call[0], [&](const R& x) { return apply(x, f, roundings); });
}

template <typename R>
R times(const R& a, const R& b) {
  return a * b;
}

template <typename R>
R power(const R& a, const R& b) {
  const double y = std::pow(value_of(a), value_of(b));
  if constexpr (kIsBounded<R>) {
    double passed_on = 0;
    for (const double da : {-a.error, a.error}) {
      for (const double db : {-b.error, b.error})
        passed_on = std::max(passed_on, std::fabs(std::pow(a.value + da, b.value + db) - y));
    }
    const double steep = a.value > 0 ? std::fabs(b.value * std::log(a.value)) : std::fabs(b.value);
    return {y, passed_on + (4 + steep) * R::kUnit * std::fabs(y)};
  } else {
    return static_cast<R>(y);
  }
}

template <typename R>
Tensor<R> epilogue(const Call<R>& call) {
  Tensor<R> out = call[0];
  const auto add = [](const R& a, const R& b) { return a + b; };
  if (call.has(1)) out = zip(call, out, call[1], add);
  if (call.flag("relu")) out = map(out, [](const R& x) { return largest_of(x, R(0.0)); });
  if (call.flag("gelu")) out = map(out, [](const R& x) { return apply(x, gelu, {8, 1}); });
  if (call.has(2)) out = zip(call, out, call[2], add);
  return out;
}

/// select(condition, yes, no), element by element.
template <typename R>
Tensor<R> chosen(const Call<R>& call) {
  Tensor<R> out = Tensor<R>::zeros(joined_shape(call, joined_shape(call, call[0].shape, call[1].shape), call[2].shape));
  Repeated condition(out.shape, call[0].shape), yes(out.shape, call[1].shape), no(out.shape, call[2].shape);
  for (R& v : out.data) {
    const R &is = call[0].data[condition.next()], &a = call[1].data[yes.next()], &b = call[2].data[no.next()];
    v = value_of(is) != 0 ? a : b;
    if constexpr (kIsBounded<R>) {
      if (is.error > 0) v.error = std::fabs(a.value - b.value) + std::max(a.error, b.error);
    }
  }
  return out;
}

template <typename R>
using Word = Tensor<R> (*)(const Call<R>&);

template <typename R>
const std::map<std::string, Word<R>, std::less<>>& words() {
  static const std::map<std::string, Word<R>, std::less<>> kWords = {
#define TW_REFERENCE_WORD(word, fewest, most, names, ...) \
  {#word, [](const Call<R>& c) -> Tensor<R> { return __VA_ARGS__; }},
#include "kernels/reference_words.def"
#undef TW_REFERENCE_WORD
  };
  return kWords;
}

/// Rounds a value to where it is kept between two words; nothing to do for f32, f64 and integers.
template <typename R>
std::function<R(const R&)> keeper(DType kept) {
  const bool is_narrow = is_float(kept) && bits(kept) < 32;
  if constexpr (kIsBounded<R>) {
    const double u = is_narrow ? unit_roundoff(kept) : 0;
    return [u](const R& x) { return R(x.value, x.error + u * std::fabs(x.value)); };
  } else {
    if (!is_narrow || std::is_same_v<R, double>) return [](const R& x) { return x; };
    return [kept](const R& x) {
      double value = static_cast<double>(x);
      std::byte storage[8];
      store_doubles(kept, &value, storage, 1);
      load_doubles(kept, storage, &value, 1);
      return static_cast<R>(value);
    };
  }
}

template <typename R>
class Evaluator {
 public:
  Evaluator(const NamedTensors& arguments, DType kept) : arguments_(arguments), keep_(keeper<R>(kept)) {}

  std::optional<Tensor<R>> evaluate(const Reference& r, bool is_whole = true) const {
    switch (r.kind) {
      case Reference::Kind::Number: return Tensor<R>::scalar(R(r.number));
      case Reference::Kind::Flag: return Tensor<R>::scalar(R(r.flag ? 1.0 : 0.0));
      case Reference::Kind::DType:
      case Reference::Kind::Text: return std::nullopt;
      case Reference::Kind::Name: return argument(r.name);
      case Reference::Kind::Call: break;
    }
    Call<R> call{r, {}, keep_};
    for (const Reference& a : r.arguments) call.arguments.push_back(evaluate(a, false));
    const auto word = words<R>().find(r.name);
    if (word == words<R>().end()) call.refuse(fmt::format("`{}` is not a word of references", r.name));
    Tensor<R> out = word->second(call);
    if (!is_whole && !out.shape.empty()) {
      for (R& v : out.data) v = keep_(v);
    }
    return out;
  }

 private:
  std::optional<Tensor<R>> argument(const std::string& name) const {
    const auto found = arguments_.find(name);
    if (found == arguments_.end()) return std::nullopt;
    Tensor<R> out{found->second.shape, {}};
    out.data.reserve(found->second.data.size());
    for (const double v : found->second.data) out.data.push_back(R(v));
    return out;
  }

  const NamedTensors& arguments_;
  std::function<R(const R&)> keep_;
};

template <typename R>
Result<Tensor<R>> evaluate(const Reference& reference, const NamedTensors& arguments, DType kept) {
  try {
    if (auto out = Evaluator<R>(arguments, kept).evaluate(reference)) return std::move(*out);
    return fail(E1080, fmt::format("reference {} cannot be computed: it names nothing that was passed",
                                   lang::to_string(reference)));
  } catch (Diagnostic& d) {
    return std::unexpected(std::move(d));
  }
}

template <typename R>
Result<BoundedTensor> bounded(const Reference& reference, const NamedTensors& arguments, DType kept) {
  auto made = evaluate<R>(reference, arguments, kept);
  if (!made) return std::unexpected(made.error());
  BoundedTensor out;
  out.value.shape = made->shape;
  for (const R& v : made->data) {
    out.value.data.push_back(v.value);
    out.bound.push_back(v.error);
  }
  return out;
}

bool is_wide(const Precision& precision) { return precision.compute == DType::F64 || is_int(precision.compute); }

}  // namespace

Result<DoubleTensor> evaluate_reference(const Reference& reference, const NamedTensors& arguments) {
  return evaluate<double>(reference, arguments, DType::F64);
}

Result<BoundedTensor> evaluate_bounded(const Reference& reference, const NamedTensors& arguments,
                                       const Precision& precision) {
  return is_wide(precision) ? bounded<Bounded<53>>(reference, arguments, precision.kept)
                            : bounded<Bounded<24>>(reference, arguments, precision.kept);
}

Result<DoubleTensor> evaluate_declared(const Reference& reference, const NamedTensors& arguments,
                                       const Precision& precision) {
  if (is_wide(precision)) return evaluate<double>(reference, arguments, precision.kept);
  auto made = evaluate<float>(reference, arguments, precision.kept);
  if (!made) return std::unexpected(made.error());
  return DoubleTensor{made->shape, {made->data.begin(), made->data.end()}};
}

Result<Reference> parse_reference(std::string_view text) {
  const std::string kernel = fmt::format("kernel stated() -> (Y: f32[1])\n  reference {}\n{{\n}}\n", text);
  auto source = lang::parse_source(kernel, "a reference");
  if (!source) return fail(E1080, fmt::format("'{}' is not a reference: {}", text, source.error().message));
  auto info = lang::describe(*source, "stated", {});
  if (!info || info->references.size() != 1)
    return fail(E1080, fmt::format("'{}' is not a reference", text), "docs/grammar.md lists its words");
  return info->references[0];
}

}  // namespace tilewright::kernels
