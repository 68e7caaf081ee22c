// Tile operations to explicit vector loops: one Func per grid. Internal to plan/cpu.
//
// A block is one run of the Func. Shared and fragment tiles lie in the task's scratch memory; `parallel` becomes loops
// of which one dimension is spread over lanes with a masked tail; every access that cannot be proven inside its buffer
// is masked. Split over lower_*.cpp by kind of operation; `Lowering` is what they share.
#pragma once

#include <functional>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "analysis/bounds.h"
#include "ir/builder.h"
#include "plan/cpu/arguments.h"
#include "plan/cpu/fused_group.h"
#include "plan/cpu/plan.h"
#include "plan/cpu/register_tile.h"

namespace tilewright::plan::cpu {

/// Where a buffer lives: a base pointer, byte strides and extents per dimension.
struct Placement {
  ir::Value* pointer = nullptr;
  std::vector<ir::Index> strides;
  std::vector<ir::Index> extents;
  DType storage = DType::F32;
  int lanes = 0;   ///< > 0: private to a lane; elements are groups of that many
  ir::Index base;  ///< bytes from the pointer to the first element; empty: none
};

/// A tensor whose stores may bypass the caches.
struct Streaming {
  ir::Index is_large;      ///< too large to be found in a cache again
  ir::Index misalignment;  ///< of its address, in bytes
};

/// The lanes an operation is lowered for.
struct Lanes {
  int count = 1;
  const ir::Value* variable = nullptr;  ///< lane 0's value of the vectorised variable (its others follow by 1)
  ir::Index remaining;                  ///< lanes at and beyond this one are off; empty: all are on
  ir::Value* predicate = nullptr;       ///< bool lanes, or null
};

/// One access: address of lane 0, how it moves with the lane, which lanes may touch memory.
struct Address {
  enum class Step { Uniform, Contiguous, Strided, Varying };
  ir::Value* pointer = nullptr;
  ir::Index bytes;  ///< not for Varying
  Step step = Step::Uniform;
  int64_t stride = 0;            ///< bytes per lane, for Strided
  ir::Value* offsets = nullptr;  ///< i64 lanes, for Varying
  ir::Value* mask = nullptr;     ///< lanes (or one bool) that may touch memory; null: all
  ir::Value* inside = nullptr;   ///< lanes inside the buffer; null: all
};

/// A `parallel` without the `if` around all that it does: where that was a bound, the loops end there.
struct GuardedBody {
  const ir::Region* body = nullptr;
  const ir::Op* guard = nullptr;  ///< the `if` left out; null: none
  std::vector<ir::Index> extents;
};

/// Conditions of `parallel`s that all hold wherever `holds` does, which is uniform over the block.
struct UniformGuard {
  ir::Index holds;  ///< empty: there are no such conditions
  std::vector<const ir::Value*> conditions;
};

/// What a choice of vectorised dimension costs and needs.
struct LaneChoice {
  int dimension = -1;
  int lanes = 1;
};

/// One side of the product: two kept dimensions of a buffer, `depth` the one summed over and `width` the other.
struct Operand {
  const ir::View* view = nullptr;
  const Placement* place = nullptr;
  int width_dim = 0, depth_dim = 0;      ///< dimensions of the buffer
  ir::Index width_start, depth_start;    ///< first element of the view
  ir::Index width_stride, depth_stride;  ///< bytes
  ir::Index width_valid, depth_valid;    ///< elements of the view that lie inside the buffer
  ir::Index base;                        ///< bytes of the view's first element
  ir::Index holds;                       ///< what must hold of dropped dimensions and starts; empty: proven
  bool is_global = false;
};

/// An operand to be packed once, before the launch that reads it.
struct PackRequest {
  const ir::Value* buffer = nullptr;
  int width_dim = 0, depth_dim = 0;
  PanelShape shape;
  int workspace = -1;
  ir::Index panels, panel_depth, matrices;
  ir::Index enabled;  ///< run-time condition
  Location location;
};

class Lowering {
 public:
  Lowering(const ir::Kernel& tile, ir::Kernel& vector, Arguments& arguments, runtime::Recipe& recipe,
           const target::Cpu& cpu, const Options& options, std::vector<Fact>& facts);
  Status run();

 private:
  friend class GemmLowering;

