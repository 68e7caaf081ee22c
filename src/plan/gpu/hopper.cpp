// The Hopper form of a grid with matrix products: a persistent block of one producer warp and one to three consumer
// warpgroups.
//
// The producer is a single warp behind the consumers, or a warpgroup of its own that gives its registers away when the
// consumers need more than the launch bounds leave. It walks the block's skeleton and fills rings of shared-memory
// stages by the copy engine; the consumers walk their own copy of the skeleton, take stages, run wgmma on them and
// everything else on registers; barriers: full (one arrival and the bytes) and empty (one arrival per consumer warp)
// per stage.
#include <fmt/format.h>

#include <algorithm>

#include "plan/gpu/lowering.h"
#include "target/gpu_matrix.h"

namespace tilewright::plan::gpu {

using ir::OpKind;
using ir::thread::Op;
using ir::thread::Param;
using ir::thread::SpecialRegister;

namespace {

bool is_shared_tile(const ir::Value* v) { return v->type.is_buffer() && v->type.space == ir::MemorySpace::Shared; }
bool is_global(const ir::Value* v) { return v->type.is_buffer() && v->type.space == ir::MemorySpace::Global; }
bool is_fragment(const ir::Value* v) { return v->type.is_buffer() && v->type.space == ir::MemorySpace::Fragment; }
int64_t extent_of(const ir::Value* v, size_t d) { return v->type.shape[d].constant().value_or(0); }

std::optional<target::Wgmma> wgmma_of(DType a, DType b, DType c) {
  using target::Wgmma;
  if (a == DType::I8 && b == DType::I8 && c == DType::I32) return Wgmma::k32_s8;
  if (a == DType::U8 && b == DType::U8 && c == DType::I32) return Wgmma::k32_u8;
  if (c != DType::F32) return std::nullopt;
  if (a == DType::BF16 && b == DType::BF16) return Wgmma::k16_bf16;
  if (a == DType::F16 && b == DType::F16) return Wgmma::k16_f16;
  if (a == DType::E4M3 && b == DType::E4M3) return Wgmma::k32_e4m3;
  if (a == DType::E4M3 && b == DType::E5M2) return Wgmma::k32_e4m3_e5m2;
  if (a == DType::E5M2 && b == DType::E4M3) return Wgmma::k32_e5m2_e4m3;
  if (a == DType::E5M2 && b == DType::E5M2) return Wgmma::k32_e5m2;
  return std::nullopt;
}

int driver_type(DType dtype) {
  switch (dtype) {
    case DType::F16: return 6;
    case DType::BF16: return 9;
    case DType::F32: return 7;
    case DType::I32: return 4;
    default: return bytes(dtype) == 1 ? 0 : 1;
  }
}

/// A tile of a ring stage: panels of `span` bytes along the inner dimension, each all rows.
struct Staged {
  const ir::Value* buffer = nullptr;
  const ir::Op* copy = nullptr;
  int map = 0;     ///< kernel parameter
  int offset = 0;  ///< bytes within the stage
  int rows = 0, inner = 0, element = 0, span = 0;
  Swizzle swizzle = Swizzle::B128;
  int panels() const { return inner * element / span; }
  int panel_bytes() const { return rows * span; }
  int size() const { return panels() * panel_bytes(); }
};

struct Ring {
  const ir::Region* home = nullptr;
  const ir::Op* first_use = nullptr;
  const ir::Op* last_use = nullptr;
  std::vector<Staged> tiles;
  int stages = 1;
  int stage_bytes = 0;
  int offset = 0, barriers = 0;
  Reg stage, phase;  ///< of the role being emitted
};

struct No {
  std::string why;
};

}  // namespace

class HopperForm {
 public:
  HopperForm(Lowering& lowering, runtime::Launch& launch) : l_(lowering), b_(lowering.b_), launch_(launch) {}

  ir::thread::Program emit() {
    check();
    choose_roles();
    find_rings();
    l_.declare_parameters();
    layouts();
    find_unrounded();
    place_shared();
    declare_maps();
    prologue();
    return finish();
  }

 private:
  // ---- what must hold

  void check() {
    for (const ir::Op* op : l_.ops_) {
      switch (op->kind) {
        case OpKind::Gemm: check_gemm(*op); break;
        case OpKind::Scan:
        case OpKind::ReduceArg:
        case OpKind::ArriveLast:
        case OpKind::AtomicTile:
        case OpKind::While: throw No{fmt::format("{} has no Hopper form", ir::info(op->kind).mnemonic)};
        case OpKind::Reduce:
          if (!is_fragment(op->as<ir::ReduceAttributes>().src.buffer) ||
              op->as<ir::ReduceAttributes>().dim != op->as<ir::ReduceAttributes>().src.buffer->type.rank() - 1)
            throw No{"a reduction across rows"};
          break;
        case OpKind::Load: read_.insert(op->as<ir::AccessAttributes>().buffer); break;
        case OpKind::Store: written_.insert(op->as<ir::AccessAttributes>().buffer); break;
        case OpKind::Copy: {
          const auto& a = op->as<ir::CopyAttributes>();
          read_.insert(a.src.buffer);
          written_.insert(a.dst.buffer);
          if (is_shared_tile(a.dst.buffer)) check_copy(*op);
          break;
        }
        default: break;
      }
    }
    if (gemms_.empty()) throw No{"no matrix product"};
    for (const ir::Value* v : read_) {
      if (is_global(v) && written_.contains(v)) throw No{fmt::format("{} is both read and written", v->name)};
      if (is_shared_tile(v)) throw No{fmt::format("shared tile {} is read by more than products", v->name)};
    }
  }

