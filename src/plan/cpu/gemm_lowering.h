// gemm by register tiles: C in scratch, A row by row, B in panels of NR columns. Internal to plan/cpu.
//
//   for k0 in depth by KC:  copy A's rows (when not read in place)
//     for each panel of NR columns:  panel = shared | packed here | in place
//       for each MR rows:  registers (+)= A[MR, KC] · panel[KC, NR]
//
// Per operand, by rule: *in place* when it lies in scratch or is read by fewer than four register tiles; *packed once
// and shared* when it is a global tensor that several blocks read and no block writes; else *packed per block*. Does
// not do: integer dot products by special instructions (dot_gemm.h).
#pragma once

#include "plan/cpu/lowering.h"
#include "plan/cpu/register_tile.h"

namespace tilewright::plan::cpu {

/// A panel that has been found or made: NR columns, `step` bytes from one k to the next.
struct Panel {
  ir::Value* pointer = nullptr;
  ir::Index step;
  ir::Value* next = nullptr;    ///< where the next panel will be read, to be prefetched; null: unknown
  bool next_is_beside = false;  ///< the next panel's rows follow this one's (in place)
};

class GemmLowering {
 public:
  GemmLowering(Lowering& lowering, const ir::Op& op);

  /// Why register tiles cannot serve this gemm; empty when they can.
  std::string obstacle() const;
  void lower();

 private:
  Operand operand(const ir::View& view, bool depth_is_last) const;
  void lower_blocks();
  void pack_rows(ir::Index k0, ir::Index depth, ir::Index rows);
  Panel find_panel(ir::Index column, ir::Index k0, ir::Index depth);
  Panel shared_panel(ir::Index column, ir::Index k0);
  Panel packed_panel(ir::Index column, ir::Index k0, ir::Index depth);
  void register_tile(ir::Index row, ir::Index column, const Panel& panel, ir::Index k0, ir::Index depth);
  std::vector<ir::Value*> multiply(std::vector<ir::Value*> acc, ir::Value* a_pointer, const Panel& panel, ir::Index row,
                                   ir::Index lo, ir::Index hi, int unroll);
  void prefetch(const Panel& panel, ir::Value* b_at, ir::Index row, ir::Index k, int unroll);
  bool can_share() const;
  ir::Index sharing_blocks() const;
  ir::Index shared_panels() const;
  void request_packing();

  Lowering& l_;
  const ir::Op& op_;
  const ir::GemmAttributes& attributes_;
  ir::Builder& b_;
  DType compute_;
  RegisterTile tile_;
  int64_t depth_block_;
  int64_t rows_, columns_;  ///< of the C tile
  Operand a_, b_operand_;
  const Placement* c_ = nullptr;
  ir::Index depth_, live_rows_, live_columns_;
  bool packs_rows_ = false, reads_in_place_ = false, shares_ = false;
  ir::Index is_shared_;  ///< condition at run time, when shares_
  int workspace_ = -1;
  ir::Index panel_depth_;  ///< rows of a shared panel
  int64_t a_scratch_ = 0, a_pitch_ = 0, b_scratch_ = 0;
};

}  // namespace tilewright::plan::cpu
