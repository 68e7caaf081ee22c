// The Hopper form of a grid with matrix products: a persistent block of one producer warp and one to three consumer
// warpgroups. Shared by the files hopper*.cpp; nothing else includes it.
//
// The producer is a single warp behind the consumers, or a warpgroup of its own that gives its registers away when the
// consumers need more than the launch bounds leave. It walks the block's skeleton and fills rings of shared-memory
// stages by the copy engine; the consumers walk their own copy of the skeleton, take stages, run wgmma on them and
// everything else on registers; barriers: full (one arrival and the bytes) and empty (one arrival per consumer warp)
// per stage. Throws No with the reason when the grid does not fit; does not do: the portable form.
#pragma once

#include <fmt/format.h>

#include <algorithm>

#include "plan/gpu/lowering.h"
#include "plan/gpu/op_views.h"
#include "target/gpu_matrix.h"

namespace tilewright::plan::gpu {

inline bool is_shared_tile(const ir::Value* v) {
  return v->type.is_buffer() && v->type.space == ir::MemorySpace::Shared;
}
inline bool is_global(const ir::Value* v) { return v->type.is_buffer() && v->type.space == ir::MemorySpace::Global; }
inline int64_t extent_of(const ir::Value* v, size_t d) { return v->type.shape[d].constant().value_or(0); }
/// The instruction for operands of these types.
std::optional<target::Wgmma> wgmma_of(DType a, DType b, DType c);

/// A tile of a ring stage: panels of `span` bytes along the inner dimension, each all rows.
struct Staged {
  const ir::Value* buffer = nullptr;
  const ir::Op* copy = nullptr;
  int map = 0;     ///< kernel parameter
  int offset = 0;  ///< bytes within the stage
  int rows = 0, inner = 0, element = 0, span = 0;
  Swizzle swizzle = Swizzle::B128;
  int panels() const { return inner * element / span; }
  int panel_bytes() const { return rows * span; }
  int size() const { return panels() * panel_bytes(); }
};

struct Ring {
  const ir::Region* home = nullptr;
  const ir::Op* first_use = nullptr;
  const ir::Op* last_use = nullptr;
  std::vector<Staged> tiles;
  int stages = 1;
  int stage_bytes = 0;
  int offset = 0, barriers = 0;
  Reg stage, phase;  ///< of the role being emitted
};

/// Why a grid has no Hopper form.
struct No {
  std::string why;
};

class HopperForm {
 public:
  HopperForm(Lowering& lowering, runtime::Launch& launch) : l_(lowering), b_(lowering.b_), launch_(launch) {}

  ir::thread::Program emit();

 private:
  // ---- what must hold

  void check();
  void check_shared_writes(const ir::Op& op);
  void check_gemm(const ir::Op& op);
  void check_copy(const ir::Op& op);
  void choose_roles();

  // ---- rings

  static bool uses(const ir::Op& op, const ir::Value* tile);
  void find_rings();
  void add_to_ring(const ir::Region& region, const ir::Op& copy, int stages);
  void layouts();

  /// Narrow fragments that only products read: packing them rounds, so storing them need not.
  void find_unrounded();
  bool can_stage(const ir::Op& op) const;
  void place_shared();
  void prefetch_next_block(int bytes_left);

  /// Declares the tensor map of `view` with this box; dimensions innermost first.
  int map_for(const ir::View& view, int rows, int columns, Swizzle swizzle);
  void declare_maps();

  /// Coordinates of `view` for the copy engine, innermost first, moved by (rows, columns) inside the tile.
  bool is_unreached_when_empty(const ir::Op& copy, const ir::Value* tensor) const;
  Operand beyond_if_empty(const ir::Op& copy, const ir::Value* tensor);
  std::vector<Operand> coordinates(const ir::Op& copy, const ir::View& view, Operand rows, int64_t columns);

  // ---- the program

  Operand shared(int offset) { return b_.add(Scalar::U32, l_.shared_base_, offset); }
  Operand full(const Ring& r) { return b_.mad(Scalar::U32, r.stage, 16, shared(r.barriers)); }
  Operand empty(const Ring& r) { return b_.add(Scalar::U32, full(r), 8); }
  Operand stage_address(const Ring& r) { return b_.mad(Scalar::U32, r.stage, r.stage_bytes, shared(r.offset)); }