  void check_gemm(const ir::Op& op) {
    const auto& a = op.as<ir::GemmAttributes>();
    const auto which = wgmma_of(a.a.buffer->type.dtype, a.b.buffer->type.dtype, a.c.buffer->type.dtype);
    if (!which) throw No{"no wgmma for these types"};
    const target::WgmmaRow& row = target::row(*which);
    if (!l_.is_whole(a.a) || !l_.is_whole(a.b) || !l_.is_whole(a.c) || !is_fragment(a.c.buffer) ||
        !is_shared_tile(a.b.buffer))
      throw No{"a product of parts of tiles"};
    if (a.a.buffer->type.rank() != 2 || a.b.buffer->type.rank() != 2 || a.c.buffer->type.rank() != 2)
      throw No{"a product of tiles that are not matrices"};
    const bool from_registers = is_fragment(a.a.buffer);
    if (!from_registers && !is_shared_tile(a.a.buffer)) throw No{"a product of a global operand"};
    if (from_registers && (a.transpose_a || bytes(a.a.buffer->type.dtype) != 2))
      throw No{"a transposed or 8-bit operand in registers"};
    const int64_t m = extent_of(a.c.buffer, 0), n = extent_of(a.c.buffer, 1),
                  k = extent_of(a.a.buffer, a.transpose_a ? 0 : 1);
    if (m % 64 || n % 8 || n > 256 || k % row.k)
      throw No{fmt::format("wgmma needs m a multiple of 64, n a multiple of 8 up to 256, k of {}; the tile is {}x{}x{}",
                           row.k, m, n, k)};
    if (!row.transposable && (a.transpose_a || !a.transpose_b)) throw No{"8-bit operands must run along k"};
    if (rows_ != 0 && rows_ != m) throw No{"products of different heights"};
    rows_ = m;
    gemms_.push_back(&op);
  }

  void check_copy(const ir::Op& op) {
    const auto& a = op.as<ir::CopyAttributes>();
    const ir::Value *src = a.src.buffer, *dst = a.dst.buffer;
    if (!is_global(src) || src->type.dtype != dst->type.dtype || !l_.is_whole(a.dst))
      throw No{"a copy the copy engine cannot make"};
    if (!op.operands.empty() && !(op.operands[0]->def && op.operands[0]->def->kind == OpKind::Constant &&
                                  op.operands[0]->def->as<ir::ConstantAttributes>().real == 0 &&
                                  op.operands[0]->def->as<ir::ConstantAttributes>().integer == 0))
      throw No{"a fill value other than 0 out of bounds"};
    int kept = 0;
    for (const ir::Slice& s : a.src.slices) kept += s.keep;
    if (kept != 2 || !a.src.slices.back().keep || src->type.rank() > 5 || dst->type.rank() != 2)
      throw No{"a copy that is not a matrix with the tensor's inner dimension"};
    const int64_t inner = extent_of(dst, 1) * bytes(dst->type.dtype);
    if ((inner % 128 && inner != 64 && inner != 32) || extent_of(dst, 0) > 256)
      throw No{fmt::format("a tile row of {} bytes", inner)};
    if (!copies_.emplace(dst, &op).second) throw No{fmt::format("shared tile {} is filled twice", dst->name)};
  }

  void choose_roles() {
    groups_ = rows_ % 192 == 0 ? 3 : rows_ % 128 == 0 ? 2 : 1;
    if (rows_ / groups_ > 128) throw No{fmt::format("{} rows", rows_)};
    int64_t registers = 0;
    for (const ir::Op* op : l_.ops_)
      if (op->kind == OpKind::Alloc && is_fragment(op->result())) {
        int64_t count = 1;
        for (size_t d = 0; d < op->result()->type.shape.size(); ++d) count *= extent_of(op->result(), d);
        if (op->result()->type.rank() == 2)
          registers += count / (groups_ * 128) / (bytes(op->result()->type.dtype) == 2 ? 2 : 1);
      }
    if (registers > (groups_ == 3 ? 136 : 208)) throw No{fmt::format("{} accumulator registers a thread", registers)};
  }

  // ---- rings

  static bool uses(const ir::Op& op, const ir::Value* tile) {
    if (op.kind == OpKind::Gemm) {
      const auto& a = op.as<ir::GemmAttributes>();
      if (a.a.buffer == tile || a.b.buffer == tile) return true;
    }
    for (const ir::Region* r : op.regions)
      for (const ir::Op* inner : r->ops)
        if (uses(*inner, tile)) return true;
    return false;
  }

  void find_rings() {
    const std::function<void(const ir::Region&, int)> walk = [&](const ir::Region& region, int stages) {
      for (const ir::Op* op : region.ops) {
        if (op->kind == OpKind::Copy && copies_.contains(op->as<ir::CopyAttributes>().dst.buffer))
          add_to_ring(region, *op, stages);
        for (const ir::Region* r : op->regions)
          walk(*r, op->kind == OpKind::Pipelined ? std::max(2, op->as<ir::PipelinedAttributes>().stages)
                   : op->kind == OpKind::For     ? 2
                                                 : stages);
      }
    };
    walk(l_.block_region(), 1);
    for (Ring& ring : rings_) {
      for (Staged& t : ring.tiles) {
        t.offset = ring.stage_bytes;
        ring.stage_bytes += (t.size() + 1023) / 1024 * 1024;
      }
    }
  }

