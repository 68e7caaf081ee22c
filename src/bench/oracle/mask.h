// Which keys a query may see, as a specification, an interval per row, and a bitmap with a digest.
//
// The harness builds masks from here and nowhere else, so a candidate or a reference cannot bring its own idea of
// "causal". Query i (of sq) sits at position i + sk − sq for the bottom-right kinds, at i for the top-left kind.
//   none           every key
//   causal-br      j ≤ i + sk − sq     (the usual meaning with a KV cache)
//   causal-tl      j ≤ i
//   window-W       causal-br and j > i + sk − sq − W   (W keys at most, the query's own among them)
//   local-L-R      i + sk − sq − L ≤ j ≤ i + sk − sq + R
//   prefix-P       j < P, or causal-br
// With per-sequence lengths, sq and sk above are that sequence's own; rows and keys beyond them see and are nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"

namespace tilewright::bench {

enum class MaskKind : uint8_t { None, CausalBottomRight, CausalTopLeft, Window, Local, Prefix };

struct Mask {
  MaskKind kind = MaskKind::None;
  int64_t first = 0;   ///< W, L or P
  int64_t second = 0;  ///< R
  friend bool operator==(const Mask&, const Mask&) = default;
};
Result<Mask> parse_mask(std::string_view text);  ///< E1603
std::string to_string(const Mask& mask);

/// Real lengths of one sequence of a padded batch.
struct SequenceLengths {
  int64_t q = 0;
  int64_t k = 0;
  friend bool operator==(const SequenceLengths&, const SequenceLengths&) = default;
};
/// First 8 hex digits of the SHA-256 of "q,k;q,k;…".
std::string lengths_digest(const std::vector<SequenceLengths>& lengths);

/// Keys [begin, end) a query sees; empty when begin == end. Every kind above is one interval per row.
struct KeyRange {
  int64_t begin = 0;
  int64_t end = 0;
};
KeyRange visible_keys(const Mask& mask, SequenceLengths lengths, int64_t query);

/// Row-major bits, batch × sq × ceil(sk/8) bytes, key j is bit j%8 of byte j/8. One plane when `lengths` is empty.
struct MaskBitmap {
  std::string bytes;
  std::string digest;       ///< SHA-256 of the bytes
  int64_t valid_pairs = 0;  ///< set bits, over the whole batch of `batch` sequences
};
MaskBitmap build_bitmap(const Mask& mask, int64_t batch, int64_t sq, int64_t sk,
                        const std::vector<SequenceLengths>& lengths);

}  // namespace tilewright::bench
