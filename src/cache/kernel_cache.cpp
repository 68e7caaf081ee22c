#include "cache/kernel_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <system_error>

namespace tilewright::cache {

KernelCache::KernelCache(CacheOptions options) : options_(std::move(options)) {
  if (options_.folder.empty()) return;
  Result<Folder> folder = Folder::open(options_.folder);
  if (folder) {
    folder_ = std::move(*folder);
  } else {
    note(folder.error());
  }
}

Result<Found> KernelCache::get_or_make(const Key128& key, const Make& make) {
  std::unique_lock lock(mutex_);
  if (auto bytes = recall(key)) return Found{std::move(bytes), Source::Memory};
  if (const auto running = pending_.find(key); running != pending_.end()) {
    const std::shared_ptr<Pending> other = running->second;
    finished_.wait(lock, [&] { return other->is_done; });
    return other->result;
  }
  const auto own = std::make_shared<Pending>();
  pending_[key] = own;
  lock.unlock();
  Result<Found> result;
  try {
    result = make_once(key, make);
  } catch (const std::exception& error) {  // those who wait must hear of it
    result = fail(DiagnosticCode::E9001, fmt::format("making a cache entry failed: {}", error.what()));
  }
  lock.lock();
  if (result) remember(key, result->bytes);
  own->result = result;
  own->is_done = true;
  pending_.erase(key);
  finished_.notify_all();
  return result;
}

/// Runs on the one thread of this process that is responsible for `key`.
Result<Found> KernelCache::make_once(const Key128& key, const Make& make) {
  if (auto bytes = read_disk(key)) return Found{std::move(bytes), Source::Disk};
  KeyLock held = folder_ ? folder_->lock(key) : KeyLock();
  if (held.is_held()) {  // another process may have finished while we waited
    if (auto bytes = read_disk(key)) return Found{std::move(bytes), Source::Disk};
  }
  Result<std::string> made = make();
  if (!made) return std::unexpected(made.error());
  const auto bytes = std::make_shared<const std::string>(std::move(*made));
  keep(key, bytes, std::move(held));
  const std::lock_guard lock(mutex_);
  ++counts_.made;
  return Found{bytes, Source::Made};
}

/// `held` is let go only when the entry can be read.
void KernelCache::keep(const Key128& key, std::shared_ptr<const std::string> bytes, KeyLock held) {
  if (options_.stores_behind && folder_) {
    try {
      std::thread thread([this, key, bytes, held = std::move(held)] { store(key, *bytes); });
      const std::lock_guard lock(mutex_);
      storing_.push_back(std::move(thread));
      return;
    } catch (const std::system_error&) {  // no thread to be had
    }
  }
  store(key, *bytes);
}

void KernelCache::finish_storing() const {
  std::vector<std::thread> threads;
  {
    const std::lock_guard lock(mutex_);
    threads.swap(storing_);
  }
  for (std::thread& thread : threads) thread.join();
}

std::shared_ptr<const std::string> KernelCache::find(const Key128& key) {
  {
    const std::lock_guard lock(mutex_);
    if (auto bytes = recall(key)) return bytes;
  }
  auto bytes = read_disk(key);
  if (bytes) {
    const std::lock_guard lock(mutex_);
    remember(key, bytes);
  }
  return bytes;
}

std::shared_ptr<const std::string> KernelCache::read_disk(const Key128& key) {
  if (!folder_) return nullptr;
  bool was_damaged = false;
  std::optional<std::string> bytes = folder_->read(key, was_damaged);
  if (was_damaged) {
    Diagnostic diagnostic;
    diagnostic.code = DiagnosticCode::E3103;
    diagnostic.message =
        fmt::format("the cache entry {} was damaged: set aside in {} and made anew", to_hex(key), folder_->path());
    note(std::move(diagnostic));
  }
  const std::lock_guard lock(mutex_);
  counts_.damaged += was_damaged;
  counts_.disk_hits += bytes.has_value();
  return bytes ? std::make_shared<const std::string>(std::move(*bytes)) : nullptr;
}

void KernelCache::store(const Key128& key, const std::string& bytes) {
  if (!folder_ || static_cast<int64_t>(bytes.size()) > options_.disk_limit_bytes) return;
  if (Status status = folder_->publish(key, bytes); !status) {
    note(status.error());
    return;
  }
  bool must_look;
  {
    const std::lock_guard lock(mutex_);
    if (disk_bytes_ >= 0) disk_bytes_ += static_cast<int64_t>(bytes.size());
    must_look = disk_bytes_ < 0 || disk_bytes_ > options_.disk_limit_bytes;
  }
  if (!must_look) return;
  const Result<FolderUse> use = folder_->use();
  int64_t left = use ? use->bytes : 0;
  if (left > options_.disk_limit_bytes) left = folder_->shrink(options_.disk_limit_bytes / 10 * 9).value_or(left);
  const std::lock_guard lock(mutex_);
  disk_bytes_ = left;
}

std::shared_ptr<const std::string> KernelCache::recall(const Key128& key) {
  const auto found = index_.find(key);
  if (found == index_.end()) return nullptr;
  recent_.splice(recent_.begin(), recent_, found->second);
  ++counts_.memory_hits;
  return found->second->bytes;
}

void KernelCache::remember(const Key128& key, std::shared_ptr<const std::string> bytes) {
  if (index_.contains(key)) return;
  remembered_bytes_ += static_cast<int64_t>(bytes->size());
  recent_.push_front({key, std::move(bytes)});
  index_[key] = recent_.begin();
  while (remembered_bytes_ > options_.memory_limit_bytes && !recent_.empty()) {
    remembered_bytes_ -= static_cast<int64_t>(recent_.back().bytes->size());
    index_.erase(recent_.back().key);
    recent_.pop_back();
  }
}

CacheCounts KernelCache::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

std::vector<Diagnostic> KernelCache::notices() const {
  finish_storing();
  const std::lock_guard lock(mutex_);
  return notices_;
}

void KernelCache::note(Diagnostic diagnostic) {
  constexpr size_t kMost = 32;
  diagnostic.severity = Severity::Warning;  // everything works without the disk
  const std::lock_guard lock(mutex_);
  const bool is_known =
      std::ranges::any_of(notices_, [&](const Diagnostic& known) { return known.message == diagnostic.message; });
  if (!is_known && notices_.size() < kMost) notices_.push_back(std::move(diagnostic));
}

}  // namespace tilewright::cache
