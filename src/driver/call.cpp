#include "driver/call.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <random>

#include "base/hash.h"
#include "base/narrow_float.h"

namespace tilewright::driver {
namespace {

using Dimensions = std::map<std::string, int64_t>;

const ir::Dimension* find_dimension(const ir::Kernel& kernel, const ir::Value* value) {
  for (const ir::Dimension& d : kernel.dimensions) {
    if (d.value == value) return &d;
  }
  return nullptr;
}

/// An argument's extents from dimensions; an unknown dimension gives its name.
std::expected<std::vector<int64_t>, std::string> extents(const ir::Kernel& kernel, const ir::TensorArgument& tensor,
                                                         const Dimensions& dims) {
  std::vector<int64_t> out;
  std::string missing;
  for (ir::Index extent : tensor.buffer->type.shape) {
    out.push_back(ir::evaluate(extent, [&](const ir::Value* v) -> int64_t {
      const ir::Dimension* d = find_dimension(kernel, v);
      const auto known = d ? dims.find(d->name) : dims.end();
      if (known != dims.end()) return known->second;
      missing = d ? d->name : v->name;
      return 0;
    }));
  }
  if (!missing.empty()) return std::unexpected(missing);
  return out;
}

Status bind_dimension(Dimensions& dims, const std::string& name, int64_t size, const std::string& from) {
  const auto [at, is_new] = dims.emplace(name, size);
  if (!is_new && at->second != size) {
    return fail(DiagnosticCode::E1802,
                fmt::format("dimension {} is {} from {}, but {} elsewhere", name, size, from, at->second),
                "all arguments and --dim must agree");
  }
  return {};
}

/// Extents that are a bare dimension bind it.
Status bind_shape(const ir::Kernel& kernel, const ir::TensorArgument& tensor, const HostTensor& given,
                  Dimensions& dims) {
  const std::string& name = tensor.buffer->name;
  const auto& shape = tensor.buffer->type.shape;
  if (given.shape.size() != shape.size()) {
    return fail(DiagnosticCode::E1802,
                fmt::format("argument {} has {} dimensions ({}), the kernel's has {}", name, given.shape.size(),
                            to_string(given.dtype, given.shape), shape.size()),
                "reshape the file's tensor");
  }
  if (given.dtype != tensor.buffer->type.dtype) {
    return fail(DiagnosticCode::E1802,
                fmt::format("argument {} is {}, the kernel takes {}", name, tilewright::name(given.dtype),
                            tilewright::name(tensor.buffer->type.dtype)),
                "convert the file, or choose the kernel's dtype with --param");
  }
  for (size_t i = 0; i < shape.size(); ++i) {
    const ir::Dimension* d = shape[i].symbol() ? find_dimension(kernel, shape[i].symbol()) : nullptr;
    if (!d) continue;
    if (Status bound = bind_dimension(dims, d->name, given.shape[i], fmt::format("axis {} of {}", i, name)); !bound)
      return bound;
  }
  return {};
}

std::mt19937_64 stream_of(uint64_t seed, const std::string& name) {
  return std::mt19937_64(seed * 0x9e3779b97f4a7c15ULL ^ hash128(name).low);
}

void store_real(HostTensor& tensor, int64_t i, double v) {
  switch (tensor.dtype) {
    case DType::F32: tensor.as<float>()[i] = static_cast<float>(v); return;
    case DType::F64: tensor.as<double>()[i] = v; return;
    case DType::F16: tensor.as<uint16_t>()[i] = encode_narrow(v, kF16, Overflow::Saturate); return;
    case DType::BF16: tensor.as<uint16_t>()[i] = encode_narrow(v, kBf16, Overflow::Saturate); return;
    case DType::E4M3:
      tensor.as<uint8_t>()[i] = static_cast<uint8_t>(encode_narrow(v, kE4m3, Overflow::Saturate));
      return;
    case DType::E5M2:
      tensor.as<uint8_t>()[i] = static_cast<uint8_t>(encode_narrow(v, kE5m2, Overflow::Saturate));
      return;
    default: return;
  }
}

void store_integer(HostTensor& tensor, int64_t i, int64_t v) {
  std::memcpy(tensor.data.data() + i * bytes(tensor.dtype), &v, static_cast<size_t>(bytes(tensor.dtype)));
}

void fill_random(HostTensor& tensor, std::mt19937_64 random, DataKind kind) {
  const int64_t n = tensor.numel();
  std::normal_distribution<double> normal;
  for (int64_t i = 0; i < n; ++i) {
    if (is_float(tensor.dtype)) {
      store_real(tensor, i, kind == DataKind::Normal ? normal(random) : static_cast<double>(random() % 9) - 4);
    } else if (tensor.dtype == DType::Bool) {
      store_integer(tensor, i, static_cast<int64_t>(random() % 2));
    } else {
      store_integer(tensor, i, static_cast<int64_t>(random() % 9) - (is_signed_int(tensor.dtype) ? 4 : 0));
    }
  }
}

/// The number that `text` is, exactly: of an integer type a whole number (decimal, or hexadecimal with 0x) that it
/// holds.
Result<ir::ConstantAttributes> parse_scalar(const ir::ScalarArgument& scalar, const std::string& text) {
  const DType dtype = scalar.value->type.dtype;
  const auto refuse = [&](std::string help) {
    return fail(DiagnosticCode::E1415, fmt::format("{}: '{}' is no {}", scalar.value->name, text, name(dtype)), help);
  };
  if (is_float(dtype)) {
    char* end = nullptr;
    const double real = std::strtod(text.c_str(), &end);
    if (text.empty() || *end) return refuse("write a number, such as 0.125 or 1e-5");
    return ir::ConstantAttributes{.real = real};
  }
  if (dtype == DType::Bool && (text == "true" || text == "false"))
    return ir::ConstantAttributes{.integer = text == "true"};
  const std::string_view digits = std::string_view(text).substr(text.starts_with('-'));
  const bool is_hex = digits.starts_with("0x");
  const char *first = digits.data() + (is_hex ? 2 : 0), *last = digits.data() + digits.size();
  uint64_t magnitude = 0;
  const auto [end, error] = std::from_chars(first, last, magnitude, is_hex ? 16 : 10);
  const int width = dtype == DType::Bool ? 1 : bits(dtype) - is_signed_int(dtype);
  const uint64_t most = width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
  const bool is_negative = digits.size() < text.size();
  const std::string range = fmt::format("write a whole number from {} to {}",
                                        is_signed_int(dtype) ? fmt::format("-{}", most + 1) : "0", most);
  if (error != std::errc() || end != last) return refuse(range);
  if (magnitude > (is_negative ? (is_signed_int(dtype) ? most + 1 : 0) : most)) return refuse(range);
  return ir::ConstantAttributes{.integer = static_cast<int64_t>(is_negative ? 0 - magnitude : magnitude)};
}

Result<ir::ConstantAttributes> scalar_value(const ir::ScalarArgument& scalar, const ArrayOptions& options,
                                            uint64_t seed) {
  const std::string& name = scalar.value->name;
  const bool real = is_float(scalar.value->type.dtype);
  if (const auto given = options.scalars.find(name); given != options.scalars.end())
    return parse_scalar(scalar, given->second);
  if (scalar.default_value) return *scalar.default_value;
  std::mt19937_64 random = stream_of(seed, name);
  return real ? ir::ConstantAttributes{.real = static_cast<double>(random() % 8 + 1) / 8}
              : ir::ConstantAttributes{.integer = static_cast<int64_t>(random() % 4 + 1)};
}

tw_scalar to_scalar(const ir::ScalarArgument& scalar, const ir::ConstantAttributes& value) {
  tw_scalar out{};
  if (is_float(scalar.value->type.dtype)) {
    out.kind = TW_SCALAR_FLOAT;
    out.value.floating = value.real;
  } else {
    out.kind = TW_SCALAR_INTEGER;
    out.value.integer = value.integer;
  }
  return out;
}

/// Refuses arrays that this machine's memory cannot hold, before any is made.
class MemoryNeed {
 public:
  void add(const std::string& name, DType dtype, const std::vector<int64_t>& shape) {
    double bytes_needed = bytes(dtype);
    for (const int64_t extent : shape) bytes_needed *= static_cast<double>(extent);
    total_ += bytes_needed;
    if (bytes_needed <= largest_) return;
    largest_ = bytes_needed;
    largest_argument_ = fmt::format("{} is {}, {}", name, to_string(dtype, shape), in_gib(bytes_needed));
  }
  Status check() const {
    const double memory = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
    if (total_ <= memory) return {};
    return fail(DiagnosticCode::E1411,
                fmt::format("the arguments need {} of memory ({}); this machine has {}", in_gib(total_),
                            largest_argument_, in_gib(memory)),
                "give smaller sizes with --dim");
  }

