// Pinned dispatch: which saved configuration serves a shape, and why; whatever is not verified takes the fallback.
//
// Guarantees: only buckets of a whole, unchanged record whose source, space, toolchain, architecture, device, driver
// and harness are those of this process are served; everything else is the fallback, with the reason; equal inputs give
// equal answers in every process. Does not: compile, time, or change anything.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tune/best_record.h"

namespace tilewright::dispatch {

/// What a bucket has to agree with, here and now.
struct Here {
  tune::Identity identity;
  std::string space_digest;
};

/// Works it out for a bucket: its candidate and space may have moved or gone.
using FindHere = std::function<Result<Here>(const tune::BestBucket&)>;

using Dims = std::vector<std::pair<std::string, int64_t>>;

struct Choice {
  const tune::BestBucket* bucket = nullptr;  ///< null: the fallback serves
  std::string why;                           ///< of the fallback
};

class Pinned {
 public:
  /// Never fails: a record that cannot be read or was changed leaves no bucket, and a notice says so.
  static Pinned open(const std::filesystem::path& record, const FindHere& find_here);

  /// The first bucket whose condition holds, when it was verified.
  Choice choose(const Dims& dims) const;

  const std::vector<std::string>& notices() const { return notices_; }  ///< why something is not served
  const std::string& record_digest() const { return digest_; }          ///< SHA-256 in the record; empty without one
  size_t verified() const;

 private:
  tune::BestRecord record_;
  std::vector<std::string> stale_;  ///< one per bucket; empty: verified
  std::vector<std::string> notices_;
  std::string digest_, trouble_;
};

/// The lines of `explain`: rule, record and hash, configuration or fallback.
std::string explain(const Pinned& pinned, const std::filesystem::path& record, const Dims& dims);

}  // namespace tilewright::dispatch
