// The loop of two chained products, overlapped: attention's shape.
#include "plan/gpu/hopper_form.h"

namespace tilewright::plan::gpu {

using ir::OpKind;
using ir::thread::Op;

bool HopperForm::has_chain() {
  for (const ir::Op* op : l_.ops_)
    if (op->kind == OpKind::Pipelined && has_products(*op) && chain_of(*op)) return true;
  return false;
}

std::optional<HopperForm::Chain> HopperForm::chain_of(const ir::Op& op) {
  if (!l_.options_.overlap_products) return std::nullopt;
  Chain c;
  const ir::Region& body = *op.regions[0];
  for (const ir::Op* inner : body.ops) {
    if (inner->kind != OpKind::Gemm) {
      if (has_products(*inner)) return std::nullopt;
      continue;
    }
    if (!c.first)
      c.first = inner;
    else if (!c.second)
      c.second = inner;
    else
      return std::nullopt;
  }
  if (!c.second) return std::nullopt;
  const auto& one = c.first->as<ir::GemmAttributes>();
  const auto& two = c.second->as<ir::GemmAttributes>();
  if (one.accumulate || !two.accumulate || !is_shared_tile(one.a.buffer) || !is_fragment(two.a.buffer) ||
      one.c.buffer == two.a.buffer)
    return std::nullopt;
  for (Ring& r : rings_) {
    if (r.home != &body) continue;
    if (r.first_use == c.first && r.last_use == c.first)
      c.k = &r;
    else if (r.first_use == c.second && r.last_use == c.second)
      c.v = &r;
    else
      return std::nullopt;
  }
  if (!c.k || !c.v) return std::nullopt;
  const ir::Value *p = two.a.buffer, *o = two.c.buffer;
  int position = 0;
  for (const ir::Op* inner : body.ops) {
    if (inner == c.first)
      position = 1;
    else if (inner == c.second)
      position = 2;
    else if (has_copies(*inner) || inner->kind == OpKind::Yield)
      continue;
    else if (position == 2 || (position == 0 && inner->results.empty()))
      return std::nullopt;
    else {
      const Touched t = touched(*inner);
      const bool is_late = t.reads.contains(p) || t.writes.contains(p) || t.reads.contains(o) || t.writes.contains(o);
      if (is_late) {
        for (const ir::Value* v : t.writes)
          if (v != p && v != o) return std::nullopt;
        c.late.push_back(inner);
        continue;
      }
      for (const ir::Op* later : c.late)  // it moves before them: it must not change what they read
        for (const ir::Value* v : t.writes)
          if (touched(*later).reads.contains(v)) return std::nullopt;
      c.early.push_back(inner);
    }
  }
  return c;
}

HopperForm::Touched HopperForm::touched(const ir::Op& op) {
  Touched t;
  const std::function<void(const ir::Op&)> visit = [&](const ir::Op& o) {
    switch (o.kind) {
      case OpKind::Load: t.reads.insert(o.as<ir::AccessAttributes>().buffer); break;
      case OpKind::Store: t.writes.insert(o.as<ir::AccessAttributes>().buffer); break;
      case OpKind::Atomic: t.writes.insert(o.as<ir::AtomicAttributes>().buffer); break;
      case OpKind::Fill: t.writes.insert(o.as<ir::FillAttributes>().dst.buffer); break;
      case OpKind::Copy:
        t.reads.insert(o.as<ir::CopyAttributes>().src.buffer);
        t.writes.insert(o.as<ir::CopyAttributes>().dst.buffer);
        break;
      case OpKind::Reduce:
        t.reads.insert(o.as<ir::ReduceAttributes>().src.buffer);
        t.writes.insert(o.as<ir::ReduceAttributes>().dst.buffer);
        if (o.as<ir::ReduceAttributes>().accumulate) t.reads.insert(o.as<ir::ReduceAttributes>().dst.buffer);
        break;
      default: break;
    }
    for (const ir::Region* r : o.regions)
      for (const ir::Op* inner : r->ops) visit(*inner);
  };
  visit(op);
  return t;
}

void HopperForm::chained_loop(const ir::Op& op, Chain& c) {
  const ir::Region& body = *op.regions[0];
  Operand count = 0;
  if (op.kind == OpKind::Pipelined)
    count = l_.index_.value(op.as<ir::PipelinedAttributes>().count);
  else
    count = l_.index_.value(op.as<ir::ForAttributes>().hi);
  l_.fact("loop", "the second product of an iteration runs under the arithmetic of the next; warpgroups take turns",
          op.location);
  packed_ = b_.regs(
      static_cast<int>(extent_of(c.second->as<ir::GemmAttributes>().a.buffer, 1) / 16 * (rows_ / groups_ / 64) * 4),
      Scalar::B32);
  b_.emit(Op::Undefined, packed_);  // read from the second iteration on only
  const ir::Value* variable = body.arguments[0];
  const auto emit_all = [&](const std::vector<const ir::Op*>& ops) {
    for (const ir::Op* o : ops) l_.op(*o);
  };
  const auto bind = [&](Operand i) {
    l_.index_.bind(variable, {i, 0});
    l_.define(variable, i.is_constant ? i : b_.convert(Scalar::S64, Scalar::S32, i));
  };
  const Reg i = b_.copy_of(0), under_way = b_.copy_of(0);
  const auto first_product = [&] {
    wait(*c.k);
    take_turn();
    product(*c.first, body);
  };
  const auto second_product = [&] {
    wait(*c.v);
    product(*c.second, body, true);
    pass_turn();
    b_.assign(under_way, c.v->stage);
    advance(*c.v);
    if (!l_.options_.plant.is("gpu_chain", 1)) b_.emit(Op::WgmmaWait, {}, {}, {1});  // plant 1: scores read too early
  };
  // Two warpgroups: the first product of all iterations is one place, which is a tenth less for the assembler. Three
  // run 3 % faster when the first one of a block waits for nobody's turn.
  const bool is_apart = groups_ >= 3;
  b_.if_then(b_.compare(Compare::Gt, Scalar::S32, count, 0), [&] {
    b_.assign(i, 0);
    if (is_apart) {
      wait(*c.k);
      product(*c.first, body);
      finish_products();
      leave(*c.k);
    }
    b_.loop([&] {
      l_.index_.push();
      bind(i);
      const Operand has_previous = b_.compare(Compare::Ne, Scalar::S32, i, 0);
      if (!is_apart) {
        first_product();
        b_.if_then(has_previous, second_product, [&] {
          pass_turn();
          finish_products();
        });
        leave(*c.k);
      }
      emit_all(c.early);
      if (groups_ < 3) pin(c.early);  // three warpgroups fill the gaps as it is
      finish_products();
      release(*c.v, under_way, has_previous);
      emit_all(c.late);
      pack_operand(c.second->as<ir::GemmAttributes>());
      l_.index_.pop();
      b_.binary_into(i, Op::Add, Scalar::S32, i, 1);
      b_.break_if(b_.compare(Compare::Ge, Scalar::S32, i, count));
      if (is_apart) {
        first_product();
        second_product();
        leave(*c.k);
      }
    });
    wait(*c.v);
    product(*c.second, body, true);
    finish_products();
    leave(*c.v);
  });
}

// Assemblers move arithmetic below a wait it does not depend on, out of the shadow of the products. A store that never
// happens (sums of exponentials are not negative; elsewhere it writes a word nobody reads) depends on the row sums,
// thus on every element, and memory operations stay in front of the wait.
void HopperForm::pin(const std::vector<const ir::Op*>& early) {
  Operand below = 0;
  for (const ir::Op* op : early) {
    if (op->kind != OpKind::Reduce || op->as<ir::ReduceAttributes>().kind != ir::ReduceKind::Sum) continue;
    const auto f = l_.fragments_.find(op->as<ir::ReduceAttributes>().dst.buffer);
    if (f == l_.fragments_.end() || op->as<ir::ReduceAttributes>().dst.buffer->type.dtype != DType::F32) continue;
    for (Reg r : f->second.registers)
      below = b_.logical_or(below, b_.compare(Compare::Lt, Scalar::F32, r, Operand::f32(0)));
  }
  if (below.is_constant) return;
  b_.store(Scalar::B32, b_.in_register(shared(scratch_)), std::vector<Operand>{b_.in_register(thread_)},
           {ir::thread::Space::Shared, 0, ir::thread::CacheHint::None, below.reg});
}

void HopperForm::take_turn() {
  if (groups_ > 1) b_.emit(Op::Barrier, {}, {b_.in_register(b_.add(Scalar::U32, group_, kTurnBarrier)), 256});
}

void HopperForm::pass_turn() {
  if (groups_ == 1) return;
  const Operand next = b_.select(Scalar::B32, b_.compare(Compare::Eq, Scalar::U32, group_, groups_ - 1), 0,
                                 b_.add(Scalar::U32, group_, 1));
  b_.emit(Op::BarrierArrive, {}, {b_.in_register(b_.add(Scalar::U32, next, kTurnBarrier)), 256});
}

}  // namespace tilewright::plan::gpu