  void add_to_ring(const ir::Region& region, const ir::Op& copy, int stages) {
    const ir::Value* tile = copy.as<ir::CopyAttributes>().dst.buffer;
    const ir::Op *first = nullptr, *last = nullptr;
    for (const ir::Op* op : region.ops)
      if (uses(*op, tile)) first = first ? first : op, last = op;
    if (!first) throw No{fmt::format("shared tile {} is not used where it is filled", tile->name)};
    Staged s;
    s.buffer = tile;
    s.copy = &copy;
    s.rows = static_cast<int>(extent_of(tile, 0));
    s.inner = static_cast<int>(extent_of(tile, 1));
    s.element = bytes(tile->type.dtype);
    s.span = std::min(128, s.inner * s.element);
    s.swizzle = s.span == 128 ? Swizzle::B128 : s.span == 64 ? Swizzle::B64 : Swizzle::B32;
    for (Ring& ring : rings_) {
      if (ring.home == &region && ring.first_use == first && ring.last_use == last) {
        ring.tiles.push_back(s);
        return;
      }
    }
    Ring ring;
    ring.home = &region;
    ring.first_use = first;
    ring.last_use = last;
    ring.stages = stages;
    ring.tiles = {s};
    rings_.push_back(ring);
  }

  void layouts() {
    l_.threads_ = groups_ * 128;
    l_.assign_layouts([&](const ir::Op& op, const ir::Value* v) -> std::optional<Distribution> {
      if (op.kind != OpKind::Gemm) return std::nullopt;
      const auto& a = op.as<ir::GemmAttributes>();
      if (v != a.c.buffer && v != a.a.buffer) return std::nullopt;
      return wgmma_accumulator(extent_of(v, 0), extent_of(v, 1), groups_);
    });
    for (const ir::Op* op : l_.ops_)
      if (op->kind == OpKind::Alloc && is_fragment(op->result()) && !l_.in_registers(op->result()))
        throw No{fmt::format("fragment {} does not fit registers", op->result()->name)};
    for (const ir::Op* op : gemms_) {
      const auto& a = op->as<ir::GemmAttributes>();
      for (const ir::Value* v : {a.c.buffer, a.a.buffer})
        if (is_fragment(v) && !(*l_.distribution_of(v) == wgmma_accumulator(extent_of(v, 0), extent_of(v, 1), groups_)))
          throw No{"conflicting layouts of products"};
    }
  }

  /// Narrow fragments that only products read: packing them rounds, so storing them need not.
  void find_unrounded() {
    for (const ir::Op* op : l_.ops_) {
      if (op->kind != OpKind::Alloc || !is_fragment(op->result()) || !is_storage_float(op->result()->type.dtype))
        continue;
      bool others = false;
      for (const ir::Op* user : l_.ops_)
        if (user->regions.empty() && touched(*user).reads.contains(op->result())) others = true;
      if (!others) l_.unrounded_.insert(op->result());
    }
  }

  bool can_stage(const ir::Op& op) const {
    const auto& a = op.as<ir::CopyAttributes>();
    const ir::Value *src = a.src.buffer, *dst = a.dst.buffer;
    if (!is_fragment(src) || !is_global(dst) || src->type.rank() != 2 || !l_.is_whole(a.src)) return false;
    if (dst->type.dtype != DType::F16 && dst->type.dtype != DType::BF16) return false;
    if (!is_float(src->type.dtype) || src->type.dtype == DType::F64 || extent_of(src, 1) % 64) return false;
    if (!(*l_.distribution_of(src) == wgmma_accumulator(extent_of(src, 0), extent_of(src, 1), groups_))) return false;
    int kept = 0;
    for (const ir::Slice& s : a.dst.slices) kept += s.keep;
    return kept == 2 && a.dst.slices.back().keep && dst->type.rank() <= 5;
  }

  void place_shared() {
    int barriers = 0;
    for (Ring& ring : rings_) barriers += 16 * ring.stages;
    const int limit = l_.gpu_.shared_bytes_per_block - barriers - 2048;
    const auto total = [&] {
      int n = 0;
      for (const Ring& ring : rings_) n += ring.stages * ring.stage_bytes;
      return n;
    };
    for (const ir::Op* op : l_.ops_)
      if (op->kind == OpKind::Copy && can_stage(*op))
        staging_bytes_ =
            std::max(staging_bytes_, static_cast<int>(extent_of(op->as<ir::CopyAttributes>().src.buffer, 0) *
                                                      extent_of(op->as<ir::CopyAttributes>().src.buffer, 1) * 2));
    while (total() + staging_bytes_ > limit) {
      Ring* largest = nullptr;
      for (Ring& ring : rings_)
        if (ring.stages > 2 && (!largest || ring.stages * ring.stage_bytes > largest->stages * largest->stage_bytes))
          largest = &ring;
      if (largest) {
        --largest->stages;
      } else if (staging_bytes_ > 0) {
        staging_bytes_ = 0;
      } else {
        throw No{fmt::format("{} bytes of stages", total())};
      }
    }
    for (Ring& ring : rings_)
      ring.offset = l_.reserve_shared(int64_t{ring.stages} * ring.stage_bytes, 1024, l_.grid_.location);
    staging_ = l_.reserve_shared(staging_bytes_, 1024, l_.grid_.location);
    for (Ring& ring : rings_) ring.barriers = l_.reserve_shared(16 * ring.stages, 16, l_.grid_.location);
  }

