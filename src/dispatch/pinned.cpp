#include "dispatch/pinned.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::dispatch {
namespace {

std::string shape_text(const Dims& dims) {
  std::string text;
  for (const auto& [name, extent] : dims) text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", name, extent);
  return text;
}

}  // namespace

Pinned Pinned::open(const std::filesystem::path& record, const FindHere& find_here) {
  Pinned out;
  Result<tune::BestRecord> loaded = tune::load_record(record);
  if (!loaded) {
    out.trouble_ = loaded.error().message;
    out.notices_.push_back(fmt::format("{}: {}; the fallback serves", record.string(), out.trouble_));
    return out;
  }
  out.record_ = *std::move(loaded);
  out.digest_ = tune::record_digest(out.record_);
  for (const tune::BestBucket& bucket : out.record_.buckets) {
    const Result<Here> here = find_here(bucket);
    Status fresh =
        here ? tune::verify_bucket(bucket, here->identity, here->space_digest) : Status(std::unexpected(here.error()));
    out.stale_.push_back(fresh ? "" : fresh.error().message);
    if (!fresh)
      out.notices_.push_back(fmt::format("{}: {}; the fallback serves", record.string(), fresh.error().message));
  }
  return out;
}

Choice Pinned::choose(const Dims& dims) const {
  if (!trouble_.empty()) return {nullptr, trouble_};
  const tune::BestBucket* bucket = record_.find(dims);
  if (!bucket) return {nullptr, fmt::format("no bucket holds {}", shape_text(dims))};
  const std::string& stale = stale_[static_cast<size_t>(bucket - record_.buckets.data())];
  return stale.empty() ? Choice{bucket, ""} : Choice{nullptr, stale};
}

size_t Pinned::verified() const {
  return static_cast<size_t>(std::ranges::count_if(stale_, [](const std::string& why) { return why.empty(); }));
}

std::string explain(const Pinned& pinned, const std::filesystem::path& record, const Dims& dims) {
  const Choice choice = pinned.choose(dims);
  std::string text = fmt::format("shape   {}\n", shape_text(dims));
  if (choice.bucket) {
    text += fmt::format("rule    {}\nserves  {}\n", choice.bucket->when, tune::to_string(choice.bucket->config));
  } else {
    text += fmt::format("rule    none: {}\nserves  the fallback\n", choice.why);
  }
  return text + fmt::format("record  {} sha256 {}\n", record.string(),
                            pinned.record_digest().empty() ? "none" : pinned.record_digest());
}

}  // namespace tilewright::dispatch
