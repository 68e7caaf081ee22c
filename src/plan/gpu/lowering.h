// Lowers one grid of a tile kernel to one thread program. Shared by the files lower_*.cpp; nothing outside the folder
// includes it.
//
// A fragment lives in registers under a Distribution; a shared tile (or a fragment used in ways registers cannot serve)
// lives in shared memory. Every tile operation is emitted for the `group`: the threads that compute (the whole block,
// or the consumer warpgroups of the Hopper form). Shared memory hazards between operations are tracked per buffer and
// closed by barriers.
#pragma once

#include <functional>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "plan/cpu/arguments.h"
#include "plan/gpu/distribution.h"
#include "plan/gpu/index_emitter.h"
#include "plan/gpu/plan.h"

namespace tilewright::plan::gpu {

using ir::thread::Compare;
using ir::thread::Reg;
using ir::thread::Space;
using ir::thread::Width;

struct Unsupported {
  Diagnostic diagnostic;
};
[[noreturn]] void unsupported(const Location& location, std::string what);

Scalar register_type(DType dtype);  ///< how a value of this dtype is computed with: s32, u32, s64, u64, f32, f64, pred
Scalar memory_type(DType dtype);    ///< how it lies in memory: b8 … b64
Scalar number_type(DType dtype);    ///< the dtype itself as an instruction type

bool reports_something(const ir::Kernel& kernel);  ///< has an assert or a print

/// The grid cannot run on clusters after all.
struct NoCluster {
  const char* why;
};

/// A tile in shared memory. Panels: columns in blocks of `panel` elements, each panel all rows × 128 bytes, 128-byte
/// swizzle.
struct SharedTile {
  int offset = 0;     ///< bytes from the base
  int64_t pitch = 0;  ///< elements from row to row (linear form)
  bool has_panels = false;
  int panel = 0;        ///< elements
  int stage_bytes = 0;  ///< of one stage when it has several
  Operand base;         ///< address of the tile (stage included) when it lies in a ring
};

struct Fragment {
  Distribution distribution;
  std::vector<Reg> registers;
};

/// Some access of `op`, or of what is inside, is to `buffer`.
bool touches(const ir::Op& op, const ir::Value* buffer);

/// Rows may lie over a cluster, or be walked over, in grids of only such operations: straight lines over registers.
bool is_row_operation(const ir::Op& op);

/// An evaluated coordinate tuple of a buffer.
using Coordinates = std::vector<Affine>;

class Lowering {
 public:
  Lowering(const ir::Kernel& tile, const ir::Op& grid, const cpu::Arguments& arguments, const ir::Kernel& slots,
           const runtime::Recipe& recipe, const target::Gpu& gpu, const Options& options, std::string name,
           std::vector<Fact>& facts);

  /// The portable form: all threads do everything. Fills `launch`'s grid, threads and shared bytes.
  ir::thread::Program portable(runtime::Launch& launch, int cluster = 1);
  /// How many blocks of a cluster should share the rows of this grid; 1: none.
  int cluster_of_rows() const;
  bool has_counter() const { return has_counter_; }
  /// Where the tiles of the form that was emitted are.
  const std::vector<BufferLayout>& layouts() const { return drawn_; }
  /// The Hopper form, or the reason why this grid has none.
  std::optional<ir::thread::Program> hopper(runtime::Launch& launch, std::string& why_not);

 private:
  friend class HopperForm;

  // ---- set-up (lowering.cpp, portable.cpp)
  void declare_parameters();
  void begin_group(Operand thread, int threads, int barrier);
  void bind_arguments();
  void find_global_uses();
  void choose_matrix_warps();
  int choose_threads(int cluster);
  std::optional<Distribution> portable_seed(const ir::Op& op, const ir::Value* v) const;
  void bind_blocks();

  // ---- layouts (assign_layouts.cpp) and room for them (allocate.cpp)
  std::vector<const ir::Value*> fragments_in_order() const;
  void find_register_fragments();
  Distribution default_layout(const ir::Value* bare) const;
  void assign_layouts(const std::function<std::optional<Distribution>(const ir::Op&, const ir::Value*)>& seed);
  void allocate_shared();
  void allocate_fragments();
  int reserve_shared(int64_t bytes, int alignment, const Location& location);
  const ir::Region& block_region() const { return *grid_.regions[0]; }
  bool propagate(const ir::Op& op);
  const Distribution* distribution_of(const ir::Value* buffer) const;
  bool in_registers(const ir::Value* buffer) const { return layouts_.contains(buffer); }
  void collect(const ir::Region& region);
  void describe_layouts();
  void fact(std::string what, std::string why, const Location& location) {
    facts_.push_back({std::move(what), std::move(why), location});
  }

