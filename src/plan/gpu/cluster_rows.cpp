// Long rows over the blocks of a cluster: a row that would leave too few registers to a thread is held by 2 to 8
// blocks, read and written once, and its reductions meet in shared memory of all of them.
//
// To the rest of the lowering the cluster is one block: `thread_` counts through its blocks, so every distribution is
// over all of them. Only grids whose tiles lie in registers fit; what would need the barrier of one block leaves by
// NoCluster, and the grid is lowered again for single blocks.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "plan/gpu/lowering.h"

namespace tilewright::plan::gpu {

using ir::OpKind;
using ir::thread::Op;
using ir::thread::SpecialRegister;

namespace {

constexpr int kLargestCluster = 8;                                  ///< what every device with clusters runs
constexpr int64_t kTooManyRegisters = 200, kEnoughRegisters = 128;  ///< of row tiles, a thread

int64_t elements(const ir::Type& type) {
  int64_t n = 1;
  for (const ir::Index& x : type.shape) n *= x.constant().value_or(0);
  return n;
}

}  // namespace

bool is_row_operation(const ir::Op& op) {
  switch (op.kind) {
    case OpKind::Gemm:
    case OpKind::Scan:
    case OpKind::ReduceArg:
    case OpKind::ArriveLast:
    case OpKind::AtomicTile:
    case OpKind::Atomic:
    case OpKind::Print:
    case OpKind::Assert:
    case OpKind::While:
    case OpKind::For:
    case OpKind::Pipelined:
    case OpKind::If: return false;
    case OpKind::Alloc: return op.result()->type.space == ir::MemorySpace::Fragment;
    case OpKind::Reduce:
      return op.as<ir::ReduceAttributes>().dim + 1 == op.as<ir::ReduceAttributes>().src.buffer->type.rank();
    default: return true;
  }
}

int Lowering::cluster_of_rows() const {
  if (!gpu_.has_hopper || options_.wide_indices || options_.cluster == 1) return 1;
  const int threads = grid_.as<ir::GridAttributes>().threads;
  if (threads < 32 || !std::has_single_bit(static_cast<unsigned>(threads))) return 1;
  int64_t longest = 0, held = 0;
  bool reduces = false;
  for (const ir::Op* op : ops_) {
    if (!is_row_operation(*op)) return 1;
    reduces |= op->kind == OpKind::Reduce;
    if (op->kind != OpKind::Alloc) continue;
    const int64_t n = elements(op->result()->type);
    if (op->result()->type.rank() > 0)
      longest = std::max(longest, op->result()->type.shape.back().constant().value_or(0));
    held += n / threads;
  }
  if (!reduces || longest < int64_t{threads} * 2) return 1;
  if (options_.cluster > 1) return options_.cluster;
  if (held <= kTooManyRegisters) return 1;
  int blocks = 2;
  while (blocks < kLargestCluster && held / blocks > kEnoughRegisters) blocks *= 2;
  return blocks;
}

/// The thread's number in the cluster; the cluster's blocks let one another know that they have begun.
Operand Lowering::begin_cluster(Operand thread, int threads) {
  b_.program().cluster = cluster_;
  b_.emit(Op::ClusterArrive);
  has_met_cluster_ = false;
  return b_.mad(Scalar::U32, b_.special(SpecialRegister::ClusterRank), threads, thread);
}

// Every warp stores its part into the shared memory of every block, one lane a block; after the barrier all warps read
// all parts from their own.
void Lowering::reduce_over_cluster(const ir::ReduceAttributes& a, DType dtype, const Distribution& d,
                                   std::vector<Operand>& totals, const Location& location) {
  if (d.digits.size() != 1 || d.digits[0].extent != threads_ || d.digits[0].dim != a.dim)
    throw NoCluster{"the reduced dimension does not lie over all threads"};
  const int element = dtype == DType::Bool ? 4 : bytes(register_type(dtype));
  const Scalar type = element == 8 ? Scalar::B64 : Scalar::B32;
  const int parts = threads_ / 32, lanes = std::min(32, parts);
  const int at = reserve_shared(static_cast<int64_t>(totals.size()) * parts * element, 16, location);
  if (!std::exchange(has_met_cluster_, true)) b_.emit(Op::ClusterWait);
  const Operand lane = b_.rem(Scalar::U32, thread_, 32), warp = b_.div(Scalar::U32, thread_, 32);
  const Operand mine = b_.add(Scalar::U32, shared_base_, b_.mad(Scalar::U32, warp, element, at));
  const Operand block = b_.min(Scalar::U32, lane, cluster_ - 1);
  const Operand sends = b_.compare(Compare::Lt, Scalar::U32, lane, cluster_);
  const Reg there = b_.reg(Width::W32);
  b_.emit(Op::MapShared, {there}, {b_.in_register(mine), b_.in_register(block)});
  for (size_t k = 0; k < totals.size(); ++k) {
    const Operand word = dtype == DType::Bool ? b_.select(Scalar::B32, totals[k], 1, 0) : totals[k];
    b_.store(type, there, std::vector<Operand>{word},
             {Space::Cluster, static_cast<int>(k) * parts * element, ir::thread::CacheHint::None, sends.reg});
  }
  b_.emit(Op::ClusterArrive);
  if (!options_.plant.is("gpu_cluster", 1)) b_.emit(Op::ClusterWait);  // plant 1: parts are read before all are there
  const Operand first =
      b_.add(Scalar::U32, shared_base_, b_.mad(Scalar::U32, b_.rem(Scalar::U32, lane, lanes), element, at));
  for (size_t k = 0; k < totals.size(); ++k) {
    for (int part = 0; part < parts; part += 32) {
      const int offset = (static_cast<int>(k) * parts + part) * element;
      const Reg word = b_.load(type, first, 1, {Space::Shared, offset})[0];
      const Operand x = dtype == DType::Bool ? b_.compare(Compare::Ne, Scalar::S32, word, 0) : Operand(word);
      totals[k] = part == 0 ? x : combine(a.kind, dtype, totals[k], x);
    }
    const int last = options_.plant.is("gpu_cluster", 2) ? lanes / 2 : lanes;  // plant 2: half of the parts are lost
    for (int bit = 1; bit < last; bit *= 2) totals[k] = combine(a.kind, dtype, totals[k], shuffled(totals[k], bit));
  }
}

}  // namespace tilewright::plan::gpu
