#include "tools/compiler/reference_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/narrow_float.h"
#include "interp/bounded.h"
#include "kernels/reference.h"

namespace tilewright::tools {
namespace {

using kernels::DoubleTensor;
using kernels::Precision;

constexpr double kSlack = 1e-5;  // of max(1, |reference|): constants such as log2(e) written with few digits

std::map<std::string, DoubleTensor> arguments_of(const driver::Program& program, const driver::Arrays& inputs) {
  std::map<std::string, DoubleTensor> out;
  for (const auto& [name, size] : program.configuration.dims)
    out[name] = DoubleTensor::scalar(static_cast<double>(size));
  size_t position = 0;
  for (const ir::TensorArgument& tensor : program.kernel.tensors) {
    if (tensor.direction == ir::Direction::Workspace) continue;
    const HostTensor& array = inputs.tensors[position];
    const bool is_read = tensor.direction != ir::Direction::Out && inputs.present[position];
    ++position;
    if (!is_read) continue;
    DoubleTensor made = DoubleTensor::zeros(array.shape);
    load_doubles(array.dtype, array.data.data(), made.data.data(), made.data.size());
    out[tensor.buffer->name] = std::move(made);
  }
  for (size_t i = 0; i < program.kernel.scalars.size(); ++i) {
    const ir::Value& value = *program.kernel.scalars[i].value;
    const ir::ConstantAttributes& bits = inputs.scalars[i];
    out[value.name] = DoubleTensor::scalar(is_float(value.type.dtype) ? bits.real : static_cast<double>(bits.integer));
  }
  return out;
}

std::string position_of(const std::vector<int64_t>& shape, int64_t i) {
  std::vector<int64_t> at(shape.size());
  for (size_t d = at.size(); d-- > 0;) at[d] = i % shape[d], i /= shape[d];
  return fmt::format("[{}]", fmt::join(at, ", "));
}

/// Half a unit in the last place of a storage float near `x`: the reference is not rounded when the output is stored.
double rounding_at(DType dtype, double x) {
  const NarrowFormat* const format = narrow_format(dtype);
  if (!format) return 0;
  const double least = std::ldexp(1.0, 1 - format->bias());  // the least normal number; below it steps are even
  return std::ldexp(std::fmax(std::fabs(x), least), -format->mantissa_bits - 1);
}

ReferenceCheck compare(const std::string& argument, const lang::Reference& reference, const DoubleTensor& want,
                       const HostTensor& got, const interp::Column& bounds) {
  ReferenceCheck out{.argument = argument, .reference = lang::to_string(reference)};
  for (int64_t i = 0; i < got.numel(); ++i) {
    const double bound = bounds.is_real() ? bounds.bound_at(i) : 0;
    if (!(bound < interp::kUnknown) || (!bounds.is_real() && bounds.taint_at(i))) continue;
    ++out.compared;
    const double value = driver::element(got, i), wanted = want.data[static_cast<size_t>(i)];
    if (value == wanted || (std::isnan(value) && std::isnan(wanted))) continue;
    const double error = std::fabs(value - wanted);
    if (std::isfinite(error)) out.worst_error = std::fmax(out.worst_error, error);
    const double largest = is_float(got.dtype) ? largest_finite(got.dtype) : 0;
    const bool overflowed = is_float(got.dtype) && std::isinf(value) && std::fabs(wanted) + 2 * bound > largest;
    const double slack = bounds.is_real() ? kSlack * std::fmax(1, std::fabs(wanted)) : 0;
    if (overflowed || error <= 2 * bound + slack + rounding_at(got.dtype, wanted)) continue;
    if (out.differing++ > 0) continue;
    out.first =
        fmt::format("{}{} is {:.9g}, the reference says {:.9g}", argument, position_of(got.shape, i), value, wanted);
  }
  return out;
}

/// Results between two words may be kept as the inputs are.
Precision precision_of(const ir::Kernel& kernel) {
  Precision out;
  for (const ir::TensorArgument& tensor : kernel.tensors) {
    if (tensor.direction != ir::Direction::In || !is_float(tensor.buffer->type.dtype)) continue;
    out.kept = tensor.buffer->type.dtype;
    out.compute = compute_type(out.kept);
    break;
  }
  return out;
}

Diagnostic at_kernel(Diagnostic d, const driver::Program& program) {
  if (!d.location.is_known()) d.location = program.info.location;
  return d;
}

std::vector<const ir::TensorArgument*> outputs_of(const ir::Kernel& kernel) {
  std::vector<const ir::TensorArgument*> out;
  for (const ir::TensorArgument& t : kernel.tensors) {
    if (t.direction == ir::Direction::Out) out.push_back(&t);
  }
  return out;
}

}  // namespace

Status check_reference_words(const driver::Program& program) {
  const auto& references = program.info.references;
  if (references.empty()) return {};
  std::vector<std::string> names = program.info.dims;
  for (const lang::ArgumentInfo& a : program.info.arguments) names.push_back(a.name);
  for (const lang::Reference& reference : references) {
    if (Status known = kernels::check_words(reference, names); !known)
      return std::unexpected(at_kernel(known.error(), program));
  }
  const size_t outputs = outputs_of(program.kernel).size();
  if (references.size() == outputs) return {};
  return fail_at(DiagnosticCode::E1080, references.back().location,
                 fmt::format("kernel `{}` has {} output{} and {} reference{}", program.info.name, outputs,
                             outputs == 1 ? "" : "s", references.size(), references.size() == 1 ? "" : "s"),
                 "one reference per output, in their order; an inout argument has none");
}

Result<std::vector<ReferenceCheck>> compare_with_reference(const driver::Program& program, const driver::Arrays& inputs,
                                                           const driver::Arrays& computed,
                                                           const driver::CheckReport& check) {
  std::vector<ReferenceCheck> out;
  if (program.info.references.empty() || check.inconclusive) return out;
  const auto arguments = arguments_of(program, inputs);
  size_t position = 0, next = 0, output = 0;
  for (const ir::TensorArgument& tensor : program.kernel.tensors) {
    if (tensor.direction == ir::Direction::Workspace) continue;
    const HostTensor& got = computed.tensors[position++];
    if (tensor.direction == ir::Direction::In) continue;
    const interp::Column& bounds = check.expected[output++].elements;
    if (tensor.direction != ir::Direction::Out) continue;
    const lang::Reference& reference = program.info.references[next++];
    const auto want = kernels::evaluate_reference(reference, arguments);
    if (!want) return std::unexpected(at_kernel(want.error(), program));
    if (want->shape != got.shape) {
      return fail_at(DiagnosticCode::E1080, reference.location,
                     fmt::format("reference {} gives [{}], but {} is [{}]", lang::to_string(reference),
                                 fmt::join(want->shape, ", "), tensor.buffer->name, fmt::join(got.shape, ", ")),
                     "the reference computes the whole output");
    }
    out.push_back(compare(tensor.buffer->name, reference, *want, got, bounds));
    const Precision precision = precision_of(program.kernel);
    if (!out.back().differing || !narrow_format(precision.kept)) continue;
    // Storage floats between two words, such as weights that are dequantised for a product, are rounded.
    const auto declared = kernels::evaluate_declared(reference, arguments, precision);
    if (!declared) continue;
    ReferenceCheck rounded = compare(tensor.buffer->name, reference, *declared, got, bounds);
    rounded.reference += fmt::format(", rounded to {} between its words,", name(precision.kept));
    if (!rounded.differing) out.back() = std::move(rounded);
  }
  return out;
}

}  // namespace tilewright::tools
