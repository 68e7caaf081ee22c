#include "ir/thread_builder.h"

#include <bit>

namespace tilewright::ir::thread {
namespace {

bool is_integer(Scalar type) { return type >= Scalar::B8 && type <= Scalar::S64; }

/// `v` wrapped to the width of `type`, sign- or zero-extended.
int64_t wrapped(Scalar type, int64_t v) {
  if (bytes(type) == 8 || bytes(type) == 0) return v;
  const int shift = 64 - 8 * bytes(type);
  if (is_signed(type) || (type == Scalar::B32)) return static_cast<int64_t>(static_cast<uint64_t>(v) << shift) >> shift;
  return static_cast<int64_t>((static_cast<uint64_t>(v) << shift) >> shift);
}

bool both_constant(Scalar type, Value a, Value b) { return is_integer(type) && a.is_constant && b.is_constant; }

bool is_power_of_two(Value v) {
  return v.is_constant && v.constant > 0 && std::has_single_bit(static_cast<uint64_t>(v.constant));
}
int log2_of(Value v) { return std::countr_zero(static_cast<uint64_t>(v.constant)); }

bool compares(Compare how, bool is_signed_compare, int64_t a, int64_t b) {
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  const bool less = is_signed_compare ? a < b : ua < ub;
  switch (how) {
    case Compare::Eq: return a == b;
    case Compare::Ne: return a != b;
    case Compare::Lt: return less;
    case Compare::Le: return less || a == b;
    case Compare::Gt: return !less && a != b;
    case Compare::Ge: return !less;
  }
  return false;
}

}  // namespace

Builder::Builder(std::string name) {
  program_.name = std::move(name);
  place_ = {&program_.body};
}

Program Builder::finish() { return std::move(program_); }

Reg Builder::reg(Width w) { return Reg{program_.register_count++, w}; }

std::vector<Reg> Builder::regs(int count, Scalar type) {
  std::vector<Reg> out;
  for (int i = 0; i < count; ++i) out.push_back(reg(type));
  return out;
}

Reg Builder::in_register(Value v, Scalar type) { return v.is_constant ? copy_of(v, type) : v.reg; }

int Builder::param(std::string name, Param::Kind kind) {
  program_.params.push_back({std::move(name), kind});
  return static_cast<int>(program_.params.size()) - 1;
}

Reg Builder::load_param(int index) {
  const Param::Kind kind = program_.params[static_cast<size_t>(index)].kind;
  const Scalar type = kind == Param::Kind::I32 || kind == Param::Kind::F32 ? Scalar::B32 : Scalar::B64;
  const Reg out = reg(type);
  emit(Op::LoadParam, {out}, {}, {index}).type = type;
  return out;
}

Reg Builder::param_address(int index) {
  const Reg out = reg(Width::W64);
  emit(Op::ParamAddress, {out}, {}, {index}).type = Scalar::B64;
  return out;
}

Reg Builder::special(SpecialRegister which) {
  const Reg out = reg(Width::W32);
  emit(Op::Special, {out}, {}, {static_cast<int>(which)}).type = Scalar::U32;
  return out;
}

Reg Builder::unary(Op op, Scalar type, Value a, int attr0) {
  const Reg out = reg(type);
  emit(op, {out}, {a}, {attr0}).type = type;
  return out;
}
Reg Builder::binary(Op op, Scalar type, Value a, Value b) {
  const Reg out = reg(type);
  emit(op, {out}, {a, b}).type = type;
  return out;
}
Reg Builder::ternary(Op op, Scalar type, Value a, Value b, Value c) {
  const Reg out = reg(type);
  emit(op, {out}, {a, b, c}).type = type;
  return out;
}
void Builder::unary_into(Reg out, Op op, Scalar type, Value a) { emit(op, {out}, {a}).type = type; }
void Builder::binary_into(Reg out, Op op, Scalar type, Value a, Value b) { emit(op, {out}, {a, b}).type = type; }
void Builder::ternary_into(Reg out, Op op, Scalar type, Value a, Value b, Value c) {
  emit(op, {out}, {a, b, c}).type = type;
}

Value Builder::add(Scalar type, Value a, Value b) {
  if (both_constant(type, a, b)) return wrapped(type, a.constant + b.constant);
  if (is_integer(type) && b.is(0)) return a;
  if (is_integer(type) && a.is(0)) return b;
  return binary(Op::Add, type, a, b);
}
Value Builder::sub(Scalar type, Value a, Value b) {
  if (both_constant(type, a, b)) return wrapped(type, a.constant - b.constant);
  if (is_integer(type) && b.is(0)) return a;
  return binary(Op::Sub, type, a, b);
}
Value Builder::mul(Scalar type, Value a, Value b) {
  if (!is_integer(type)) return binary(Op::Mul, type, a, b);
  if (a.is_constant) std::swap(a, b);
  if (a.is_constant) return wrapped(type, a.constant * b.constant);
  if (b.is(1)) return a;
  if (b.is(0)) return 0;
  if (is_power_of_two(b)) return shl(type, a, log2_of(b));
  return binary(Op::Mul, type, a, b);
}
Value Builder::mad(Scalar type, Value a, Value b, Value c) {
  if (!is_integer(type)) return ternary(Op::Fma, type, a, b, c);
  if (a.is_constant || b.is_constant || c.is(0)) return add(type, mul(type, a, b), c);
  return ternary(Op::Mad, type, a, b, c);
}
Value Builder::div(Scalar type, Value a, Value b) {
  if (both_constant(type, a, b) && b.constant != 0) return wrapped(type, a.constant / b.constant);
  if (is_integer(type) && b.is(1)) return a;
  if (is_integer(type) && !is_signed(type) && is_power_of_two(b)) return shr(type, a, log2_of(b));
  return binary(Op::Div, type, a, b);
}
Value Builder::rem(Scalar type, Value a, Value b) {
  if (both_constant(type, a, b) && b.constant != 0) return wrapped(type, a.constant % b.constant);
  if (is_integer(type) && b.is(1)) return 0;
  if (is_integer(type) && !is_signed(type) && is_power_of_two(b)) return bit_and(type, a, b.constant - 1);
  return binary(Op::Rem, type, a, b);
}
Value Builder::min(Scalar type, Value a, Value b) {
  if (both_constant(type, a, b)) return compares(Compare::Lt, is_signed(type), a.constant, b.constant) ? a : b;
  return binary(Op::Min, type, a, b);
}
Value Builder::max(Scalar type, Value a, Value b) {
  if (both_constant(type, a, b)) return compares(Compare::Lt, is_signed(type), a.constant, b.constant) ? b : a;
  return binary(Op::Max, type, a, b);
}
Value Builder::bit_and(Scalar type, Value a, Value b) {
  if (both_constant(type, a, b)) return a.constant & b.constant;
  if (b.is(0)) return 0;
  return binary(Op::And, type, a, b);
}
Value Builder::bit_or(Scalar type, Value a, Value b) {
  if (both_constant(type, a, b)) return a.constant | b.constant;
  if (b.is(0)) return a;
  return binary(Op::Or, type, a, b);
}
Value Builder::bit_xor(Scalar type, Value a, Value b) {
  if (both_constant(type, a, b)) return a.constant ^ b.constant;
  if (b.is(0)) return a;
  return binary(Op::Xor, type, a, b);
}
Value Builder::shl(Scalar type, Value a, Value b) {
  if (both_constant(type, a, b))
    return wrapped(type, static_cast<int64_t>(static_cast<uint64_t>(a.constant) << b.constant));
  if (b.is(0)) return a;
  return binary(Op::Shl, type, a, b);
}
Value Builder::shr(Scalar type, Value a, Value b) {
  if (both_constant(type, a, b))
    return is_signed(type) ? a.constant >> b.constant
                           : static_cast<int64_t>(static_cast<uint64_t>(wrapped(type, a.constant)) >> b.constant);
  if (b.is(0)) return a;
  return binary(Op::Shr, type, a, b);
}

Value Builder::compare(Compare how, Scalar type, Value a, Value b) {
  if (both_constant(type, a, b)) return compares(how, is_signed(type), a.constant, b.constant) ? 1 : 0;
  const Reg out = reg(Width::Pred);
  Inst& inst = emit(Op::SetP, {out}, {a, b});
  inst.type = type;
  inst.compare = how;
  return out;
}
Value Builder::logical_and(Value a, Value b) {
  if (a.is_constant) return a.constant ? b : a;
  if (b.is_constant) return b.constant ? a : b;
  return binary(Op::And, Scalar::Pred, a, b);
}
Value Builder::logical_or(Value a, Value b) {
  if (a.is_constant) return a.constant ? a : b;
  if (b.is_constant) return b.constant ? b : a;
  return binary(Op::Or, Scalar::Pred, a, b);
}
Value Builder::logical_not(Value a) {
  if (a.is_constant) return a.constant ? 0 : 1;
  return unary(Op::Not, Scalar::Pred, a);
}
Value Builder::select(Scalar type, Value predicate, Value a, Value b) {
  if (predicate.is_constant) return predicate.constant ? a : b;
  if (a == b) return a;
  return ternary(Op::Select, type, predicate, a, b);
}

Value Builder::convert(Scalar to, Scalar from, Value a) {
  if (to == from) return a;
  if (a.is_constant && is_integer(to) && is_integer(from)) return wrapped(to, wrapped(from, a.constant));
  const Reg out = reg(to);
  Inst& inst = emit(Op::Convert, {out}, {in_register(a, from)});
  inst.type = to;
  inst.from = from;
  return out;
}
Reg Builder::pack_pair(Scalar pair, Value low, Value high) {
  const Reg out = reg(pair);
  emit(Op::PackPair, {out}, {low, high}).type = pair;
  return out;
}
std::pair<Reg, Reg> Builder::split(Scalar wide, Value a) {
  const Scalar half = bytes(wide) == 8 ? Scalar::B32 : Scalar::B16;
  const Reg low = reg(half), high = reg(half);
  emit(Op::Split, {low, high}, {in_register(a, wide)}).type = wide;
  return {low, high};
}
Reg Builder::join(Scalar wide, Value low, Value high) {
  const Scalar half = bytes(wide) == 8 ? Scalar::B32 : Scalar::B16;
  const Reg out = reg(wide);
  emit(Op::Join, {out}, {in_register(low, half), in_register(high, half)}).type = wide;
  return out;
}
void Builder::assign(Reg out, Value v, Scalar type) {
  if (out.width == Width::W64) type = Scalar::B64;
  if (out.width == Width::W16) type = Scalar::B16;
  if (out.width == Width::Pred) type = Scalar::Pred;
  emit(Op::Mov, {out}, {v}).type = type;
}
Reg Builder::copy_of(Value v, Scalar type) {
  const Reg out = reg(v.is_constant ? width(type) : v.reg.width);
  assign(out, v, type);
  return out;
}

std::vector<Reg> Builder::load(Scalar type, Value address, int count, Access access) {
  std::vector<Reg> out = regs(count, type);
  load_into(out, type, address, access);
  return out;
}
void Builder::load_into(std::span<const Reg> out, Scalar type, Value address, Access access) {
  Inst& inst = emit(Op::Load, {out.begin(), out.end()}, {address},
                    {access.offset, static_cast<int>(access.space), static_cast<int>(access.hint)});
  inst.type = type;
  inst.guard = access.guard;
}
void Builder::store(Scalar type, Value address, std::span<const Value> values, Access access) {
  std::vector<Value> in = {address};
  for (const Value& v : values) in.push_back(in_register(v, type));
  Inst& inst = emit(Op::Store, {}, std::move(in),
                    {access.offset, static_cast<int>(access.space), static_cast<int>(access.hint)});
  inst.type = type;
  inst.guard = access.guard;
}

Inst& Builder::emit(Inst inst) {
  if (inst.line == 0) inst.line = line;
  place_.back()->push_back(std::move(inst));
  return place_.back()->back();
}
Inst& Builder::emit(Op op, std::vector<Reg> out, std::vector<Value> in, std::array<int32_t, 6> attr) {
  Inst inst;
  inst.op = op;
  inst.out = std::move(out);
  inst.in = std::move(in);
  inst.attr = attr;
  return emit(std::move(inst));
}

void Builder::if_then(Value predicate, const std::function<void()>& then, const std::function<void()>& otherwise) {
  if (predicate.is_constant) {
    if (predicate.constant) {
      then();
    } else if (otherwise) {
      otherwise();
    }
    return;
  }
  std::vector<Inst> body, orelse;
  place_.push_back(&body);
  then();
  place_.back() = &orelse;
  if (otherwise) otherwise();
  place_.pop_back();
  Inst inst;
  inst.op = Op::If;
  inst.in = {predicate};
  inst.body = std::move(body);
  inst.orelse = std::move(orelse);
  emit(std::move(inst));
}
void Builder::loop(const std::function<void()>& body) {
  std::vector<Inst> insts;
  place_.push_back(&insts);
  body();
  place_.pop_back();
  Inst inst;
  inst.op = Op::Loop;
  inst.body = std::move(insts);
  emit(std::move(inst));
}
void Builder::break_if(Value predicate) {
  emit(Op::BreakIf, {}, {predicate.is_constant ? Value(in_register(predicate, Scalar::Pred)) : predicate});
}
void Builder::for_range(Value first, Value last, Value step, const std::function<void(Reg)>& body, Scalar type) {
  const Reg i = copy_of(first, type);
  loop([&] {
    break_if(compare(Compare::Ge, type, i, last));
    body(i);
    binary_into(i, Op::Add, type, i, step);
  });
}

}  // namespace tilewright::ir::thread
