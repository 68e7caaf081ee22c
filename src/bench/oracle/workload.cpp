#include "bench/oracle/workload.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "bench/oracle/arguments.h"

namespace tilewright::bench {
namespace {

using Dims = std::vector<std::pair<std::string, int64_t>>;

constexpr std::array kOperations = {
#define TW_OPERATION(enumerator, mnemonic, form, variants, summary) \
  OperationInfo{Operation::enumerator, mnemonic, DimsForm::form, variants, summary},
#include "bench/oracle/operation.def"
#undef TW_OPERATION
};

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

/// Digits at the front of `text`, taken off it.
std::optional<int64_t> take_number(std::string_view& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value < 0) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

std::optional<std::vector<int64_t>> take_extents(std::string_view text) {
  std::vector<int64_t> extents;
  for (std::string_view part : split(text, 'x')) {
    const auto value = take_number(part);
    if (!value || !part.empty()) return std::nullopt;
    extents.push_back(*value);
  }
  return extents;
}

std::optional<Dims> named(const std::vector<int64_t>& extents, std::initializer_list<const char*> names) {
  if (extents.size() != names.size()) return std::nullopt;
  Dims dims;
  for (size_t i = 0; i < extents.size(); ++i) dims.emplace_back(names.begin()[i], extents[i]);
  return dims;
}

std::optional<Dims> parse_attention_dims(std::string_view text) {
  constexpr std::pair<std::string_view, const char*> kFields[] = {{"b", "B"},   {"hq", "HQ"}, {"hkv", "HKV"},
                                                                  {"sq", "SQ"}, {"sk", "SK"}, {"d", "D"}};
  Dims dims;
  for (const auto& [letter, dim] : kFields) {
    if (!text.starts_with(letter)) return std::nullopt;
    text.remove_prefix(letter.size());
    const auto value = take_number(text);
    if (!value) return std::nullopt;
    dims.emplace_back(dim, *value);
  }
  int64_t value_width = dims.back().second;
  if (text.starts_with("dv")) {
    text.remove_prefix(2);
    const auto value = take_number(text);
    if (!value) return std::nullopt;
    value_width = *value;
  }
  if (!text.empty()) return std::nullopt;
  dims.emplace_back("DV", value_width);
  return dims;
}

std::optional<Dims> parse_dims(DimsForm form, std::string_view text) {
  if (form == DimsForm::Attention) return parse_attention_dims(text);
  const bool batched = form == DimsForm::Gemm && text.starts_with('b');
  if (batched) text.remove_prefix(1);
  const auto extents = take_extents(text);
  if (!extents) return std::nullopt;
  switch (form) {
    case DimsForm::Gemm: return batched ? named(*extents, {"B", "M", "N", "K"}) : named(*extents, {"M", "N", "K"});
    case DimsForm::Gemv: return named(*extents, {"M", "K"});
    case DimsForm::Rows: return named(*extents, {"R", "C"});
    case DimsForm::Elements: {
      if (extents->size() > 4) return std::nullopt;
      Dims dims;
      for (size_t i = 0; i < extents->size(); ++i) dims.emplace_back(fmt::format("N{}", i), (*extents)[i]);
      return dims;
    }
    case DimsForm::Attention:
    case DimsForm::Kernel: break;
  }
  return std::nullopt;
}

std::string_view form_text(DimsForm form) {
  switch (form) {
    case DimsForm::Gemm: return "MxNxK or bBxMxNxK";
    case DimsForm::Gemv: return "MxK";
    case DimsForm::Attention: return "b<B>hq<HQ>hkv<HKV>sq<SQ>sk<SK>d<D>[dv<DV>]";
    case DimsForm::Rows: return "RxC";
    case DimsForm::Elements: return "N, or up to four extents joined by x";
    case DimsForm::Kernel: return "NAME:D=<extent>.E=<extent>:ref=<digest>";
  }
  return "";
}

std::string dims_text(const Workload& workload) {
  if (info(workload.operation).form == DimsForm::Attention) {
    std::string text = fmt::format("b{}hq{}hkv{}sq{}sk{}d{}", workload.dim("B"), workload.dim("HQ"),
                                   workload.dim("HKV"), workload.dim("SQ"), workload.dim("SK"), workload.dim("D"));
    if (workload.dim("DV") != workload.dim("D")) text += fmt::format("dv{}", workload.dim("DV"));
    return text;
  }
  std::vector<std::string> parts;
  if (workload.operation == Operation::Kernel) {
    for (const auto& [dim, value] : workload.dims) parts.push_back(fmt::format("{}={}", dim, value));
    return fmt::format("{}:{}", workload.question.kernel, fmt::join(parts, "."));
  }
  for (const auto& [dim, value] : workload.dims) parts.push_back(fmt::format("{}{}", dim == "B" ? "b" : "", value));
  return fmt::format("{}", fmt::join(parts, "x"));
}

/// A variant of the list; "k*" stands for k followed by a number.
bool is_variant(std::string_view variants, std::string_view text) {
  for (std::string_view allowed : split(variants, ' ')) {
    if (allowed == text && !allowed.empty()) return true;
    if (allowed == "k*" && text.starts_with('k')) {
      std::string_view digits = text.substr(1);
      const auto value = take_number(digits);
      if (value && *value > 0 && digits.empty()) return true;
    }
  }
  return false;
}

std::optional<Epilogue> parse_epilogue(std::string_view text) {
  Epilogue epilogue;
  auto words = split(text, '-');
  if (words.front() == "bias") {
    epilogue.bias = true;
    words.erase(words.begin());
  }
  if (words.empty()) return epilogue;
  if (words.size() > 1) return std::nullopt;
  if (words.front() == "relu") epilogue.activation = Epilogue::Activation::Relu;
  if (words.front() == "gelu") epilogue.activation = Epilogue::Activation::Gelu;
  if (words.front() == "silu") epilogue.activation = Epilogue::Activation::Silu;
  if (epilogue.activation == Epilogue::Activation::None) return std::nullopt;
  return epilogue;
}

std::unexpected<Diagnostic> bad_key(std::string_view key, std::string what, std::string help) {
  return fail(DiagnosticCode::E1603, fmt::format("workload '{}': {}", key, what), std::move(help));
}

/// The segment in the place of mask or epilogue. Fills `workload`; false when it is neither.
bool take_mask_or_epilogue(std::string_view segment, Workload& workload) {
  if (workload.operation == Operation::Attention) {
    const auto mask = parse_mask(segment);
    if (mask) workload.mask = *mask;
    return mask.has_value();
  }
  if (workload.operation != Operation::Gemm) return false;
  const auto epilogue = parse_epilogue(segment);
  if (epilogue) workload.epilogue = *epilogue;
  return epilogue.has_value();
}

/// The `D=4.E=5` of a kernel's key.
std::optional<Dims> parse_named_dims(std::string_view text) {
  Dims dims;
  if (text.empty()) return dims;
  for (std::string_view part : split(text, '.')) {
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos || equals == 0) return std::nullopt;
    std::string_view digits = part.substr(equals + 1);
    const auto value = take_number(digits);
    if (!value || !digits.empty()) return std::nullopt;
    dims.emplace_back(part.substr(0, equals), *value);
  }
  return dims;
}

Result<Workload> parse_kernel_workload(std::string_view key, const DTypes& dtypes, KernelQuestion question) {
  const auto segments = split(key, ':');
  auto dims = segments.size() > 2 ? parse_named_dims(segments[2]) : std::nullopt;
  if (!dims) return bad_key(key, "bad dimensions", fmt::format("kernel:{}", form_text(DimsForm::Kernel)));
  if (!question.is_stated()) {
    return bad_key(key, "the digits after ref= do not say what is computed",
                   "name the kernel that states it: --op FILE.tile:KERNEL");
  }
  Workload workload;
  workload.operation = Operation::Kernel;
  workload.dims = *std::move(dims);
  workload.question = std::move(question);
  workload.dtypes = dtypes;
  const bool is_same = segments.size() == 4 && workload_key(workload) == key;
  if (!is_same)
    return bad_key(key, fmt::format("the question given with it is {}", workload_key(workload)),
                   "name the kernel that states it: --op FILE.tile:KERNEL");
  if (auto ok = validate(workload); !ok) return std::unexpected(ok.error());
  return workload;
}

Status check_question(const Workload& workload) {
  const std::string key = workload_key(workload);
  size_t outputs = 0;
  for (const QuestionTensor& tensor : workload.question.tensors) {
    outputs += tensor.is_output;
    const auto extents = extents_of(workload, tensor);
    if (!extents)
      return bad_key(key, fmt::format("the shape of {} is not known: [{}]", tensor.name, fmt::join(tensor.shape, ", ")),
                     "give every dimension");
    if (std::ranges::any_of(*extents, [](int64_t extent) { return extent < 0; }))
      return bad_key(key, fmt::format("{} would be [{}]", tensor.name, fmt::join(*extents, ", ")), "extents are ≥ 0");
  }
  if (outputs == 0 || outputs != workload.question.references.size())
    return bad_key(key, fmt::format("{} references for {} outputs", workload.question.references.size(), outputs),
                   "one expression per output");
  return {};
}

Status check_lengths(const Workload& workload) {
  if (workload.lengths.empty()) return {};
  const std::string key = workload_key(workload);
  if (workload.operation != Operation::Attention) return bad_key(key, "only attn takes lengths", "leave lens= out");
  if (static_cast<int64_t>(workload.lengths.size()) != workload.dim("B")) {
    return bad_key(key, fmt::format("{} lengths for a batch of {}", workload.lengths.size(), workload.dim("B")),
                   "give one q,k pair per sequence");
  }
  for (const SequenceLengths& l : workload.lengths) {
    if (l.q < 0 || l.k < 0 || l.q > workload.dim("SQ") || l.k > workload.dim("SK")) {
      return bad_key(key, fmt::format("length {},{} exceeds sq or sk", l.q, l.k), "lengths lie in [0, sq] and [0, sk]");
    }
  }
  return {};
}

}  // namespace