  // ---- control (lower_control.cpp)
  void region(const ir::Region& region);
  void op(const ir::Op& op);
  void for_loop(const ir::Op& op);
  void pipelined(const ir::Op& op);
  void while_loop(const ir::Op& op);
  void if_else(const ir::Op& op);
  void loop_over(const ir::Op& op, Operand lo, Operand hi, Operand step);
  using Buffers = std::unordered_set<const ir::Value*>;
  void enter_loop(const ir::Region& body);
  void after_loop(const Buffers& reads_before, const Buffers& writes_before);

  // ---- copies that run ahead (lower_async.cpp)
  struct AsyncRing {
    int stages = 2;
    std::vector<const ir::Op*> copies;
  };
  void find_async_rings();
  bool can_run_ahead(const ir::Op& loop, const ir::Op& copy) const;
  static bool is_below(const ir::Op& outer, const ir::Op& inner);
  static bool writes_below(const ir::Op& op, const ir::Value* tile);
  void pipelined_async(const ir::Op& op, const AsyncRing& ring);
  void issue_copies(const ir::Op& loop, const AsyncRing& ring, Operand k);
  void issue_copy(const ir::CopyAttributes& a, const SharedTile& tile);
  bool runs_ahead(const ir::Op& copy) const;  ///< issued by its loop
  Operand stage_address(const ir::Value* tile, Operand k);

  // ---- hazards (hazards.cpp)
  /// One operation's reads and writes: at most one barrier, before all of them, and all of them are pending behind it.
  void accesses(const Buffers& loaded, const Buffers& stored);
  void reads(const ir::Value* buffer) { accesses({buffer}, {}); }
  void writes(const ir::Value* buffer) { accesses({}, {buffer}); }
  bool read_needs_barrier(const ir::Value* buffer) const;
  bool write_needs_barrier(const ir::Value* buffer) const;
  void barrier();
  bool is_tracked(const ir::Value* buffer) const;

  // ---- parallel (lower_parallel.cpp, uniform_truth.cpp, convert_layout.cpp)
  void parallel(const ir::Op& op);
  void parallel_hazards(const ir::Op& op);
  void parallel_over_fragments(const ir::Op& op, const Distribution& iteration);
  void for_dynamic_elements(const ir::Op& op, const std::function<void(const Coordinates&)>& body);
  void begin_iteration(const ir::Op& op, const Coordinates& at, std::vector<int> offsets, Operand guard);
  const Distribution* iteration_layout(const ir::Op& op, bool& uses) const;
  std::vector<std::pair<const ir::Value*, Fragment>> move_strangers(const ir::Op& op, const Distribution& iteration,
                                                                    bool by_owners);
  bool stores_what_it_loads(const ir::Op& op) const;
  /// `assume_guards`: conditions over the variables hold for every iteration; `by_owners`: one replica of each acts.
  void parallel_body(const ir::Op& op, const Distribution& iteration, bool assume_guards, bool by_owners = false);
  /// Moves a fragment to shared memory and back.
  Fragment to_shared(const ir::Value* v, const Location& location);
  void from_shared(const ir::Value* v, Fragment fragment);
  /// A block-uniform predicate under which every index condition of the body holds for all iterations.
  std::optional<Operand> uniform_truth(const ir::Op& parallel);

  // ---- operations on elements (lower_elements.cpp)
  void element_region(const ir::Region& region);
  void element_op(const ir::Op& op);
  void shared_element_op(const ir::Op& op);
  uint64_t uses_of(const ir::Op& op) const;
  void scalar_op(const ir::Op& op);
  Operand index_value(const ir::Op& op);
  Operand binary_op(const ir::Op& op);
  Operand select_op(const ir::Op& op);
  Operand cast_op(const ir::Op& op);
  void access_op(const ir::Op& op);
  void register_access(const ir::Op& op, const Fragment& fragment);
  void atomic_op(const ir::Op& op);
  void allocate_private(const ir::Value* v);
  Coordinates affine_coordinates(const std::vector<ir::Index>& indices);
  Operand acting();

