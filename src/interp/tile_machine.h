// Executes a tile-phase kernel: control and memory on top of LaneValues. Internal to interp/; see interpreter.h.
//
// At block level there is one lane; inside `parallel` a batch of iterations runs as lanes. An `if` or loop inside
// `parallel` narrows the set of active lanes. Under a condition that rounding could flip (bounded mode), both sides run
// and everything stored becomes unknown.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "interp/findings.h"
#include "interp/interpreter.h"
#include "interp/lane_values.h"
#include "interp/storage.h"

namespace tilewright::interp {

class TileMachine {
 public:
  TileMachine(const ir::Kernel& kernel, const Options& options);

  LaneValues& values() { return values_; }
  /// Makes the storage of a tensor argument; its contents are the caller's to set.
  Storage& bind(const ir::Value* buffer, std::shared_ptr<Storage> storage);
  Storage& storage(const ir::Value* buffer) { return *storages_[buffer->id]; }
  Status run();

  Findings findings;
  std::string printed;
  int64_t element_operations = 0;
  bool inconclusive = false;

 private:
  using Mask = std::vector<uint8_t>;
  /// Which lanes run, and under what circumstances.
  struct Lanes {
    int64_t count = 1;
    int64_t first = 0;                 ///< flat number of lane 0's iteration
    const ir::Op* parallel = nullptr;  ///< null at block level
    std::shared_ptr<const Mask> mask;  ///< null: all active
    bool doubtful = false;             ///< stores make their elements unknown and change nothing else
    bool is_active(int64_t lane) const { return !mask || (*mask)[static_cast<size_t>(lane)]; }
  };
  /// A region of a buffer, resolved: starts and extents of every dimension.
  struct Window {
    Storage* storage = nullptr;
    std::vector<int64_t> starts;
    std::vector<int64_t> extents;
    std::vector<int64_t> kept;  ///< extents of kept dimensions
    int64_t lanes = 1;
  };
  enum class Flow : uint8_t { Continue, EndBlock };
  using Step = std::expected<Flow, Diagnostic>;

  // tile_machine.cpp: control.
  Step run_region(const ir::Region& region);
  Step run_op(const ir::Op& op);
  Step run_grid(const ir::Op& op);
  Step run_parallel(const ir::Op& op);
  Step run_batch(const ir::Op& op, const std::vector<int64_t>& extents, int64_t first, int64_t count);
  Step run_for(const ir::Op& op);
  Step run_divergent_for(const ir::Op& op);
  Step run_pipelined(const ir::Op& op);
  Step run_if(const ir::Op& op);
  Step run_while(const ir::Op& op);
  Step run_under(std::shared_ptr<const Mask> mask, bool doubtful, const ir::Region& region);
  std::shared_ptr<const Mask> narrowed(const Column& condition, bool wanted, bool tainted_too) const;
  bool any_active(const std::shared_ptr<const Mask>& mask) const;
  void yield_into(const ir::Region& region, const std::vector<ir::Value*>& targets, const Mask* mask);
  Step count_step(const ir::Op& op);

  // tile_elements.cpp: single elements.
  void run_alloc(const ir::Op& op);
  void run_load(const ir::Op& op);
  void run_store(const ir::Op& op);
  void run_atomic(const ir::Op& op);
  void run_assume(const ir::Op& op);
  Step run_assert(const ir::Op& op);
  void run_print(const ir::Op& op);
  void check_division(const ir::Op& op);
  void addresses(const ir::Op& op, const ir::Value* buffer, const std::vector<ir::Index>& indices, bool report,
                 bool force_lanes);
  void report_bounds(const ir::Op& op, const Storage& s, const std::vector<int64_t>& at, int64_t lane);
  void put(Storage& s, int64_t element, const Column& value, int64_t lane);

  // tile_regions.cpp: whole tiles.
  Step run_fill(const ir::Op& op);
  Step run_copy(const ir::Op& op);
  Step run_gemm(const ir::Op& op);
  Step run_reduce(const ir::Op& op);
  Step run_reduce_arg(const ir::Op& op);
  Step run_scan(const ir::Op& op);
  Step run_atomic_tile(const ir::Op& op);
  Step run_arrive_last(const ir::Op& op);
  std::expected<Window, Diagnostic> window(const ir::Op& op, const ir::View& view);
  void read(const ir::Op& op, const Window& w, const Column* outside, Column& out);
  void write(const ir::Op& op, const Window& w, const Column& value);
  bool overlap(const Window& x, const Window& y) const;

  // tile_checks.cpp: who touched what.
  void note_read(const ir::Op& op, Storage& s, int64_t element, int64_t lane);
  void note_write(const ir::Op& op, Storage& s, int64_t element, int64_t lane, bool atomic = false);
  void report_conflict(const ir::Op& op, const Storage& s, int64_t element, int64_t lane, Conflict c, bool blocks);
  void join_atomic(ir::AtomicKind kind, Storage& s, int64_t element, const Column& value, int64_t lane);
  std::string iteration_text(int64_t flat) const;
  std::string block_text(int64_t flat) const;
  std::string place_text(int64_t lane) const;
  bool is_ordered_after(int32_t block) const;

  const ir::Kernel& kernel_;
  Options options_;
  LaneValues values_;
  std::vector<std::shared_ptr<Storage>> storages_;
  Lanes lanes_;
  int64_t steps_ = 0;
  std::vector<int64_t> addresses_;  ///< of the access in hand; -1 is out of bounds or inactive

  // The block and the `parallel` in hand.
  const ir::Op* grid_ = nullptr;
  std::vector<int64_t> grid_extents_;
  std::vector<int64_t> parallel_extents_;
  int32_t block_ = 0;
  uint32_t grid_epoch_ = 0;
  uint32_t parallel_epoch_ = 0;
  std::vector<uint8_t> happened_before_;                                         ///< by block
  std::map<std::pair<const Storage*, int64_t>, std::vector<int32_t>> arrivals_;  ///< counter → blocks
  std::map<const ir::Op*, std::vector<const ir::Value*>> written_in_;            ///< parallel → buffers stored to

  /// Bounds of repeated atomic float additions, whose order is unspecified.
  struct Additions {
    double magnitude = 0;
    double spread = 0;
    int64_t count = 1;
  };
  std::map<std::pair<const Storage*, int64_t>, Additions> additions_;
};

}  // namespace tilewright::interp
