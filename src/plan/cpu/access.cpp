// Element addresses, masks and index expressions over lanes.
#include "plan/cpu/lowering.h"

namespace tilewright::plan::cpu {

using ir::BinaryOp;
using ir::Index;
using ir::IndexOp;
using ir::OpKind;
using ir::Type;
using ir::Value;

namespace {

BinaryOp binary_op(IndexOp op) {
  switch (op) {
    case IndexOp::Add: return BinaryOp::Add;
    case IndexOp::Mul: return BinaryOp::Mul;
    case IndexOp::FloorDiv: return BinaryOp::FloorDiv;
    case IndexOp::FloorMod: return BinaryOp::FloorMod;
    case IndexOp::Min: return BinaryOp::Min;
    case IndexOp::Max: return BinaryOp::Max;
    default: return BinaryOp::And;
  }
}

std::optional<ir::CompareOp> compare_op(IndexOp op) {
  switch (op) {
    case IndexOp::Lt: return ir::CompareOp::Lt;
    case IndexOp::Le: return ir::CompareOp::Le;
    case IndexOp::Eq: return ir::CompareOp::Eq;
    case IndexOp::Ne: return ir::CompareOp::Ne;
    default: return std::nullopt;
  }
}

Index and_if(Index x, Index y) { return x ? logical_and(x, y) : y; }
Index min_if(Index x, Index y) { return x ? min(x, y) : y; }
Index max_if(Index x, Index y) { return x ? max(x, y) : y; }

/// The same bits as an integer, for copies that need no conversion.
DType raw_type(DType dtype) {
  switch (tilewright::bits(dtype)) {
    case 8: return DType::U8;
    case 16: return DType::U16;
    default: return dtype;
  }
}

}  // namespace

Value* Lowering::value(const Value* tile_value) const {
  const auto found = values_.find(tile_value);
  return found == values_.end() ? nullptr : found->second;
}

/// Symbols: dimensions and integer scalars are slots; everything else has been lowered already.
Index Lowering::map(Index x) const {
  return substitute(
      x,
      [this](const Value* v) {
        if (const auto found = index_of_.find(v); found != index_of_.end()) return found->second;
        if (const Index argument = arguments_.index_of(v)) return argument;
        return vector_.indices().symbol(values_.at(v));
      },
      vector_.indices());
}

std::vector<Index> Lowering::map(const std::vector<Index>& x) const {
  std::vector<Index> out;
  for (Index i : x) out.push_back(map(i));
  return out;
}

bool Lowering::is_uniform(Index x) const {
  if (lanes_.count == 1) return true;
  bool uniform = true;
  for_each_symbol(x, [&](const Value* v) { uniform &= v != lanes_.variable && v->type.lanes == 1; });
  return uniform;
}

/// How much x grows from one lane to the next when that is a constant.
std::optional<int64_t> Lowering::lane_step(Index x) const {
  if (is_uniform(x)) return 0;
  int64_t step = 0;
  for (const auto& term : linear_form(x).terms) {
    if (term.factor.symbol() == lanes_.variable)
      step += term.coefficient;
    else if (!is_uniform(term.factor))
      return std::nullopt;
  }
  return step;
}

/// x for every lane, as i64 (or bool for conditions).
Value* Lowering::spread(Index x) {
  const int lanes = lanes_.count;
  const bool truth = is_boolean(x) && !x.constant();
  if (is_uniform(x)) return widen(truth ? b_.index_condition(x) : b_.index_value(x));
  const auto as_number = [&](const ir::IndexNode* n) {
    Value* v = spread(Index(n));
    return v->type.dtype == DType::Bool ? b_.cast(v, DType::I64) : v;
  };
  const auto as_truth = [&](const ir::IndexNode* n) {
    Value* v = spread(Index(n));
    return v->type.dtype == DType::Bool ? v : b_.compare(ir::CompareOp::Ne, v, b_.integer(v->type.dtype, 0, lanes));
  };
  if (const auto step = lane_step(x)) {
    Value* ramp = b_.op(OpKind::Iota, {}, {}, {Type::scalar(DType::I64, lanes)})->result();
    if (*step != 1) ramp = b_.binary(BinaryOp::Mul, ramp, b_.integer(DType::I64, *step, lanes));
    return b_.binary(BinaryOp::Add, widen(b_.index_value(x)), ramp);
  }
  const ir::IndexNode& n = *x.node();
  if (x.symbol()) return b_.cast(const_cast<Value*>(x.symbol()), DType::I64);
  if (const auto compare = compare_op(x.op())) return b_.compare(*compare, as_number(n.a), as_number(n.b));
  switch (x.op()) {
    case IndexOp::And: return b_.binary(BinaryOp::And, as_truth(n.a), as_truth(n.b));
    case IndexOp::Or: return b_.binary(BinaryOp::Or, as_truth(n.a), as_truth(n.b));
    case IndexOp::Not: return b_.unary(ir::UnaryOp::Not, as_truth(n.a));
    case IndexOp::Select: return b_.select(as_truth(n.a), as_number(n.b), as_number(n.c));
    default: return b_.binary(binary_op(x.op()), as_number(n.a), as_number(n.b));
  }
}

Value* Lowering::widen(Value* v, int lanes) { return v->type.lanes == lanes ? v : b_.broadcast(v, lanes); }

void Lowering::match(Value*& x, Value*& y) {
  const int lanes = std::max(x->type.lanes, y->type.lanes);
  x = widen(x, lanes), y = widen(y, lanes);
}

Value* Lowering::both(Value* x, Value* y) {
  if (!x || !y) return x ? x : y;
  match(x, y);
  return b_.binary(BinaryOp::And, x, y);
}

/// Lanes below `active`; made once per region.
Value* Lowering::lane_mask(Index active) {
  if (options_.plant.is("lower_access", 1)) active = active + 1;  // planted: one lane beyond the edge
  if (lanes_.count == 1) return b_.index_condition(less(number(0), active));
  Value*& mask = masks_[{b_.region(), active.node()}];
  if (!mask) mask = b_.mask(active, lanes_.count);
  return mask;
}

Value* Lowering::active_lanes() {
  return both(lanes_.remaining ? lane_mask(lanes_.remaining) : nullptr, lanes_.predicate);
}

/// A block-level or lane condition as bool (lanes when it differs between them).
Value* Lowering::condition(Index x) {
  if (is_uniform(x)) return b_.index_condition(x);
  const auto compare = x.op() == IndexOp::Lt || x.op() == IndexOp::Le;
  if (compare) {
    // a < b with b - a falling by one per lane is a prefix of the lanes.
    const Index gap = Index(x.node()->b) - Index(x.node()->a) + (x.op() == IndexOp::Le ? 1 : 0);
    if (lane_step(gap) == -1) return lane_mask(gap);
  }
  if (x.op() == IndexOp::And) return both(condition(Index(x.node()->a)), condition(Index(x.node()->b)));
  if (x.op() == IndexOp::Or) {
    Value *p = condition(Index(x.node()->a)), *q = condition(Index(x.node()->b));
    match(p, q);
    return b_.binary(BinaryOp::Or, p, q);
  }
  Value* v = spread(x);
  if (v->type.dtype == DType::Bool) return v;
  return b_.compare(ir::CompareOp::Ne, v, b_.integer(v->type.dtype, 0, v->type.lanes));
}

Address Lowering::address(const Placement& place, const std::vector<Index>& at) {
  Address out{.pointer = place.pointer, .bytes = place.base ? place.base : number(0)};
  Index holds, upper, lower;  // uniform condition; lanes below `upper` and not below `lower`
  Value* irregular = nullptr;
  for (size_t d = 0; d < at.size(); ++d) {
    const Index i = at[d], extent = place.extents[d];
    out.bytes = out.bytes + i * place.strides[d];
    const bool low_ok = bounds_.is_never_negative(i), high_ok = bounds_.is_never_less(extent - 1, i);
    if (low_ok && high_ok) continue;
    const auto step = lane_step(i);
    if (step == 0) {
      if (!low_ok) holds = and_if(holds, less_equal(number(0), i));
      if (!high_ok) holds = and_if(holds, less(i, extent));
    } else if (step == 1) {
      if (!low_ok) lower = max_if(lower, number(0) - i);
      if (!high_ok) upper = min_if(upper, extent - i);
    } else {
      if (!low_ok) irregular = both(irregular, spread(less_equal(number(0), i)));
      if (!high_ok) irregular = both(irregular, spread(less(i, extent)));
    }
  }
  const auto step =
      place.lanes > 0 && is_uniform(out.bytes) ? std::optional<int64_t>(bytes(place.storage)) : lane_step(out.bytes);
  const bool uniform = lanes_.count == 1 || step == 0;
  if (uniform) {
    out.step = Address::Step::Uniform;
    // One lane: a prefix condition is an ordinary one.
    if (upper) holds = and_if(holds, less(number(0), upper));
    if (lower) holds = and_if(holds, less_equal(lower, number(0)));
    if (holds) out.inside = b_.index_condition(holds);
    out.inside = both(out.inside, lanes_.count == 1 ? irregular : nullptr);
    out.mask = lanes_.count == 1 ? both(out.inside, lanes_.predicate) : out.inside;
    return out;
  }
  if (holds) upper = ir::select(holds, upper ? upper : number(lanes_.count), number(0));
  if (upper) out.inside = lane_mask(upper);
  if (lower) out.inside = both(out.inside, b_.unary(ir::UnaryOp::Not, lane_mask(lower)));
  out.inside = both(out.inside, irregular);
  if (upper && lanes_.remaining && !lower && !irregular) {
    out.mask = both(lane_mask(min(upper, lanes_.remaining)), lanes_.predicate);
  } else {
    out.mask = both(out.inside, active_lanes());
  }
  if (step == bytes(place.storage)) {
    out.step = Address::Step::Contiguous;
  } else if (step) {
    out.step = Address::Step::Strided, out.stride = *step;
  } else {
    out.step = Address::Step::Varying, out.offsets = spread(out.bytes), out.bytes = number(0);
    if (place.lanes > 0) {
      Value* ramp = b_.op(OpKind::Iota, {}, {}, {Type::scalar(DType::I64, lanes_.count)})->result();
      ramp = b_.binary(BinaryOp::Mul, ramp, b_.integer(DType::I64, bytes(place.storage), lanes_.count));
      out.offsets = b_.binary(BinaryOp::Add, out.offsets, ramp);
    }
  }
  if (out.step == Address::Step::Strided) {
    Value* ramp = b_.op(OpKind::Iota, {}, {}, {Type::scalar(DType::I64, lanes_.count)})->result();
    out.offsets = b_.binary(BinaryOp::Mul, ramp, b_.integer(DType::I64, out.stride, lanes_.count));
  }
  return out;
}

namespace {

std::pair<const Value*, std::vector<const ir::IndexNode*>> element_key(const Placement& place,
                                                                       const std::vector<Index>& at) {
  std::vector<const ir::IndexNode*> nodes;
  for (Index i : at) nodes.push_back(i.node());
  return {place.pointer, std::move(nodes)};
}

}  // namespace

/// `raw`: the storage bits, not widened.
Value* Lowering::load(const Placement& place, const std::vector<Index>& at, Value* oob, bool raw) {
  if (forwards_) {
    if (const auto found = forwarded_.find(element_key(place, at)); found != forwarded_.end()) return found->second;
  }
  const Address a = address(place, at);
  const DType storage = raw ? raw_type(place.storage) : place.storage;
  const DType result = raw ? storage : compute_type(place.storage);
  const int lanes = a.step == Address::Step::Uniform ? 1 : lanes_.count;
  const ir::MemoryAttributes memory{.storage = storage, .bytes = a.bytes, .align = bytes(storage)};
  Value* loaded;
  if (a.offsets) {
    std::vector<Value*> operands{a.pointer, a.offsets};
    if (a.mask) operands.push_back(a.mask);
    loaded = b_.op(OpKind::Gather, std::move(operands), memory, {Type::scalar(result, lanes)})->result();
  } else {
    loaded = b_.vload(a.pointer, memory, Type::scalar(result, lanes), a.mask);
  }
  if (oob && a.inside) return select(a.inside, loaded, oob);
  return loaded;
}

void Lowering::store(const Placement& place, const std::vector<Index>& at, Value* v, bool raw) {
  const Address a = address(place, at);
  const DType storage = raw ? raw_type(place.storage) : place.storage;
  const bool is_global = place.pointer->type.space == ir::MemorySpace::Global;
  const ir::MemoryAttributes memory{.storage = storage, .bytes = a.bytes, .align = bytes(storage)};
  if (forwards_ && !is_global) {
    // Storing may round, or reach an element another key names: then nothing is known any more.
    std::erase_if(forwarded_, [&](const auto& entry) { return entry.first.first == place.pointer; });
    if (a.step == Address::Step::Contiguous && place.storage == v->type.dtype) {
      forwarded_[element_key(place, at)] = widen(v);
      if (unread_.contains(place.pointer)) return;
    }
  }
  if (a.step == Address::Step::Uniform) {
    if (v->type.lanes > 1)
      v = b_.op(OpKind::Extract, {v}, ir::LaneAttributes{0}, {Type::scalar(v->type.dtype)})->result();
    b_.vstore(a.pointer, memory, v, a.mask);
    return;
  }
  v = widen(v);
  if (is_global && store_streaming(place, a, memory, v)) return;
  if (!a.offsets) {
    b_.vstore(a.pointer, memory, v, a.mask);
    return;
  }
  std::vector<Value*> operands{a.pointer, a.offsets, v};
  if (a.mask) operands.push_back(a.mask);
  b_.op(OpKind::Scatter, std::move(operands), memory);
}

}  // namespace tilewright::plan::cpu