  // ---- scalars (lower_scalar.cpp, lower_math_*.cpp)
  Operand operand(const ir::Value* v);
  Operand as_index(const ir::Value* v);
  void define(const ir::Value* v, Operand x) { values_[v] = x; }
  Operand constant(DType dtype, const ir::ConstantAttributes& a);
  Operand unary(ir::UnaryOp op, DType dtype, DType result, Operand x);
  Operand unary_integer(ir::UnaryOp op, DType dtype, Operand x);
  Operand unary_float(ir::UnaryOp op, DType dtype, Operand x);
  Operand unary_f32(ir::UnaryOp op, Operand x);
  Operand unary_f64(ir::UnaryOp op, Operand x);
  Operand power_f32(Operand x, Operand y);
  Operand power_f64(Operand x, Operand y);
  Operand binary(ir::BinaryOp op, DType dtype, Operand x, Operand y);
  Operand binary_bool(ir::BinaryOp op, Operand x, Operand y);
  enum class Floored { Quotient, Remainder };
  Operand floored(DType dtype, Operand x, Operand y, Floored which);
  Operand divided(ir::BinaryOp op, DType dtype, Operand x, Operand y);
  Operand lesser_or_greater(ir::BinaryOp op, DType dtype, Operand x, Operand y);
  Operand shifted(ir::BinaryOp op, DType dtype, Operand x, Operand y);
  Operand compare(ir::CompareOp op, DType dtype, Operand x, Operand y);
  Operand cast(DType from, DType to, Operand x);
  Operand rounded(DType dtype, Operand x);     ///< to a storage float and back
  Operand normalised(DType dtype, Operand x);  ///< narrow integers wrapped to their width
  Operand identity_select(Operand predicate, DType dtype, Operand yes, Operand no);

  // ---- data on the move (lower_copy.cpp, copy_vectors.cpp)
  void fill(const ir::Op& op);
  void copy(const ir::Op& op);
  ir::thread::CacheHint cache_hint() const;  ///< what the copy being lowered asks for
  void copy_registers(const ir::CopyAttributes& a, const Fragment& from, const Fragment& to);
  void copy_converting(const ir::Op& op);
  void copy_in_vectors(const ir::Op& op, Operand oob, int length);
  void copy_elements(const ir::Op& op, Operand oob);
  /// Between the registers of a fragment and memory, `length` elements at a time.
  struct VectorCopy {
    const ir::View* view = nullptr;
    const Fragment* fragment = nullptr;
    const ir::Value* tile = nullptr;
    bool is_load = false;
    Operand oob = 0;
    int length = 1;
    bool keep_packed = false;
  };
  void copy_vectors(const VectorCopy& c);
  void load_vector(const VectorCopy& c, int r, Operand address, const Builder::Access& access, Operand exists);
  void store_vector(const VectorCopy& c, int r, Operand address, const Builder::Access& access);
  std::vector<Operand> packed_words(DType dtype, const std::vector<Operand>& elements);
  Builder::Access vector_access(const ir::View& view, bool is_load, int immediate, Operand exists) const;
  bool has_aligned_rows(const ir::Value* buffer) const;
  int run_length(const ir::View& view, const Distribution& d) const;
  int vector_length(const ir::Op& copy) const;
  Operand copied_value(const ir::CopyAttributes& a, Operand x);
  void atomic_tile(const ir::Op& op);

  // ---- elements in memory and registers (lower_access.cpp, lower_representation.cpp, lower_addresses.cpp)
  Operand load(const ir::Value* buffer, const Coordinates& at, Operand oob, Operand guard);
  void store(const ir::Value* buffer, const Coordinates& at, Operand x, Operand guard);
  Operand private_position(const ir::Value* buffer, const Coordinates& at);
  Operand load_private(const ir::Value* buffer, const Coordinates& at, Operand oob);
  void store_private(const ir::Value* buffer, const Coordinates& at, Operand x);
  Operand atomic(const ir::Value* buffer, ir::AtomicKind kind, const Coordinates& at, Operand x, Operand guard);
  void atomic_extreme(ir::AtomicKind kind, DType dtype, Operand address, Operand x, Space space);
  Operand from_register(const ir::Value* buffer, Reg reg);
  Operand to_register(const ir::Value* buffer, Operand x);
  Operand stride(int tensor, size_t dim);
  Operand global_address(int tensor, const Coordinates& at, int& immediate);
  Operand shared_address(const SharedTile& tile, const ir::Type& type, const Coordinates& at, int& immediate);
  Operand inside(const ir::Value* buffer, const Coordinates& at);
  Operand inside_dimension(const ir::Value* buffer, const Affine& at, size_t dim);
  Operand from_memory(DType dtype, Reg raw);
  Operand to_memory(DType dtype, Operand x);
  Operand narrowed_float(DType dtype, Operand x);
  Coordinates view_coordinates(const ir::View& view, const Coordinates& kept);
  Operand extent(const ir::Value* buffer, int dim);
  Operand coordinate(const Affine& a);
  Operand pointer(int tensor);
  void for_elements(const std::vector<int64_t>& extents, const Distribution* distribution,
                    const std::function<void(const Coordinates&, int, Operand)>& body);
  std::vector<int64_t> static_extents(const ir::View& view, const Location& location);
  bool is_whole(const ir::View& view) const;

