#include "driver/check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstring>

#include "base/narrow_float.h"
#include "interp/compare.h"

namespace tilewright::driver {
namespace {

template <typename T>
double read(const HostTensor& tensor, int64_t i) {
  T v;
  std::memcpy(&v, tensor.data.data() + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return static_cast<double>(v);
}

uint16_t read_code(const HostTensor& tensor, int64_t i) {
  return bytes(tensor.dtype) == 1 ? static_cast<uint16_t>(tensor.as<uint8_t>()[i]) : tensor.as<uint16_t>()[i];
}

std::string position(const HostTensor& tensor, int64_t i) {
  std::vector<int64_t> at(tensor.shape.size());
  for (size_t d = at.size(); d-- > 0;) at[d] = i % tensor.shape[d], i /= tensor.shape[d];
  return fmt::format("[{}]", fmt::join(at, ", "));
}

interp::Call interpreter_call(const ir::Kernel& kernel, Arrays& arrays) {
  interp::Call call;
  size_t position = 0;
  for (const ir::TensorArgument& tensor : kernel.tensors) {
    interp::TensorRef ref{.dtype = tensor.buffer->type.dtype};
    if (tensor.direction != ir::Direction::Workspace) {
      HostTensor& array = arrays.tensors[position];
      ref.shape = array.shape;
      ref.data = arrays.present[position] ? array.data.data() : nullptr;
      ++position;
    }
    call.tensors.push_back(std::move(ref));
  }
  call.scalars = arrays.scalars;
  return call;
}

OutputCheck compare_output(const std::string& name, const HostTensor& got, const interp::Expected& want) {
  // Only read there.
  void* const data = const_cast<std::byte*>(got.data.data());
  const interp::Difference found = interp::compare({.dtype = got.dtype, .data = data, .shape = got.shape}, want);
  OutputCheck out{.argument = name,
                  .elements = got.numel(),
                  .decided = found.compared - found.tainted,
                  .mismatches = found.mismatched,
                  .tainted = found.tainted,
                  .unwritten = got.numel() - found.compared,
                  .worst_error = found.worst_error,
                  .worst_ratio = found.worst_ratio};
  if (!found.first.empty()) out.first_mismatch = name + found.first;
  return out;
}

}  // namespace

double element(const HostTensor& tensor, int64_t i) {
  switch (tensor.dtype) {
    case DType::Bool:
    case DType::U8: return read<uint8_t>(tensor, i);
    case DType::I8: return read<int8_t>(tensor, i);
    case DType::I16: return read<int16_t>(tensor, i);
    case DType::I32: return read<int32_t>(tensor, i);
    case DType::I64: return read<int64_t>(tensor, i);
    case DType::U16: return read<uint16_t>(tensor, i);
    case DType::U32: return read<uint32_t>(tensor, i);
    case DType::U64: return read<uint64_t>(tensor, i);
    case DType::F32: return read<float>(tensor, i);
    case DType::F64: return read<double>(tensor, i);
    case DType::F16: return decode_narrow(read_code(tensor, i), kF16);
    case DType::BF16: return decode_narrow(read_code(tensor, i), kBf16);
    case DType::E4M3: return decode_narrow(read_code(tensor, i), kE4m3);
    case DType::E5M2: return decode_narrow(read_code(tensor, i), kE5m2);
  }
  return 0;
}

bool CheckReport::passed() const {
  for (const Diagnostic& finding : findings) {
    if (finding.severity == Severity::Error) return false;
  }
  for (const OutputCheck& output : outputs) {
    if (!output.passed()) return false;
  }
  return true;
}

Result<CheckReport> check_results(const ir::Kernel& kernel, const Arrays& arrays, const Arrays& computed) {
  Arrays checked = arrays;
  auto program = interp::run(kernel, interpreter_call(kernel, checked), {.mode = interp::Mode::Values, .check = true});
  if (!program) return std::unexpected(program.error());
  Arrays bounded = arrays;
  auto oracle = interp::run(kernel, interpreter_call(kernel, bounded), {.mode = interp::Mode::Bounded});
  if (!oracle) return std::unexpected(oracle.error());
  CheckReport report{.findings = std::move(program->findings),
                     .inconclusive = oracle->inconclusive,
                     .printed = std::move(program->printed)};
  size_t position = 0;
  for (size_t i = 0; i < kernel.tensors.size(); ++i) {
    const ir::TensorArgument& tensor = kernel.tensors[i];
    if (tensor.direction == ir::Direction::Workspace) continue;
    const size_t at = position++;
    if (tensor.direction == ir::Direction::In || report.inconclusive) continue;
    report.outputs.push_back(compare_output(tensor.buffer->name, computed.tensors[at], oracle->expected[i]));
    report.expected.push_back(std::move(oracle->expected[i]));
  }
  return report;
}

OutputCheck compare_with(const std::string& argument, const HostTensor& got, const HostTensor& want) {
  static constexpr double kTolerance[] = {1e-12, 1e-5, 1e-2, 1e-3, 0.1};
  double tolerance = 0;
  switch (got.dtype) {
    case DType::F64: tolerance = kTolerance[0]; break;
    case DType::F32: tolerance = kTolerance[1]; break;
    case DType::BF16: tolerance = kTolerance[2]; break;
    case DType::F16: tolerance = kTolerance[3]; break;
    case DType::E4M3:
    case DType::E5M2: tolerance = kTolerance[4]; break;
    default: break;
  }
  OutputCheck out{.argument = argument, .elements = got.numel(), .decided = got.numel()};
  for (int64_t i = 0; i < got.numel(); ++i) {
    const double value = element(got, i), wanted = element(want, i);
    if (value == wanted || (std::isnan(value) && std::isnan(wanted))) continue;
    const double error = std::fabs(value - wanted), bound = tolerance * std::max(1.0, std::fabs(wanted));
    out.worst_error = std::fmax(out.worst_error, error);
    if (bound > 0) out.worst_ratio = std::fmax(out.worst_ratio, error / bound);
    if (error <= bound || out.mismatches++ > 0) continue;
    out.first_mismatch = fmt::format("{}{} is {:.9g}, expected {:.9g} (tolerance {:g} relative)", argument,
                                     position(got, i), value, wanted, tolerance);
  }
  return out;
}

}  // namespace tilewright::driver
