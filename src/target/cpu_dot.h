// The integer dot product instructions of CPUs as data, with the reference body the interpreters run.
//
// Guarantees: rows are in the order of preference; exact modulo 2^32. Does not do: choosing operands' layout
// (plan/cpu), emitting the instruction (codegen/llvm/dot.h). Source: Intel 64 and IA-32 Architectures Software
// Developer's Manual 2.
#pragma once

#include <span>

#include "target/cpu.h"

namespace tilewright::target {

struct CpuDot {
  std::string_view name;
  DType a, b;  ///< element types of the two factors; sums are i32
  int terms;   ///< products per lane of the sum
  std::string_view feature;
};
std::span<const CpuDot> cpu_dots();

/// The preferred row this CPU has for exact products of i8; null when it has none.
const CpuDot* choose_dot(const Cpu& cpu);

/// One lane: sum + a[0]·b[0] + … + a[terms-1]·b[terms-1].
int32_t dot_lane(std::span<const int64_t> a, std::span<const int64_t> b, int32_t sum);

}  // namespace tilewright::target