  /// Declares the tensor map of `view` with this box; dimensions innermost first.
  int map_for(const ir::View& view, int rows, int columns, Swizzle swizzle) {
    const ir::Value* tensor = view.buffer;
    const int position = l_.tile_.tensor_position(tensor);
    runtime::TensorMap m;
    m.pointer = static_cast<uint32_t>(l_.arguments_.pointer_of(position));
    m.data_type = driver_type(tensor->type.dtype);
    m.swizzle = static_cast<int>(swizzle);
    m.l2_promotion = 3;
    const auto& strides = l_.arguments_.strides(position);
    const auto one = runtime::constant(1);
    bool inner = true, took_rows = false;
    for (size_t d = view.slices.size(); d-- > 0;) {
      const auto extent = l_.arguments_.expression(l_.arguments_.map(tensor->type.shape[d]));
      m.extents.push_back(runtime::combine(runtime::ExpressionOp::Max, {extent, one}));
      if (!inner) {
        // An axis of extent 1 may have any stride; the copy engine wants a multiple of 16.
        const auto pitch = runtime::combine(runtime::ExpressionOp::Mul, {l_.arguments_.expression(strides[d]),
                                                                         runtime::constant(bytes(tensor->type.dtype))});
        m.stride_bytes.push_back(runtime::combine(
            runtime::ExpressionOp::Select,
            {runtime::combine(runtime::ExpressionOp::Gt, {extent, one}), pitch, runtime::constant(16)}));
      }
      uint32_t box = 1;
      if (view.slices[d].keep) {
        box = static_cast<uint32_t>(inner ? columns : took_rows ? 1 : rows);
        took_rows |= !inner;
      }
      m.box.push_back(box);
      m.element_strides.push_back(1);
      inner = false;
    }
    launch_.tensor_maps.push_back(std::move(m));
    return b_.param(fmt::format("map{}", launch_.tensor_maps.size() - 1), Param::Kind::TensorMap);
  }

  void declare_maps() {
    for (Ring& ring : rings_)
      for (Staged& t : ring.tiles)
        t.map = map_for(t.copy->as<ir::CopyAttributes>().src, t.rows, t.span / t.element, t.swizzle);
    if (staging_bytes_ == 0) return;
    for (const ir::Op* op : l_.ops_)
      if (op->kind == OpKind::Copy && can_stage(*op))
        store_maps_[op] = map_for(op->as<ir::CopyAttributes>().dst, 64, 64, Swizzle::B128);
  }

  /// Coordinates of `view` for the copy engine, innermost first, moved by (rows, columns) inside the tile.
  std::vector<Operand> coordinates(const ir::View& view, Operand rows, int64_t columns) {
    std::vector<Operand> out;
    bool inner = true;
    for (size_t d = view.slices.size(); d-- > 0;) {
      Affine a = l_.index_.affine(view.slices[d].start);
      Operand x = b_.add(Scalar::S32, a.base, a.offset + (inner ? columns : 0));
      if (!inner && view.slices[d].keep) x = b_.add(Scalar::S32, x, rows);
      out.push_back(b_.in_register(x));
      inner = false;
    }
    return out;
  }

  // ---- the program

  Operand shared(int offset) { return b_.add(Scalar::U32, l_.shared_base_, offset); }
  Operand full(const Ring& r) { return b_.mad(Scalar::U32, r.stage, 16, shared(r.barriers)); }
  Operand empty(const Ring& r) { return b_.add(Scalar::U32, full(r), 8); }
  Operand stage_address(const Ring& r) { return b_.mad(Scalar::U32, r.stage, r.stage_bytes, shared(r.offset)); }

  void begin_role() {
    for (Ring& r : rings_) {
      r.stage = b_.copy_of(0);
      r.phase = b_.copy_of(0);
    }
  }
  void advance(Ring& r) {
    if (r.stages == 1) {
      b_.binary_into(r.phase, Op::Xor, Scalar::B32, r.phase, 1);
      return;
    }
    b_.binary_into(r.stage, Op::Add, Scalar::U32, r.stage, 1);
    const Operand wrapped = b_.compare(Compare::Eq, Scalar::U32, r.stage, r.stages);
    b_.assign(r.phase, b_.bit_xor(Scalar::B32, r.phase, b_.select(Scalar::B32, wrapped, 1, 0)));
    b_.assign(r.stage, b_.select(Scalar::B32, wrapped, 0, r.stage));
  }

