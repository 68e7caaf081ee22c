#include "cache/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <utility>

#include "cache/entry.h"

namespace tilewright::cache {
namespace {

constexpr std::string_view kEntry = "k-", kTemporary = "t-", kLock = "l-", kDamaged = "damaged-";
constexpr int64_t kAbandonedNs = 600'000'000'000;  // a temporary file this old has no writer any more

std::string entry_name(const Key128& key) { return std::string(kEntry) + to_hex(key); }

std::string error_text() { return std::strerror(errno); }

int64_t nanoseconds(const timespec& time) { return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

int64_t now_ns() {
  timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  return nanoseconds(time);
}

bool is_ours(std::string_view name) {
  return name.starts_with(kEntry) || name.starts_with(kTemporary) || name.starts_with(kLock) ||
         name.starts_with(kDamaged);
}

/// Makes each missing part of `path`; the last one private.
bool make_folders(const std::string& path) {
  for (size_t end = path.find('/', 1); end != std::string::npos; end = path.find('/', end + 1)) {
    mkdir(path.substr(0, end).c_str(), 0777);
  }
  return mkdir(path.c_str(), 0700) == 0 || errno == EEXIST;
}

std::optional<std::string> read_all(int file) {
  struct stat info;
  if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  std::string bytes(static_cast<size_t>(info.st_size), '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t read = ::read(file, bytes.data() + done, bytes.size() - done);
    if (read < 0 && errno == EINTR) continue;
    if (read <= 0) return std::nullopt;
    done += static_cast<size_t>(read);
  }
  return bytes;
}

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

bool lock_exclusively(int file, int extra = 0) {
  int result;
  do {
    result = flock(file, LOCK_EX | extra);
  } while (result != 0 && errno == EINTR);
  return result == 0;
}

/// A name that no other thread or process has: process, time, counter.
std::string temporary_name() {
  static std::atomic<uint32_t> counter = 0;
  return fmt::format("{}{}-{:x}-{}", kTemporary, getpid(), now_ns(), counter.fetch_add(1));
}

}  // namespace

FileHandle::FileHandle(FileHandle&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
FileHandle& FileHandle::operator=(FileHandle&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}
FileHandle::~FileHandle() {
  if (descriptor_ >= 0) close(descriptor_);
}

KeyLock::~KeyLock() {
  // Removed while held: whoever waits on this file notices that its name is gone and starts over.
  if (file_.is_open()) unlinkat(folder_, name_.c_str(), 0);
}

Result<Folder> Folder::open(const std::string& path) {
  if (path.empty() || path[0] != '/') {
    return fail(DiagnosticCode::E3101, fmt::format("the cache folder '{}' is not an absolute path", path));
  }
  Folder folder;
  folder.path_ = path;
  if (!make_folders(path)) {
    return fail(DiagnosticCode::E3101, fmt::format("cannot make the cache folder {}: {}", path, error_text()));
  }
  folder.folder_ = FileHandle(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat info;
  if (!folder.folder_.is_open() || fstat(folder.folder_.get(), &info) != 0) {
    return fail(DiagnosticCode::E3101, fmt::format("cannot open the cache folder {}: {}", path, error_text()));
  }
  if (info.st_uid != geteuid()) {
    return fail(DiagnosticCode::E3101, fmt::format("the cache folder {} belongs to another user: it is not used", path),
                "set TILEWRIGHT_CACHE_DIR to a folder of your own");
  }
  if ((info.st_mode & 077) != 0) {
    return fail(
        DiagnosticCode::E3101,
        fmt::format("the cache folder {} is open to others (mode {:04o}): it is not used", path, info.st_mode & 07777),
        fmt::format("chmod 700 {}", path));
  }
  return folder;
}

std::optional<std::string> Folder::read(const Key128& key, bool& was_damaged) const {
  const std::string name = entry_name(key);
  const FileHandle file(openat(folder_.get(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file.is_open()) return std::nullopt;
  const std::optional<std::string> bytes = read_all(file.get());
  std::optional<std::string> payload = bytes ? unpack(key, *bytes) : std::nullopt;
  if (payload) {
    futimens(file.get(), nullptr);
    return payload;
  }
  was_damaged = true;
  renameat(folder_.get(), name.c_str(), folder_.get(), (std::string(kDamaged) + to_hex(key)).c_str());
  return std::nullopt;
}

Status Folder::publish(const Key128& key, const std::string& payload) const {
  const std::string temporary = temporary_name();
  const FileHandle file(openat(folder_.get(), temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  const bool is_written = file.is_open() && write_all(file.get(), pack(key, payload)) && fsync(file.get()) == 0;
  if (is_written && renameat(folder_.get(), temporary.c_str(), folder_.get(), entry_name(key).c_str()) == 0) return {};
  const std::string reason = error_text();
  if (file.is_open()) remove(temporary);
  return fail(DiagnosticCode::E3102, fmt::format("cannot write to the cache folder {}: {}", path_, reason));
}

KeyLock Folder::lock(const Key128& key) const {
  const std::string name = std::string(kLock) + to_hex(key);
  for (;;) {
    FileHandle file(openat(folder_.get(), name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file.is_open() || !lock_exclusively(file.get())) return {};
    struct stat held, named;
    const bool is_current = fstat(file.get(), &held) == 0 &&
                            fstatat(folder_.get(), name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
                            held.st_ino == named.st_ino;
    if (is_current) return {folder_.get(), name, std::move(file)};
  }
}

Result<std::vector<Folder::Item>> Folder::list() const {
  // A fresh description: reading a directory moves its position.
  const int copy = openat(folder_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(copy >= 0 ? fdopendir(copy) : nullptr, closedir);
  if (!folder)
    return fail(DiagnosticCode::E3101, fmt::format("cannot list the cache folder {}: {}", path_, error_text()));
  std::vector<Item> items;
  while (const dirent* const entry = readdir(folder.get())) {
    struct stat info;
    if (!is_ours(entry->d_name) || fstatat(folder_.get(), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    items.push_back({entry->d_name, info.st_size, nanoseconds(info.st_mtim)});
  }
  return items;
}

Result<FolderUse> Folder::use() const {
  const auto items = list();
  if (!items) return std::unexpected(items.error());
  FolderUse use;
  for (const Item& item : *items) {
    use.bytes += item.bytes;
    use.entries += item.name.starts_with(kEntry);
    use.damaged += item.name.starts_with(kDamaged);
  }
  return use;
}

void Folder::remove(const std::string& name) const { unlinkat(folder_.get(), name.c_str(), 0); }

Result<int64_t> Folder::shrink(int64_t bytes) const {
  auto items = list();
  if (!items) return std::unexpected(items.error());
  int64_t total = 0;
  for (const Item& item : *items) total += item.bytes;
  const int64_t abandoned = now_ns() - kAbandonedNs;
  std::ranges::sort(*items, {},
                    [](const Item& item) { return std::pair(!item.name.starts_with(kDamaged), item.used_ns); });
  for (const Item& item : *items) {
    const bool is_abandoned = item.name.starts_with(kTemporary) && item.used_ns < abandoned;
    const bool is_too_much = total > bytes && (item.name.starts_with(kEntry) || item.name.starts_with(kDamaged));
    if (!is_abandoned && !is_too_much) continue;
    remove(item.name);
    total -= item.bytes;
  }
  return total;
}

Result<int64_t> Folder::clear() const {
  const auto items = list();
  if (!items) return std::unexpected(items.error());
  int64_t removed = 0;
  for (const Item& item : *items) {
    if (item.name.starts_with(kTemporary) && item.used_ns > now_ns() - kAbandonedNs) continue;
    if (item.name.starts_with(kLock)) {
      const FileHandle file(openat(folder_.get(), item.name.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
      if (!file.is_open() || !lock_exclusively(file.get(), LOCK_NB)) continue;  // somebody makes this entry
      remove(item.name);
      continue;
    }
    remove(item.name);
    removed += item.name.starts_with(kEntry);
  }
  return removed;
}

std::string default_folder() {
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value ? value : "");
  };
  if (const std::string own = variable("TILEWRIGHT_CACHE_DIR"); !own.empty()) return own;
  if (const std::string cache = variable("XDG_CACHE_HOME"); cache.starts_with('/')) return cache + "/tilewright";
  std::string home = variable("HOME");
  if (!home.starts_with('/')) {
    const passwd* const user = getpwuid(geteuid());
    home = user && user->pw_dir ? user->pw_dir : "";
  }
  return home + "/.cache/tilewright";
}

}  // namespace tilewright::cache
