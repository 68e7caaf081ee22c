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
      index_(b_, options.wide_indices ? Scalar::S64 : Scalar::S32, options.plant.is("gpu_index", 1)) {
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

namespace {

struct Views {
  std::vector<const ir::View*> reads, writes;
};
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

/// Positions of the parallel variables that index a fragment, when each index is one, in increasing order.
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

void for_accesses(const ir::Region& region,
                  const std::function<void(const ir::Op&, const ir::Value*, const std::vector<ir::Index>&)>& visit) {
  for (const ir::Op* op : region.ops) {
    if (op->kind == OpKind::Load || op->kind == OpKind::Store)
      visit(*op, op->as<ir::AccessAttributes>().buffer, op->as<ir::AccessAttributes>().indices);
    if (op->kind == OpKind::Atomic)
      visit(*op, op->as<ir::AtomicAttributes>().buffer, op->as<ir::AtomicAttributes>().indices);
    for (const ir::Region* r : op->regions) for_accesses(*r, visit);
  }
}

bool is_fragment(const ir::Value* v) { return v->type.is_buffer() && v->type.space == ir::MemorySpace::Fragment; }

Distribution project(const Distribution& iteration, const std::vector<int>& kept) {
  Distribution out = iteration;
  for (int d = iteration.rank() - 1; d >= 0; --d)
    if (std::find(kept.begin(), kept.end(), d) == kept.end()) out = slice(out, d);
  return out;
}

std::vector<int64_t> constant_shape(const ir::Type& type) {
  std::vector<int64_t> out;
  for (const ir::Index& x : type.shape) out.push_back(x.constant().value_or(0));
  return out;
}

}  // namespace

bool Lowering::is_whole(const ir::View& view) const {
  for (size_t d = 0; d < view.slices.size(); ++d) {
    const ir::Slice& s = view.slices[d];
    if (!s.keep || !s.start.is_constant(0) || !(s.extent == view.buffer->type.shape[d])) return false;
  }
  return true;
}

const Distribution* Lowering::distribution_of(const ir::Value* buffer) const {
  const auto it = layouts_.find(buffer);
  return it == layouts_.end() || it->second.digits.empty() ? nullptr : &it->second;
}

// Registers first: every fragment is eligible until an access says otherwise. Then seeds (matrix instructions), then
// propagation until nothing changes, then a default for the first fragment without a layout, and again.
void Lowering::assign_layouts(const std::function<std::optional<Distribution>(const ir::Op&, const ir::Value*)>& seed) {
  std::unordered_set<const ir::Value*> eligible;
  std::vector<const ir::Value*> order;
  for (const ir::Op* op : ops_) {
    if (op->kind == OpKind::Alloc && is_fragment(op->result())) {
      eligible.insert(op->result());
      order.push_back(op->result());
    }
  }
  std::unordered_set<const ir::Op*> inside_parallel;
  for (const ir::Op* op : ops_) {
    const Views views = views_of(*op);
    for (const auto* list : {&views.reads, &views.writes})
      for (const ir::View* v : *list)
        if (!is_whole(*v) || op->kind == OpKind::Scan || op->kind == OpKind::ReduceArg) eligible.erase(v->buffer);
    if (op->kind != OpKind::Parallel) continue;
    for_accesses(*op->regions[0],
                 [&](const ir::Op& access, const ir::Value* buffer, const std::vector<ir::Index>& indices) {
                   inside_parallel.insert(&access);
                   const auto variables = variables_of(*op, indices);
                   bool fits = variables.has_value() && access.kind != OpKind::Atomic;
                   if (fits)
                     for (size_t d = 0; d < variables->size(); ++d)
                       fits &= buffer->type.shape[d] ==
                               op->as<ir::ParallelAttributes>().extents[static_cast<size_t>((*variables)[d])];
                   if (!fits) eligible.erase(buffer);
                 });
  }
  for (const ir::Op* op : ops_) {
    if ((op->kind == OpKind::Load || op->kind == OpKind::Store) && !inside_parallel.contains(op))
      eligible.erase(op->as<ir::AccessAttributes>().buffer);
    if (op->kind == OpKind::Atomic && !inside_parallel.contains(op))
      eligible.erase(op->as<ir::AtomicAttributes>().buffer);
  }
  for (const ir::Value* v : order)
    if (eligible.contains(v)) layouts_[v] = {};
  for (const ir::Op* op : ops_) {
    const Views views = views_of(*op);
    for (const auto* list : {&views.writes, &views.reads})
      for (const ir::View* v : *list)
        if (layouts_.contains(v->buffer) && !distribution_of(v->buffer))
          if (auto d = seed(*op, v->buffer)) layouts_[v->buffer] = std::move(*d);
  }
  for (;;) {
    bool changed = false;
    for (const ir::Op* op : ops_) changed |= propagate(*op);
    if (changed) continue;
    const ir::Value* bare = nullptr;
    for (const ir::Value* v : order)  // the tile of highest rank decides for those sliced from it
      if (layouts_.contains(v) && !distribution_of(v) && (!bare || v->type.rank() > bare->type.rank())) bare = v;
    if (!bare) break;
    int element = std::max(2, bytes(bare->type.dtype));  // the narrowest of what it is copied from or to
    for (const ir::Op* op : ops_) {
      if (op->kind != OpKind::Copy) continue;
      const auto& a = op->as<ir::CopyAttributes>();
      if (a.src.buffer == bare) element = std::min(element, std::max(2, bytes(a.dst.buffer->type.dtype)));
      if (a.dst.buffer == bare) element = std::min(element, std::max(2, bytes(a.src.buffer->type.dtype)));
    }
    layouts_[bare] = row_major(constant_shape(bare->type), threads_, std::max(1, 16 / element));
  }
  for (const ir::Value* v : order) {
    if (!layouts_.contains(v)) {
      fact(fmt::format("fragment {}", v->name), "in shared memory: an access registers cannot serve", {});
      continue;
    }
    fact(fmt::format("fragment {}", v->name), to_text(layouts_[v]), {});
  }
}

// True when a fragment without a layout got one from `op`.
bool Lowering::propagate(const ir::Op& op) {
  bool changed = false;
  const auto give = [&](const ir::Value* v, const Distribution& d) {
    if (!layouts_.contains(v) || distribution_of(v)) return;
    layouts_[v] = d;
    changed = true;
  };
  if (op.kind == OpKind::Copy) {
    const auto& a = op.as<ir::CopyAttributes>();
    if (const Distribution* d = distribution_of(a.src.buffer)) give(a.dst.buffer, *d);
    if (const Distribution* d = distribution_of(a.dst.buffer)) give(a.src.buffer, *d);
  }
  if (op.kind == OpKind::Reduce) {
    const auto& a = op.as<ir::ReduceAttributes>();
    if (const Distribution* d = distribution_of(a.src.buffer)) give(a.dst.buffer, slice(*d, a.dim));
  }
  if (op.kind == OpKind::Parallel) {
    const int rank = static_cast<int>(op.as<ir::ParallelAttributes>().extents.size());
    const Distribution* iteration = nullptr;
    for_accesses(*op.regions[0], [&](const ir::Op&, const ir::Value* buffer, const std::vector<ir::Index>& indices) {
      if (static_cast<int>(indices.size()) == rank && distribution_of(buffer)) iteration = distribution_of(buffer);
    });
    if (!iteration) return changed;
    const Distribution d = *iteration;
    for_accesses(*op.regions[0], [&](const ir::Op&, const ir::Value* buffer, const std::vector<ir::Index>& indices) {
      if (!layouts_.contains(buffer)) return;
      if (const auto variables = variables_of(op, indices)) give(buffer, project(d, *variables));
    });
  }
  return changed;
}

int Lowering::reserve_shared(int64_t bytes, int alignment, const Location& location) {
  shared_bytes_ = (shared_bytes_ + alignment - 1) / alignment * alignment;
  const int at = shared_bytes_;
  if (bytes > gpu_.shared_bytes_per_block || at + bytes > gpu_.shared_bytes_per_block) {
    throw Unsupported{fail_at(DiagnosticCode::E2102, location,
                              fmt::format("the block needs {} bytes of shared memory; {} allows {}", at + bytes,
                                          gpu_.name, gpu_.shared_bytes_per_block),
                              "use smaller tiles or fewer stages")
                          .error()};
  }
  shared_bytes_ += static_cast<int>(bytes);
  return at;
}

bool Lowering::feeds_matrix(const ir::Value* tile) const {
  for (const ir::Op* op : ops_) {
    if (op->kind != OpKind::Gemm) continue;
    const auto& a = op->as<ir::GemmAttributes>();
    if ((a.a.buffer == tile || a.b.buffer == tile) && uses_mma(a)) return true;
  }
  return false;
}

void Lowering::allocate_shared() {
  for (const ir::Op* op : ops_) {
    if (op->kind != OpKind::Alloc) continue;
    const ir::Value* v = op->result();
    if (shared_.contains(v)) continue;
    const bool is_shared = v->type.space == ir::MemorySpace::Shared || (is_fragment(v) && !in_registers(v));
    if (!is_shared) continue;
    SharedTile tile;
    const auto shape = constant_shape(v->type);
    int64_t rows = 1;
    for (size_t d = 0; d + 1 < shape.size(); ++d) rows *= shape[d];
    tile.pitch = shape.empty() ? 1 : shape.back();
    // Rows an odd number of 16-byte pieces apart put eight neighbouring ones in different banks; 16-byte rows stay
    // aligned. Tiles that no matrix instruction reads are lengthened only where every row begins in the same bank.
    const int64_t row_bytes = tile.pitch * bytes(v->type.dtype);
    if (rows > 1 && row_bytes % (feeds_matrix(v) ? 32 : 128) == 0) tile.pitch += 16 / bytes(v->type.dtype);
    tile.stage_bytes = static_cast<int>((rows * tile.pitch * bytes(v->type.dtype) + 127) / 128 * 128);
    const int64_t stages = async_stages_.contains(v) ? async_stages_.at(v) : 1;
    tile.offset = reserve_shared(stages * tile.stage_bytes, 128, op->location);
    shared_[v] = tile;
  }
}

/// What allocate_shared() and assign_layouts() settled, for people.
void Lowering::describe_layouts() {
  for (const ir::Op* op : ops_) {
    if (op->kind != OpKind::Alloc) continue;
    const ir::Value* v = op->result();
    BufferLayout b{.name = v->name, .dtype = v->type.dtype, .shape = constant_shape(v->type)};
    if (const Distribution* d = distribution_of(v)) {
      b.registers = *d;
    } else if (const auto at = shared_.find(v); at != shared_.end()) {
      b.shared.pitch = at->second.pitch;
      b.shared.stages = async_stages_.contains(v) ? async_stages_.at(v) : 1;
    } else {
      continue;
    }
    drawn_.push_back(std::move(b));
  }
}

void Lowering::allocate_fragments() {
  for (const ir::Op* op : ops_) {
    if (op->kind != OpKind::Alloc) continue;
    const ir::Value* v = op->result();
    if (const Distribution* d = distribution_of(v)) {
      const Scalar type = v->type.dtype == DType::Bool ? Scalar::B32 : register_type(v->type.dtype);
      Fragment f{*d, b_.regs(static_cast<int>(d->registers.size()), type)};
      // An uninitialised tile is read only by wrong programs; zero keeps every path of the program defined.
      for (Reg r : f.registers) b_.assign(r, 0);
      fragments_[v] = std::move(f);
    } else if (v->type.is_buffer() &&
               (v->type.space == ir::MemorySpace::Var || v->type.space == ir::MemorySpace::Local)) {
      int64_t count = 1;
      for (int64_t n : constant_shape(v->type)) count *= n;
      const Scalar type = v->type.dtype == DType::Bool ? Scalar::B32 : register_type(v->type.dtype);
      auto& regs = variables_[v] = b_.regs(static_cast<int>(count), type);
      for (Reg r : regs) b_.assign(r, 0);
    }
  }
}

// ---- hazards

bool Lowering::is_tracked(const ir::Value* buffer) const {
  if (shared_.contains(buffer)) return true;
  return buffer->type.space == ir::MemorySpace::Global && written_globals_.contains(buffer) &&
         read_globals_.contains(buffer);
}
void Lowering::reads(const ir::Value* buffer) {
  if (!is_tracked(buffer)) return;
  const bool forgets = options_.plant.is("gpu_barriers", 1);  // plant 1: what was written is read without a barrier
  if (pending_writes_.contains(buffer) && !forgets) barrier();
  pending_reads_.insert(buffer);
}
void Lowering::writes(const ir::Value* buffer) {
  if (!is_tracked(buffer)) return;
  const bool forgets = options_.plant.is("gpu_barriers", 2);  // plant 2: what is being read is overwritten
  if (pending_writes_.contains(buffer) || (pending_reads_.contains(buffer) && !forgets)) barrier();
  pending_writes_.insert(buffer);
}
void Lowering::barrier() {
  b_.emit(Op::Barrier, {}, {barrier_, threads_});
  pending_reads_.clear();
  pending_writes_.clear();
}
void Lowering::enter_loop(const ir::Region& body) {
  if (options_.plant.is("gpu_barriers", 3)) return;  // plant 3: iterations do not know of one another
  // What the body leaves pending is pending at its head, too.
  const std::function<void(const ir::Region&)> mark = [&](const ir::Region& r) {
    for (const ir::Op* op : r.ops) {
      const Views views = views_of(*op);
      for (const ir::View* v : views.reads)
        if (is_tracked(v->buffer)) pending_reads_.insert(v->buffer);
      for (const ir::View* v : views.writes)
        if (is_tracked(v->buffer)) pending_writes_.insert(v->buffer);
      if (op->kind == OpKind::Load && is_tracked(op->as<ir::AccessAttributes>().buffer))
        pending_reads_.insert(op->as<ir::AccessAttributes>().buffer);
      if (op->kind == OpKind::Store && is_tracked(op->as<ir::AccessAttributes>().buffer))
        pending_writes_.insert(op->as<ir::AccessAttributes>().buffer);
      if (op->kind == OpKind::Atomic && is_tracked(op->as<ir::AtomicAttributes>().buffer))
        pending_writes_.insert(op->as<ir::AtomicAttributes>().buffer);
      for (const ir::Region* inner : op->regions) mark(*inner);
    }
  };
  mark(body);
}

// ---- threads and coordinates

Operand Lowering::thread_coordinate(const Distribution& d, int dim) {
  uint64_t key = mix(77, static_cast<uint64_t>(dim));
  for (const auto& digit : d.digits)
    key = mix(key, static_cast<uint64_t>(digit.extent * 1000003 + (digit.dim == dim ? digit.stride + 1 : 0)));
  if (const Operand* known = index_.find(key)) return *known;
  Operand rest = thread_, out = 0;
  for (size_t i = 0; i < d.digits.size(); ++i) {
    const auto& digit = d.digits[i];
    if (digit.dim == dim) {
      const Operand value = i + 1 == d.digits.size() ? rest : b_.rem(Scalar::U32, rest, digit.extent);
      out = b_.add(Scalar::U32, out, b_.mul(Scalar::U32, value, digit.stride));
    }
    rest = b_.div(Scalar::U32, rest, digit.extent);
  }
  index_.remember(key, out);
  return out;
}

Operand Lowering::owns(const Distribution& d) {
  if (options_.plant.is("gpu_layouts", 1)) return 1;  // plant 1: every replica acts
  Operand out = 1, rest = thread_;
  for (size_t i = 0; i < d.digits.size(); ++i) {
    const auto& digit = d.digits[i];
    if (digit.dim < 0 && digit.extent > 1)
      out =
          b_.logical_and(out, b_.compare(Compare::Eq, Scalar::U32,
                                         i + 1 == d.digits.size() ? rest : b_.rem(Scalar::U32, rest, digit.extent), 0));
    rest = b_.div(Scalar::U32, rest, digit.extent);
  }
  return out;
}

Operand Lowering::valid(const Distribution& d, int r) {
  Operand out = 1;
  for (int dim = 0; dim < d.rank(); ++dim) {
    const auto k = static_cast<size_t>(dim);
    int64_t last = d.registers[static_cast<size_t>(r)][k];
    for (const auto& digit : d.digits)
      if (digit.dim == dim) last += int64_t{digit.extent - 1} * digit.stride;
    if (last < d.shape[k]) continue;
    const bool one_more = options_.plant.is("gpu_layouts", 2);  // plant 2: one element of padding counts
    const int64_t limit = d.shape[k] - d.registers[static_cast<size_t>(r)][k] + (one_more ? 1 : 0);
    out = b_.logical_and(out, b_.compare(Compare::Lt, Scalar::S32, thread_coordinate(d, dim), limit));
  }
  return out;
}

// ---- the portable form

ir::thread::Program Lowering::portable(runtime::Launch& launch) {
  const auto& g = grid_.as<ir::GridAttributes>();
  const int threads = std::clamp((g.threads + 31) / 32 * 32, 32, 1024);
  b_.program().threads = threads;
  declare_parameters();
  for (const ir::Op* op : ops_) {
    const Views views = views_of(*op);
    for (const ir::View* v : views.reads) read_globals_.insert(v->buffer);
    for (const ir::View* v : views.writes) written_globals_.insert(v->buffer);
    if (op->kind == OpKind::Load) read_globals_.insert(op->as<ir::AccessAttributes>().buffer);
    if (op->kind == OpKind::Store) written_globals_.insert(op->as<ir::AccessAttributes>().buffer);
    if (op->kind == OpKind::Atomic)
      written_globals_.insert(op->as<ir::AtomicAttributes>().buffer),
          read_globals_.insert(op->as<ir::AtomicAttributes>().buffer);
  }
  begin_group(b_.special(SpecialRegister::ThreadX), threads, 0);
  shared_base_ = Reg{};
  bind_arguments();
  // Warps of mma.sync: all along m when a fragment feeds a product (its rows must stay in one warp), else spread over
  // both.
  int64_t rows = 1 << 20, columns = 1 << 20;
  bool chained = false;
  for (const ir::Op* op : ops_) {
    if (op->kind != OpKind::Gemm) continue;
    const auto& a = op->as<ir::GemmAttributes>();
    rows = std::min(rows, a.c.buffer->type.shape[0].constant().value_or(16));
    columns = std::min(columns, a.c.buffer->type.rank() > 1 ? a.c.buffer->type.shape[1].constant().value_or(8) : 8);
    chained |= is_fragment(a.a.buffer);
  }
  const int warps = threads / 32;
  warps_m_ = 1;
  while (warps_m_ * 2 <= warps && rows % (16 * warps_m_ * 2) == 0 && (chained || warps_m_ * warps_m_ * 2 <= warps * 2))
    warps_m_ *= 2;
  warps_n_ = warps / warps_m_;
  if (chained && rows % (16 * warps) == 0) warps_m_ = warps;
  warps_n_ = warps / warps_m_;
  if (warps % warps_m_ || columns % (8 * warps_n_) || (chained && warps_n_ != 1)) warps_m_ = warps_n_ = 0;
  assign_layouts([&](const ir::Op& op, const ir::Value* v) -> std::optional<Distribution> {
    if (op.kind != OpKind::Gemm) return std::nullopt;
    const auto& a = op.as<ir::GemmAttributes>();
    const auto shape = constant_shape(v->type);
    if (v == a.c.buffer) {
      if (uses_mma(a)) return matrix_accumulator(a);
      return row_major(shape, threads_, 4);
    }
    if (v == a.a.buffer && uses_mma(a)) return mma_accumulator(shape[0], shape[1], warps_m_, warps_n_);
    return std::nullopt;
  });
  find_async_rings();
  allocate_shared();
  prepare_reports();
  shared_base_ = b_.reg(Width::W32);
  ir::thread::Inst& base = b_.emit(Op::Special, {shared_base_}, {}, {static_cast<int>(SpecialRegister::SharedBase)});
  base.type = Scalar::U32;
  clear_failed_flag();
  describe_layouts();
  allocate_fragments();
  const auto& block = block_region();
  constexpr SpecialRegister blocks[] = {SpecialRegister::BlockX, SpecialRegister::BlockY, SpecialRegister::BlockZ};
  for (size_t i = 0; i < block.arguments.size(); ++i) {
    const Operand v = b_.special(blocks[i]);
    index_.bind(block.arguments[i], {v, 0});
    define(block.arguments[i], b_.convert(Scalar::S64, Scalar::S32, v));
  }
  region(block);
  if (shared_bytes_ == 0) shared_bytes_ = 16;
  b_.program().shared_bytes = shared_bytes_;
  launch.symbol = b_.program().name;
  launch.target = runtime::LaunchTarget::Cuda;
  for (const ir::Index& extent : g.extents) launch.grid.push_back(arguments_.expression(arguments_.map(extent)));
  launch.threads = runtime::constant(threads);
  launch.shared_bytes = runtime::constant(shared_bytes_);
  return b_.finish();
}

}  // namespace tilewright::plan::gpu