  void prologue() {
    reallocates_ = groups_ > 1 && has_chain();
    b_.program().threads = groups_ * 128 + (reallocates_ ? 128 : 32);
    b_.program().whole_program = reallocates_;
    b_.program().needs_sm90a = true;
    thread_ = b_.special(SpecialRegister::ThreadX);
    l_.shared_base_ = b_.special(SpecialRegister::SharedBase);
    b_.if_then(b_.compare(Compare::Eq, Scalar::U32, thread_, 0), [&] {
      for (const Ring& r : rings_)
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

  bool is_product_loop() const {
    for (const ir::Op* op : l_.block_region().ops)
      if ((op->kind == OpKind::Pipelined || op->kind == OpKind::For) && is_deferred(*op)) return true;
    return false;
  }

  // Every block of the grid in turn. Two-dimensional product grids go in groups of eight tile rows, rows fastest, so
  // that a wave of blocks shares operands in L2; others take the first axis last to first (causal tiles grow with it),
  // sixteen of the others at a time.
  void for_blocks(const std::function<void()>& body) {
    const auto& g = l_.grid_.as<ir::GridAttributes>();
    const auto& arguments = l_.block_region().arguments;
    std::vector<Operand> n;
    Operand total = 1;
    for (const ir::Index& x : g.extents) {
      n.push_back(l_.index_.value(x));
      total = b_.mul(Scalar::S32, total, n.back());
    }
    b_.for_range(b_.special(SpecialRegister::BlockX), total, b_.special(SpecialRegister::GridX), [&](Reg t) {
      l_.index_.push();
      std::vector<Operand> block(n.size(), 0);
      if (n.size() == 1) {
        block[0] = t;
      } else {
        Operand others = n[1];
        for (size_t i = 2; i < n.size(); ++i) others = b_.mul(Scalar::S32, others, n[i]);
        const int size = is_product_loop() ? (g.group > 0 ? g.group : 8) : 16;
        const Operand in_group = b_.mul(Scalar::S32, n[0], size);
        const Operand group = b_.div(Scalar::U32, t, in_group), rest = b_.rem(Scalar::U32, t, in_group);
        const Operand first = b_.mul(Scalar::S32, group, size);
        const Operand height = b_.min(Scalar::S32, b_.sub(Scalar::S32, others, first), size);
        const Operand along = b_.div(Scalar::U32, rest, height);
        block[0] = is_product_loop() ? along : b_.sub(Scalar::S32, b_.sub(Scalar::S32, n[0], 1), along);
        Operand other = b_.add(Scalar::S32, first, b_.rem(Scalar::U32, rest, height));
        for (size_t i = 1; i < n.size(); ++i) {
          block[i] = i + 1 == n.size() ? other : b_.rem(Scalar::U32, other, n[i]);
          other = b_.div(Scalar::U32, other, n[i]);
        }
      }
      for (size_t i = 0; i < arguments.size(); ++i) {
        l_.index_.bind(arguments[i], {block[i], 0});
        l_.define(arguments[i], b_.convert(Scalar::S64, Scalar::S32, block[i]));
      }
      body();
      l_.index_.pop();
    });
  }

  // ---- producer

  bool has_copies(const ir::Op& op) const {
    if (op.kind == OpKind::Copy) return copies_.contains(op.as<ir::CopyAttributes>().dst.buffer);
    for (const ir::Region* r : op.regions)
      for (const ir::Op* inner : r->ops)
        if (has_copies(*inner)) return true;
    return false;
  }

  /// Registers move from the producer's warpgroup to the consumers where the launch bounds alone (168 or 128) are too
  /// few.
  void reallocate(bool is_producer) {
    if (!reallocates_) return;
    const int give = groups_ == 2 ? 24 : 32, take = groups_ == 2 ? 240 : 160;
    b_.emit(Op::SetMaxRegisters, {}, {}, {is_producer ? give : take, is_producer ? 0 : 1});
  }

  void producer() {
    reallocate(true);
    b_.if_then(b_.compare(Compare::Eq, Scalar::U32, thread_, groups_ * 128), [&] {
      l_.index_.push();
      begin_role();
      l_.begin_group(0, 1, 0);
      for_blocks([&] { produce(l_.block_region()); });
      l_.index_.pop();
    });
  }

  void produce(const ir::Region& region) {
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
        b_.if_then(
            l_.operand(op->operands[0]), [&] { produce(*op->regions[0]); },
            [&] {
              if (op->regions.size() > 1) produce(*op->regions[1]);
            });
      } else if (op->regions.empty() && !op->results.empty() && op->kind != OpKind::Alloc) {
        l_.scalar_op(*op);
      }
    }
  }

  // Copies of a ring may be apart in the text; the first one waits for the stage and announces the bytes of all.
  void issue(Ring& r, size_t i, std::vector<const Ring*>& begun) {
    const Staged& t = r.tiles[i];
    b_.line = t.copy->location.line;
    if (std::find(begun.begin(), begun.end(), &r) == begun.end()) {
      begun.push_back(&r);
      int total = 0;
      for (const Staged& x : r.tiles) total += x.size();
      b_.emit(Op::MbarrierWait, {}, {b_.in_register(empty(r)), b_.in_register(b_.bit_xor(Scalar::B32, r.phase, 1))});
      b_.emit(Op::MbarrierExpect, {}, {b_.in_register(full(r)), total});
    }
    const Operand base = b_.add(Scalar::U32, stage_address(r), t.offset), barrier = full(r);
    for (int p = 0; p < t.panels(); ++p) {
      std::vector<Operand> in = {b_.in_register(b_.add(Scalar::U32, base, p * t.panel_bytes())),
                                 b_.param_address(t.map), b_.in_register(barrier)};
      for (const Operand& x : coordinates(t.copy->as<ir::CopyAttributes>().src, 0, int64_t{p} * t.span / t.element))
        in.push_back(x);
      b_.emit(Op::TmaLoad, {}, in);
    }
    if (i + 1 == r.tiles.size()) advance(r);
  }

  void loop(const ir::Op& op, const std::function<void()>& body) {
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

  // ---- consumers

  void consumer() {
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
    for_blocks([&] { consume(l_.block_region()); });
    if (!store_maps_.empty())
      b_.if_then(b_.compare(Compare::Eq, Scalar::U32, in_group_, 0), [&] { b_.emit(Op::BulkWait, {}, {}, {0, 0}); });
    l_.index_.pop();
  }

  bool has_chain() {
    for (const ir::Op* op : l_.ops_)
      if (op->kind == OpKind::Pipelined && has_products(*op) && chain_of(*op)) return true;
    return false;
  }

  bool has_products(const ir::Op& op) const {
    if (op.kind == OpKind::Gemm) return true;
    for (const ir::Region* r : op.regions)
      for (const ir::Op* inner : r->ops)
        if (has_products(*inner)) return true;
    return false;
  }

  void consume(const ir::Region& region) {
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
        if (chain)
          chained_loop(*op, *chain);
        else
          loop(*op, [&] { consume(*op->regions[0]); });
      } else if (op->kind == OpKind::If && has_products(*op)) {
        b_.if_then(
            l_.operand(op->operands[0]), [&] { consume(*op->regions[0]); },
            [&] {
              if (op->regions.size() > 1) consume(*op->regions[1]);
            });
      } else if (op->kind == OpKind::Copy && store_maps_.contains(op)) {
        store_tile(*op);
      } else {
        l_.op(*op);
      }
      for (Ring& r : rings_)
        if (r.home == &region && r.last_use == op) {
          release(r, r.stage);
          advance(r);
        }
    }
  }

