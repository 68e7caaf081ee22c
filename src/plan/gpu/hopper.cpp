// Roles: the producer, the consumers, and the walk of both over the blocks of the grid.
#include "plan/gpu/hopper_form.h"

namespace tilewright::plan::gpu {

using ir::OpKind;
using ir::thread::Op;
using ir::thread::Param;
using ir::thread::SpecialRegister;

ir::thread::Program HopperForm::emit() {
  check();
  choose_roles();
  find_rings();
  hands_blocks_ = has_chain() && blocks_differ() && l_.tile_.body->ops.size() == 1;
  l_.has_counter_ = hands_blocks_;
  l_.declare_parameters();
  layouts();
  find_unrounded();
  place_shared();
  declare_maps();
  prologue();
  return finish();
}

void HopperForm::prologue() {
  reallocates_ = groups_ > 1 && has_chain();
  b_.program().threads = groups_ * 128 + (reallocates_ ? 128 : 32);
  b_.program().whole_program = reallocates_;
  b_.program().needs_sm90a = true;
  thread_ = b_.special(SpecialRegister::ThreadX);
  l_.shared_base_ = b_.special(SpecialRegister::SharedBase);
  b_.if_then(b_.compare(Compare::Eq, Scalar::U32, thread_, 0), [&] {
    for (const Ring& r : all_rings())
      for (int s = 0; s < r.stages; ++s) {
        b_.emit(Op::MbarrierInit, {}, {shared(r.barriers + 16 * s), 1});
        b_.emit(Op::MbarrierInit, {}, {shared(r.barriers + 16 * s + 8), groups_ * 4});
      }
    b_.emit(Op::FenceBarrierInit);
    for (const Ring& r : rings_)
      for (const Staged& t : r.tiles) b_.emit(Op::PrefetchMap, {}, {b_.param_address(t.map)});
  });
  b_.emit(Op::Barrier, {}, {0, 0});
  l_.bind_arguments();
  const Operand is_producer = b_.compare(Compare::Ge, Scalar::U32, thread_, groups_ * 128);
  b_.if_then(
      is_producer, [&] { producer(); }, [&] { consumer(); });
}

bool HopperForm::is_product_loop() const {
  for (const ir::Op* op : l_.block_region().ops)
    if ((op->kind == OpKind::Pipelined || op->kind == OpKind::For) && is_deferred(*op)) return true;
  return false;
}

// Every block of the grid in turn, by fixed steps. Where products are chained the producer works out the next block and
// hands it to the consumers through a ring of its own; where blocks differ in length it draws numbers from a counter,
// so that multiprocessors take the next as they get free.
void HopperForm::for_blocks(Role role, const std::function<void()>& body) {
  const auto& g = l_.grid_.as<ir::GridAttributes>();
  std::vector<Operand> n;
  Operand total = 1;
  for (const ir::Index& x : g.extents) {
    n.push_back(l_.index_.value(x));
    total = b_.mul(Scalar::S32, total, n.back());
  }
  const auto one = [&](const std::vector<Operand>& block) {
    l_.index_.push();
    const auto& arguments = l_.block_region().arguments;
    for (size_t i = 0; i < arguments.size(); ++i) {
      l_.index_.bind(arguments[i], {block[i], 0});
      l_.define(arguments[i], b_.convert(Scalar::S64, Scalar::S32, block[i]));
    }
    body();
    l_.index_.pop();
  };
  const Operand first = b_.special(SpecialRegister::BlockX), step = b_.special(SpecialRegister::GridX);
  if (!hands_blocks_) {
    b_.for_range(first, total, step, [&](Reg t) {
      l_.index_.push();
      one(block_of(t, n));
      l_.index_.pop();
    });
    return;
  }
  const Reg t = b_.copy_of(first);
  const auto drawn_block = [&] {
    l_.index_.push();
    one(block_of(t, n));
    l_.index_.pop();
  };
  if (role == Role::Consumer) {
    b_.loop([&] {
      take_number(t);
      b_.break_if(b_.compare(Compare::Ge, Scalar::S32, t, total));
      drawn_block();
    });
    return;
  }
  const Operand counter = b_.load_param(l_.counter_param_);
  b_.loop([&] {
    hand_number(t);
    b_.break_if(b_.compare(Compare::Ge, Scalar::S32, t, total));
    drawn_block();
    const Reg drawn = b_.reg(Width::W32);
    b_.emit(Op::Atomic, {drawn}, {counter, b_.in_register(1)}, {0, static_cast<int>(ir::thread::Space::Global), 0})
        .type = Scalar::U32;
    b_.assign(t, b_.add(Scalar::U32, drawn, step));
  });
}

void HopperForm::hand_number(Reg t) {
  b_.emit(Op::MbarrierWait, {},
          {b_.in_register(empty(handed_)), b_.in_register(b_.bit_xor(Scalar::B32, handed_.phase, 1))});
  b_.store(Scalar::B32, b_.in_register(stage_address(handed_)), std::vector<Operand>{t}, {ir::thread::Space::Shared});
  b_.emit(Op::MbarrierArrive, {}, {b_.in_register(full(handed_))});
  advance(handed_);
}

void HopperForm::take_number(Reg t) {
  wait(handed_);
  b_.load_into(std::vector<Reg>{t}, Scalar::B32, b_.in_register(stage_address(handed_)), {ir::thread::Space::Shared});
  b_.emit(Op::SyncWarp);
  release(handed_, handed_.stage);
  advance(handed_);
}

// Two-dimensional product grids go in groups of eight tile rows, rows fastest, so that a wave of blocks shares operands
// in L2; others take the first axis last to first (causal tiles grow with it), for as many of the others at a time as
// fit L2.
std::vector<Operand> HopperForm::block_of(Operand t, const std::vector<Operand>& n) {
  if (n.size() == 1) return {t};
  const auto& g = l_.grid_.as<ir::GridAttributes>();
  std::vector<Operand> block(n.size(), 0);
  Operand others = n[1];
  for (size_t i = 2; i < n.size(); ++i) others = b_.mul(Scalar::S32, others, n[i]);
  const Operand size = is_product_loop() ? Operand(g.group > 0 ? g.group : 8) : others_in_cache();
  const Operand in_group = b_.mul(Scalar::S32, n[0], size);
  // Remainders from quotients: a division is some twenty instructions.
  const auto remainder = [&](Operand x, Operand quotient, Operand divisor) {
    return b_.sub(Scalar::U32, x, b_.mul(Scalar::U32, quotient, divisor));
  };
  const Operand group = b_.div(Scalar::U32, t, in_group), rest = remainder(t, group, in_group);
  const Operand first = b_.mul(Scalar::S32, group, size);
  const Operand height = b_.min(Scalar::S32, b_.sub(Scalar::S32, others, first), size);
  const Operand along = b_.div(Scalar::U32, rest, height);
  block[0] = is_product_loop() ? along : b_.sub(Scalar::S32, b_.sub(Scalar::S32, n[0], 1), along);
  Operand other = b_.add(Scalar::S32, first, remainder(rest, along, height));
  for (size_t i = 1; i + 1 < n.size(); ++i) {
    const Operand quotient = b_.div(Scalar::U32, other, n[i]);
    block[i] = remainder(other, quotient, n[i]);
    other = quotient;
  }
  block.back() = other;
  return block;
}

/// How many indices of the outer axes read at once what fits half of L2 (32 MB), 1 to 16.
Operand HopperForm::others_in_cache() {
  constexpr int kUnit = 64;  // bytes, so that sizes stay within 31 bits
  Operand units = 0;
  for (const Ring& r : rings_) {
    if (r.home == &l_.block_region()) continue;
    for (const Staged& t : r.tiles) {
      const ir::View& view = t.copy->as<ir::CopyAttributes>().src;
      for (size_t d = 0; d + 1 < view.slices.size(); ++d)
        if (view.slices[d].keep)
          units = b_.add(Scalar::U32, units,
                         b_.mul(Scalar::U32, l_.index_.value(view.buffer->type.shape[d]),
                                std::max(1, t.inner * t.element / kUnit)));
    }
  }
  const Operand fit = b_.div(Scalar::U32, (32 << 20) / kUnit, b_.max(Scalar::U32, units, 1));
  return b_.max(Scalar::U32, b_.min(Scalar::U32, fit, 16), 1);
}

/// Some loop over products is longer in one block than in another.
bool HopperForm::blocks_differ() const {
  for (const ir::Op* op : l_.block_region().ops) {
    if (op->kind != OpKind::Pipelined || !has_products(*op)) continue;
    for (const ir::Value* v : l_.block_region().arguments)
      if (ir::uses_symbol(op->as<ir::PipelinedAttributes>().count, v)) return true;
  }
  return false;
}

bool HopperForm::has_copies(const ir::Op& op) const {
  if (op.kind == OpKind::Copy) return copies_.contains(op.as<ir::CopyAttributes>().dst.buffer);
  for (const ir::Region* r : op.regions)
    for (const ir::Op* inner : r->ops)
      if (has_copies(*inner)) return true;
  return false;
}

void HopperForm::reallocate(bool is_producer) {
  if (!reallocates_) return;
  const int give = groups_ == 3 ? 32 : 24, take = groups_ == 3 ? 160 : 240;
  b_.emit(Op::SetMaxRegisters, {}, {}, {is_producer ? give : take, is_producer ? 0 : 1});
}

void HopperForm::producer() {
  reallocate(true);
  b_.if_then(b_.compare(Compare::Eq, Scalar::U32, thread_, groups_ * 128), [&] {
    l_.index_.push();
    begin_role();
    l_.begin_group(0, 1, 0);
    for_blocks(Role::Producer, [&] { produce(l_.block_region()); });
    l_.index_.pop();
  });
}

void HopperForm::produce(const ir::Region& region) {
  std::vector<const Ring*> begun;
  for (const ir::Op* op : region.ops) {
    if (op->kind == OpKind::Copy && has_copies(*op)) {
      for (Ring& r : rings_) {
        if (r.home != &region) continue;
        for (size_t i = 0; i < r.tiles.size(); ++i)
          if (r.tiles[i].copy == op) issue(r, i, begun);
      }
    } else if ((op->kind == OpKind::For || op->kind == OpKind::Pipelined) && has_copies(*op)) {
      loop(*op, [&] { produce(*op->regions[0]); });
    } else if (op->kind == OpKind::If && has_copies(*op)) {
      const auto branch = [&](size_t k) {  // what one branch works out is not known to what follows
        l_.index_.push();
        if (k < op->regions.size()) produce(*op->regions[k]);
        l_.index_.pop();
      };
      b_.if_then(
          l_.operand(op->operands[0]), [&] { branch(0); }, [&] { branch(1); });
    } else if (op->regions.empty() && !op->results.empty() && op->kind != OpKind::Alloc) {
      l_.scalar_op(*op);
    }
  }
}

// Copies of a ring may be apart in the text; the first one waits for the stage and announces the bytes of all.
void HopperForm::issue(Ring& r, size_t i, std::vector<const Ring*>& begun) {
  const Staged& t = r.tiles[i];
  b_.line = t.copy->location.line;
  if (std::find(begun.begin(), begun.end(), &r) == begun.end()) {
    begun.push_back(&r);
    int total = 0;
    for (const Staged& x : r.tiles) total += x.size();
    b_.emit(Op::MbarrierWait, {}, {b_.in_register(empty(r)), b_.in_register(b_.bit_xor(Scalar::B32, r.phase, 1))});
    if (l_.options_.plant.is("gpu_ring", 2)) total -= 16;  // plant 2: fewer bytes are announced than come
    b_.emit(Op::MbarrierExpect, {}, {b_.in_register(full(r)), total});
  }
  const Operand base = b_.add(Scalar::U32, stage_address(r), t.offset), barrier = full(r);
  for (int p = 0; p < t.panels(); ++p) {
    std::vector<Operand> in = {b_.in_register(b_.add(Scalar::U32, base, p * t.panel_bytes())), b_.param_address(t.map),
                               b_.in_register(barrier)};
    for (const Operand& x :
         coordinates(*t.copy, t.copy->as<ir::CopyAttributes>().src, 0, int64_t{p} * t.span / t.element))
      in.push_back(x);
    using ir::thread::CacheHint;
    const CacheHint policy = t.copy->hints.cache == ir::CacheHint::Stream ? CacheHint::EvictFirst
                             : t.copy->hints.cache == ir::CacheHint::Keep ? CacheHint::EvictLast
                                                                          : CacheHint::None;
    b_.emit(Op::TmaLoad, {}, in, {static_cast<int>(policy)});
  }
  if (i + 1 == r.tiles.size()) advance(r);
}

void HopperForm::loop(const ir::Op& op, const std::function<void()>& body) {
  Operand lo = 0, hi = 0, step = 1;
  if (op.kind == OpKind::Pipelined) {
    hi = l_.index_.value(op.as<ir::PipelinedAttributes>().count);
  } else {
    const auto& a = op.as<ir::ForAttributes>();
    lo = l_.index_.value(a.lo), hi = l_.index_.value(a.hi), step = l_.index_.value(a.step);
    if (!op.operands.empty()) throw No{"a loop that carries scalars"};
  }
  const ir::Value* variable = op.regions[0]->arguments[0];
  b_.for_range(lo, hi, step, [&](Reg i) {
    l_.index_.push();
    l_.index_.bind(variable, {i, 0});
    l_.define(variable, b_.convert(Scalar::S64, Scalar::S32, i));
    body();
    l_.index_.pop();
  });
}

void HopperForm::consumer() {
  reallocate(false);
  l_.index_.push();
  begin_role();
  const Operand mine = thread_;
  l_.begin_group(mine, groups_ * 128, 1);
  lane_ = b_.rem(Scalar::U32, mine, 32);
  is_lane0_ = b_.compare(Compare::Eq, Scalar::U32, lane_, 0);
  group_ = groups_ == 1 ? Operand(0) : b_.div(Scalar::U32, mine, 128);
  in_group_ = b_.rem(Scalar::U32, mine, 128);
  true_ = b_.reg(Width::Pred);
  false_ = b_.reg(Width::Pred);
  const Reg one = b_.copy_of(1);
  ir::thread::Inst& t = b_.emit(Op::SetP, {true_}, {one, 1});
  t.type = Scalar::S32;
  ir::thread::Inst& f = b_.emit(Op::SetP, {false_}, {one, 0});
  f.type = Scalar::S32;
  l_.allocate_fragments();
  // The first warpgroup's first turn is free.
  if (groups_ > 1 && has_chain())
    b_.if_then(b_.compare(Compare::Eq, Scalar::U32, group_, groups_ - 1), [&] {
      b_.emit(Op::BarrierArrive, {}, {kTurnBarrier, 256});
    });
  for_blocks(Role::Consumer, [&] { consume(l_.block_region()); });
  if (!store_maps_.empty())
    b_.if_then(b_.compare(Compare::Eq, Scalar::U32, in_group_, 0), [&] { b_.emit(Op::BulkWait, {}, {}, {0, 0}); });
  l_.index_.pop();
}

bool HopperForm::has_products(const ir::Op& op) const {
  if (op.kind == OpKind::Gemm) return true;
  for (const ir::Region* r : op.regions)
    for (const ir::Op* inner : r->ops)
      if (has_products(*inner)) return true;
  return false;
}

void HopperForm::consume(const ir::Region& region) {
  for (const ir::Op* op : region.ops) {
    b_.line = op->location.line;
    for (Ring& r : rings_)
      if (r.home == &region && r.first_use == op) wait(r);
    if (op->kind == OpKind::Copy && has_copies(*op)) {
    } else if (op->kind == OpKind::Gemm) {
      product(*op, region);
      finish_products();
    } else if ((op->kind == OpKind::For || op->kind == OpKind::Pipelined) && is_deferred(*op)) {
      product_loop(*op);
    } else if ((op->kind == OpKind::For || op->kind == OpKind::Pipelined) && has_products(*op)) {
      auto chain = op->kind == OpKind::Pipelined ? chain_of(*op) : std::nullopt;
      l_.begin_separate_sums(l_.separable_sums(*op));
      if (chain) {
        chained_loop(*op, *chain);
      } else
        loop(*op, [&] { consume(*op->regions[0]); });
      l_.join_separate_sums(*op);
    } else if (op->kind == OpKind::If && has_products(*op)) {
      const auto branch = [&](size_t k) {  // what one branch works out is not known to what follows
        l_.index_.push();
        if (k < op->regions.size()) consume(*op->regions[k]);
        l_.index_.pop();
      };
      b_.if_then(
          l_.operand(op->operands[0]), [&] { branch(0); }, [&] { branch(1); });
    } else if (op->kind == OpKind::Copy && store_maps_.contains(op)) {
      store_tile(*op);
    } else {
      l_.op(*op);
    }
    for (Ring& r : rings_)
      if (r.home == &region && r.last_use == op) leave(r);
  }
}

ir::thread::Program HopperForm::finish() {
  b_.program().shared_bytes = l_.shared_bytes_;
  launch_.symbol = b_.program().name;
  launch_.target = runtime::LaunchTarget::Cuda;
  runtime::Expression total = runtime::constant(1);
  for (const ir::Index& x : l_.grid_.as<ir::GridAttributes>().extents)
    total = runtime::combine(runtime::ExpressionOp::Mul, {total, l_.arguments_.expression(l_.arguments_.map(x))});
  launch_.grid = {runtime::combine(runtime::ExpressionOp::Min, {total, runtime::constant(l_.gpu_.multiprocessors)})};
  launch_.threads = runtime::constant(b_.program().threads);
  launch_.shared_bytes = runtime::constant(l_.shared_bytes_);
  l_.describe_layouts();
  for (const Ring& r : rings_)
    for (const Staged& t : r.tiles)
      l_.drawn_.push_back({.name = t.buffer->name,
                           .dtype = t.buffer->type.dtype,
                           .shape = {t.rows, t.inner},
                           .shared = {.panel = t.span / t.element, .swizzle = t.swizzle, .stages = r.stages}});
  for (const Ring& r : rings_)
    l_.fact("ring",
            fmt::format("{} tiles, {} stages of {} bytes, filled by the copy engine", r.tiles.size(), r.stages,
                        r.stage_bytes),
            r.tiles[0].copy->location);
  if (l_.has_counter_)
    l_.fact("blocks", "differ in length: drawn from a counter as multiprocessors get free", l_.grid_.location);
  l_.fact("form",
          fmt::format("Hopper: persistent, 1 producer {}, {} consumer warpgroups, wgmma, {} shared bytes",
                      reallocates_ ? "warpgroup (registers given away)" : "warp", groups_, l_.shared_bytes_),
          l_.grid_.location);
  return b_.finish();
}

std::optional<ir::thread::Program> Lowering::hopper(runtime::Launch& launch, std::string& why_not) {
  try {
    return HopperForm(*this, launch).emit();
  } catch (const No& no) {
    why_not = no.why;
    return std::nullopt;
  }
}

}  // namespace tilewright::plan::gpu
