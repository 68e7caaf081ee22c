// Which kernel shape serves a prompt: the key policy of a service.
//
// `exact` keys a request by its prompt length; `padN` rounds up to a multiple of N; `pow2` to a power of two;
// `buckets=FILE` to the smallest listed size that fits (beyond the largest, up to a multiple of the largest).
// Guarantee: key(p) >= p, and key is monotone in p.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"

namespace tilewright::traffic {

class KeyPolicy {
 public:
  /// Accepts "exact", "pow2", "pad<N>" and "buckets=FILE". FILE holds one size a line, or is a snapshot's JSON.
  static Result<KeyPolicy> parse(const std::string& text);
  static Result<KeyPolicy> from_buckets(std::vector<int64_t> sizes, std::string name);

  int64_t key(int64_t prompt) const;
  const std::string& name() const { return name_; }

 private:
  enum class Kind : uint8_t { Exact, Pad, Pow2, Buckets };
  Kind kind_ = Kind::Exact;
  int64_t multiple_ = 1;
  std::vector<int64_t> buckets_;  ///< ascending, distinct
  std::string name_ = "exact";
};

}  // namespace tilewright::traffic
