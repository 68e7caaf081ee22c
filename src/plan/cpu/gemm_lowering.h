// gemm by register tiles: C in scratch, A row by row, B in panels of NR columns. Internal to plan/cpu.
//
//   for k0 in depth by KC:  copy A's rows (when not read in place)
//     for each panel of NR columns:  panel = shared | packed here | in place
//       for each MR rows:  registers (+)= A[MR, KC] · panel[KC, NR]
//
// Per operand, by rule: *in place* when it lies in scratch or few rows read it; *packed once
// and shared* when it is a global tensor that several blocks read and no block writes; else *packed per block*.
// Products of i8 use the CPU's dot product (gemm_dot.cpp). Split by part: gemm_panels.cpp, gemm_micro_kernel.cpp,
// gemm_target.cpp.
#pragma once

#include "plan/cpu/lowering.h"
#include "plan/cpu/register_tile.h"

namespace tilewright::plan::cpu {

/// A panel that has been found or made: NR columns, `step` bytes from one k to the next.
struct Panel {
  ir::Value* pointer = nullptr;
  ir::Index step;
  ir::Value* next = nullptr;           ///< where the next panel will be read, to be prefetched; null: unknown
  bool next_is_beside = false;         ///< the next panel's rows follow this one's (in place)
  std::vector<ir::Value*> masks = {};  ///< lanes of each vector inside the operand; empty: all
};

class GemmLowering {
 public:
  /// `next`: the operation after this one in its region; null: unknown.
  GemmLowering(Lowering& lowering, const ir::Op& op, const ir::Op* next);

  /// Why register tiles cannot serve this gemm; empty when they can.
  std::string obstacle() const;
  void lower();
  /// The next operation, a copy of C to global memory, was lowered with this one.
  bool took_next() const { return target_.is_used; }

 private:
  Operand operand(const ir::View& view, bool depth_is_last) const;
  void choose_operands();
  void reserve_scratch();
  void explain();
  void lower_versions();
  void lower_blocks();
  void find_target();
  void open_target(ir::Index k0, ir::Index depth);
  void pack_rows(ir::Index k0, ir::Index depth, ir::Index rows);
  void pack_whole_rows(ir::Index k0, ir::Index depth, ir::Index rows);
  Panel find_panel(ir::Index column, ir::Index k0, ir::Index depth);
  Panel shared_panel(ir::Index column, ir::Index k0);
  Panel packed_panel(ir::Index column, ir::Index k0, ir::Index depth);
  void register_tile(ir::Index row, ir::Index column, const Panel& panel, ir::Index k0, ir::Index depth);
  // gemm_micro_kernel.cpp
  /// What a step of k moves: positions in A, in the panel, in the panel after it (null: no prefetching), and the sums.
  struct Cursor {
    ir::Value* a = nullptr;
    ir::Value* b = nullptr;
    ir::Value* next = nullptr;
    std::vector<ir::Value*> sums;
    std::vector<ir::Value*> values() const;
  };
  Cursor multiply(Cursor at, const Panel& panel, ir::Index row, ir::Index lo, ir::Index hi, int unroll);
  void multiply_once(Cursor& at, const Panel& panel, ir::Index row, int u);
  ir::Value* next_panel(const Panel& panel, ir::Index row);
  std::vector<ir::Value*> start_sums(ir::Index row, ir::Value* c_pointer, ir::Index k0);
  ir::Index tile_row_bytes(ir::Index row, int r) const;
  void store_sums(ir::Index row, ir::Index column, ir::Value* c_pointer, const std::vector<ir::Value*>& sums);
  ir::Index live_row(ir::Index row, int r) const;
  bool is_one_panel() const { return columns_ <= tile_.columns(); }
  bool has_few_rows() const { return rows_ <= 4; }
  int64_t prefetch_bytes() const;
  void prefetch(const Panel& panel, const Cursor& at, int unroll);
  void prefetch_target(ir::Index row, ir::Index column);
  // gemm_dot.cpp
  const target::CpuDot* find_dot(bool depth_is_inside) const;
  ir::Value* add_row_sum(ir::Value* sums, ir::Value* elements);
  void store_correction(ir::Index row, ir::Value* sums);
  ir::Value* correction(ir::Index row);
  bool is_biased() const { return dot_ && dot_->b == DType::U8; }
  DType a_element() const { return dot_ ? dot_->a : compute_; }
  PanelShape panel_shape() const { return {tile_, compute_, dot_}; }
  bool can_share() const;
  ir::Index sharing_blocks() const;
  ir::Index shared_panels() const;
  void request_packing();

  /// Where the sums of the last depth block go instead of C's tile: the tensor the next operation copies it to.
  struct Target {
    bool is_used = false;
    const Placement* place = nullptr;
    ir::Index base, pitch;         ///< bytes
    ir::Value* pointer = nullptr;  ///< of this depth block: the tensor, or C's tile
    ir::Index step;                ///< its pitch
  };

  Lowering& l_;
  const ir::Op& op_;
  const ir::Op* next_;
  const ir::GemmAttributes& attributes_;
  ir::Builder& b_;
  DType compute_;
  RegisterTile tile_;
  const target::CpuDot* dot_ = nullptr;
  int64_t depth_block_;
  int64_t rows_, columns_;  ///< of the C tile
  Operand a_, b_operand_;
  const Placement* c_ = nullptr;
  ir::Index depth_, live_rows_, live_columns_, c_pitch_;
  bool packs_rows_ = false, reads_in_place_ = false, shares_ = false;
  bool always_shares_ = false;         ///< whatever the grid's extents
  bool reads_alone_in_place_ = false;  ///< B, when no other block reads its panels
  bool has_alone_version_ = false;     ///< the same, in loops of its own with shallow depth blocks
  bool copies_whole_rows_ = false;     ///< A's rows are contiguous and their depth is all there
  bool repeats_last_row_ = false;      ///< rows of a register tile beyond the last live one are copies of it
  Target target_;
  ir::Value* revisits_ = nullptr;  ///< lanes: all on unless this is the first depth block
  std::vector<ir::Value*> column_masks_;
  ir::Index is_shared_;  ///< condition at run time, when shares_
  int workspace_ = -1;
  ir::Index panel_depth_;  ///< rows of a shared panel
  int64_t a_scratch_ = 0, a_pitch_ = 0, b_scratch_ = 0, corrections_ = 0;
};

}  // namespace tilewright::plan::cpu