  // ---- reductions (lower_reduce.cpp, lower_scan.cpp)
  Operand combine(ir::ReduceKind kind, DType dtype, Operand a, Operand b);
  Operand identity(ir::ReduceKind kind, DType dtype);
  static DType accumulator_type(const ir::ReduceAttributes& a);
  Operand reduce_input(const ir::ReduceAttributes& a, Operand x);
  Operand reduce_output(const ir::ReduceAttributes& a, Operand total, Operand old);
  Operand element_or_identity(ir::ReduceKind kind, DType dtype, Operand exists, Operand x);
  std::vector<Operand> reduce_thread(const ir::ReduceAttributes& a, const Distribution& d, const Distribution& out);
  bool reduce_lanes(const ir::ReduceAttributes& a, const Distribution& d, std::vector<Operand>& totals);
  struct Partners {
    Operand first = 0;
    std::vector<int> offsets;
  };
  Partners partners_of(const Distribution& d, int dim);
  void reduce_warps(const ir::ReduceAttributes& a, const Distribution& d, std::vector<Operand>& totals,
                    const Location& location);
  void reduce_to_memory(const ir::ReduceAttributes& a, const Distribution& out, const std::vector<Operand>& totals);
  Operand reduce_line(const ir::Op& op, const Coordinates& at, Operand guard);
  void reduce(const ir::Op& op);
  void reduce_registers(const ir::ReduceAttributes& a, const Fragment& src, const Location& location);
  Operand begin_cluster(Operand thread, int threads);  // cluster_rows.cpp
  void reduce_over_cluster(const ir::ReduceAttributes& a, DType dtype, const Distribution& d,
                           std::vector<Operand>& totals, const Location& location);
  /// Blocks that take row after row (walk_rows.cpp): copies that are the same for every row stand before the loop, and
  /// those of the next row are on their way while one is worked on.
  struct RowWalk {
    std::vector<const ir::Op*> kept, ahead;
    int walkers = 0;
  };
  std::optional<RowWalk> row_walk() const;
  int chosen_walkers(const RowWalk& walk) const;
  bool comes_packed(const ir::Op& copy) const;
  void walk_rows(const RowWalk& walk);
  void reduce_arg(const ir::Op& op);
  void scan(const ir::Op& op);
  void arrive_last(const ir::Op& op);
  Operand shuffled(Operand x, int lane_mask);

  // ---- assert and print (lower_report.cpp)
  void prepare_reports();
  void clear_failed_flag();
  void end_if_failed(const ir::Op& parallel);
  void assertion(const ir::Op& op);
  void print(const ir::Op& op);
  void write_record(int id);
  Operand report_address();
  Operand message_id(int id);
  Operand block_number();

  // ---- gemm (lower_gemm.cpp)
  void gemm(const ir::Op& op);
  void gemm_simt(const ir::GemmAttributes& a, const Location& location);
  void gemm_mma(const ir::GemmAttributes& a, const Location& location);
  void gemm_mma_f64(const ir::GemmAttributes& a);
  bool uses_mma(const ir::GemmAttributes& a) const;
  std::string why_not_mma(const ir::GemmAttributes& a) const;  ///< empty: mma.sync does it
  Distribution matrix_accumulator(const ir::GemmAttributes& a) const;
  bool feeds_matrix(const ir::Value* tile) const;

  // ---- 16-bit rows as they were read (keep_packed.cpp)
  struct Packed {
    std::vector<Reg> words;
    DType dtype = DType::BF16;
  };
  bool stays_packed(const ir::Op& copy, const ir::Value* tile) const;
  Operand element(const ir::Value* v, size_t r);