const OperationInfo& info(Operation operation) { return kOperations[static_cast<size_t>(operation)]; }
std::span<const OperationInfo> all_operations() { return kOperations; }

Result<DTypes> parse_dtypes(std::string_view text) {
  const auto parts = split(text, '/');
  const auto bad = [&] {
    return fail(DiagnosticCode::E1604, fmt::format("dtype '{}' is not in/acc/out", text),
                "for example f16/f32/f16, or short f32, bf16, i8");
  };
  std::vector<DType> dtypes;
  for (std::string_view part : parts) {
    const auto dtype = parse_dtype(part);
    if (!dtype) return bad();
    dtypes.push_back(*dtype);
  }
  if (dtypes.size() == 3) return DTypes{dtypes[0], dtypes[1], dtypes[2]};
  if (dtypes.size() != 1) return bad();
  const DType in = dtypes[0];
  if (is_int(in)) return bits(in) < 32 ? DTypes{in, DType::I32, DType::I32} : DTypes{in, in, in};
  return DTypes{in, compute_type(in), in};
}

std::string to_string(const DTypes& dtypes) {
  return fmt::format("{}/{}/{}", name(dtypes.in), name(dtypes.acc), name(dtypes.out));
}

std::string to_string(const Epilogue& epilogue) {
  std::string text = epilogue.bias ? "bias" : "";
  const char* activation = "";
  switch (epilogue.activation) {
    case Epilogue::Activation::None: return text;
    case Epilogue::Activation::Relu: activation = "relu"; break;
    case Epilogue::Activation::Gelu: activation = "gelu"; break;
    case Epilogue::Activation::Silu: activation = "silu"; break;
  }
  return text.empty() ? activation : text + "-" + activation;
}

