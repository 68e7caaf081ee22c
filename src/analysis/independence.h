// Proof that the iterations of a `parallel` are independent.
//
// Every element that an iteration writes must be touched by no other iteration, except by atomics among themselves. For
// each buffer that a `parallel` stores to, all its accesses there must use the same subscripts, and these must name a
// different element in every iteration: a subscript that holds one variable, a mixed-radix sum of several
// (i·8 + j, j < 8), or x // c with x % c determine their variables, until all are determined.
//
// Guarantees: sound as long as subscripts do not overflow. Does not do: completeness; subscripts that depend on loaded
// values or on branches are left to `run --check`.
#pragma once

#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "ir/ir.h"

namespace tilewright::analysis {

/// A `parallel` that could not be proven.
struct Unproven {
  const ir::Op* parallel = nullptr;
  const ir::Op* access = nullptr;  ///< the first access that stands in the way
  std::string reason;              ///< "X is written at [i // 2]: two iterations may name one element"
};

/// Empty when `parallel` is proven independent.
std::vector<Unproven> unproven_accesses(const ir::Op& parallel);

/// One note (E1214) per `parallel` of the kernel that could not be proven, at its line.
std::vector<Diagnostic> independence_notes(const ir::Kernel& kernel);

}  // namespace tilewright::analysis