  // lower_block.cpp: structure.
  Status lower_grid(const ir::Op& grid);
  Status lower_region(const ir::Region& region);
  Status lower_op(const ir::Op& op);
  Status lower_loop(const ir::Op& op, ir::Index lo, ir::Index hi, ir::Index step);
  Status lower_if(const ir::Op& op);
  Status lower_divergent_if(const ir::Op& op, ir::Value* condition);
  Status lower_while(const ir::Op& op);
  void bind_arguments();
  void declare_divisions();

  // storage.cpp
  Status place(const ir::Op& alloc);
  const Placement& placement(const ir::Value* buffer) const { return placements_.at(buffer); }
  int64_t reserve(int64_t bytes, int64_t align = 64);
  void place_argument(int tensor);

  // read_in_place.cpp: row tiles that are only copies.
  const Placement& source_of(const ir::Value* buffer) const;
  bool read_in_place(const ir::Region& region, size_t position);
  std::optional<Placement> view_as_tile(const ir::CopyAttributes& copy) const;
  void end_sources(const ir::Op& op);
  const ir::Op* busiest_pass(const ir::Region& region, size_t position) const;

  // guard_uniform.cpp: conditions that hold for all of a block.
  UniformGuard find_guard(const std::vector<const ir::Op*>& parallels) const;
  void lower_guarded(const UniformGuard& guard, const std::function<void()>& lower);

  // streaming.cpp: stores past the caches.
  void begin_streams(const ir::Op& op);
  void end_streams() { streams_.clear(); }
  bool store_streaming(const Placement& place, const Address& a, const ir::MemoryAttributes& memory, ir::Value* v);

  // access.cpp: element addresses, masks, lanes.
  ir::Index map(ir::Index x) const;
  std::vector<ir::Index> map(const std::vector<ir::Index>& x) const;
  ir::Value* value(const ir::Value* tile_value) const;
  Address address(const Placement& place, const std::vector<ir::Index>& at);
  ir::Value* load(const Placement& place, const std::vector<ir::Index>& at, ir::Value* oob = nullptr, bool raw = false);
  void store(const Placement& place, const std::vector<ir::Index>& at, ir::Value* v, bool raw = false);
  bool is_uniform(ir::Index x) const;
  std::optional<int64_t> lane_step(ir::Index x) const;
  ir::Value* spread(ir::Index x);
  ir::Value* widen(ir::Value* v, int lanes);
  ir::Value* widen(ir::Value* v) { return widen(v, lanes_.count); }
  void match(ir::Value*& x, ir::Value*& y);
  ir::Value* both(ir::Value* x, ir::Value* y);
  ir::Value* lane_mask(ir::Index active);
  ir::Value* active_lanes();
  ir::Value* condition(ir::Index x);

  // elements.cpp: pure operations on lanes.
  void lower_element(const ir::Op& op);
  ir::Value* binary(ir::BinaryOp op, ir::Value* x, ir::Value* y);
  ir::Value* select(ir::Value* c, ir::Value* x, ir::Value* y);
  ir::Value* join(ir::ReduceKind kind, ir::Value* x, ir::Value* y);
  ir::Value* identity(ir::ReduceKind kind, DType dtype, int lanes);
  void lower_atomic(const ir::Op& op);
  void lower_arrive_last(const ir::Op& op);

  // lower_nest.cpp: loops over lanes.
  using NestBody = std::function<void(const std::vector<ir::Index>& at)>;
  void nest(const std::vector<ir::Index>& extents, LaneChoice choice, const NestBody& body,
            const NestBody& before_lanes = {});
  Status lower_parallel(const ir::Op& op);
  Status lower_body(const ir::Op& parallel, const GuardedBody& guarded);
  GuardedBody peel_guard(const ir::Op& parallel) const;
  LaneChoice choose_lanes(const ir::Op& parallel);
  void hoist_uniform(const ir::Region& body, const ir::Value* lane_variable);

  // lower_tiles.cpp: whole-tile operations.
  std::vector<ir::Index> view_at(const ir::View& view, const std::vector<ir::Index>& at) const;
  std::vector<ir::Index> view_extents(const ir::View& view) const;
  int lane_dimension(const std::vector<const ir::View*>& views, int excluded = -1) const;
  int lanes_for(ir::Index extent, DType dtype) const;
  void lower_fill(const ir::Op& op);
  std::vector<ir::Index> inside_extents(const ir::View& view, std::vector<ir::Index> extents) const;
  void lower_copy(const ir::Op& op);
  void lower_reduce(const ir::Op& op);
  void lower_row_reduce(const ir::ReduceAttributes& a, const std::vector<ir::Index>& extents);
  void lower_scan(const ir::Op& op);
  void lower_reduce_arg(const ir::Op& op);
  void lower_atomic_tile(const ir::Op& op);