  // ---- what costs less later than where the text has it (defer_scale.cpp)
  struct ScaleStep {
    const ir::Value* tile = nullptr;
    const ir::Op* product = nullptr;
    const ir::Value* factor = nullptr;
    std::vector<const ir::Op*> factor_ops{};
    bool has_mask = false;
  };
  std::optional<ScaleStep> scale_step(const ir::Op& parallel) const;
  void defer_scale(const ir::Op& parallel, const ScaleStep& step);
  bool is_read_by_differences(const ir::Op& load) const;
  Operand scaled_difference(Operand x, Operand factor, Operand y);
  const ir::Value* row_factors(const ir::Op& parallel) const;
  Operand any_is_not_one(const ir::Value* factors);
  std::vector<const ir::Value*> separable_sums(const ir::Op& loop) const;
  std::vector<int> lanes_of(const Distribution& d, int dim) const;
  void begin_separate_sums(const std::vector<const ir::Value*>& sums);
  void join_separate_sums(const ir::Op& loop);

  Operand thread_coordinate(const Distribution& d, int dim);
  Operand owns(const Distribution& d);  ///< true for one replica of each element
  Operand valid(const Distribution& d, int r);

  const ir::Kernel& tile_;
  const ir::Op& grid_;
  const cpu::Arguments& arguments_;
  const ir::Kernel& slots_;
  const runtime::Recipe& recipe_;
  const target::Gpu& gpu_;
  const Options& options_;
  std::vector<Fact>& facts_;
  Builder b_;
  IndexEmitter index_;

  Operand thread_ = 0;  ///< index within the group
  int threads_ = 0;
  int barrier_ = 0;
  int cluster_ = 1;  ///< blocks that work as one
  bool has_met_cluster_ = false;
  ir::CacheHint copy_cache_ = ir::CacheHint::Default;
  int warps_m_ = 1, warps_n_ = 1;
  Reg shared_base_;
  int shared_bytes_ = 0;
  int first_slot_param_ = 0;
  bool has_counter_ = false;  ///< one more pointer: a counter that is zero before the launch
  int counter_param_ = 0;
  int failed_flag_ = -1;  ///< shared byte of the flag that a failed assertion in a `parallel` raises
  std::vector<BufferLayout> drawn_;
  std::vector<const ir::Op*> ops_;  ///< every op of the grid, in order
  std::unordered_map<const ir::Value*, Distribution> layouts_;
  std::unordered_map<const ir::Value*, Fragment> fragments_;
  std::unordered_map<const ir::Value*, SharedTile> shared_;
  std::unordered_map<const ir::Op*, AsyncRing> async_rings_;
  std::unordered_map<const ir::Value*, int> async_stages_;
  std::unordered_map<const ir::Value*, std::vector<Reg>> variables_;  ///< var and local buffers
  std::unordered_map<const ir::Value*, Operand> values_;
  std::unordered_set<const ir::Value*> written_globals_, read_globals_;
  std::unordered_set<const ir::Value*> rewritten_globals_;  ///< elements may be written by more than one thread
  std::unordered_set<const ir::Value*> pending_writes_, pending_reads_;
  std::unordered_set<const ir::Value*> unrounded_;               ///< narrow fragments whose readers round
  std::unordered_map<const ir::Value*, uint64_t> element_uses_;  ///< parallel variables a value depends on, as bits
  std::unordered_map<const ir::Value*, Packed> packed_;
  std::unordered_map<const ir::Op*, const ir::Region*> homes_;    ///< the region an op stands in
  std::unordered_map<const ir::Value*, Operand> factors_;         ///< fragment → what its registers lack yet
  std::unordered_map<const ir::Value*, Operand> loaded_factors_;  ///< the same of a value loaded from it
  std::unordered_set<const ir::Value*> separate_sums_;            ///< row sums whose lanes are not joined yet
  std::unordered_set<const ir::Value*> stored_here_;              ///< buffers the current `parallel` writes
  const ir::Op* left_out_ = nullptr;                              ///< a multiplication left to the readers
  const ir::Op* parallel_ = nullptr;
  const Distribution* iteration_ = nullptr;
  std::vector<int> iteration_offsets_;
  Operand iteration_guard_ = 1;
  bool assume_guards_ = false;
};

}  // namespace tilewright::plan::gpu
