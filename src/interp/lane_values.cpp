#include "interp/lane_values.h"

#include <algorithm>

#include "interp/bounded.h"
#include "interp/lane_ops.h"
#include "interp/reductions.h"
#include "interp/scalar.h"

namespace tilewright::interp {
namespace {

size_t value_count(const ir::Kernel& kernel) {
  uint32_t last = 0;
  const auto see = [&](const ir::Value* v) { last = std::max(last, v->id); };
  for (const auto& d : kernel.dimensions) see(d.value);
  for (const auto& s : kernel.scalars) see(s.value);
  for (const ir::Value* v : kernel.slots) see(v);
  for (const auto& t : kernel.tensors) see(t.buffer);
  ir::for_each_op(*kernel.body, [&](ir::Op& op) {
    std::ranges::for_each(op.results, see);
    for (const ir::Region* region : op.regions) std::ranges::for_each(region->arguments, see);
  });
  return static_cast<size_t>(last) + 1;
}

int64_t apply(ir::IndexOp op, int64_t a, int64_t b) {
  switch (op) {
    case ir::IndexOp::Add: return ir::wrapping_add(a, b);
    case ir::IndexOp::Mul: return ir::wrapping_mul(a, b);
    case ir::IndexOp::FloorDiv: return ir::floor_div(a, b);
    case ir::IndexOp::FloorMod: return ir::floor_mod(a, b);
    case ir::IndexOp::Min: return std::min(a, b);
    case ir::IndexOp::Max: return std::max(a, b);
    case ir::IndexOp::Lt: return a < b;
    case ir::IndexOp::Le: return a <= b;
    case ir::IndexOp::Eq: return a == b;
    case ir::IndexOp::Ne: return a != b;
    case ir::IndexOp::And: return a != 0 && b != 0;
    case ir::IndexOp::Or: return a != 0 || b != 0;
    case ir::IndexOp::Const:
    case ir::IndexOp::Symbol:
    case ir::IndexOp::Select:
    case ir::IndexOp::Not: return 0;
  }
  return 0;
}

/// One loop per operation, so that the compiler sees a constant `op`.
template <ir::IndexOp op>
void apply_lanes(const int64_t* a, int64_t sa, const int64_t* b, int64_t sb, int64_t* out, int64_t count) {
  if (sa && sb) {
    for (int64_t i = 0; i < count; ++i) out[i] = apply(op, a[i], b[i]);
  } else if (sa) {
    for (int64_t i = 0; i < count; ++i) out[i] = apply(op, a[i], *b);
  } else {
    for (int64_t i = 0; i < count; ++i) out[i] = apply(op, *a, b[i]);
  }
}

void apply_lanes(ir::IndexOp op, const int64_t* a, int64_t sa, const int64_t* b, int64_t sb, int64_t* out, int64_t n) {
  switch (op) {
#define TW_CASE(name) \
  case ir::IndexOp::name: return apply_lanes<ir::IndexOp::name>(a, sa, b, sb, out, n);
    TW_CASE(Add)
    TW_CASE(Mul)
    TW_CASE(FloorDiv)
    TW_CASE(FloorMod)
    TW_CASE(Min)
    TW_CASE(Max) TW_CASE(Lt) TW_CASE(Le) TW_CASE(Eq) TW_CASE(Ne) TW_CASE(And) TW_CASE(Or) TW_CASE(Const) TW_CASE(Symbol)
        TW_CASE(Select) TW_CASE(Not)
#undef TW_CASE
  }
}

}  // namespace

LaneValues::LaneValues(const ir::Kernel& kernel, Mode mode) : mode_(mode), columns_(value_count(kernel)) {
  for (Column& c : columns_) c.reset(DType::I64, 1);
}

bool LaneValues::is_uniform(ir::Index x) const {
  const ir::IndexNode* n = x.node();
  if (n->op == ir::IndexOp::Const) return true;
  if (n->op == ir::IndexOp::Symbol) return (*this)[n->symbol].is_uniform();
  return (!n->a || is_uniform(ir::Index(n->a))) && (!n->b || is_uniform(ir::Index(n->b))) &&
         (!n->c || is_uniform(ir::Index(n->c)));
}

int64_t LaneValues::uniform(ir::Index x) const {
  const ir::IndexNode& n = *x.node();
  switch (n.op) {
    case ir::IndexOp::Const: return n.value;
    case ir::IndexOp::Symbol: return (*this)[n.symbol].integer[0];
    case ir::IndexOp::Select: return uniform(ir::Index(n.a)) ? uniform(ir::Index(n.b)) : uniform(ir::Index(n.c));
    case ir::IndexOp::Not: return uniform(ir::Index(n.a)) == 0;
    default: return apply(n.op, uniform(ir::Index(n.a)), uniform(ir::Index(n.b)));
  }
}

bool LaneValues::is_tainted(ir::Index x, int64_t lane) const {
  const ir::IndexNode& n = *x.node();
  if (n.op == ir::IndexOp::Symbol) return (*this)[n.symbol].taint_at(lane);
  return (n.a && is_tainted(ir::Index(n.a), lane)) || (n.b && is_tainted(ir::Index(n.b), lane)) ||
         (n.c && is_tainted(ir::Index(n.c), lane));
}

std::vector<int64_t>& LaneValues::scratch(int64_t count) {
  if (scratch_used_ == scratch_.size()) scratch_.emplace_back();
  std::vector<int64_t>& buffer = scratch_[scratch_used_++];
  buffer.resize(static_cast<size_t>(count));
  return buffer;
}

LaneValues::Term LaneValues::combine(const ir::IndexNode& n, int64_t count) {
  const Term a = term(*n.a, count);
  const Term b = n.b ? term(*n.b, count) : Term{};
  if (n.op == ir::IndexOp::Not) {
    if (!a.lanes) return {nullptr, a.value == 0};
    std::vector<int64_t>& out = scratch(count);
    for (int64_t i = 0; i < count; ++i) out[static_cast<size_t>(i)] = a.lanes[i] == 0;
    return {out.data(), 0};
  }
  if (n.op == ir::IndexOp::Select) {
    const Term c = term(*n.c, count);
    const auto at = [](const Term& t, int64_t i) { return t.lanes ? t.lanes[i] : t.value; };
    std::vector<int64_t>& out = scratch(count);
    for (int64_t i = 0; i < count; ++i) out[static_cast<size_t>(i)] = at(a, i) ? at(b, i) : at(c, i);
    return {out.data(), 0};
  }
  if (!a.lanes && !b.lanes) return {nullptr, apply(n.op, a.value, b.value)};
  std::vector<int64_t>& out = scratch(count);
  apply_lanes(n.op, a.lanes ? a.lanes : &a.value, a.lanes != nullptr, b.lanes ? b.lanes : &b.value, b.lanes != nullptr,
              out.data(), count);
  return {out.data(), 0};
}

LaneValues::Term LaneValues::term(const ir::IndexNode& n, int64_t count) {
  if (n.op == ir::IndexOp::Const) return {nullptr, n.value};
  if (n.op == ir::IndexOp::Symbol) {
    const Column& c = (*this)[n.symbol];
    return c.is_uniform() ? Term{nullptr, c.integer[0]} : Term{c.integer.data(), 0};
  }
  return combine(n, count);
}

void LaneValues::evaluate(ir::Index x, Column& out) {
  int64_t count = 1;
  bool tainted = false;
  ir::for_each_symbol(x, [&](const ir::Value* v) {
    count = std::max(count, (*this)[v].lanes);
    tainted |= !(*this)[v].taint.empty();
  });
  out.reset(DType::I64, count);
  scratch_used_ = 0;
  const Term t = term(*x.node(), count);
  if (t.lanes) {
    std::copy(t.lanes, t.lanes + count, out.integer.begin());
  } else {
    std::fill(out.integer.begin(), out.integer.end(), t.value);
  }
  if (!tainted) return;
  out.taint.resize(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) out.taint[static_cast<size_t>(i)] = is_tainted(x, i);
}

void LaneValues::shuffle(const ir::Op& op, Column& out) {
  const std::vector<int>& lanes = op.as<ir::ShuffleAttributes>().lanes;
  const ir::Value* x = op.operands[0];
  const Column& first = (*this)[x];
  const Column& second = op.operands.size() > 1 ? (*this)[op.operands[1]] : first;
  out.reset(first.dtype, static_cast<int64_t>(lanes.size()));
  for (size_t i = 0; i < lanes.size(); ++i) {
    const int lane = std::max(lanes[i], 0);
    const Column& from = lane < x->type.lanes ? first : second;
    const int64_t at = lane < x->type.lanes ? lane : lane - x->type.lanes;
    if (out.is_real()) {
      out.real[i] = lanes[i] < 0 ? std::nan("") : from.real_at(at);
    } else {
      out.integer[i] = lanes[i] < 0 ? 0x5555 : from.integer_at(at);
    }
  }
}

void LaneValues::reduce_lanes(const ir::Op& op, Column& out) {
  Column x = (*this)[op.operands[0]];
  widen(x, op.operands[0]->type.lanes);
  reduce(op.as<ir::ReduceLanesAttributes>().kind, x, {1, x.lanes, 1}, nullptr, op.result()->type.dtype, mode_, out);
}

bool LaneValues::run_pure(const ir::Op& op) {
  if (op.results.empty()) return false;
  const auto in = [&](size_t i) -> const Column& { return (*this)[op.operands[i]]; };
  Column& out = (*this)[op.result()];
  const ir::Type& type = op.result()->type;
  switch (op.kind) {
    case ir::OpKind::Constant: {
      const auto& c = op.as<ir::ConstantAttributes>();
      out = is_float(type.dtype) ? Column::of_real(type.dtype, round_to(type.dtype, c.real))
                                 : Column::of_integer(type.dtype, wrap(type.dtype, c.integer));
      return true;
    }
    case ir::OpKind::IndexValue:
      evaluate(op.as<ir::IndexAttributes>().index, out);
      if (type.dtype != DType::I64) {
        out.dtype = type.dtype;
        for (int64_t& v : out.integer) v = wrap(type.dtype, v);
      }
      return true;
    case ir::OpKind::Unary:
      if (type.lanes != op.operands[0]->type.lanes) return split_lanes(in(0), type.dtype, type.lanes, out), true;
      unary(op.as<ir::UnaryAttributes>().op, in(0), type.dtype, mode_, out);
      return true;
    case ir::OpKind::Binary: binary(op.as<ir::BinaryAttributes>().op, in(0), in(1), mode_, out); return true;
    case ir::OpKind::Compare: compare(op.as<ir::CompareAttributes>().op, in(0), in(1), mode_, out); return true;
    case ir::OpKind::Select: select(in(0), in(1), in(2), mode_, out); return true;
    case ir::OpKind::Cast: cast(in(0), type.dtype, mode_, out); return true;
    case ir::OpKind::Broadcast: out = in(0); return true;
    case ir::OpKind::Iota:
      out.reset(type.dtype, type.lanes);
      for (int i = 0; i < type.lanes; ++i) {
        (out.is_real() ? out.real[static_cast<size_t>(i)] = i
                       : static_cast<double>(out.integer[static_cast<size_t>(i)] = i));
      }
      return true;
    case ir::OpKind::Extract: {
      const int lane = op.as<ir::LaneAttributes>().lane;
      const double real = in(0).is_real() ? in(0).real_at(lane) : 0;
      const int64_t integer = in(0).is_real() ? 0 : in(0).integer_at(lane);
      out = in(0).is_real() ? Column::of_real(type.dtype, real) : Column::of_integer(type.dtype, integer);
      return true;
    }
    case ir::OpKind::Shuffle: shuffle(op, out); return true;
    case ir::OpKind::Fma:
      is_float(type.dtype) ? fma(in(0), in(1), in(2), out) : dot(in(0), in(1), in(2), type.lanes, out);
      return true;
    case ir::OpKind::VectorReduce: reduce_lanes(op, out); return true;
    case ir::OpKind::Mask: {
      const int64_t active = uniform(op.as<ir::IndexAttributes>().index);
      out.reset(DType::Bool, type.lanes);
      for (int i = 0; i < type.lanes; ++i) out.integer[static_cast<size_t>(i)] = i < active;
      return true;
    }
    default: return false;
  }
}

}  // namespace tilewright::interp