int64_t Workload::dim(std::string_view name) const {
  for (const auto& [dim, value] : dims) {
    if (dim == name) return value;
  }
  return 1;
}

void Workload::set_dim(std::string_view name, int64_t value) {
  for (auto& [dim, old] : dims) {
    if (dim == name) old = value;
  }
}

std::optional<std::vector<int64_t>> extents_of(const Workload& workload, const QuestionTensor& tensor) {
  const std::map<std::string, int64_t> dims(workload.dims.begin(), workload.dims.end());
  std::vector<int64_t> out;
  for (const std::string& text : tensor.shape) {
    const auto extent = extent_value(text, dims);
    if (!extent) return std::nullopt;
    out.push_back(*extent);
  }
  return out;
}

Result<Workload> parse_workload(std::string_view key, const DTypes& dtypes, std::vector<SequenceLengths> lengths,
                                KernelQuestion question) {
  const auto segments = split(key, ':');
  Workload workload;
  workload.dtypes = dtypes;
  workload.lengths = std::move(lengths);
  const auto row = std::ranges::find(kOperations, segments[0], &OperationInfo::name);
  if (row == kOperations.end()) {
    std::vector<std::string_view> names;
    for (const OperationInfo& known : kOperations) names.push_back(known.name);
    return bad_key(key, fmt::format("unknown operator '{}'", segments[0]),
                   fmt::format("one of {}", fmt::join(names, ", ")));
  }
  if (row->form == DimsForm::Kernel) return parse_kernel_workload(key, dtypes, std::move(question));
  workload.operation = row->operation;
  auto dims = segments.size() > 1 ? parse_dims(row->form, segments[1]) : std::nullopt;
  if (!dims) return bad_key(key, "bad dimensions", fmt::format("{}:{}", row->name, form_text(row->form)));
  workload.dims = *std::move(dims);

  size_t next = 2;
  workload.variant = std::string(split(row->variants, ' ')[0]);
  if (next < segments.size() && is_variant(row->variants, segments[next])) workload.variant = segments[next++];
  constexpr std::string_view kLens = "lens=";
  if (next < segments.size() && !segments[next].starts_with(kLens) && take_mask_or_epilogue(segments[next], workload))
    ++next;
  if (next < segments.size() && segments[next].starts_with(kLens)) {
    const auto digest = segments[next++].substr(kLens.size());
    if (workload.lengths.empty() || lengths_digest(workload.lengths) != digest) {
      return bad_key(key, "it needs the lengths of this digest", "give them with --lens q,k;q,k;…");
    }
  }
  if (next < segments.size()) {
    return bad_key(key, fmt::format("unexpected '{}'", segments[next]),
                   row->variants.empty()
                       ? "nothing follows the dimensions"
                       : fmt::format("variants: {}; then a mask (attn) or an epilogue (gemm)", row->variants));
  }
  if (auto ok = validate(workload); !ok) return std::unexpected(ok.error());
  return workload;
}

