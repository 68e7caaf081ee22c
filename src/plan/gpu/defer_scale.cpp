// Arithmetic on whole fragments that costs less later than where the text has it.
//
// - `s = s * c` (or select(seen, s * c, -inf)) with one c for the tile leaves c to the readers: a row maximum
// multiplies
//   its result, `s - m` becomes one fma. Needs c > 0; another c is multiplied in on a branch that is never taken by
//   attention.
// - `o = o * r` with one r a row is skipped by a warp whose rows all have r = 1.
// - a row sum that a loop only adds to and scales is kept apart per lane; the lanes are joined after the loop.
#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "plan/gpu/lowering.h"

namespace tilewright::plan::gpu {

using ir::OpKind;
using ir::thread::Op;

bool touches(const ir::Op& op, const ir::Value* buffer) {
  const auto is = [&](const ir::View& v) { return v.buffer == buffer; };
  switch (op.kind) {
    case OpKind::Load:
    case OpKind::Store: return op.as<ir::AccessAttributes>().buffer == buffer;
    case OpKind::Atomic: return op.as<ir::AtomicAttributes>().buffer == buffer;
    case OpKind::Fill: return is(op.as<ir::FillAttributes>().dst);
    case OpKind::Copy: return is(op.as<ir::CopyAttributes>().src) || is(op.as<ir::CopyAttributes>().dst);
    case OpKind::Gemm: {
      const auto& a = op.as<ir::GemmAttributes>();
      return is(a.a) || is(a.b) || is(a.c);
    }
    case OpKind::Reduce: return is(op.as<ir::ReduceAttributes>().src) || is(op.as<ir::ReduceAttributes>().dst);
    case OpKind::ReduceArg: {
      const auto& a = op.as<ir::ReduceArgAttributes>();
      return is(a.src) || is(a.value) || is(a.index);
    }
    case OpKind::Scan: return is(op.as<ir::ScanAttributes>().src) || is(op.as<ir::ScanAttributes>().dst);
    case OpKind::AtomicTile:
      return is(op.as<ir::AtomicTileAttributes>().src) || is(op.as<ir::AtomicTileAttributes>().dst);
    default: break;
  }
  for (const ir::Region* r : op.regions)
    for (const ir::Op* inner : r->ops)
      if (touches(*inner, buffer)) return true;
  return false;
}

namespace {

constexpr size_t kWorthwhile = 16;  ///< registers of a fragment from which on deferring pays

bool is_identity(const ir::Op& parallel, const std::vector<ir::Index>& indices) {
  const auto& variables = parallel.regions[0]->arguments;
  if (indices.size() != variables.size()) return false;
  for (size_t d = 0; d < indices.size(); ++d)
    if (indices[d].symbol() != variables[d]) return false;
  return true;
}

/// The load or store `op` reads or writes exactly the element of its iteration.
bool is_own_element(const ir::Op& parallel, const ir::Op& op, OpKind kind, const ir::Value* buffer) {
  return op.kind == kind && op.as<ir::AccessAttributes>().buffer == buffer &&
         is_identity(parallel, op.as<ir::AccessAttributes>().indices);
}

int users(const ir::Region& body, const ir::Value* v) {
  int n = 0;
  for (const ir::Op* op : body.ops)
    n += static_cast<int>(std::count(op->operands.begin(), op->operands.end(), v)) + (op->regions.empty() ? 0 : 2);
  return n;
}

bool nested_touch(const ir::Op& op, const ir::Value* buffer) {
  for (const ir::Op* inner : op.regions[0]->ops)
    for (const ir::Region* r : inner->regions)
      for (const ir::Op* deep : r->ops)
        if (touches(*deep, buffer)) return true;
  return false;
}

/// Every reader between `scale` and the operation that overwrites all of `s` can take a factor.
bool readers_take_factor(const ir::Region& home, const ir::Op& scale, const ir::Value* s) {
  auto it = std::find(home.ops.begin(), home.ops.end(), &scale);
  for (++it; it < home.ops.end(); ++it) {
    const ir::Op& op = **it;
    if (!touches(op, s)) continue;
    if (op.kind == OpKind::Gemm) {
      const auto& a = op.as<ir::GemmAttributes>();
      return a.c.buffer == s && a.a.buffer != s && !a.accumulate;
    }
    if (op.kind == OpKind::Reduce) {
      const auto& a = op.as<ir::ReduceAttributes>();
      if (a.kind != ir::ReduceKind::Max || a.dst.buffer == s) return false;
      continue;
    }
    if (op.kind != OpKind::Parallel || nested_touch(op, s)) return false;
    bool writes = false;
    for (const ir::Op* inner : op.regions[0]->ops) {
      if (!touches(*inner, s)) continue;
      if (!is_own_element(op, *inner, inner->kind, s)) return false;
      writes |= inner->kind == OpKind::Store;
    }
    if (writes) return true;
  }
  return false;
}

}  // namespace

// load s; …; mul; [select with -inf]; store s, and nothing else with an effect.
std::optional<Lowering::ScaleStep> Lowering::scale_step(const ir::Op& o) const {
  const ir::Region& body = *o.regions[0];
  const ir::Op *load = nullptr, *store = nullptr;
  for (const ir::Op* op : body.ops) {
    if (!op->regions.empty()) return std::nullopt;
    if (op->kind == OpKind::Store && !std::exchange(store, op)) continue;
    if (op->kind == OpKind::Load && !std::exchange(load, op)) continue;
    if (op->kind == OpKind::Store || op->kind == OpKind::Load || op->kind == OpKind::Atomic) return std::nullopt;
  }
  if (!load || !store) return std::nullopt;
  const ir::Value* s = store->as<ir::AccessAttributes>().buffer;
  const auto fragment = fragments_.find(s);
  const auto home = homes_.find(&o);
  if (fragment == fragments_.end() || home == homes_.end() || s->type.dtype != DType::F32 || factors_.contains(s) ||
      packed_.contains(s) || fragment->second.registers.size() < kWorthwhile ||
      !is_own_element(o, *store, OpKind::Store, s) || !is_own_element(o, *load, OpKind::Load, s))
    return std::nullopt;
  ScaleStep step{.tile = s};
  const ir::Op* product = store->operands[0]->def;
  if (product && product->kind == OpKind::Select) {
    const ir::Op* other = product->operands[2]->def;
    if (!other || other->kind != OpKind::Constant ||
        other->as<ir::ConstantAttributes>().real != -std::numeric_limits<double>::infinity())
      return std::nullopt;
    step.has_mask = true;
    product = product->operands[1]->def;
  }
  if (!product || product->kind != OpKind::Binary || product->as<ir::BinaryAttributes>().op != ir::BinaryOp::Mul)
    return std::nullopt;
  const bool left = product->operands[0] == load->result();
  if (product->operands[left ? 0 : 1] != load->result() || users(body, load->result()) != 1 ||
      users(body, product->result()) != 1)
    return std::nullopt;
  step.product = product;
  step.factor = product->operands[left ? 1 : 0];
  // What the factor is made of, in order.
  const std::function<bool(const ir::Value*)> take = [&](const ir::Value* v) {
    const auto at = std::find(body.ops.begin(), body.ops.end(), v->def);
    if (at == body.ops.end()) return std::find(body.arguments.begin(), body.arguments.end(), v) == body.arguments.end();
    if (v->def->kind != OpKind::Constant && v->def->kind != OpKind::Binary && v->def->kind != OpKind::Cast)
      return false;
    for (const ir::Value* x : v->def->operands)
      if (!take(x)) return false;
    step.factor_ops.push_back(v->def);
    return true;
  };
  if (step.factor->type.dtype != DType::F32 || !take(step.factor) || !readers_take_factor(*home->second, o, s))
    return std::nullopt;
  return step;
}

void Lowering::defer_scale(const ir::Op& o, const ScaleStep& step) {
  for (const ir::Op* op : step.factor_ops) element_op(*op);
  const Operand c = operand(step.factor);
  const Fragment& f = fragments_.at(step.tile);
  const Operand is_positive = b_.compare(Compare::Gt, Scalar::F32, c, Operand::f32(0));
  b_.if_then(b_.logical_not(is_positive), [&] {
    for (Reg r : f.registers) b_.binary_into(r, Op::Mul, Scalar::F32, r, c);
  });
  if (step.has_mask) {
    const ir::Op* outer = std::exchange(parallel_, &o);
    left_out_ = step.product;
    const auto truth = uniform_truth(o);
    const auto masked = [&] { parallel_body(o, f.distribution, false); };
    if (truth)
      b_.if_then(b_.logical_not(*truth), masked);
    else
      masked();
    left_out_ = nullptr;
    parallel_ = outer;
  }
  factors_[step.tile] = b_.select(Scalar::F32, is_positive, c, Operand::f32(1));
}

/// How a load of a tile with a factor is read: true when every user subtracts from it (and takes the factor in an fma).
bool Lowering::is_read_by_differences(const ir::Op& load) const {
  for (const ir::Op* user : parallel_->regions[0]->ops) {
    if (!user->regions.empty()) return false;
    const auto uses = std::count(user->operands.begin(), user->operands.end(), load.result());
    if (uses == 0) continue;
    if (uses > 1 || user->kind != OpKind::Binary || user->as<ir::BinaryAttributes>().op != ir::BinaryOp::Sub ||
        user->operands[0] != load.result())
      return false;
  }
  return true;
}

// Negations of row values are shared by the elements of the row.
Operand Lowering::scaled_difference(Operand x, Operand factor, Operand y) {
  const uint64_t key = mix(2003, y.is_constant ? static_cast<uint64_t>(y.constant) : uint64_t{y.reg.id} << 33);
  Operand negative = 0;
  if (const Operand* known = index_.find(key)) {
    negative = *known;
  } else {
    negative = b_.unary(Op::Neg, Scalar::F32, y);
    index_.remember(key, negative);
  }
  return b_.mad(Scalar::F32, x, factor, negative);
}

/// The row factors r of `o = o * r`, when that is all the operation does.
const ir::Value* Lowering::row_factors(const ir::Op& o) const {
  const ir::Region& body = *o.regions[0];
  const ir::Op *tile = nullptr, *row = nullptr, *product = nullptr, *store = nullptr;
  for (const ir::Op* op : body.ops) {
    if (op->kind == OpKind::Load) {
      if (is_identity(o, op->as<ir::AccessAttributes>().indices) ? std::exchange(tile, op) : std::exchange(row, op))
        return nullptr;
    } else if (op->kind == OpKind::Binary && op->as<ir::BinaryAttributes>().op == ir::BinaryOp::Mul) {
      if (std::exchange(product, op)) return nullptr;
    } else if (op->kind == OpKind::Store) {
      if (std::exchange(store, op)) return nullptr;
    } else if (op->kind != OpKind::Yield) {
      return nullptr;
    }
  }
  if (!tile || !row || !product || !store || store->operands[0] != product->result()) return nullptr;
  const ir::Value* v = tile->as<ir::AccessAttributes>().buffer;
  const ir::Value* factors = row->as<ir::AccessAttributes>().buffer;
  const bool multiplies = (product->operands[0] == tile->result() && product->operands[1] == row->result()) ||
                          (product->operands[1] == tile->result() && product->operands[0] == row->result());
  const auto f = fragments_.find(v), g = fragments_.find(factors);
  if (!multiplies || !is_own_element(o, *store, OpKind::Store, v) || f == fragments_.end() || g == fragments_.end() ||
      v == factors || v->type.dtype != DType::F32 || factors->type.dtype != DType::F32 || factors_.contains(v) ||
      packed_.contains(v) || f->second.registers.size() < std::max(kWorthwhile, 4 * g->second.registers.size()))
    return nullptr;
  return factors;
}

Operand Lowering::any_is_not_one(const ir::Value* factors) {
  Operand any = 0;
  for (Reg r : fragments_.at(factors).registers)
    any = b_.logical_or(any, b_.compare(Compare::Ne, Scalar::F32, r, Operand::f32(1)));
  const Reg lanes = b_.reg(Width::W32);
  b_.emit(Op::Ballot, {lanes}, {b_.in_register(any, Scalar::Pred)});
  return b_.compare(Compare::Ne, Scalar::S32, lanes, 0);
}

// ---- row sums

namespace {

/// `l = l * r`, one factor per element of l.
bool is_scaling(const ir::Op& op, const ir::Value* l) {
  if (op.kind != OpKind::Parallel) return false;
  const ir::Op* product = nullptr;
  int loads = 0, stores = 0;
  for (const ir::Op* inner : op.regions[0]->ops) {
    if (inner->kind == OpKind::Load) {
      loads += is_own_element(op, *inner, OpKind::Load, l);
      if (!is_identity(op, inner->as<ir::AccessAttributes>().indices)) return false;
    } else if (inner->kind == OpKind::Binary && inner->as<ir::BinaryAttributes>().op == ir::BinaryOp::Mul) {
      if (std::exchange(product, inner)) return false;
    } else if (inner->kind == OpKind::Store) {
      if (!is_own_element(op, *inner, OpKind::Store, l) || !product || inner->operands[0] != product->result())
        return false;
      ++stores;
    } else if (inner->kind != OpKind::Yield) {
      return false;
    }
  }
  return loads == 1 && stores == 1 && product;
}

}  // namespace

/// Row sums the loop only adds to (over lanes of one warp) and scales.
std::vector<const ir::Value*> Lowering::separable_sums(const ir::Op& loop) const {
  std::vector<const ir::Value*> out;
  const ir::Region& body = *loop.regions[0];
  for (const ir::Op* op : body.ops) {
    if (op->kind != OpKind::Reduce) continue;
    const auto& a = op->as<ir::ReduceAttributes>();
    const ir::Value* l = a.dst.buffer;
    const auto f = fragments_.find(l), s = fragments_.find(a.src.buffer);
    if (a.kind != ir::ReduceKind::Sum || !a.accumulate || l->type.dtype != DType::F32 || f == fragments_.end() ||
        s == fragments_.end() || !(slice(s->second.distribution, a.dim) == f->second.distribution) ||
        lanes_of(s->second.distribution, a.dim).empty())
      continue;
    bool only = true;
    for (const ir::Op* other : body.ops)
      if (other != op && touches(*other, l)) only &= is_scaling(*other, l);
    if (only) out.push_back(l);
  }
  return out;
}

/// The lane masks that join what lanes hold of one row of `d`; empty when rows also cross warps.
std::vector<int> Lowering::lanes_of(const Distribution& d, int dim) const {
  std::vector<int> out;
  int place = 1;
  for (const auto& digit : d.digits) {
    if (digit.dim == dim)
      for (int bit = 1; bit < digit.extent; bit *= 2) {
        if (place * bit >= 32) return {};
        out.push_back(place * bit);
      }
    place *= digit.extent;
  }
  return out;
}

// One lane of the row keeps what was there before; the others start at 0.
void Lowering::begin_separate_sums(const std::vector<const ir::Value*>& sums) {
  for (const ir::Value* l : sums) {
    const Fragment& f = fragments_.at(l);
    const Operand keeps = owns(f.distribution);
    for (Reg r : f.registers) b_.assign(r, b_.select(Scalar::F32, keeps, r, Operand::f32(0)));
    separate_sums_.insert(l);
  }
}

void Lowering::join_separate_sums(const ir::Op& loop) {
  for (const ir::Op* op : loop.regions[0]->ops) {
    if (op->kind != OpKind::Reduce || !separate_sums_.contains(op->as<ir::ReduceAttributes>().dst.buffer)) continue;
    const auto& a = op->as<ir::ReduceAttributes>();
    for (const int mask : lanes_of(fragments_.at(a.src.buffer).distribution, a.dim))
      for (Reg r : fragments_.at(a.dst.buffer).registers) b_.assign(r, b_.add(Scalar::F32, r, shuffled(r, mask)));
    separate_sums_.erase(a.dst.buffer);
  }
}

}  // namespace tilewright::plan::gpu