  // lower_fused.cpp: several operations in one pass.
  int group_lanes(const FusedGroup& group);
  Status lower_group(const FusedGroup& group, int lanes);
  void lower_group_loops(const FusedGroup& group, const std::vector<ir::Index>& extents, int lanes);
  void lower_group_row(const FusedGroup& group, const std::vector<ir::Index>& row, ir::Index length, int lanes);
  void hoist_members(const FusedGroup& group, const std::vector<ir::Index>& row);
  std::vector<ir::Value*> lower_group_lanes(const FusedGroup& group, const std::vector<ir::Index>& at,
                                            const std::vector<ir::Value*>& partial, bool masked);
  ir::Value* lower_member(const ir::Op& op, const std::vector<ir::Index>& at, ir::Value* partial, bool masked);
  void finish_reduction(const ir::ReduceAttributes& a, ir::Value* total, std::vector<ir::Index> row);
  void prefetch_next_block(const ir::View& view, const std::vector<ir::Index>& at);
  std::vector<ir::Index> group_extents(const FusedGroup& group) const;
  void find_unread_stores(const FusedGroup& group);

  // lower_gemm.cpp
  /// True when `next`, the operation after it, was lowered with it.
  bool lower_gemm(const ir::Op& op, const ir::Op* next);
  void lower_plain_gemm(const ir::GemmAttributes& a);
  // gemm_panels.cpp
  void emit_panel(const Operand& operand, const PanelShape& shape, ir::Value* to, ir::Index column, ir::Index k0,
                  ir::Index depth);
  void lower_packing(const PackRequest& request, size_t launch_position);
  // gemm_dot.cpp
  void emit_dot_panel(const Operand& operand, const PanelShape& shape, ir::Value* to, ir::Index column, ir::Index k0,
                      ir::Index depth);
  // live_extent.cpp
  ir::Index live_extent(const ir::Op& gemm, int dim, ir::Index extent);
  bool is_written(const ir::Value* buffer) const;

  ir::Index number(int64_t v) const { return b_.constant_index(v); }
  void fact(std::string what, std::string why, const Location& location) {
    facts_.push_back({std::move(what), std::move(why), location});
  }

  const ir::Kernel& tile_;
  ir::Kernel& vector_;
  Arguments& arguments_;
  runtime::Recipe& recipe_;
  const target::Cpu& cpu_;
  const Options& options_;
  std::vector<Fact>& facts_;
  ir::Builder b_;
  analysis::Bounds bounds_;
  std::unordered_map<const ir::Value*, Placement> placements_;
  std::unordered_map<const ir::Value*, ir::Value*> values_;
  std::unordered_map<const ir::Value*, ir::Index> index_of_;
  std::map<std::pair<const ir::Region*, const ir::IndexNode*>, ir::Value*> masks_;
  std::unordered_set<const ir::Value*> gemm_buffers_;
  std::unordered_map<const ir::Value*, int64_t> column_multiple_;  ///< of gemm results: rows are padded to it
  std::vector<PackRequest> pack_requests_;
  const ir::Op* grid_ = nullptr;
  std::unordered_set<const ir::Value*> hoisted_;  ///< tile values already computed outside the lane loop
  Lanes lanes_;
  /// Inside a fused pass: values stored to tiles in this iteration, by buffer and element.
  std::map<std::pair<const ir::Value*, std::vector<const ir::IndexNode*>>, ir::Value*> forwarded_;
  bool forwards_ = false;
  std::unordered_set<const ir::Value*> assumed_;  ///< tile-level conditions that hold for every iteration
  std::unordered_set<const ir::Value*> unread_;   ///< tiles (their pointers) that nothing reads after the pass
  std::unordered_map<const ir::Value*, Streaming> streams_;  ///< by the tensor's pointer
  std::unordered_map<const ir::Value*, Placement> sources_;  ///< tiles that are read where they were copied from
  std::unordered_map<const ir::Op*, std::vector<const ir::Value*>> source_ends_;  ///< operations that overwrite them
  std::unordered_set<const ir::Value*> replaced_;  ///< inside a fused pass: tiles already overwritten
  std::unordered_map<const ir::Op*, const ir::View*> prefetched_at_;  ///< by the first member of a pass
  int loop_depth_ = 0;                                                ///< loops of the author's around the operation
  int64_t scratch_bytes_ = 0;
};

}  // namespace tilewright::plan::cpu