std::string workload_key(const Workload& workload) {
  std::string key = fmt::format("{}:{}", info(workload.operation).name, dims_text(workload));
  if (!workload.variant.empty()) key += ":" + workload.variant;
  if (workload.mask.kind != MaskKind::None) key += ":" + to_string(workload.mask);
  if (const std::string epilogue = to_string(workload.epilogue); !epilogue.empty()) key += ":" + epilogue;
  if (!workload.lengths.empty()) key += ":lens=" + lengths_digest(workload.lengths);
  if (workload.operation == Operation::Kernel) key += ":ref=" + question_digest(workload.question);
  return key;
}

namespace {

/// Numbers of elements are 64-bit integers everywhere.
Status check_sizes(const Workload& workload, const std::string& key) {
  for (const Argument& argument : arguments(workload)) {
    int64_t count = 1;
    for (const int64_t extent : argument.shape) {
      if (__builtin_mul_overflow(count, std::max<int64_t>(1, extent), &count))
        return bad_key(key, fmt::format("{} has more than 2^63 elements", argument.name), "choose smaller sizes");
    }
  }
  return {};
}

}  // namespace

Status validate(const Workload& workload) {
  if (workload.operation == Operation::Kernel) return check_question(workload);
  const std::string key = workload_key(workload);
  if (workload.operation == Operation::Attention &&
      (workload.dim("HKV") == 0 || workload.dim("HQ") % workload.dim("HKV") != 0)) {
    return bad_key(key, "hq is not a multiple of hkv",
                   "grouped-query attention shares each KV head among hq/hkv heads");
  }
  if (workload.operation == Operation::GemmW4) {
    const int64_t group = std::stoll(workload.variant.substr(1));
    if (workload.dim("K") % group != 0) {
      return bad_key(key, fmt::format("K = {} is not a multiple of the group {}", workload.dim("K"), group),
                     "choose g32, g64 or g128");
    }
  }
  if (workload.operation == Operation::TopK && std::stoll(workload.variant.substr(1)) > workload.dim("C")) {
    return bad_key(key, "k exceeds the row", "k ≤ C");
  }
  if (Status sizes = check_sizes(workload, key); !sizes) return sizes;
  return check_lengths(workload);
}

}  // namespace tilewright::bench
