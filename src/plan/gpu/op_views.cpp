#include "plan/gpu/op_views.h"

#include <algorithm>

namespace tilewright::plan::gpu {

using ir::OpKind;

Views views_of(const ir::Op& op) {
  Views out;
  switch (op.kind) {
    case OpKind::Fill: out.writes = {&op.as<ir::FillAttributes>().dst}; break;
    case OpKind::Copy:
      out.reads = {&op.as<ir::CopyAttributes>().src}, out.writes = {&op.as<ir::CopyAttributes>().dst};
      break;
    case OpKind::Gemm: {
      const auto& a = op.as<ir::GemmAttributes>();
      out.reads = {&a.a, &a.b}, out.writes = {&a.c};
      break;
    }
    case OpKind::Reduce:
      out.reads = {&op.as<ir::ReduceAttributes>().src}, out.writes = {&op.as<ir::ReduceAttributes>().dst};
      break;
    case OpKind::ReduceArg: {
      const auto& a = op.as<ir::ReduceArgAttributes>();
      out.reads = {&a.src}, out.writes = {&a.value, &a.index};
      break;
    }
    case OpKind::Scan:
      out.reads = {&op.as<ir::ScanAttributes>().src}, out.writes = {&op.as<ir::ScanAttributes>().dst};
      break;
    case OpKind::AtomicTile:
      out.reads = {&op.as<ir::AtomicTileAttributes>().src}, out.writes = {&op.as<ir::AtomicTileAttributes>().dst};
      break;
    case OpKind::ArriveLast: out.writes = {&op.as<ir::ArriveLastAttributes>().counter}; break;
    default: break;
  }
  return out;
}

const ir::Value* stored_buffer(const ir::Op& op) {
  if (op.kind == OpKind::Store) return op.as<ir::AccessAttributes>().buffer;
  if (op.kind == OpKind::Atomic) return op.as<ir::AtomicAttributes>().buffer;
  return nullptr;
}

void for_each_access(const ir::Region& region, const AccessVisitor& visit) {
  for (const ir::Op* op : region.ops) {
    if (op->kind == OpKind::Load || op->kind == OpKind::Store)
      visit(*op, op->as<ir::AccessAttributes>().buffer, op->as<ir::AccessAttributes>().indices);
    if (op->kind == OpKind::Atomic)
      visit(*op, op->as<ir::AtomicAttributes>().buffer, op->as<ir::AtomicAttributes>().indices);
    for (const ir::Region* r : op->regions) for_each_access(*r, visit);
  }
}

void for_each_store(const ir::Region& region, const std::function<void(const ir::Value*)>& visit) {
  for (const ir::Op* op : region.ops) {
    if (const ir::Value* buffer = stored_buffer(*op)) visit(buffer);
    for (const ir::Region* r : op->regions) for_each_store(*r, visit);
  }
}

std::optional<std::vector<int>> variables_of(const ir::Op& parallel, const std::vector<ir::Index>& indices) {
  std::vector<int> out;
  const auto& variables = parallel.regions[0]->arguments;
  for (const ir::Index& x : indices) {
    if (!x.symbol()) return std::nullopt;
    const auto it = std::find(variables.begin(), variables.end(), x.symbol());
    if (it == variables.end()) return std::nullopt;
    const int position = static_cast<int>(it - variables.begin());
    if (!out.empty() && out.back() >= position) return std::nullopt;
    out.push_back(position);
  }
  return out;
}

bool uses_any(ir::Index x, const std::vector<ir::Value*>& variables) {
  return std::ranges::any_of(variables, [&](const ir::Value* v) { return ir::uses_symbol(x, v); });
}

std::vector<int64_t> constant_shape(const ir::Type& type) {
  std::vector<int64_t> out;
  for (const ir::Index& x : type.shape) out.push_back(x.constant().value_or(0));
  return out;
}

}  // namespace tilewright::plan::gpu
