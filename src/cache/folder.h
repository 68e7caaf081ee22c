// The cache's folder: private to the user, entries published whole, one maker per key across processes.
//
// Guarantees: the folder is used only when this user owns it and nobody else can enter (0700); a reader sees an entry
// completely or not at all (temporary file, fsync, rename); a lock belongs to a living process (flock), so one that is
// killed never blocks others. Every operation may fail (read-only, full, missing): the caller goes on without the disk.
// Does not know what the bytes mean, and keeps nothing in memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "base/hash.h"

namespace tilewright::cache {

/// Closes on destruction; -1 is none.
class FileHandle {
 public:
  FileHandle() = default;
  explicit FileHandle(int descriptor) : descriptor_(descriptor) {}
  FileHandle(FileHandle&& other) noexcept;
  FileHandle& operator=(FileHandle&& other) noexcept;
  ~FileHandle();
  int get() const { return descriptor_; }
  bool is_open() const { return descriptor_ >= 0; }

 private:
  int descriptor_ = -1;
};

/// Held while one process makes an entry. Removes the lock file when it goes.
class KeyLock {
 public:
  KeyLock() = default;
  KeyLock(int folder, std::string name, FileHandle file)
      : folder_(folder), name_(std::move(name)), file_(std::move(file)) {}
  KeyLock(KeyLock&&) noexcept = default;
  KeyLock& operator=(KeyLock&&) noexcept = default;
  ~KeyLock();
  bool is_held() const { return file_.is_open(); }

 private:
  int folder_ = -1;
  std::string name_;
  FileHandle file_;
};

struct FolderUse {
  int64_t entries = 0;
  int64_t bytes = 0;    ///< of everything in the folder
  int64_t damaged = 0;  ///< files set aside
};

class Folder {
 public:
  /// Creates the folder (and its parents) when missing. Refuses one that others own or can enter.
  static Result<Folder> open(const std::string& path);

  const std::string& path() const { return path_; }

  /// The entry's bytes, marked as used now; nothing when there is none or it is damaged. A damaged one is renamed out
  /// of the way and `was_damaged` set.
  std::optional<std::string> read(const Key128& key, bool& was_damaged) const;

  /// Publishes; replaces an entry of the same key.
  Status publish(const Key128& key, const std::string& payload) const;

  /// Waits for the right to make `key`. Not held when the folder cannot have locks: then everybody makes his own.
  KeyLock lock(const Key128& key) const;

  Result<FolderUse> use() const;

  /// Removes least recently used entries (and set-aside and abandoned files) until at most `bytes` remain; returns what
  /// remains.
  Result<int64_t> shrink(int64_t bytes) const;

  /// Removes everything of the cache that no process is making right now.
  Result<int64_t> clear() const;

 private:
  struct Item {
    std::string name;
    int64_t bytes;
    int64_t used_ns;
  };
  Result<std::vector<Item>> list() const;
  void remove(const std::string& name) const;

  std::string path_;
  FileHandle folder_;
};

/// Where the user's cache is: $TILEWRIGHT_CACHE_DIR, else $XDG_CACHE_HOME/tilewright, else ~/.cache/tilewright.
std::string default_folder();

}  // namespace tilewright::cache