  void wait(Ring& r) { b_.emit(Op::MbarrierWait, {}, {b_.in_register(full(r)), r.phase}); }
  void release(const Ring& r, Operand stage, Operand only_if = 1) {
    const Operand barrier = b_.mad(Scalar::U32, stage, 16, shared(r.barriers + 8));
    const Operand guard = b_.logical_and(is_lane0_, only_if);
    ir::thread::Inst& inst = b_.emit(Op::MbarrierArrive, {}, {b_.in_register(barrier)});
    inst.guard = guard.reg;
  }
  void finish_products() { b_.emit(Op::WgmmaWait, {}, {}, {0}); }

  /// A loop of nothing but accumulating products into tiles the loop does not otherwise touch: the wait for a step's
  /// products and the release of its stage move into the next step.
  bool is_deferred(const ir::Op& op) const {
    bool any = false;
    for (const ir::Op* inner : op.regions[0]->ops) {
      if (inner->kind == OpKind::Gemm) {
        const auto& a = inner->as<ir::GemmAttributes>();
        if (!a.accumulate || !is_shared_tile(a.a.buffer)) return false;
        any = true;
      } else if (!inner->regions.empty()) {
        return false;
      } else if (inner->kind != OpKind::Copy && inner->kind != OpKind::Yield && inner->kind != OpKind::IndexValue) {
        return false;
      } else if (inner->kind == OpKind::Copy && !copies_.contains(inner->as<ir::CopyAttributes>().dst.buffer)) {
        return false;
      }
    }
    if (!any) return false;
    for (const Ring& r : rings_) {
      if (r.home == op.regions[0])
        return std::count_if(rings_.begin(), rings_.end(), [&](const Ring& x) { return x.home == op.regions[0]; }) == 1;
    }
    return false;
  }

  void product_loop(const ir::Op& op) {
    Ring& r = *std::find_if(rings_.begin(), rings_.end(), [&](const Ring& x) { return x.home == op.regions[0]; });
    const Reg previous = b_.copy_of(0);
    const Reg any = b_.copy_of(0);
    loop(op, [&] {
      wait(r);
      for (const ir::Op* inner : op.regions[0]->ops)
        if (inner->kind == OpKind::Gemm) product(*inner, *op.regions[0]);
      b_.emit(Op::WgmmaWait, {}, {}, {1});
      release(r, previous, b_.compare(Compare::Ne, Scalar::S32, any, 0));
      b_.assign(previous, r.stage);
      b_.assign(any, 1);
      advance(r);
    });
    finish_products();
    release(r, previous, b_.compare(Compare::Ne, Scalar::S32, any, 0));
  }

  const Staged& staged(const ir::Value* v, const Ring** ring) const {
    for (const Ring& r : rings_)
      for (const Staged& t : r.tiles)
        if (t.buffer == v) {
          *ring = &r;
          return t;
        }
    throw No{"an operand without a stage"};
  }

  /// Low and high words of the descriptor of an operand in its current stage. `along_k`: the inner dimension is k.
  std::pair<Operand, Operand> descriptor(const ir::Value* v, bool along_k) {
    const Ring* r = nullptr;
    const Staged& t = staged(v, &r);
    const Operand address = b_.add(Scalar::U32, stage_address(*r), t.offset);
    const target::MatrixDescriptor d{0, along_k ? 16u : static_cast<uint32_t>(t.panel_bytes()),
                                     static_cast<uint32_t>(8 * t.span), t.swizzle};
    const uint64_t bits = target::encode(d);
    const Operand low =
        b_.bit_or(Scalar::B32, b_.shr(Scalar::U32, address, 4), static_cast<int64_t>(bits & 0xffffffff));
    return {low, static_cast<int64_t>(bits >> 32)};
  }

  /// Byte offset in the tile of k-step `k` (elements), moved by `mn` elements along the other dimension.
  static int step_offset(const Staged& t, bool along_k, int k, int mn) {
    if (along_k) return k * t.element / t.span * t.panel_bytes() + k * t.element % t.span + mn * t.span;
    return k * t.span + mn * t.element / t.span * t.panel_bytes() + mn * t.element % t.span;
  }

  // ---- a loop of two chained products: s = q·kᵀ, arithmetic, o += p·v with p in registers

  struct Chain {
    const ir::Op *first = nullptr, *second = nullptr;
    Ring *k = nullptr, *v = nullptr;
    std::vector<const ir::Op*> early, late;  ///< what does not touch the second product's registers, and what does
  };

