// Data races of one block's threads: two accesses of one byte, one of them a write, with no barrier of the whole block
// between them.
//
// Exact for programs whose only synchronisation is that barrier (the portable form). Does not know mbarriers, named
// barriers of some warps or bulk copies: whoever uses those leaves it inactive. Atomics do not race with one another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace tilewright::interp {

class ThreadRaces {
 public:
  enum class Access : uint8_t { Read, Write, Atomic };
  struct Race {
    int other_thread = 0;  ///< -1: more than one
    int other_line = 0;
    bool other_wrote = false;
  };

  explicit ThreadRaces(size_t shared_bytes) : bytes_(shared_bytes) {}

  /// Every thread of the block has arrived.
  void barrier() {
    ++epoch_;
    written_.clear();
  }

  std::optional<Race> shared(size_t index, size_t count, int thread, int line, Access access) {
    for (size_t i = index; i < index + count; ++i) {
      Byte& b = bytes_[i];
      const bool is_written = b.write_epoch == epoch_, is_read = b.read_epoch == epoch_;
      const bool both_atomic = access == Access::Atomic && b.is_atomic;
      if (is_written && b.writer != thread && !both_atomic) return Race{b.writer, b.write_line, true};
      if (access != Access::Read && is_read && b.reader != thread) return Race{b.reader, b.read_line, false};
      if (access == Access::Read) {
        b.reader = is_read && b.reader != thread ? kSeveral : thread;
        b.read_epoch = epoch_, b.read_line = line;
      } else {
        b.writer = is_written && b.writer != thread ? kSeveral : thread;
        b.write_epoch = epoch_, b.write_line = line;
        b.is_atomic = access == Access::Atomic;
      }
    }
    return std::nullopt;
  }

  /// One element of global memory: reads of what another thread has just written, and two writers.
  std::optional<Race> global(uint64_t address, int thread, int line, Access access) {
    if (const auto at = written_.find(address); at != written_.end()) {
      const bool both_atomic = access == Access::Atomic && at->second.is_atomic;
      if (at->second.thread != thread && !both_atomic) return Race{at->second.thread, at->second.line, true};
    }
    if (access != Access::Read) written_[address] = {thread, line, access == Access::Atomic};
    return std::nullopt;
  }

 private:
  static constexpr int kSeveral = -1;
  struct Byte {
    uint32_t write_epoch = 0, read_epoch = 0;
    int32_t writer = 0, reader = 0, write_line = 0, read_line = 0;
    bool is_atomic = false;
  };
  struct Written {
    int thread = 0, line = 0;
    bool is_atomic = false;
  };
  uint32_t epoch_ = 1;
  std::vector<Byte> bytes_;
  std::unordered_map<uint64_t, Written> written_;
};

}  // namespace tilewright::interp
