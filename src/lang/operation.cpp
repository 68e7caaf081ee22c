#include "lang/operation.h"

#include <fmt/format.h>

#include <algorithm>

#include <array>

#include "lang/elaborator.h"
#include "lang/foreign.h"

namespace tilewright::lang {
namespace {

using enum DiagnosticCode;

enum class OperationKind : uint8_t {
  Copy,
  Fill,
  Clear,
  Gemm,
  Reduce,
  ReduceArg,
  Scan,
  Atomic,
  Print,
  Assert,
  Assume,
  ArriveLast
};

struct Operation {
  std::string_view name;
  OperationKind kind;
  std::string_view signature;
};

constexpr std::string_view kReduce = "src, dst, dim?, accumulate?";
constexpr std::array kOperations = {
    Operation{"copy", OperationKind::Copy, "src, dst, oob?, vector?, cache?"},
    Operation{"fill", OperationKind::Fill, "dst, value"},
    Operation{"clear", OperationKind::Clear, "dst"},
    Operation{"gemm", OperationKind::Gemm, "a, b, c, transpose_a?, transpose_b?, accumulate?, instruction?, avoid?"},
    Operation{"reduce_sum", OperationKind::Reduce, kReduce},
    Operation{"reduce_max", OperationKind::Reduce, kReduce},
    Operation{"reduce_min", OperationKind::Reduce, kReduce},
    Operation{"reduce_prod", OperationKind::Reduce, kReduce},
    Operation{"reduce_abssum", OperationKind::Reduce, kReduce},
    Operation{"reduce_absmax", OperationKind::Reduce, kReduce},
    Operation{"reduce_and", OperationKind::Reduce, kReduce},
    Operation{"reduce_or", OperationKind::Reduce, kReduce},
    Operation{"reduce_xor", OperationKind::Reduce, kReduce},
    Operation{"reduce_any", OperationKind::Reduce, kReduce},
    Operation{"reduce_all", OperationKind::Reduce, kReduce},
    Operation{"reduce_argmax", OperationKind::ReduceArg, "src, value, index, dim?"},
    Operation{"reduce_argmin", OperationKind::ReduceArg, "src, value, index, dim?"},
    Operation{"cumsum", OperationKind::Scan, "src, dst?, dim?"},
    Operation{"cumprod", OperationKind::Scan, "src, dst?, dim?"},
    Operation{"cummax", OperationKind::Scan, "src, dst?, dim?"},
    Operation{"atomic_add", OperationKind::Atomic, "dst, src"},
    Operation{"atomic_max", OperationKind::Atomic, "dst, src"},
    Operation{"atomic_min", OperationKind::Atomic, "dst, src"},
    Operation{"atomic_or", OperationKind::Atomic, "dst, src"},
    Operation{"print", OperationKind::Print, ""},
    Operation{"assert", OperationKind::Assert, "condition, text?"},
    Operation{"assume", OperationKind::Assume, "condition"},
    Operation{"arrive_last", OperationKind::ArriveLast, "counter, n"},
};

#define TW_NAMED(enumerator, text) \
  if (name == text) return Enum::enumerator;
ir::ReduceKind reduce_kind(std::string_view name) {
  using Enum = ir::ReduceKind;
  TW_REDUCE_KINDS(TW_NAMED)
  return Enum::Sum;
}
ir::AtomicKind atomic_kind(std::string_view name) {
  using Enum = ir::AtomicKind;
  TW_ATOMIC_KINDS(TW_NAMED)
  return Enum::Add;
}
ir::ScanKind scan_kind(std::string_view name) {
  using Enum = ir::ScanKind;
  TW_SCAN_KINDS(TW_NAMED)
  return Enum::Sum;
}
#undef TW_NAMED

std::string_view after(std::string_view text, std::string_view prefix) { return text.substr(prefix.size()); }

/// Which C a product of A and B accumulates into; empty when the pair has no product.
std::optional<std::array<DType, 2>> gemm_accumulators(DType a, DType b) {
  const auto low = [](DType d) { return d == DType::I8 || d == DType::U8; };
  if (low(a) && low(b)) return std::array{DType::I32, DType::I32};
  if (a == DType::F64 && b == DType::F64) return std::array{DType::F64, DType::F64};
  if (is_float(a) && is_float(b) && a != DType::F64 && b != DType::F64) return std::array{DType::F32, DType::F32};
  return std::nullopt;
}

}  // namespace

std::vector<std::string> operation_names() {
  std::vector<std::string> out;
  for (const Operation& o : kOperations) out.emplace_back(o.name);
  return out;
}

bool Elaborator::call_operation(const Expr& call) {
  for (const Operation& o : kOperations) {
    if (o.name != call.text || source_.find_function(call.text)) continue;
    if (o.kind == OperationKind::Print) {
      do_print(call);
      return true;
    }
    const Slots slots = bind_slots(call, o.signature);
    const bool anywhere =
        o.kind == OperationKind::Atomic || o.kind == OperationKind::Assert || o.kind == OperationKind::Assume;
    if (!anywhere) need_level(Level::Grid, call.location, fmt::format("`{}` runs", call.text));
    switch (o.kind) {
      case OperationKind::Copy: do_copy(call, slots); break;
      case OperationKind::Fill: do_fill(call, slots); break;
      case OperationKind::Clear: do_clear(call, slots); break;
      case OperationKind::Gemm: do_gemm(call, slots); break;
      case OperationKind::Reduce: do_reduce(call, slots); break;
      case OperationKind::ReduceArg: do_reduce_arg(call, slots); break;
      case OperationKind::Scan: do_scan(call, slots); break;
      case OperationKind::Atomic: do_atomic(call, slots); break;
      case OperationKind::Assert: do_assert(call, slots); break;
      case OperationKind::Assume: do_assume(call, slots); break;
      case OperationKind::ArriveLast: do_arrive_last(call, slots); break;
      case OperationKind::Print: break;
    }
    return true;
  }
  return false;
}

bool Elaborator::flag(const Expr* expr, bool otherwise, std::string_view what) {
  if (!expr) return otherwise;
  const Operand value = eval_static(*expr, what);
  if (const auto* v = value.as<bool>()) return *v;
  fail(E1020, expr->location, fmt::format("{} must be true or false, got {}", what, describe(value)));
}

int Elaborator::dimension(const Expr* expr, const TileRef& src, const Location& location) {
  const int rank = src.rank();
  if (rank == 0) fail(E1030, location, "a tile with at least one dimension is needed here");
  const int64_t dim = expr ? static_integer(*expr, "`dim`") : rank - 1;
  if (dim >= -rank && dim < rank) return static_cast<int>(dim < 0 ? dim + rank : dim);
  fail(E1041, expr->location,
       fmt::format("dim = {} is outside a tile of {} dimension{}", dim, rank, rank == 1 ? "" : "s"),
       fmt::format("allowed: {} to {}", -rank, rank - 1));
}

void Elaborator::check_same_shape(const TileRef& src, const TileRef& dst, const Location& location) {
  if (src.rank() != dst.rank()) {
    fail(E1030, location,
         fmt::format("{} has {} dimension{}, {} has {}", src.view.buffer->name, src.rank(), src.rank() == 1 ? "" : "s",
                     dst.view.buffer->name, dst.rank()),
         "an index drops its dimension, `lo :+ n` and `:` keep it; the rest must match");
  }
  for (int i = 0; i < src.rank(); ++i) {
    const ir::Index x = src.slice(i).extent, y = dst.slice(i).extent;
    if (x == y) continue;
    fail(E1031, location,
         fmt::format("dimension {} has extent {} in {} and {} in {}", i, extent_text(x), src.view.buffer->name,
                     extent_text(y), dst.view.buffer->name),
         "the two extents must be equal");
  }
}

void Elaborator::check_on_chip(const TileRef& tile, const Expr& expr, std::string_view op) {
  const ir::MemorySpace space = tile.type().space;
  if (space == ir::MemorySpace::Shared || space == ir::MemorySpace::Fragment) return;
  fail(E1022, expr.location,
       fmt::format("`{}` works on shared and fragment tiles; `{}` is {}", op, tile.view.buffer->name,
                   space == ir::MemorySpace::Global ? "a tensor" : fmt::format("a {}", name(space))),
       "copy it into a tile first: copy(A[m0 :+ block_M, :], A_s)");
}

void Elaborator::check_reduced(const TileRef& src, const TileRef& dst, int dim, const Location& location) {
  if (dst.rank() != src.rank() - 1 && !(src.rank() == 1 && dst.rank() == 1)) {
    fail(
        E1030, location,
        fmt::format("reducing {} dimensions gives {}, but `{}` has {}", src.rank(), src.rank() - 1,
                    dst.view.buffer->name, dst.rank()),
        "the destination has the source's extents without `dim`; a tile of one dimension reduces into one of extent 1");
  }
  for (int i = 0, j = 0; i < src.rank(); ++i) {
    if (i == dim) continue;
    const ir::Index x = src.slice(i).extent, y = dst.slice(j++).extent;
    if (x != y) {
      fail(E1031, location,
           fmt::format("dimension {} of `{}` has extent {}; {} is needed", j - 1, dst.view.buffer->name, extent_text(y),
                       extent_text(x)));
    }
  }
  if (src.rank() == 1 && dst.rank() == 1 && !dst.slice(0).extent.is_constant(1)) {
    fail(E1031, location,
         fmt::format("`{}` has extent {}; reducing one dimension gives 1 element", dst.view.buffer->name,
                     extent_text(dst.slice(0).extent)));
  }
}

void Elaborator::do_copy(const Expr& call, const Slots& slots) {
  const TileRef src = tile_of(*slots[0], "the source of a copy");
  const TileRef dst = tile_of(*slots[1], "the destination of a copy");
  check_writable(dst, slots[1]->location);
  for (const auto* t : {&src, &dst}) {
    if (std::ranges::find(t->axes, TileRef::kBroadcast) != t->axes.end()) {
      fail(E1041, call.location, "copy does not broadcast", "assign a whole tile: t = m[:, *]");
    }
  }
  check_same_shape(src, dst, call.location);
  if (src.view.buffer == dst.view.buffer) {
    bool apart = false;
    for (size_t i = 0; i < src.view.slices.size(); ++i) {
      const ir::Slice& x = src.view.slices[i];
      const ir::Slice& y = dst.view.slices[i];
      const auto d = (y.start - x.start).constant();
      const auto nx = x.extent.constant(), ny = y.extent.constant();
      apart |= d && nx && ny && (*d >= *nx || -*d >= *ny);
    }
    if (!apart)
      fail(E1034, call.location,
           fmt::format("source and destination of this copy overlap in `{}`", src.view.buffer->name),
           "copy through another tile");
  }
  ir::Value* oob = nullptr;
  if (slots[2]) oob = coerce(rvalue(*slots[2]), compute_type(src.type().dtype), slots[2]->location);
  const ir::Hints hints{.cache = hint<ir::CacheHint>(slots[4], "cache"), .vector = vector_hint(slots[3])};
  b_.set_location(at(call.location));
  b_.copy(src.view, dst.view, oob)->hints = hints;
}

void Elaborator::do_fill(const Expr& call, const Slots& slots) {
  const TileRef dst = tile_of(*slots[0], "the destination of a fill");
  check_writable(dst, slots[0]->location);
  ir::Value* value = coerce(rvalue(*slots[1]), compute_type(dst.type().dtype), slots[1]->location);
  b_.set_location(at(call.location));
  b_.fill(dst.view, value);
}

void Elaborator::do_clear(const Expr& call, const Slots& slots) {
  const TileRef dst = tile_of(*slots[0], "the destination of a clear");
  check_writable(dst, slots[0]->location);
  const StaticValue zero = dst.type().dtype == DType::Bool ? StaticValue(false) : StaticValue(int64_t{0});
  ir::Value* value = constant(zero, compute_type(dst.type().dtype), call.location);
  b_.fill(dst.view, value);
}

void Elaborator::do_gemm(const Expr& call, const Slots& slots) {
  const TileRef a = tile_of(*slots[0], "the first operand of gemm");
  const TileRef b = tile_of(*slots[1], "the second operand of gemm");
  const TileRef c = tile_of(*slots[2], "the result of gemm");
  for (size_t i = 0; i < 3; ++i) {
    const TileRef& t = i == 0 ? a : i == 1 ? b : c;
    check_on_chip(t, *slots[i], "gemm");
    if (t.rank() != 2) {
      fail(E1030, slots[i]->location,
           fmt::format("gemm works on tiles of 2 dimensions; `{}` has {}", t.view.buffer->name, t.rank()));
    }
  }
  ir::GemmAttributes made{.a = a.view, .b = b.view, .c = c.view};
  made.transpose_a = flag(slots[3], false, "transpose_a");
  made.transpose_b = flag(slots[4], false, "transpose_b");
  made.accumulate = flag(slots[5], true, "accumulate");
  const ir::Index m = a.slice(made.transpose_a ? 1 : 0).extent, ka = a.slice(made.transpose_a ? 0 : 1).extent;
  const ir::Index kb = b.slice(made.transpose_b ? 1 : 0).extent, n = b.slice(made.transpose_b ? 0 : 1).extent;
  if (ka != kb) {
    fail(E1031, call.location,
         fmt::format("gemm multiplies {}×{} by {}×{}: the inner extents {} and {} differ", extent_text(m),
                     extent_text(ka), extent_text(kb), extent_text(n), extent_text(ka), extent_text(kb)),
         "transpose_a and transpose_b say which operand is stored the other way round");
  }
  if (c.slice(0).extent != m || c.slice(1).extent != n) {
    fail(E1031, call.location,
         fmt::format("gemm gives {}×{}, but `{}` is {}×{}", extent_text(m), extent_text(n), c.view.buffer->name,
                     extent_text(c.slice(0).extent), extent_text(c.slice(1).extent)));
  }
  const auto allowed = gemm_accumulators(a.type().dtype, b.type().dtype);
  const DType got = c.type().dtype;
  if (!allowed || ((*allowed)[0] != got && (*allowed)[1] != got)) {
    fail(E1024, call.location,
         fmt::format("gemm has no form {} × {} into {}", name(a.type().dtype), name(b.type().dtype), name(got)),
         "forms: f16, bf16, f32 × f16, bf16, f32 into f32; f64 × f64 into f64; i8, u8 × i8, u8 into i32");
  }
  const ir::Hints hints{.instruction = hint<ir::MatrixUnit>(slots[6], "instruction"),
                        .avoid = hint<ir::MatrixUnit>(slots[7], "avoid")};
  if (hints.avoid != ir::MatrixUnit::Any && hints.avoid == hints.instruction) {
    fail(E1110, slots[7]->location, fmt::format("gemm is asked for {0} and to avoid {0}", name(hints.avoid)),
         "keep one of the two hints");
  }
  b_.set_location(at(call.location));
  b_.gemm(std::move(made))->hints = hints;
}

void Elaborator::do_reduce(const Expr& call, const Slots& slots) {
  ir::ReduceAttributes made{.kind = reduce_kind(after(call.text, "reduce_"))};
  const TileRef src = tile_of(*slots[0], "the source of a reduction");
  const TileRef dst = tile_of(*slots[1], "the destination of a reduction");
  check_on_chip(src, *slots[0], call.text);
  check_on_chip(dst, *slots[1], call.text);
  made.src = src.view, made.dst = dst.view;
  made.dim = dimension(slots[2], src, call.location);
  made.accumulate = flag(slots[3], false, "accumulate");
  check_reduced(src, dst, made.dim, call.location);
  using enum ir::ReduceKind;
  const DType from = compute_type(src.type().dtype), to = compute_type(dst.type().dtype);
  const bool logic = made.kind == Any || made.kind == All,
             bitwise = made.kind == And || made.kind == Or || made.kind == Xor;
  const bool widens = info(from).kind == info(to).kind && bits(to) >= bits(from) && from != DType::Bool;
  const bool legal = logic ? dst.type().dtype == DType::Bool : bitwise ? from == to && !is_float(from) : widens;
  if (!legal) {
    fail(E1024, call.location,
         fmt::format("`{}` has no form {} into {}", call.text, name(src.type().dtype), name(dst.type().dtype)),
         logic     ? "the result is bool"
         : bitwise ? "bool or integers, both of one dtype"
                   : "numbers, into the same kind, as wide or wider");
  }
  b_.set_location(at(call.location));
  b_.reduce(std::move(made));
}

void Elaborator::do_reduce_arg(const Expr& call, const Slots& slots) {
  const TileRef src = tile_of(*slots[0], "the source of a reduction");
  const TileRef value = tile_of(*slots[1], "the values of a reduction");
  const TileRef index = tile_of(*slots[2], "the indices of a reduction");
  const TileRef* tiles[] = {&src, &value, &index};
  for (size_t i = 0; i < 3; ++i) check_on_chip(*tiles[i], *slots[i], call.text);
  const int dim = dimension(slots[3], src, call.location);
  check_reduced(src, value, dim, call.location);
  check_reduced(src, index, dim, call.location);
  const DType from = compute_type(src.type().dtype);
  if (from == DType::Bool || compute_type(value.type().dtype) != from) {
    fail(E1024, call.location,
         fmt::format("`{}` has no form {} into {}", call.text, name(src.type().dtype), name(value.type().dtype)),
         "numbers, into their own dtype");
  }
  if (index.type().dtype != DType::I32 && index.type().dtype != DType::I64) {
    fail(E1024, slots[2]->location, fmt::format("the index is i32 or i64, not {}", name(index.type().dtype)));
  }
  b_.set_location(at(call.location));
  b_.op(ir::OpKind::ReduceArg, {},
        ir::ReduceArgAttributes{call.text == "reduce_argmax", src.view, value.view, index.view, dim});
}

void Elaborator::do_scan(const Expr& call, const Slots& slots) {
  const TileRef src = tile_of(*slots[0], "the source of a scan");
  const TileRef dst = slots[1] ? tile_of(*slots[1], "the destination of a scan") : src;
  check_on_chip(src, *slots[0], call.text);
  check_on_chip(dst, slots[1] ? *slots[1] : *slots[0], call.text);
  check_same_shape(src, dst, call.location);
  const int dim = dimension(slots[2], src, call.location);
  const DType from = compute_type(src.type().dtype), to = compute_type(dst.type().dtype);
  if (from == DType::Bool || info(from).kind != info(to).kind || bits(to) < bits(from)) {
    fail(E1024, call.location,
         fmt::format("`{}` has no form {} into {}", call.text, name(src.type().dtype), name(dst.type().dtype)),
         "numbers, into the same kind, as wide or wider");
  }
  b_.set_location(at(call.location));
  b_.op(ir::OpKind::Scan, {}, ir::ScanAttributes{scan_kind(after(call.text, "cum")), src.view, dst.view, dim});
}

void Elaborator::do_atomic(const Expr& call, const Slots& slots) {
  if (level_ == Level::Kernel) fail(E1050, call.location, fmt::format("`{}` runs inside a grid", call.text));
  const TileRef dst = tile_of(*slots[0], "the destination of an atomic");
  check_writable(dst, slots[0]->location);
  const ir::AtomicKind kind = atomic_kind(after(call.text, "atomic_"));
  const DType dtype = dst.type().dtype;
  const bool legal = kind == ir::AtomicKind::Or
                         ? is_int(dtype) && bits(dtype) >= 32
                         : (is_int(dtype) && bits(dtype) >= 32) || dtype == DType::F32 || dtype == DType::F64;
  if (!legal) {
    fail(E1024, call.location, fmt::format("`{}` has no form for {}", call.text, name(dtype)),
         kind == ir::AtomicKind::Or ? "i32, i64, u32, u64" : "i32, i64, u32, u64, f32, f64");
  }
  if (dst.type().space != ir::MemorySpace::Global && dst.type().space != ir::MemorySpace::Shared) {
    fail(E1022, slots[0]->location, "atomics work on tensors and shared tiles");
  }
  if (dst.rank() == 0) {
    ir::Value* value = coerce(rvalue(*slots[1]), dtype, slots[1]->location);
    std::vector<ir::Index> indices;
    for (const ir::Slice& s : dst.view.slices) indices.push_back(s.start);
    b_.set_location(at(call.location));
    b_.op(ir::OpKind::Atomic, {value}, ir::AtomicAttributes{kind, dst.view.buffer, std::move(indices)});
    return;
  }
  need_level(Level::Grid, call.location, "an atomic on a whole tile runs");
  const TileRef src = tile_of(*slots[1], "the source of an atomic");
  check_same_shape(src, dst, call.location);
  if (compute_type(src.type().dtype) != dtype) {
    fail(E1020, call.location, fmt::format("`{}` joins {} and {}", call.text, name(dtype), name(src.type().dtype)),
         "the two dtypes must be equal");
  }
  b_.set_location(at(call.location));
  b_.op(ir::OpKind::AtomicTile, {}, ir::AtomicTileAttributes{kind, src.view, dst.view});
}

}  // namespace tilewright::lang
