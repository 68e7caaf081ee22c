#include "plan/gpu/lowering.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::plan::gpu {

using ir::OpKind;
using ir::thread::Op;
using ir::thread::Param;
using ir::thread::SpecialRegister;

void unsupported(const Location& location, std::string what) {
  throw Unsupported{fail_at(DiagnosticCode::E2101, location, "no lowering for CUDA: " + std::move(what)).error()};
}

Scalar register_type(DType dtype) {
  switch (dtype) {
    case DType::Bool: return Scalar::Pred;
    case DType::I8:
    case DType::I16:
    case DType::I32: return Scalar::S32;
    case DType::U8:
    case DType::U16:
    case DType::U32: return Scalar::U32;
    case DType::I64: return Scalar::S64;
    case DType::U64: return Scalar::U64;
    case DType::F64: return Scalar::F64;
    default: return Scalar::F32;
  }
}
Scalar memory_type(DType dtype) {
  constexpr Scalar by_bytes[] = {Scalar::B8,  Scalar::B8,  Scalar::B16, Scalar::B16, Scalar::B32,
                                 Scalar::B32, Scalar::B32, Scalar::B32, Scalar::B64};
  return by_bytes[bytes(dtype)];
}
Scalar number_type(DType dtype) {
  constexpr Scalar rows[] = {Scalar::U8,   Scalar::S8,  Scalar::S16, Scalar::S32,  Scalar::S64,
                             Scalar::U8,   Scalar::U16, Scalar::U32, Scalar::U64,  Scalar::F16,
                             Scalar::BF16, Scalar::F32, Scalar::F64, Scalar::E4M3, Scalar::E5M2};
  return rows[static_cast<size_t>(dtype)];
}

Lowering::Lowering(const ir::Kernel& tile, const ir::Op& grid, const cpu::Arguments& arguments, const ir::Kernel& slots,
                   const runtime::Recipe& recipe, const target::Gpu& gpu, const Options& options, std::string name,
                   std::vector<Fact>& facts)
    : tile_(tile),
      grid_(grid),
      arguments_(arguments),
      slots_(slots),
      recipe_(recipe),
      gpu_(gpu),
      options_(options),
      facts_(facts),
      b_(std::move(name)),
      index_(b_, options.wide_indices ? Scalar::S64 : Scalar::S32, options.plant.is("gpu_index", 1),
             [this](const ir::Value* v) { return as_index(v); }) {
  collect(block_region());
}

void Lowering::declare_parameters() {
  const size_t pointers = recipe_.tensors.size() + recipe_.workspaces.size();
  for (size_t i = 0; i < pointers; ++i) b_.param(fmt::format("pointer{}", i), Param::Kind::Pointer);
  first_slot_param_ = static_cast<int>(pointers);
  if (has_counter_) counter_param_ = b_.param("counter", Param::Kind::Pointer), ++first_slot_param_;
  if (!recipe_.messages.empty()) {
    b_.param("reports", Param::Kind::Pointer);
    b_.param("first_message", Param::Kind::I64);
    first_slot_param_ += 2;
  }
  for (const runtime::Slot& slot : recipe_.slots) b_.param(slot.name.empty() ? "slot" : slot.name, Param::Kind::I64);
}

void Lowering::bind_arguments() {
  const auto slot_value = [&](ir::Index x) -> Operand {
    if (const auto c = x.constant()) return *c;
    for (size_t i = 0; i < slots_.slots.size(); ++i) {
      if (slots_.slots[i] == x.symbol()) return b_.load_param(first_slot_param_ + static_cast<int>(i));
    }
    return 0;
  };
  const auto bind = [&](const ir::Value* v, ir::Index x) {
    const Operand wide = slot_value(x);
    index_.bind(v, {options_.wide_indices ? wide : b_.convert(Scalar::S32, Scalar::S64, wide), 0});
    return wide;
  };
  for (size_t i = 0; i < slots_.slots.size(); ++i)
    bind(slots_.slots[i], arguments_.map(slots_.indices().symbol(slots_.slots[i])));
  for (const ir::Dimension& d : tile_.dimensions)
    if (const ir::Index x = arguments_.index_of(d.value)) define(d.value, bind(d.value, x));
  for (const ir::ScalarArgument& s : tile_.scalars) {
    const ir::Index x = arguments_.index_of(s.value);
    if (!x) continue;
    const Operand wide = bind(s.value, x);
    const DType dtype = s.value->type.dtype;
    const Scalar type = register_type(dtype);
    if (dtype == DType::Bool)
      define(s.value, b_.compare(Compare::Ne, Scalar::S64, wide, 0));
    else if (bytes(type) == 8)
      define(s.value, wide);
    else
      define(s.value, b_.convert(Scalar::U32, Scalar::U64, wide));
  }
}

void Lowering::begin_group(Operand thread, int threads, int barrier) {
  thread_ = thread;
  threads_ = threads;
  barrier_ = barrier;
}

// Collects operations, marks what global memory is read and written, and which fragments registers can serve.
void Lowering::collect(const ir::Region& region) {
  for (const ir::Op* op : region.ops) {
    ops_.push_back(op);
    homes_[op] = &region;
    for (const ir::Region* r : op->regions) collect(*r);
  }
}

bool Lowering::is_whole(const ir::View& view) const {
  for (size_t d = 0; d < view.slices.size(); ++d) {
    const ir::Slice& s = view.slices[d];
    if (!s.keep || !s.start.is_constant(0) || !(s.extent == view.buffer->type.shape[d])) return false;
  }
  return true;
}

}  // namespace tilewright::plan::gpu
