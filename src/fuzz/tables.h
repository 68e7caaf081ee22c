// The third comparison: tables. Every code of the narrow types and the hard cases of the wide ones through every
// conversion; every pair of 8-bit integers through every integer operation; special floats (zeros, subnormals,
// infinities, NaN, extremes) through every float operation, comparison and function.
//
// Conversions, integer operations and correctly rounded float operations must equal the interpreter's result; functions
// must lie within their budget (docs/math.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fuzz/subject.h"

namespace tilewright::fuzz {

struct TableResult {
  std::string name;  ///< "conversions from f16"
  int64_t checked = 0;
  int64_t wrong = 0;
  std::string first;  ///< the first wrong entry, or why the table could not run
};

/// Every pair of dtypes: all codes of at most 16 bits; of wider ones, what lies at and beside every halfway point and
/// limit.
std::vector<TableResult> run_conversion_tables(Subject& subject, const Plant& plant = {});

std::vector<TableResult> run_tables(Subject& subject, const Plant& plant = {});

}  // namespace tilewright::fuzz
