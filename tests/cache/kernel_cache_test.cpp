#include "cache/kernel_cache.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "cache/entry.h"

namespace tilewright::cache {
namespace {

namespace fs = std::filesystem;

struct TemporaryFolder {
  TemporaryFolder() {
    char name[] = "/tmp/tw_cache_test_XXXXXX";
    path = mkdtemp(name);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  std::string cache() const { return path + "/cache"; }
  std::string path;
};

Key128 key(uint64_t number) { return hash128("key " + std::to_string(number)); }
std::string payload(uint64_t number, size_t size = 3000) {
  std::string text;
  while (text.size() < size) text += "payload " + std::to_string(number) + " ";
  return text;
}
KernelCache::Make maker(uint64_t number, std::atomic<int>* count = nullptr) {
  return [=]() -> Result<std::string> {
    if (count) ++*count;
    return payload(number);
  };
}
std::string entry_path(const TemporaryFolder& folder, uint64_t number) {
  return folder.cache() + "/k-" + to_hex(key(number));
}

/// A counter that forked processes share.
struct SharedCounter {
  SharedCounter()
      : value(new (mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
                  std::atomic<int>(0)) {}
  ~SharedCounter() { munmap(value, 4096); }
  std::atomic<int>* value;
};

/// Runs `body` in a child; true when it returned true.
template <typename Body>
bool in_child(Body&& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body() ? 0 : 1);
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(Entry, AcceptsOnlyWhatWasPacked) {
  const std::string file = pack(key(1), payload(1, 100));
  EXPECT_EQ(unpack(key(1), file), payload(1, 100));
  EXPECT_EQ(unpack(key(2), file), std::nullopt);
  for (size_t i = 0; i < file.size(); ++i) {
    std::string damaged = file;
    damaged[i] ^= 1;
    EXPECT_EQ(unpack(key(1), damaged), std::nullopt) << i;
    EXPECT_EQ(unpack(key(1), file.substr(0, i)), std::nullopt) << i;
  }
  EXPECT_EQ(unpack(key(1), file + "x"), std::nullopt);
  EXPECT_EQ(unpack(key(3), pack(key(3), "")), "");
}

TEST(KernelCache, FindsWhatItMade) {
  const TemporaryFolder folder;
  std::atomic<int> made = 0;
  {
    KernelCache cache({.folder = folder.cache()});
    EXPECT_EQ(cache.find(key(1)), nullptr);
    const auto first = cache.get_or_make(key(1), maker(1, &made));
    ASSERT_TRUE(first.has_value());
    EXPECT_EQ(first->source, Source::Made);
    EXPECT_EQ(*first->bytes, payload(1));
    EXPECT_EQ(cache.get_or_make(key(1), maker(1, &made))->source, Source::Memory);
  }
  KernelCache later({.folder = folder.cache()});
  EXPECT_EQ(later.get_or_make(key(1), maker(1, &made))->source, Source::Disk);
  EXPECT_EQ(*later.find(key(1)), payload(1));
  EXPECT_EQ(made, 1);
  EXPECT_TRUE(later.notices().empty());
  struct stat info;
  ASSERT_EQ(stat(folder.cache().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
}

TEST(KernelCache, StoresBehindTheCaller) {
  const TemporaryFolder folder;
  {
    KernelCache cache({.folder = folder.cache(), .stores_behind = true});
    for (uint64_t i = 0; i < 8; ++i)
      ASSERT_TRUE(cache.get_or_make(key(i), [&] { return Result<std::string>(payload(i)); }));
  }
  KernelCache later({.folder = folder.cache()});
  for (uint64_t i = 0; i < 8; ++i) {
    const auto bytes = later.find(key(i));
    ASSERT_TRUE(bytes);
    EXPECT_EQ(*bytes, payload(i));
  }
}

TEST(KernelCache, AFailureIsNotRemembered) {
  const TemporaryFolder folder;
  KernelCache cache({.folder = folder.cache()});
  const auto failed = cache.get_or_make(key(1), [] { return Result<std::string>(fail(DiagnosticCode::E9001, "no")); });
  EXPECT_EQ(failed.error().message, "no");
  const auto threw = cache.get_or_make(key(1), []() -> Result<std::string> { throw std::runtime_error("bad day"); });
  EXPECT_EQ(threw.error().message, "making a cache entry failed: bad day");
  EXPECT_TRUE(cache.get_or_make(key(1), maker(1)).has_value());
}

TEST(KernelCache, ManyThreadsMakeAKeyOnce) {
  const TemporaryFolder folder;
  KernelCache cache({.folder = folder.cache()});
  std::atomic<int> made = 0, right = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (uint64_t k = 0; k < 10; ++k) {
        const auto found = cache.get_or_make(key(k), [&]() -> Result<std::string> {
          ++made;
          usleep(2000);
          return payload(k);
        });
        right += found && *found->bytes == payload(k);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, 10);
  EXPECT_EQ(right, 80);
}

TEST(KernelCache, ManyProcessesMakeAKeyOnce) {
  const TemporaryFolder folder;
  const SharedCounter made;
  std::vector<pid_t> children;
  for (int p = 0; p < 6; ++p) {
    const pid_t child = fork();
    if (child == 0) {
      KernelCache cache({.folder = folder.cache()});
      bool good = true;
      for (uint64_t k = 0; k < 10; ++k) {
        const auto found = cache.get_or_make(key(k), [&]() -> Result<std::string> {
          ++*made.value;
          usleep(3000);
          return payload(k);
        });
        good = good && found && *found->bytes == payload(k);
      }
      _exit(good ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  EXPECT_EQ(*made.value, 10);
  const auto use = Folder::open(folder.cache())->use();
  EXPECT_EQ(use->entries, 10);
  for (const auto& item : fs::directory_iterator(folder.cache())) {
    EXPECT_TRUE(item.path().filename().string().starts_with("k-")) << item.path() << " was left behind";
  }
}

TEST(KernelCache, AKilledMakerBlocksNobody) {
  const TemporaryFolder folder;
  const SharedCounter inside;
  const pid_t child = fork();
  if (child == 0) {
    KernelCache cache({.folder = folder.cache()});
    static_cast<void>(cache.get_or_make(key(1), [&]() -> Result<std::string> {
      ++*inside.value;
      pause();
      return payload(1);
    }));
    _exit(1);
  }
  while (*inside.value == 0) usleep(1000);
  // Another process waits for the lock; the maker dies; the waiter must take over.
  std::thread killer([child] {
    usleep(20'000);
    kill(child, SIGKILL);
  });
  EXPECT_TRUE(in_child([&] {
    KernelCache cache({.folder = folder.cache()});
    const auto found = cache.get_or_make(key(1), maker(1));
    return found && found->source == Source::Made && *found->bytes == payload(1);
  }));
  killer.join();
  waitpid(child, nullptr, 0);
}

bool has_entry(const fs::path& folder) {
  std::error_code error;
  for (const auto& item : fs::directory_iterator(folder, error))
    if (item.path().filename().string().starts_with("k-")) return true;
  return false;
}

// Writers are killed at random moments: whatever remains on disk is whole or absent.
TEST(KernelCache, KilledWritersLeaveNoHalfEntry) {
  const TemporaryFolder folder;
  const uint32_t seed = std::getenv("TW_SEED") ? std::strtoul(std::getenv("TW_SEED"), nullptr, 10) : 1;
  SCOPED_TRACE("TW_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 30; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      KernelCache cache({.folder = folder.cache()});
      for (uint64_t k = 0;; ++k)
        static_cast<void>(
            cache.get_or_make(key(round * 1000 + k), [&] { return Result<std::string>(payload(k, 40'000)); }));
    }
    // The first is left alone until it has stored something, however slow the machine is.
    for (int wait = 0; round == 0 && wait < 5000 && !has_entry(folder.cache()); ++wait) usleep(1000);
    usleep(1000 + random() % 8000);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  int entries = 0;
  for (const auto& item : fs::directory_iterator(folder.cache())) {
    const std::string name = item.path().filename();
    if (!name.starts_with("k-")) continue;
    ++entries;
    const Key128 own = {std::stoull(name.substr(2, 16), nullptr, 16), std::stoull(name.substr(18, 16), nullptr, 16)};
    std::ifstream in(item.path(), std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(in), {});
    EXPECT_TRUE(unpack(own, bytes).has_value()) << name;
  }
  EXPECT_GT(entries, 0);
}

TEST(KernelCache, DamagedEntriesAreSetAsideAndMadeAnew) {
  const TemporaryFolder folder;
  static_cast<void>(KernelCache({.folder = folder.cache()}).get_or_make(key(1), maker(1)));
  for (const int way : {0, 1, 2}) {
    const std::string path = entry_path(folder, 1);
    if (way < 2) {
      ASSERT_EQ(truncate(path.c_str(), way == 0 ? 100 : 0), 0);
    }
    if (way == 2) {
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(500);
      file.put('!');
    }
    KernelCache cache({.folder = folder.cache()});
    const auto found = cache.get_or_make(key(1), maker(1));
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->source, Source::Made);
    EXPECT_EQ(*found->bytes, payload(1));
    EXPECT_EQ(cache.counts().damaged, 1);
    ASSERT_EQ(cache.notices().size(), 1u);
    EXPECT_EQ(cache.notices()[0].code, DiagnosticCode::E3103);
    EXPECT_EQ(cache.notices()[0].message,
              "the cache entry " + to_hex(key(1)) + " was damaged: set aside in " + folder.cache() + " and made anew");
    EXPECT_TRUE(fs::exists(folder.cache() + "/damaged-" + to_hex(key(1))));
  }
}

TEST(KernelCache, AFolderOpenToOthersIsNotUsedAndSaid) {
  const TemporaryFolder folder;
  mkdir(folder.cache().c_str(), 0700);
  chmod(folder.cache().c_str(), 0755);
  KernelCache cache({.folder = folder.cache()});
  EXPECT_EQ(cache.folder(), nullptr);
  ASSERT_EQ(cache.notices().size(), 1u);
  EXPECT_EQ(cache.notices()[0].message,
            "the cache folder " + folder.cache() + " is open to others (mode 0755): it is not used");
  EXPECT_EQ(cache.get_or_make(key(1), maker(1))->source, Source::Made);
  EXPECT_EQ(cache.get_or_make(key(1), maker(1))->source, Source::Memory);
  EXPECT_TRUE(fs::is_empty(folder.cache()));
}

TEST(KernelCache, AnotherUsersFolderIsNotUsed) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give a folder away";
  const TemporaryFolder folder;
  mkdir(folder.cache().c_str(), 0700);
  ASSERT_EQ(chown(folder.cache().c_str(), 65534, 65534), 0);
  const KernelCache cache({.folder = folder.cache()});
  EXPECT_EQ(cache.folder(), nullptr);
  EXPECT_EQ(cache.notices()[0].message,
            "the cache folder " + folder.cache() + " belongs to another user: it is not used");
}

TEST(KernelCache, AMissingFolderThatCannotBeMadeIsNoObstacle) {
  KernelCache cache({.folder = "/proc/nowhere/cache"});
  EXPECT_EQ(cache.folder(), nullptr);
  EXPECT_EQ(cache.notices()[0].message, "cannot make the cache folder /proc/nowhere/cache: No such file or directory");
  EXPECT_EQ(cache.get_or_make(key(1), maker(1))->source, Source::Made);
  EXPECT_EQ(cache.get_or_make(key(1), maker(1))->source, Source::Memory);
}

TEST(KernelCache, AReadOnlyFolderStillServes) {
  const TemporaryFolder folder;
  chmod(folder.path.c_str(), 0711);
  const auto body = [&] {
    KernelCache writer({.folder = folder.cache()});
    if (!writer.get_or_make(key(1), maker(1))) return false;
    chmod(folder.cache().c_str(), 0500);
    KernelCache reader({.folder = folder.cache()});
    const auto hit = reader.get_or_make(key(1), maker(1));
    const auto made = reader.get_or_make(key(2), maker(2));
    const bool said = reader.notices().size() == 1 && reader.notices()[0].code == DiagnosticCode::E3102;
    chmod(folder.cache().c_str(), 0700);
    return hit && hit->source == Source::Disk && made && made->source == Source::Made && said;
  };
  if (geteuid() != 0) {
    EXPECT_TRUE(body());
    return;
  }
  ASSERT_EQ(chown(folder.path.c_str(), 65534, 65534), 0);
  EXPECT_TRUE(in_child([&] { return seteuid(65534) == 0 && body(); }));  // root may write anywhere
}

// A limit on the size of files stands for a disk without space: the write fails half way.
TEST(KernelCache, AFullDiskIsNoObstacle) {
  const TemporaryFolder folder;
  EXPECT_TRUE(in_child([&] {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {1000, 1000};
    setrlimit(RLIMIT_FSIZE, &limit);
    KernelCache cache({.folder = folder.cache()});
    const auto made = cache.get_or_make(key(1), maker(1));
    const auto again = cache.get_or_make(key(1), maker(1));
    return made && *made->bytes == payload(1) && again->source == Source::Memory && cache.notices().size() == 1 &&
           cache.notices()[0].code == DiagnosticCode::E3102 && fs::is_empty(folder.cache());
  }));
}

TEST(KernelCache, LeastRecentlyUsedEntriesGoFirst) {
  const TemporaryFolder folder;
  const auto make = [](uint64_t k) { return [k] { return Result<std::string>(payload(k, 10'000)); }; };
  {
    KernelCache cache({.folder = folder.cache()});
    for (uint64_t k = 0; k < 8; ++k) {
      static_cast<void>(cache.get_or_make(key(k), make(k)));
      const timespec old[2] = {{1'000'000 + static_cast<time_t>(k), 0}, {1'000'000 + static_cast<time_t>(k), 0}};
      utimensat(AT_FDCWD, entry_path(folder, k).c_str(), old, 0);
    }
  }
  KernelCache cache({.folder = folder.cache(), .disk_limit_bytes = 60'000});
  EXPECT_EQ(cache.get_or_make(key(0), make(0))->source, Source::Disk);  // now the youngest
  static_cast<void>(cache.get_or_make(key(100), make(100)));            // goes over the limit
  EXPECT_TRUE(fs::exists(entry_path(folder, 0)));
  EXPECT_TRUE(fs::exists(entry_path(folder, 100)));
  EXPECT_FALSE(fs::exists(entry_path(folder, 1)));
  EXPECT_LE(cache.folder()->use()->bytes, 60'000);
}

TEST(KernelCache, MemoryHasALimitToo) {
  KernelCache cache({.folder = "", .memory_limit_bytes = 10'000});
  for (uint64_t k = 0; k < 5; ++k) static_cast<void>(cache.get_or_make(key(k), maker(k)));
  EXPECT_EQ(cache.find(key(0)), nullptr);
  EXPECT_NE(cache.find(key(4)), nullptr);
}

TEST(KernelCache, ClearLeavesWhatIsBeingMade) {
  const TemporaryFolder folder;
  KernelCache cache({.folder = folder.cache()});
  for (uint64_t k = 0; k < 3; ++k) static_cast<void>(cache.get_or_make(key(k), maker(k)));
  const KeyLock held = cache.folder()->lock(key(9));
  EXPECT_EQ(*cache.folder()->clear(), 3);
  EXPECT_TRUE(fs::exists(folder.cache() + "/l-" + to_hex(key(9))));
  EXPECT_EQ(cache.folder()->use()->entries, 0);
}

}  // namespace
}  // namespace tilewright::cache
