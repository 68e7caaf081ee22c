// Structure: regions, loops, branches. A loop variable is one 32-bit register.
#include <fmt/format.h>

#include "plan/gpu/lowering.h"

namespace tilewright::plan::gpu {

using ir::OpKind;

void Lowering::region(const ir::Region& r) {
  for (const ir::Op* o : r.ops) op(*o);
}

void Lowering::op(const ir::Op& o) {
  b_.line = o.location.line;
  switch (o.kind) {
    case OpKind::Alloc: return;
    case OpKind::For: return for_loop(o);
    case OpKind::Pipelined: return pipelined(o);
    case OpKind::Parallel: return parallel(o);
    case OpKind::If: return if_else(o);
    case OpKind::While: return while_loop(o);
    case OpKind::Fill: return fill(o);
    case OpKind::Copy: return copy(o);
    case OpKind::Gemm: return gemm(o);
    case OpKind::Reduce: return reduce(o);
    case OpKind::ReduceArg: return reduce_arg(o);
    case OpKind::Scan: return scan(o);
    case OpKind::AtomicTile: return atomic_tile(o);
    case OpKind::ArriveLast: return arrive_last(o);
    case OpKind::Yield: return;
    default: return scalar_op(o);
  }
}

void Lowering::loop_over(const ir::Op& o, Operand lo, Operand hi, Operand step) {
  const ir::Region& body = *o.regions[0];
  std::vector<Reg> carried;
  for (size_t i = 0; i < o.operands.size(); ++i) {
    const DType dtype = o.operands[i]->type.dtype;
    carried.push_back(b_.copy_of(operand(o.operands[i]), dtype == DType::Bool ? Scalar::Pred : register_type(dtype)));
    define(body.arguments[i + 1], carried.back());
  }
  const auto reads_before = pending_reads_, writes_before = pending_writes_;
  enter_loop(body);
  const auto loop_body = [&](Reg i) {
    index_.push();
    index_.bind(body.arguments[0], {i, 0});
    define(body.arguments[0], i.width == Width::W64 ? Operand(i) : b_.convert(Scalar::S64, Scalar::S32, i));
    region(body);
    if (!carried.empty() && !body.ops.empty() && body.ops.back()->kind == OpKind::Yield) {
      std::vector<Operand> next;
      for (const ir::Value* v : body.ops.back()->operands)
        next.push_back(b_.copy_of(operand(v), register_type(v->type.dtype)));
      for (size_t k = 0; k < carried.size(); ++k) b_.assign(carried[k], next[k]);
    }
    index_.pop();
  };
  b_.for_range(lo, hi, step, loop_body, index_.type());
  after_loop(reads_before, writes_before);
  for (size_t i = 0; i < o.results.size(); ++i) define(o.results[i], carried[i]);
}

// A loop may run no iteration: barriers inside it do not count for what was pending before it.
void Lowering::after_loop(const Buffers& reads_before, const Buffers& writes_before) {
  if (options_.plant.is("gpu_barriers", 4)) return;  // plant 4: loops are taken to run
  pending_reads_.insert(reads_before.begin(), reads_before.end());
  pending_writes_.insert(writes_before.begin(), writes_before.end());
}

void Lowering::for_loop(const ir::Op& o) {
  const auto& a = o.as<ir::ForAttributes>();
  loop_over(o, index_.value(a.lo), index_.value(a.hi), index_.value(a.step));
}

// Copies run ahead where cp.async can make them; else there is one buffer per tile, and copies and use alternate.
void Lowering::pipelined(const ir::Op& o) {
  if (const auto ring = async_rings_.find(&o); ring != async_rings_.end()) return pipelined_async(o, ring->second);
  loop_over(o, 0, index_.value(o.as<ir::PipelinedAttributes>().count), 1);
}

void Lowering::while_loop(const ir::Op& o) {
  const auto reads_before = pending_reads_, writes_before = pending_writes_;
  enter_loop(*o.regions[0]);
  enter_loop(*o.regions[1]);
  b_.loop([&] {
    index_.push();
    region(*o.regions[0]);
    b_.break_if(b_.logical_not(operand(o.regions[0]->ops.back()->operands[0])));
    region(*o.regions[1]);
    index_.pop();
  });
  after_loop(reads_before, writes_before);
}

// The condition is uniform over the block (or the code is inside one iteration of `parallel`).
void Lowering::if_else(const ir::Op& o) {
  std::vector<Reg> results;
  for (const ir::Value* v : o.results)
    results.push_back(b_.reg(v->type.dtype == DType::Bool ? Scalar::Pred : register_type(v->type.dtype)));
  const auto branch = [&](size_t k) {
    index_.push();
    if (k < o.regions.size()) {
      if (parallel_)
        element_region(*o.regions[k]);
      else
        region(*o.regions[k]);
      if (!results.empty()) {
        const auto& yielded = o.regions[k]->ops.back()->operands;
        for (size_t i = 0; i < results.size(); ++i) b_.assign(results[i], operand(yielded[i]));
      }
    }
    index_.pop();
  };
  const Operand condition = operand(o.operands[0]);
  const auto reads_before = pending_reads_, writes_before = pending_writes_;
  b_.if_then(
      condition, [&] { branch(0); },
      [&] {
        auto reads_then = pending_reads_, writes_then = pending_writes_;
        pending_reads_ = reads_before, pending_writes_ = writes_before;
        branch(1);
        pending_reads_.merge(reads_then), pending_writes_.merge(writes_then);
      });
  pending_reads_.insert(reads_before.begin(), reads_before.end());
  pending_writes_.insert(writes_before.begin(), writes_before.end());
  for (size_t i = 0; i < results.size(); ++i) define(o.results[i], results[i]);
}

}  // namespace tilewright::plan::gpu
