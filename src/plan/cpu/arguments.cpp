#include "plan/cpu/arguments.h"

#include <bit>
#include <cstring>

namespace tilewright::plan::cpu {
namespace {

using ir::Index;
using ir::IndexOp;
using runtime::Expression;
using runtime::ExpressionOp;

tw_dtype abi_dtype(DType dtype) {
  static constexpr tw_dtype kRows[] = {TW_BOOL, TW_I8,  TW_I16,  TW_I32, TW_I64, TW_U8,   TW_U16, TW_U32,
                                       TW_U64,  TW_F16, TW_BF16, TW_F32, TW_F64, TW_E4M3, TW_E5M2};
  return kRows[static_cast<size_t>(dtype)];
}

int64_t default_bits(const ir::ConstantAttributes& value, DType dtype) {
  if (dtype == DType::F64) return std::bit_cast<int64_t>(value.real);
  if (is_float(dtype)) return static_cast<int64_t>(std::bit_cast<uint32_t>(static_cast<float>(value.real)));
  return value.integer;
}

ExpressionOp expression_op(IndexOp op) {
  switch (op) {
    case IndexOp::Add: return ExpressionOp::Add;
    case IndexOp::Mul: return ExpressionOp::Mul;
    case IndexOp::FloorDiv: return ExpressionOp::FloorDiv;
    case IndexOp::FloorMod: return ExpressionOp::FloorMod;
    case IndexOp::Min: return ExpressionOp::Min;
    case IndexOp::Max: return ExpressionOp::Max;
    case IndexOp::Select: return ExpressionOp::Select;
    case IndexOp::Lt: return ExpressionOp::Lt;
    case IndexOp::Le: return ExpressionOp::Le;
    case IndexOp::Eq: return ExpressionOp::Eq;
    case IndexOp::Ne: return ExpressionOp::Ne;
    case IndexOp::And: return ExpressionOp::And;
    case IndexOp::Or: return ExpressionOp::Or;
    case IndexOp::Not: return ExpressionOp::Not;
    case IndexOp::Const:
    case IndexOp::Symbol: break;
  }
  return ExpressionOp::Const;
}

std::string text_of(Index x, const ir::Kernel& kernel) {
  return to_string(x, [&](const ir::Value* v) {
    for (const ir::Dimension& d : kernel.dimensions) {
      if (d.value == v) return d.name;
    }
    return v->name.empty() ? std::string("?") : v->name;
  });
}

}  // namespace

Arguments::Arguments(const ir::Kernel& tile, ir::Kernel& vector, runtime::Recipe& recipe)
    : tile_(tile), vector_(vector), recipe_(recipe) {
  add_dimensions();
  add_scalars();
  add_tensors();
  add_requirements();
}

Index Arguments::add_slot(runtime::Slot slot) {
  ir::Value* value = vector_.new_value(ir::Type::scalar(DType::I64), slot.name);
  slot_number_[value] = static_cast<int>(recipe_.slots.size());
  recipe_.slots.push_back(std::move(slot));
  vector_.slots.push_back(value);
  return vector_.indices().symbol(value);
}

/// A dimension is bound by the first axis that is exactly its name.
void Arguments::add_dimensions() {
  for (const ir::Dimension& d : tile_.dimensions) {
    uint32_t argument = 0;
    bool found = false;
    for (const ir::TensorArgument& t : tile_.tensors) {
      if (t.direction == ir::Direction::Workspace) continue;
      for (uint32_t axis = 0; axis < t.buffer->type.shape.size() && !found; ++axis) {
        const Index extent = t.buffer->type.shape[axis];
        if (extent.symbol() != d.value) continue;
        found = true;
        const Index slot = add_slot({runtime::SlotKind::Dim, argument, axis, {}, d.name});
        slot_number_[d.value] = slot_number_.at(slot.symbol());
        index_of_[d.value] = d.constant ? vector_.indices().constant(*d.constant) : slot;
      }
      ++argument;
    }
    if (!found && d.constant) index_of_[d.value] = vector_.indices().constant(*d.constant);
  }
}

void Arguments::add_scalars() {
  uint32_t number = 0;
  for (const ir::ScalarArgument& s : tile_.scalars) {
    const DType dtype = s.value->type.dtype;
    runtime::ScalarArgument argument{s.value->name, abi_dtype(dtype), s.default_value.has_value(), 0};
    if (s.default_value) argument.default_bits = default_bits(*s.default_value, dtype);
    recipe_.scalars.push_back(std::move(argument));
    index_of_[s.value] = add_slot({runtime::SlotKind::Scalar, number++, 0, {}, s.value->name});
  }
}

void Arguments::add_tensors() {
  uint32_t workspaces = 0;
  for (const ir::TensorArgument& t : tile_.tensors) tensor_count_ += t.direction != ir::Direction::Workspace;
  std::unordered_map<int, uint32_t> position;
  uint32_t number = 0;
  for (size_t i = 0; i < tile_.tensors.size(); ++i) {
    const ir::TensorArgument& t = tile_.tensors[i];
    const ir::Type& type = t.buffer->type;
    std::vector<Index> strides(type.shape.size());
    Index pitch = vector_.indices().constant(1);
    if (t.direction == ir::Direction::Workspace) {
      for (size_t d = strides.size(); d-- > 0;) strides[d] = pitch, pitch = pitch * map(type.shape[d]);
      pointers_.push_back(static_cast<int>(tensor_count_ + workspaces++));
      recipe_.workspaces.push_back(
          {t.buffer->name, expression(max(pitch, vector_.indices().constant(0)) * bytes(type.dtype)), {}});
      strides_.push_back(std::move(strides));
      continue;
    }
    position[static_cast<int>(i)] = number;
    runtime::TensorArgument argument;
    argument.name = t.buffer->name;
    argument.dtype = abi_dtype(type.dtype);
    argument.access = t.direction == ir::Direction::In    ? runtime::Access::In
                      : t.direction == ir::Direction::Out ? runtime::Access::Out
                                                          : runtime::Access::InOut;
    argument.is_absent = t.optional;
    argument.facts.alignment = static_cast<uint32_t>(bytes(type.dtype));
    argument.facts.pitch_alignment = 1;
    for (uint32_t axis = 0; axis < type.shape.size(); ++axis) {
      runtime::Axis a;
      a.text = text_of(type.shape[axis], tile_);
      const ir::Value* symbol = type.shape[axis].symbol();
      const auto slot = symbol ? slot_number_.find(symbol) : slot_number_.end();
      const bool binds = slot != slot_number_.end() &&
                         recipe_.slots[static_cast<size_t>(slot->second)].argument == number &&
                         recipe_.slots[static_cast<size_t>(slot->second)].axis == axis &&
                         recipe_.slots[static_cast<size_t>(slot->second)].kind == runtime::SlotKind::Dim;
      if (binds)
        a.binds = slot->second;
      else
        a.extent = expression(map(type.shape[axis]));
      argument.axes.push_back(std::move(a));
      const bool last = axis + 1 == type.shape.size();
      strides[axis] =
          last ? vector_.indices().constant(1)
               : add_slot(
                     {runtime::SlotKind::Stride, number, axis, {}, t.buffer->name + ".stride" + std::to_string(axis)});
    }
    if (t.optional)
      index_of_[t.buffer] = add_slot({runtime::SlotKind::Present, number, 0, {}, t.buffer->name + ".present"});
    recipe_.tensors.push_back(std::move(argument));
    pointers_.push_back(static_cast<int>(number++));
    strides_.push_back(std::move(strides));
  }
  for (const auto& [x, y] : tile_.aliases) {
    if (!position.contains(x) || !position.contains(y)) continue;
    recipe_.tensors[position[x]].may_alias.push_back(position[y]);
    recipe_.tensors[position[y]].may_alias.push_back(position[x]);
  }
}

void Arguments::add_requirements() {
  for (const ir::Dimension& d : tile_.dimensions) {
    if (!d.constant || !slot_number_.contains(d.value)) continue;
    const Expression holds =
        combine(ExpressionOp::Eq, {runtime::slot(slot_number_.at(d.value)), runtime::constant(*d.constant)});
    recipe_.requirements.push_back({holds, true, d.name + " == " + std::to_string(*d.constant)});
  }
  for (const ir::Requirement& r : tile_.requirements) {
    const Index condition = map(r.condition);
    if (condition.constant() && *condition.constant() != 0) continue;
    recipe_.requirements.push_back({expression(condition), false, r.text});
  }
}

Index Arguments::index_of(const ir::Value* v) const {
  const auto found = index_of_.find(v);
  return found == index_of_.end() ? Index() : found->second;
}

Index Arguments::map(Index x) const {
  return substitute(
      x, [this](const ir::Value* v) { return index_of(v); }, vector_.indices());
}

Index Arguments::misalignment(int tensor) {
  Index& slot = misalignments_[tensor];
  if (!slot) {
    const std::string& name = tile_.tensors[static_cast<size_t>(tensor)].buffer->name;
    slot = add_slot(
        {runtime::SlotKind::Misalignment, static_cast<uint32_t>(pointer_of(tensor)), 0, {}, name + ".misalignment"});
  }
  return slot;
}

int Arguments::add_workspace(std::string name, Index bytes) {
  recipe_.workspaces.push_back({std::move(name), expression(bytes), {}});
  return static_cast<int>(tensor_count_ + recipe_.workspaces.size() - 1);
}

Expression Arguments::expression(Index x) const {
  if (const auto c = x.constant()) return runtime::constant(*c);
  if (x.symbol()) return runtime::slot(slot_number_.at(x.symbol()));
  const ir::IndexNode& n = *x.node();
  if (n.c)
    return combine(ExpressionOp::Select, {expression(Index(n.a)), expression(Index(n.b)), expression(Index(n.c))});
  if (!n.b) return combine(expression_op(n.op), {expression(Index(n.a))});
  return combine(expression_op(n.op), {expression(Index(n.a)), expression(Index(n.b))});
}

}  // namespace tilewright::plan::cpu
