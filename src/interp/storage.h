// The memory behind a buffer of the tile phase: elements as columns hold them, whether each was written, and who
// touched it last. Elements are addressed by their dense row-major number; a private buffer (declared inside
// `parallel`) has one copy per lane, one after another.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "interp/column.h"
#include "ir/ir.h"

namespace tilewright::interp {

/// The last accesses to one element by numbered actors (iterations of one `parallel`, or blocks of one grid).
struct Touch {
  uint32_t write_epoch = 0;
  uint32_t read_epoch = 0;
  int32_t writer = -1;
  int32_t reader = -1;
  int32_t other_reader = -1;  ///< a second, different reader
  bool atomic = false;        ///< the last write was atomic
};

/// A pair of actors that meet at one element.
struct Conflict {
  int32_t other = -1;
  bool both_write = false;
};

/// Remembers accesses of one epoch and reports the first conflict of each. `is_ordered(other)` says that the other
/// actor happened before on purpose (an arrival that was waited for).
class TouchMap {
 public:
  void enable(int64_t elements) { touches_.resize(static_cast<size_t>(elements)); }
  bool is_enabled() const { return !touches_.empty(); }
  std::optional<Conflict> read(int64_t element, uint32_t epoch, int32_t actor);
  std::optional<Conflict> write(int64_t element, uint32_t epoch, int32_t actor, bool atomic);

 private:
  std::vector<Touch> touches_;
};

struct Storage {
  const ir::Value* buffer = nullptr;
  DType dtype = DType::F32;
  ir::MemorySpace space = ir::MemorySpace::Global;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;  ///< dense
  int64_t size = 0;              ///< elements of one copy
  int64_t copies = 1;
  bool is_private = false;
  bool guarded = false;
  Column elements;  ///< size × copies lanes
  std::vector<uint8_t> written;
  TouchMap by_iteration;
  TouchMap by_block;
  const ir::Op* tracked_parallel = nullptr;  ///< the `parallel` whose iterations are being told apart here

  /// Sets shape and dtype; contents are poison (NaN, 0x5555…), unknown and unwritten.
  void allocate(DType type, std::vector<int64_t> extents, int64_t copy_count, Mode mode);
  /// "A_s[3, 7]"
  std::string element_text(int64_t element) const;
};

}  // namespace tilewright::interp