  /// Splits the loop so that the second product of one iteration runs under the arithmetic of the next: legal when what
  /// touches its operand and accumulator can wait until the others are done.
  std::optional<Chain> chain_of(const ir::Op& op) {
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

  struct Touched {
    std::unordered_set<const ir::Value*> reads, writes;
  };
  static Touched touched(const ir::Op& op) {
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

  static constexpr int kTurnBarrier = 8;

  void chained_loop(const ir::Op& op, Chain& c) {
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
    const ir::Value* variable = body.arguments[0];
    const auto emit_all = [&](const std::vector<const ir::Op*>& ops) {
      for (const ir::Op* o : ops) l_.op(*o);
    };
    const auto bind = [&](Operand i) {
      l_.index_.bind(variable, {i, 0});
      l_.define(variable, i.is_constant ? i : b_.convert(Scalar::S64, Scalar::S32, i));
    };
    const auto leave = [&](Ring& r) {
      release(r, r.stage);
      advance(r);
    };
    b_.if_then(b_.compare(Compare::Gt, Scalar::S32, count, 0), [&] {
      l_.index_.push();
      bind(0);
      wait(*c.k);
      product(*c.first, body);
      finish_products();
      leave(*c.k);
      emit_all(c.early);
      emit_all(c.late);
      pack_operand(c.second->as<ir::GemmAttributes>());
      l_.index_.pop();
      b_.for_range(1, count, 1, [&](Reg i) {
        l_.index_.push();
        bind(i);
        wait(*c.k);
        take_turn();
        product(*c.first, body);
        wait(*c.v);
        product(*c.second, body, true);
        pass_turn();
        b_.emit(Op::WgmmaWait, {}, {}, {1});
        leave(*c.k);
        emit_all(c.early);
        finish_products();
        leave(*c.v);
        emit_all(c.late);
        pack_operand(c.second->as<ir::GemmAttributes>());
        l_.index_.pop();
      });
      wait(*c.v);
      product(*c.second, body, true);
      finish_products();
      leave(*c.v);
    });
  }

  void take_turn() {
    if (groups_ > 1) b_.emit(Op::Barrier, {}, {b_.in_register(b_.add(Scalar::U32, group_, kTurnBarrier)), 256});
  }
  void pass_turn() {
    if (groups_ == 1) return;
    const Operand next = b_.select(Scalar::B32, b_.compare(Compare::Eq, Scalar::U32, group_, groups_ - 1), 0,
                                   b_.add(Scalar::U32, group_, 1));
    b_.emit(Op::BarrierArrive, {}, {b_.in_register(b_.add(Scalar::U32, next, kTurnBarrier)), 256});
  }

  /// The left operand of a product from registers: k-step major, then site, four registers each.
  void pack_operand(const ir::GemmAttributes& a) {
    const Fragment& f = l_.fragments_.at(a.a.buffer);
    const Scalar pair = a.a.buffer->type.dtype == DType::F16 ? Scalar::F16x2 : Scalar::BF16x2;
    const int rows = static_cast<int>(rows_) / groups_;
    size_t next = 0;
    for (int k = 0; k < static_cast<int>(extent_of(a.a.buffer, 1)); k += 16)
      for (int site = 0; site < rows; site += 64)
        for (const auto& [dr, dk] : {std::pair{0, 0}, {8, 0}, {0, 8}, {8, 8}}) {
          ir::thread::Inst& inst =
              b_.emit(Op::PackPair, {packed_[next++]},
                      {f.registers[static_cast<size_t>(f.distribution.find({site + dr, k + dk}))],
                       f.registers[static_cast<size_t>(f.distribution.find({site + dr, k + dk + 1}))]});
          inst.type = pair;
        }
  }

  void product(const ir::Op& op, const ir::Region&, bool is_packed = false) {
    const auto& a = op.as<ir::GemmAttributes>();
    const target::Wgmma which = *wgmma_of(a.a.buffer->type.dtype, a.b.buffer->type.dtype, a.c.buffer->type.dtype);
    const int step = target::row(which).k;
    const auto n = static_cast<int>(extent_of(a.c.buffer, 1));
    const auto depth = static_cast<int>(extent_of(a.a.buffer, a.transpose_a ? 0 : 1));
    const Fragment& c = l_.fragments_.at(a.c.buffer);
    const int rows = static_cast<int>(rows_) / groups_;
    const bool from_registers = is_fragment(a.a.buffer);
    const Ring* ring = nullptr;
    const Staged& tb = staged(a.b.buffer, &ring);
    const auto [b_low, b_high] = descriptor(a.b.buffer, a.transpose_b);
    std::pair<Operand, Operand> da{0, 0};
    const Staged* ta = nullptr;
    if (from_registers) {
      if (!is_packed) {
        packed_ = b_.regs(depth / 16 * (rows / 64) * 4, Scalar::B32);
        pack_operand(a);
      }
    } else {
      ta = &staged(a.a.buffer, &ring);
      da = descriptor(a.a.buffer, !a.transpose_a);
      // This warpgroup's rows.
      const int shift = step_offset(*ta, !a.transpose_a, 0, rows);
      da.first = b_.mad(Scalar::U32, group_, shift / 16, da.first);
    }
    b_.emit(Op::WgmmaFence);
    for (int k = 0; k < depth; k += step)
      for (int site = 0; site < rows; site += 64) {
        std::vector<Operand> in = {a.accumulate || k > 0 ? true_ : false_};
        if (from_registers) {
          const size_t first = static_cast<size_t>((k / 16 * (rows / 64) + site / 64) * 4);
          for (size_t i = 0; i < 4; ++i) in.push_back(packed_[first + i]);
        } else {
          in.push_back(b_.join(
              Scalar::B64, b_.add(Scalar::U32, da.first, step_offset(*ta, !a.transpose_a, k, site) / 16), da.second));
        }
        in.push_back(
            b_.join(Scalar::B64, b_.add(Scalar::U32, b_low, step_offset(tb, a.transpose_b, k, 0) / 16), b_high));
        const auto per_site = static_cast<std::ptrdiff_t>(n / 2);
        const auto begin = c.registers.begin() + site / 64 * per_site;
        b_.emit(Op::Wgmma, std::vector<Reg>(begin, begin + per_site), in,
                {static_cast<int>(which), n, from_registers, a.transpose_a, !a.transpose_b});
      }
    b_.emit(Op::WgmmaCommit);
  }

  // Registers to shared memory by stmatrix, then one bulk store per 64 columns; the next tile's products run meanwhile.
  void store_tile(const ir::Op& op) {
    const auto& a = op.as<ir::CopyAttributes>();
    const Fragment& f = l_.fragments_.at(a.src.buffer);
    const auto n = static_cast<int>(extent_of(a.src.buffer, 1));
    const int rows = static_cast<int>(rows_) / groups_;
    const Scalar pair = a.dst.buffer->type.dtype == DType::F16 ? Scalar::F16x2 : Scalar::BF16x2;
    const Operand leads = b_.compare(Compare::Eq, Scalar::U32, in_group_, 0);
    const Operand barrier = b_.add(Scalar::U32, group_, 2);
    const int group_bytes = rows * n * 2;
    const Operand mine = b_.mad(Scalar::U32, group_, group_bytes, shared(staging_));
    b_.if_then(leads, [&] { b_.emit(Op::BulkWait, {}, {}, {0, 1}); });
    b_.emit(Op::Barrier, {}, {barrier, 128});
    // Lane l writes row l%16 of its warp's 16, chunk 2q + l/16 of the 128-byte line, XORed with the row.
    const Operand row = b_.bit_and(Scalar::U32, lane_, 15);
    const Operand warp = b_.div(Scalar::U32, in_group_, 32);
    const Operand line = b_.mad(Scalar::U32, b_.mad(Scalar::U32, warp, 16, row), 128, mine);
    std::vector<Operand> chunk;
    for (int q = 0; q < 4; ++q) {
      const Operand c = b_.bit_xor(Scalar::U32, b_.add(Scalar::U32, b_.div(Scalar::U32, lane_, 16), 2 * q),
                                   b_.bit_and(Scalar::U32, lane_, 7));
      chunk.push_back(b_.mad(Scalar::U32, c, 16, line));
    }
    const auto per_site = static_cast<size_t>(n / 2);
    for (int site = 0; site < rows; site += 64)
      for (int column = 0; column < n; column += 16) {
        const size_t first = static_cast<size_t>(site / 64) * per_site + static_cast<size_t>(column / 2);
        std::vector<Operand> in = {b_.in_register(b_.add(Scalar::U32, chunk[static_cast<size_t>(column / 16 % 4)],
                                                         (site / 64 * (n / 64) + column / 64) * 8192))};
        for (size_t i = 0; i < 4; ++i)
          in.push_back(b_.pack_pair(pair, f.registers[first + 2 * i], f.registers[first + 2 * i + 1]));
        b_.emit(Op::StMatrix, {}, in, {4, 0});
      }
    b_.emit(Op::FenceAsync);
    b_.emit(Op::Barrier, {}, {barrier, 128});
    b_.if_then(leads, [&] {
      for (int site = 0; site < rows; site += 64)
        for (int column = 0; column < n; column += 64) {
          std::vector<Operand> in = {
              b_.in_register(b_.add(Scalar::U32, mine, (site / 64 * (n / 64) + column / 64) * 8192)),
              b_.param_address(store_maps_.at(&op))};
          for (const Operand& x : coordinates(a.dst, b_.mad(Scalar::U32, group_, rows, site), column)) in.push_back(x);
          b_.emit(Op::TmaStore, {}, in);
        }
      b_.emit(Op::BulkCommit);
    });
  }

  ir::thread::Program finish() {
    b_.program().shared_bytes = l_.shared_bytes_;
    launch_.symbol = b_.program().name;
    launch_.target = runtime::LaunchTarget::Cuda;
    runtime::Expression total = runtime::constant(1);
    for (const ir::Index& x : l_.grid_.as<ir::GridAttributes>().extents)
      total = runtime::combine(runtime::ExpressionOp::Mul, {total, l_.arguments_.expression(l_.arguments_.map(x))});
    launch_.grid = {runtime::combine(runtime::ExpressionOp::Min, {total, runtime::constant(l_.gpu_.multiprocessors)})};
    launch_.threads = runtime::constant(b_.program().threads);
    launch_.shared_bytes = runtime::constant(l_.shared_bytes_);
    for (const Ring& r : rings_)
      l_.fact("ring",
              fmt::format("{} tiles, {} stages of {} bytes, filled by the copy engine", r.tiles.size(), r.stages,
                          r.stage_bytes),
              r.tiles[0].copy->location);
    l_.fact("form",
            fmt::format("Hopper: persistent, 1 producer warp, {} consumer warpgroups, wgmma, {} shared bytes", groups_,
                        l_.shared_bytes_),
            l_.grid_.location);
    return b_.finish();
  }

  Lowering& l_;
  Builder& b_;
  runtime::Launch& launch_;
  std::unordered_set<const ir::Value*> read_, written_;
  std::unordered_map<const ir::Value*, const ir::Op*> copies_;
  std::unordered_map<const ir::Op*, int> store_maps_;
  std::vector<const ir::Op*> gemms_;
  std::vector<Ring> rings_;
  int64_t rows_ = 0;
  int groups_ = 1;
  bool reallocates_ = false;
  int staging_ = 0, staging_bytes_ = 0;
  std::vector<Reg> packed_;
  Operand thread_ = 0, lane_ = 0, is_lane0_ = 0, group_ = 0, in_group_ = 0;
  Reg true_, false_;
};

std::optional<ir::thread::Program> Lowering::hopper(runtime::Launch& launch, std::string& why_not) {
  try {
    return HopperForm(*this, launch).emit();
  } catch (const No& no) {
    why_not = no.why;
    return std::nullopt;
  }
}

}  // namespace tilewright::plan::gpu