  void begin_role();
  void advance(Ring& r);
  void prologue();
  bool is_product_loop() const;
  enum class Role : uint8_t { Producer, Consumer };
  void for_blocks(Role role, const std::function<void()>& body);
  std::vector<Operand> block_of(Operand t, const std::vector<Operand>& n);
  void hand_number(Reg t);
  void take_number(Reg t);
  Operand others_in_cache();
  bool blocks_differ() const;
  std::vector<Ring> all_rings() const {
    std::vector<Ring> out = rings_;
    if (hands_blocks_) out.push_back(handed_);
    return out;
  }

  // ---- producer

  bool has_copies(const ir::Op& op) const;

  /// Registers move from the producer's warpgroup to the consumers where the launch bounds alone (168 or 128) are too
  /// few.
  void reallocate(bool is_producer);
  void producer();
  void produce(const ir::Region& region);
  void issue(Ring& r, size_t i, std::vector<const Ring*>& begun);
  void loop(const ir::Op& op, const std::function<void()>& body);

  // ---- consumers

  void consumer();
  bool has_chain();
  bool has_products(const ir::Op& op) const;
  void consume(const ir::Region& region);
  void wait(Ring& r) { b_.emit(ir::thread::Op::MbarrierWait, {}, {b_.in_register(full(r)), r.phase}); }
  void release(const Ring& r, Operand stage, Operand only_if = 1);
  void leave(Ring& r) {
    release(r, r.stage);
    advance(r);
  }
  void finish_products() { b_.emit(ir::thread::Op::WgmmaWait, {}, {}, {0}); }

  /// A loop of nothing but accumulating products into tiles the loop does not otherwise touch: the wait for a step's
  /// products and the release of its stage move into the next step.
  bool is_deferred(const ir::Op& op) const;
  void product_loop(const ir::Op& op);
  const Staged& staged(const ir::Value* v, const Ring** ring) const;

  /// Low and high words of the descriptor of an operand in its current stage. `along_k`: the inner dimension is k.
  std::pair<Operand, Operand> descriptor(const ir::Value* v, bool along_k);

  /// Byte offset in the tile of k-step `k` (elements), moved by `mn` elements along the other dimension.
  static int step_offset(const Staged& t, bool along_k, int k, int mn);

  // ---- a loop of two chained products: s = q·kᵀ, arithmetic, o += p·v with p in registers

  struct Chain {
    const ir::Op *first = nullptr, *second = nullptr;
    Ring *k = nullptr, *v = nullptr;
    std::vector<const ir::Op*> early, late;  ///< what does not touch the second product's registers, and what does
  };

  /// Splits the loop so that the second product of one iteration runs under the arithmetic of the next: legal when what
  /// touches its operand and accumulator can wait until the others are done.
  std::optional<Chain> chain_of(const ir::Op& op);

  struct Touched {
    std::unordered_set<const ir::Value*> reads, writes;
  };
  static Touched touched(const ir::Op& op);

  static constexpr int kTurnBarrier = 8;
  void chained_loop(const ir::Op& op, Chain& c);
  void pin(const std::vector<const ir::Op*>& early);
  void take_turn();
  void pass_turn();

  /// The left operand of a product from registers: k-step major, then site, four registers each.
  void pack_operand(const ir::GemmAttributes& a);
  void product(const ir::Op& op, const ir::Region&, bool is_packed = false);
  void store_tile(const ir::Op& op);
  ir::thread::Program finish();

  Lowering& l_;
  Builder& b_;
  runtime::Launch& launch_;
  std::unordered_set<const ir::Value*> read_, written_;
  std::unordered_map<const ir::Value*, const ir::Op*> copies_;
  std::unordered_map<const ir::Op*, int> store_maps_;
  std::vector<const ir::Op*> gemms_;
  std::vector<Ring> rings_;
  int scratch_ = 0;  ///< a word of shared memory nobody reads
  Ring handed_;      ///< the number of the next block, from the producer to the consumers
  bool hands_blocks_ = false;
  int64_t rows_ = 0;
  int groups_ = 1;
  bool reallocates_ = false;
  int staging_ = 0, staging_bytes_ = 0;
  std::vector<Reg> packed_;
  Operand thread_ = 0, lane_ = 0, is_lane0_ = 0, group_ = 0, in_group_ = 0;
  Reg true_, false_;
};

}  // namespace tilewright::plan::gpu