 private:
  static std::string in_gib(double bytes) { return fmt::format("{:.1f} GiB", bytes / (1 << 30)); }

  double total_ = 0;
  double largest_ = 0;
  std::string largest_argument_;
};

/// Every argument's shape, in order; refused when one is not known or all together do not fit.
Result<std::vector<std::vector<int64_t>>> argument_shapes(const ir::Kernel& kernel, const Dimensions& dims) {
  std::vector<std::vector<int64_t>> out;
  MemoryNeed need;
  for (const ir::TensorArgument& tensor : kernel.tensors) {
    if (tensor.direction == ir::Direction::Workspace) continue;
    const std::string& name = tensor.buffer->name;
    const auto shape = extents(kernel, tensor, dims);
    if (!shape) {
      return fail(DiagnosticCode::E1801, fmt::format("dimension {} (of argument {}) has no size", shape.error(), name),
                  fmt::format("give --dim {}=…, a file with --in, or an `example` line in the kernel", shape.error()));
    }
    need.add(name, tensor.buffer->type.dtype, *shape);
    out.push_back(*shape);
  }
  if (Status fits = need.check(); !fits) return std::unexpected(fits.error());
  return out;
}

}  // namespace

Diagnostic to_diagnostic(const runtime::Failure& failure) {
  Diagnostic out;
  out.code = static_cast<DiagnosticCode>(failure.code);
  out.message = failure.message;
  return out;
}

Result<Dimensions> resolve_dimensions(const ir::Kernel& kernel, const ArrayOptions& options) {
  Dimensions dims;
  for (const ir::Dimension& d : kernel.dimensions) {
    if (d.constant) dims.emplace(d.name, *d.constant);
  }
  for (const auto& [name, size] : options.dims) {
    if (Status bound = bind_dimension(dims, name, size, "--dim"); !bound) return std::unexpected(bound.error());
  }
  for (const ir::TensorArgument& tensor : kernel.tensors) {
    const auto given = options.given.find(tensor.buffer->name);
    if (given == options.given.end()) continue;
    if (Status bound = bind_shape(kernel, tensor, given->second, dims); !bound) return std::unexpected(bound.error());
  }
  return dims;
}

Result<Arrays> make_arrays(const ir::Kernel& kernel, const ArrayOptions& options) {
  auto dims = resolve_dimensions(kernel, options);
  if (!dims) return std::unexpected(dims.error());
  const auto shapes = argument_shapes(kernel, *dims);
  if (!shapes) return std::unexpected(shapes.error());
  Arrays out;
  for (const ir::TensorArgument& tensor : kernel.tensors) {
    if (tensor.direction == ir::Direction::Workspace) continue;
    const std::string& name = tensor.buffer->name;
    const std::vector<int64_t>& shape = (*shapes)[out.tensors.size()];
    const auto given = options.given.find(name);
    if (given != options.given.end()) {
      if (given->second.shape != shape) {
        return fail(DiagnosticCode::E1802,
                    fmt::format("argument {} is {}, the kernel needs [{}]", name,
                                to_string(given->second.dtype, given->second.shape), fmt::join(shape, ", ")),
                    "all arguments and --dim must agree");
      }
      out.tensors.push_back(given->second);
    } else {
      out.tensors.push_back(zeros(tensor.buffer->type.dtype, shape));
      if (tensor.direction != ir::Direction::Out)
        fill_random(out.tensors.back(), stream_of(options.seed, name), options.data);
    }
    out.present.push_back(!tensor.optional || given != options.given.end());
  }
  for (const ir::ScalarArgument& scalar : kernel.scalars) {
    auto value = scalar_value(scalar, options, options.seed);
    if (!value) return std::unexpected(value.error());
    out.scalars.push_back(*value);
  }
  poison_outputs(kernel, out);
  return out;
}

void poison_outputs(const ir::Kernel& kernel, Arrays& arrays) {
  size_t position = 0;
  for (const ir::TensorArgument& tensor : kernel.tensors) {
    if (tensor.direction == ir::Direction::Workspace) continue;
    HostTensor& array = arrays.tensors[position++];
    if (tensor.direction != ir::Direction::Out) continue;
    if (is_float(array.dtype)) {
      for (int64_t i = 0; i < array.numel(); ++i) store_real(array, i, std::nan(""));
    } else {
      std::fill(array.data.begin(), array.data.end(), array.dtype == DType::Bool ? std::byte{1} : std::byte{0x5A});
    }
  }
}

Result<LoadedKernel> LoadedKernel::load(runtime::Device& device, const runtime::Artefact& artefact) {
  auto plan = runtime::Plan::load(device, artefact);
  if (!plan) return std::unexpected(to_diagnostic(plan.error()));
  LoadedKernel out;
  out.plan_ = std::make_unique<runtime::Plan>(std::move(*plan));
  return out;
}

Status LoadedKernel::run(const ir::Kernel& kernel, Arrays& arrays) {
  std::vector<tw_tensor> tensors;
  for (size_t i = 0; i < arrays.tensors.size(); ++i) {
    HostTensor& array = arrays.tensors[i];
    tensors.push_back({.data = array.data.data(),
                       .extents = array.shape.data(),
                       .strides = nullptr,
                       .dtype = static_cast<int32_t>(array.dtype),
                       .rank = static_cast<int32_t>(array.shape.size()),
                       .flags = arrays.present[i] ? 0u : TW_TENSOR_ABSENT,
                       .device = TW_CPU});
  }
  std::vector<tw_scalar> scalars;
  for (size_t i = 0; i < arrays.scalars.size(); ++i) scalars.push_back(to_scalar(kernel.scalars[i], arrays.scalars[i]));
  const tw_arguments arguments{tensors.data(), tensors.size(), scalars.data(), scalars.size()};
  const auto bytes = plan_->workspace_bytes(arguments);
  if (!bytes) return std::unexpected(to_diagnostic(bytes.error()));
  if (workspace_.size() < *bytes + 64) workspace_.resize(*bytes + 64);
  const auto base = (reinterpret_cast<uintptr_t>(workspace_.data()) + 63) / 64 * 64;
  const auto done = plan_->execute(arguments, reinterpret_cast<void*>(base), *bytes, nullptr);
  if (!done) return std::unexpected(to_diagnostic(done.error()));
  return {};
}

}  // namespace tilewright::driver
