// Bytes under content keys: memory in front of a folder. Knows nothing of kernels beyond their key.
//
// get_or_make() makes a key's bytes once, however many threads and processes ask at the same time; the others wait and
// get the same bytes. The disk is an aid: when it cannot be used (wrong owner, read-only, full, missing) everything
// still works, from memory, and notices() says why. Entries are checked by digest before they are handed out.
// Thread-safe.
#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/diagnostic.h"
#include "base/hash.h"
#include "cache/folder.h"

namespace tilewright::cache {

struct CacheOptions {
  std::string folder = default_folder();          ///< empty: memory only
  int64_t disk_limit_bytes = int64_t{512} << 20;  ///< least recently used entries go first
  int64_t memory_limit_bytes = int64_t{64} << 20;
  /// Entries go to the disk on a thread of their own while the caller goes on; the destructor and notices() wait for
  /// them.
  bool stores_behind = false;
};

enum class Source : uint8_t { Memory, Disk, Made };

struct Found {
  std::shared_ptr<const std::string> bytes;
  Source source = Source::Made;
};

/// What this object did since it was opened.
struct CacheCounts {
  int64_t memory_hits = 0;
  int64_t disk_hits = 0;
  int64_t made = 0;
  int64_t damaged = 0;
};

class KernelCache {
 public:
  explicit KernelCache(CacheOptions options = {});
  KernelCache(const KernelCache&) = delete;
  KernelCache& operator=(const KernelCache&) = delete;
  ~KernelCache() { finish_storing(); }

  using Make = std::function<Result<std::string>()>;
  /// `make` runs without any lock of this process held; its failure goes to everybody who waits for the key.
  Result<Found> get_or_make(const Key128& key, const Make& make);

  /// Nothing is made: null on a miss.
  std::shared_ptr<const std::string> find(const Key128& key);

  /// The folder in use, or nothing.
  const Folder* folder() const { return folder_ ? &*folder_ : nullptr; }
  CacheCounts counts() const;
  /// Why the disk is not used or an entry was set aside; each thing once.
  std::vector<Diagnostic> notices() const;

 private:
  struct Pending {
    bool is_done = false;
    Result<Found> result;
  };
  struct Remembered {
    Key128 key;
    std::shared_ptr<const std::string> bytes;
  };

  std::shared_ptr<const std::string> recall(const Key128& key);
  void remember(const Key128& key, std::shared_ptr<const std::string> bytes);
  std::shared_ptr<const std::string> read_disk(const Key128& key);
  Result<Found> make_once(const Key128& key, const Make& make);
  void keep(const Key128& key, std::shared_ptr<const std::string> bytes, KeyLock held);
  void store(const Key128& key, const std::string& bytes);
  void finish_storing() const;
  void note(Diagnostic diagnostic);

  CacheOptions options_;
  std::optional<Folder> folder_;

  mutable std::mutex mutex_;
  std::condition_variable finished_;
  std::map<Key128, std::shared_ptr<Pending>> pending_;
  std::list<Remembered> recent_;  ///< most recently used first
  std::map<Key128, std::list<Remembered>::iterator> index_;
  int64_t remembered_bytes_ = 0;
  int64_t disk_bytes_ = -1;  ///< an estimate; -1: not looked yet
  CacheCounts counts_;
  std::vector<Diagnostic> notices_;
  mutable std::vector<std::thread> storing_;
};

}  // namespace tilewright::cache
