// Where kernels of a GPU leave what assert and print have to say: one buffer of the device, read after synchronising.
//
// Bytes 0..3: 1 once an assertion has claimed the record. Bytes 4..7: words that prints asked for, those that did not
// fit included. From kRecord: id (i32), index count (i32), block (i64), six indices (i64). From kPrints: entries of
// 8-byte words, first id + 1 (low half) and value count (high half), then the values: i64, or the bits of an f64.
#pragma once

#include <cstdint>

namespace tilewright::runtime::report {

inline constexpr int kClaimed = 0;
inline constexpr int kPrintedWords = 4;
inline constexpr int kRecord = 16;
inline constexpr int kMostIndices = 6;
inline constexpr int kPrints = 128;
inline constexpr int kPrintCapacity = 8192;  ///< words
inline constexpr int kBytes = kPrints + 8 * kPrintCapacity;

}  // namespace tilewright::runtime::report
