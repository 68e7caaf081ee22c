// Addresses, element loads and stores, and the whole-tile operations that move data.
#include <fmt/format.h>

#include <algorithm>

#include "plan/gpu/lowering.h"

namespace tilewright::plan::gpu {

using ir::MemorySpace;
using ir::thread::CacheHint;
using ir::thread::Op;

Operand Lowering::pointer(int tensor) {
  const uint64_t key = mix(1001, static_cast<uint64_t>(tensor));
  if (const Operand* known = index_.find(key)) return *known;
  const Operand p = b_.load_param(arguments_.pointer_of(tensor));
  index_.remember(key, p);
  return p;
}

/// A coordinate as one number, 32 bits wide where its base is.
Operand Lowering::coordinate(const Affine& a) {
  const bool is_wide = !a.base.is_constant && a.base.reg.width == Width::W64;
  return b_.add(is_wide ? Scalar::S64 : Scalar::S32, a.base, a.offset);
}

Operand Lowering::extent(const ir::Value* buffer, int dim) {
  return index_.value(buffer->type.shape[static_cast<size_t>(dim)]);
}

// 64-bit address of the element; the constant part of the last coordinate becomes the immediate.
Operand Lowering::global_address(int tensor, const Coordinates& at, int& immediate) {
  const ir::TensorArgument& t = tile_.tensors[static_cast<size_t>(tensor)];
  const int element = bytes(t.buffer->type.dtype);
  const auto& strides = arguments_.strides(tensor);
  const auto term_key = [](uint64_t key, Operand v) {
    return mix(key, v.is_constant ? static_cast<uint64_t>(v.constant) * 2 + 1 : uint64_t{v.reg.id} << 33);
  };
  uint64_t key = mix(1002, static_cast<uint64_t>(tensor));
  for (size_t d = 0; d < at.size(); ++d) {
    const bool unit = strides[d].is_constant(1);
    key = term_key(key, at[d].base);
    if (!unit) key = mix(key, static_cast<uint64_t>(at[d].offset));
  }
  immediate = 0;
  for (size_t d = 0; d < at.size(); ++d)
    if (strides[d].is_constant(1)) immediate += static_cast<int>(at[d].offset * element);
  if (const Operand* known = index_.find(key)) return *known;
  Operand offset = 0;
  for (size_t d = 0; d < at.size(); ++d) {
    const bool unit = strides[d].is_constant(1);
    const Operand wide = index_.in_64_bits(unit ? at[d].base : coordinate(at[d]));
    if (unit) {
      offset = b_.add(Scalar::S64, offset, wide);
      continue;
    }
    Operand stride = 0;
    if (options_.plant.is("gpu_addresses", 1)) {  // plant 1: rows lie one after another whatever their pitch
      stride = index_.in_64_bits(extent(t.buffer, static_cast<int>(at.size()) - 1));
    } else if (const auto c = strides[d].constant()) {
      stride = *c;
    } else {
      const uint64_t stride_key = mix(1003, reinterpret_cast<uint64_t>(strides[d].node()));
      if (const Operand* known = index_.find(stride_key)) {
        stride = *known;
      } else {
        const auto slot = std::find(slots_.slots.begin(), slots_.slots.end(), strides[d].symbol());
        stride = slot != slots_.slots.end()
                     ? Operand(b_.load_param(first_slot_param_ + static_cast<int>(slot - slots_.slots.begin())))
                     : index_.in_64_bits(index_.value(strides[d]));
        index_.remember(stride_key, stride);
      }
    }
    offset = b_.mad(Scalar::S64, wide, stride, offset);
  }
  const Operand address = b_.mad(Scalar::S64, offset, element, pointer(tensor));
  index_.remember(key, address);
  return address;
}

Operand Lowering::shared_address(const SharedTile& tile, const ir::Type& type, const Coordinates& at, int& immediate) {
  const int element = bytes(type.dtype);
  const Operand base = tile.base.is(0) ? b_.add(Scalar::U32, shared_base_, tile.offset) : tile.base;
  immediate = 0;
  if (tile.has_panels) {
    const Operand row = b_.add(Scalar::U32, index_.low_bits(at[0].base), at[0].offset),
                  column = b_.add(Scalar::U32, index_.low_bits(at[1].base), at[1].offset);
    const Operand panel = b_.div(Scalar::U32, column, tile.panel), within = b_.rem(Scalar::U32, column, tile.panel);
    const int64_t panel_bytes = *type.shape[0].constant() * 128;
    Operand offset = b_.mad(Scalar::U32, row, 128, b_.mul(Scalar::U32, within, element));
    offset = b_.bit_xor(Scalar::U32, offset, b_.shl(Scalar::U32, b_.bit_and(Scalar::U32, row, 7), 4));
    return b_.add(Scalar::U32, base, b_.mad(Scalar::U32, panel, panel_bytes, offset));
  }
  int64_t pitch = 1;
  Operand offset = 0;
  for (size_t d = at.size(); d-- > 0;) {
    offset = b_.add(Scalar::U32, offset, b_.mul(Scalar::U32, index_.low_bits(at[d].base), pitch * element));
    immediate += static_cast<int>(at[d].offset * pitch * element);
    pitch = d + 1 == at.size() ? tile.pitch : pitch * *type.shape[d].constant();
  }
  return b_.add(Scalar::U32, base, offset);
}

/// Predicate that the element exists; unsigned compares refuse negative coordinates as well.
Operand Lowering::inside(const ir::Value* buffer, const Coordinates& at) {
  Operand out = 1;
  for (size_t d = 0; d < at.size(); ++d) {
    const Operand here = inside_dimension(buffer, at[d], d);
    if (here.is(0)) return 0;
    out = b_.logical_and(out, here);
  }
  return out;
}

Operand Lowering::inside_dimension(const ir::Value* buffer, const Affine& at, size_t dim) {
  const ir::Index& n = buffer->type.shape[dim];
  if (at.base.is_constant && n.constant()) {
    const int64_t x = at.base.constant + at.offset;
    return x >= 0 && x < *n.constant() ? 1 : 0;
  }
  const auto base_key =
      at.base.is_constant ? static_cast<uint64_t>(at.base.constant) * 2 + 1 : uint64_t{at.base.reg.id} << 33;
  const uint64_t key =
      mix(mix(mix(1004, reinterpret_cast<uint64_t>(n.node())), base_key), static_cast<uint64_t>(at.offset));
  if (const Operand* known = index_.find(key)) return *known;
  const bool one_more = options_.plant.is("gpu_bounds", 1);  // plant 1: the element after the last exists
  const Operand p =
      b_.compare(one_more ? Compare::Le : Compare::Lt, options_.wide_indices ? Scalar::U64 : Scalar::U32,
                 index_.widened(coordinate(at)), index_.value(n));
  index_.remember(key, p);
  return p;
}

Operand Lowering::from_memory(DType dtype, Reg raw) {
  switch (dtype) {
    case DType::Bool: return b_.compare(Compare::Ne, Scalar::S32, b_.convert(Scalar::S32, Scalar::U8, raw), 0);
    case DType::I8: return b_.convert(Scalar::S32, Scalar::S8, raw);
    case DType::I16: return b_.convert(Scalar::S32, Scalar::S16, raw);
    case DType::U8: return b_.convert(Scalar::U32, Scalar::U8, raw);
    case DType::U16: return b_.convert(Scalar::U32, Scalar::U16, raw);
    case DType::F16: return b_.convert(Scalar::F32, Scalar::F16, raw);
    case DType::BF16: return b_.convert(Scalar::F32, Scalar::BF16, raw);
    case DType::E5M2: {  // the upper half of an f16
      const Operand wide = b_.convert(Scalar::U32, Scalar::U8, raw);
      const auto halves = b_.split(Scalar::B32, b_.shl(Scalar::U32, wide, 8));
      return b_.convert(Scalar::F32, Scalar::F16, halves.first);
    }
    case DType::E4M3: {  // magnitude shifted under an f32 exponent 120 too small; exact, subnormals included
      const Operand wide = b_.convert(Scalar::U32, Scalar::U8, raw);
      const Operand magnitude = b_.bit_and(Scalar::U32, wide, 0x7f);
      const Operand scaled = b_.mul(Scalar::F32, b_.shl(Scalar::U32, magnitude, 20), Operand::f32(0x1p120f));
      const Operand sign = b_.shl(Scalar::U32, b_.shr(Scalar::U32, wide, 7), 31);
      const Operand number = b_.bit_or(Scalar::B32, scaled, sign);
      return b_.select(Scalar::B32, b_.compare(Compare::Eq, Scalar::U32, magnitude, 0x7f), int64_t{0x7fc00000}, number);
    }
    default: return raw;
  }
}

Operand Lowering::to_memory(DType dtype, Operand x) {
  switch (dtype) {
    case DType::Bool: return b_.convert(Scalar::B16, Scalar::B32, b_.select(Scalar::B32, x, 1, 0));
    case DType::I8:
    case DType::I16:
    case DType::U8:
    case DType::U16: return b_.split(Scalar::B32, x).first;
    case DType::F16: return b_.convert(Scalar::F16, Scalar::F32, x);
    case DType::BF16: return b_.convert(Scalar::BF16, Scalar::F32, x);
    case DType::E4M3:
    case DType::E5M2: {
      if (gpu_.architecture >= 89)
        return b_.pack_pair(dtype == DType::E4M3 ? Scalar::E4M3x2 : Scalar::E5M2x2, x, Operand::f32(0));
      // Nearest even by adding a power of two whose last place is the format's, or by integer rounding of the f32 bits.
      const int mantissa = dtype == DType::E4M3 ? 3 : 2, bias = dtype == DType::E4M3 ? 7 : 15;
      const float largest = dtype == DType::E4M3 ? 448.0f : 57344.0f;
      const int drop = 23 - mantissa;
      const Operand bits = b_.bit_and(Scalar::U32, x, 0x7fffffff);
      const Operand clamped = b_.binary(ir::thread::Op::MinNumber, Scalar::F32, bits, Operand::f32(largest));
      const Operand odd = b_.bit_and(Scalar::U32, b_.shr(Scalar::U32, clamped, drop), 1);
      const Operand up = b_.add(Scalar::U32, b_.add(Scalar::U32, clamped, (1 << (drop - 1)) - 1), odd);
      const Operand normal = b_.sub(Scalar::U32, b_.shr(Scalar::U32, up, drop), (127 - bias) << mantissa);
      const float unit = std::bit_cast<float>(static_cast<uint32_t>(127 + 23 + 1 - bias - mantissa) << 23);
      const Operand sum = b_.add(Scalar::F32, clamped, Operand::f32(unit));
      const Operand small = b_.sub(Scalar::U32, sum, static_cast<int64_t>(std::bit_cast<uint32_t>(unit)));
      const float least = std::bit_cast<float>(static_cast<uint32_t>(127 + 1 - bias) << 23);
      Operand code =
          b_.select(Scalar::B32, b_.compare(Compare::Lt, Scalar::F32, clamped, Operand::f32(least)), small, normal);
      code = b_.select(Scalar::B32, b_.compare(Compare::Gt, Scalar::U32, bits, 0x7f800000), 0x7f, code);
      const Operand sign = b_.bit_and(Scalar::U32, b_.shr(Scalar::U32, x, 24), 0x80);
      return b_.split(Scalar::B32, b_.bit_or(Scalar::B32, code, sign)).first;
    }
    default: return b_.in_register(x, memory_type(dtype));
  }
}

/// Position of an element of a private array among its registers.
Operand Lowering::private_position(const ir::Value* buffer, const Coordinates& at) {
  Operand flat = 0;
  for (size_t d = 0; d < at.size(); ++d) {
    const Operand x = b_.add(Scalar::S32, index_.low_bits(at[d].base), at[d].offset);
    flat = b_.add(Scalar::S32, b_.mul(Scalar::S32, flat, *buffer->type.shape[d].constant()), x);
  }
  return flat;
}

// Registers cannot be indexed: a run-time position selects among all of them.
Operand Lowering::load_private(const ir::Value* buffer, const Coordinates& at, Operand oob) {
  const std::vector<Reg>& registers = variables_.at(buffer);
  const bool is_bool = buffer->type.dtype == DType::Bool;
  const Operand exists = inside(buffer, at), position = private_position(buffer, at);
  if (exists.is(0)) return oob;
  if (position.is_constant) {
    const Reg r = registers[static_cast<size_t>(position.constant)];
    return is_bool ? b_.compare(Compare::Ne, Scalar::S32, r, 0) : Operand(b_.copy_of(r));
  }
  const Scalar type = is_bool ? Scalar::B32 : register_type(buffer->type.dtype);
  Operand x = is_bool ? b_.select(type, oob, 1, 0) : oob;
  for (size_t i = 0; i < registers.size(); ++i) {
    const Operand here = b_.compare(Compare::Eq, Scalar::S32, position, static_cast<int64_t>(i));
    x = b_.select(type, b_.logical_and(exists, here), registers[i], x);
  }
  return is_bool ? b_.compare(Compare::Ne, Scalar::S32, x, 0) : x;
}

void Lowering::store_private(const ir::Value* buffer, const Coordinates& at, Operand x) {
  const std::vector<Reg>& registers = variables_.at(buffer);
  const DType dtype = buffer->type.dtype;
  const Operand exists = inside(buffer, at), position = private_position(buffer, at);
  if (exists.is(0)) return;
  const Scalar type = dtype == DType::Bool ? Scalar::B32 : register_type(dtype);
  const Operand kept = dtype == DType::Bool ? b_.select(type, x, 1, 0) : rounded(dtype, x);
  if (position.is_constant) return b_.assign(registers[static_cast<size_t>(position.constant)], kept);
  for (size_t i = 0; i < registers.size(); ++i) {
    const Operand here = b_.compare(Compare::Eq, Scalar::S32, position, static_cast<int64_t>(i));
    b_.assign(registers[i], b_.select(type, b_.logical_and(exists, here), kept, registers[i]));
  }
}

Operand Lowering::load(const ir::Value* buffer, const Coordinates& at, Operand oob, Operand guard) {
  const DType dtype = buffer->type.dtype;
  if (variables_.contains(buffer)) return load_private(buffer, at, oob);
  int immediate = 0;
  const Operand exists = b_.logical_and(guard, inside(buffer, at));
  const bool is_shared = shared_.contains(buffer);
  const Operand address = is_shared ? shared_address(shared_.at(buffer), buffer->type, at, immediate)
                                    : global_address(tile_.tensor_position(buffer), at, immediate);
  if (exists.is(0)) return oob;
  const Scalar type = memory_type(dtype);
  const Reg raw = b_.reg(type);
  const Reg p = exists.is_constant ? Reg{} : exists.reg;
  if (p) b_.assign(raw, 0, type);
  b_.load_into(std::vector<Reg>{raw}, type, address,
               {is_shared ? Space::Shared : Space::Global, immediate, CacheHint::None, p});
  const Operand x = from_memory(dtype, raw);
  return identity_select(exists, dtype, x, oob);
}

Operand Lowering::identity_select(Operand predicate, DType dtype, Operand yes, Operand no) {
  if (predicate.is(1)) return yes;
  if (dtype == DType::Bool)
    return b_.logical_or(b_.logical_and(predicate, yes), b_.logical_and(b_.logical_not(predicate), no));
  // Zero is what an unexecuted load left in the register, except where the bits are decoded to something else.
  if (no.is(0) && predicate.is_constant == false && yes.is_constant == false) return yes;
  return b_.select(register_type(dtype), predicate, yes, no);
}

void Lowering::store(const ir::Value* buffer, const Coordinates& at, Operand x, Operand guard) {
  const DType dtype = buffer->type.dtype;
  if (variables_.contains(buffer)) return store_private(buffer, at, x);
  int immediate = 0;
  const Operand exists = b_.logical_and(guard, inside(buffer, at));
  if (exists.is(0)) return;
  const bool is_shared = shared_.contains(buffer);
  const Operand address = is_shared ? shared_address(shared_.at(buffer), buffer->type, at, immediate)
                                    : global_address(tile_.tensor_position(buffer), at, immediate);
  const Operand raw = to_memory(dtype, x);
  b_.store(
      memory_type(dtype), address, std::vector<Operand>{raw},
      {is_shared ? Space::Shared : Space::Global, immediate, CacheHint::None, exists.is_constant ? Reg{} : exists.reg});
}

Operand Lowering::atomic(const ir::Value* buffer, ir::AtomicKind kind, const Coordinates& at, Operand x,
                         Operand guard) {
  using ir::thread::AtomicKind;
  const DType dtype = buffer->type.dtype;
  int immediate = 0;
  const Operand exists = b_.logical_and(guard, inside(buffer, at));
  if (exists.is(0)) return 0;
  const bool is_shared = shared_.contains(buffer);
  Operand address = is_shared ? shared_address(shared_.at(buffer), buffer->type, at, immediate)
                              : global_address(tile_.tensor_position(buffer), at, immediate);
  address = b_.add(is_shared ? Scalar::U32 : Scalar::U64, address, immediate);
  const Space space = is_shared ? Space::Shared : Space::Global;
  const bool is_word = bytes(dtype) >= 4;
  const bool direct = is_word && (kind == ir::AtomicKind::Add || !is_float(dtype));
  if (direct) {
    constexpr AtomicKind kinds[] = {AtomicKind::Add, AtomicKind::Max, AtomicKind::Min, AtomicKind::Or};
    ir::thread::Inst& inst = b_.emit(Op::Atomic, {}, {address, b_.in_register(x, memory_type(dtype))},
                                     {0, static_cast<int>(space), static_cast<int>(kinds[static_cast<int>(kind)])});
    inst.type = register_type(dtype);
    if (!exists.is_constant) inst.guard = exists.reg;
    return 0;
  }
  if (dtype != DType::F32 && dtype != DType::F64)
    unsupported({}, fmt::format("atomic_{} on {}", ir::name(kind), tilewright::name(dtype)));
  // Order-preserving integer form of a float: non-negative floats order as signed, negative ones reversed as unsigned.
  const bool is_wide = dtype == DType::F64;
  const Scalar as_signed = is_wide ? Scalar::S64 : Scalar::S32, as_unsigned = is_wide ? Scalar::U64 : Scalar::U32;
  const Operand is_max = kind == ir::AtomicKind::Max ? 1 : 0;
  const Operand negative = b_.compare(Compare::Lt, as_signed, x, 0);
  b_.if_then(exists, [&] {
    b_.if_then(
        negative,
        [&] {
          b_.emit(Op::Atomic, {}, {address, b_.in_register(x, memory_type(dtype))},
                  {0, static_cast<int>(space), static_cast<int>(is_max.is(1) ? AtomicKind::Min : AtomicKind::Max)})
              .type = as_unsigned;
        },
        [&] {
          b_.emit(Op::Atomic, {}, {address, b_.in_register(x, memory_type(dtype))},
                  {0, static_cast<int>(space), static_cast<int>(is_max.is(1) ? AtomicKind::Max : AtomicKind::Min)})
              .type = as_signed;
        });
  });
  return 0;
}

std::vector<int64_t> Lowering::static_extents(const ir::View& view, const Location& location) {
  std::vector<int64_t> out;
  for (const ir::Index& x : view.extents()) {
    if (!x.constant()) unsupported(location, "a region whose extent is not known when the kernel is compiled");
    out.push_back(*x.constant());
  }
  return out;
}

Coordinates Lowering::view_coordinates(const ir::View& view, const Coordinates& kept) {
  Coordinates out;
  size_t k = 0;
  for (const ir::Slice& s : view.slices) {
    Affine a = index_.affine(s.start);
    if (s.keep) {
      // A tile of one dimension reduces into one element, which no coordinate names.
      const Affine c = k < kept.size() ? kept[k++] : Affine{0, 0};
      uint64_t key =
          mix(1005, a.base.is_constant ? static_cast<uint64_t>(a.base.constant) : uint64_t{a.base.reg.id} << 32);
      key = mix(key, c.base.is_constant ? static_cast<uint64_t>(c.base.constant) : uint64_t{c.base.reg.id} << 32);
      Operand base = 0;
      if (const Operand* known = index_.find(key)) {
        base = *known;
      } else {
        base = b_.add(index_.type(), a.base, index_.widened(c.base));
        index_.remember(key, base);
      }
      a = {base, a.offset + c.offset};
    }
    out.push_back(a);
  }
  return out;
}

// Calls `body(coordinates, register index or -1, guard)` for every element this thread handles: unrolled over the
// registers of `distribution`, or in one rolled loop over all elements.
void Lowering::for_elements(const std::vector<int64_t>& extents, const Distribution* distribution,
                            const std::function<void(const Coordinates&, int, Operand)>& body) {
  if (distribution) {
    std::vector<Operand> base;
    for (int d = 0; d < distribution->rank(); ++d) base.push_back(thread_coordinate(*distribution, d));
    for (size_t r = 0; r < distribution->registers.size(); ++r) {
      Coordinates at;
      for (size_t d = 0; d < base.size(); ++d) at.push_back({base[d], distribution->registers[r][d]});
      body(at, static_cast<int>(r), valid(*distribution, static_cast<int>(r)));
    }
    return;
  }
  int64_t total = 1;
  for (int64_t n : extents) total *= n;
  const auto one = [&](Operand e) {
    Coordinates at(extents.size());
    for (size_t d = extents.size(); d-- > 0;) {
      at[d] = {d == 0 ? e : b_.rem(Scalar::U32, e, extents[d]), 0};
      if (d > 0) e = b_.div(Scalar::U32, e, extents[d]);
    }
    return at;
  };
  if (total <= threads_) {
    b_.if_then(total == threads_ ? Operand(1) : b_.compare(Compare::Lt, Scalar::U32, thread_, total), [&] {
      index_.push();
      body(one(thread_), -1, 1);
      index_.pop();
    });
    return;
  }
  b_.for_range(thread_, total, threads_, [&](Reg e) {
    index_.push();
    body(one(e), -1, 1);
    index_.pop();
  });
}

// Neighbouring registers of `d` that are neighbours in memory, aligned, and inside or outside the tensor together: 1,
// 2, 4 or 8.
int Lowering::run_length(const ir::View& view, const Distribution& d) const {
  const ir::Value* buffer = view.buffer;
  const int position = tile_.tensor_position(buffer);
  if (!options_.aligned || position < 0 || d.rank() == 0 || view.slices.empty() || !view.slices.back().keep) return 1;
  const auto extent = buffer->type.shape.back().constant();  // not known: the caller asks at run time
  if (!arguments_.strides(position).back().is_constant(1)) return 1;
  const auto last = static_cast<size_t>(d.rank()) - 1;
  const ir::LinearForm start = ir::linear_form(view.slices.back().start);
  // Four words at most: assemblers take .v8 of bytes and move only the first.
  for (int v = bytes(buffer->type.dtype) == 1 ? 4 : 16 / bytes(buffer->type.dtype); v > 1; v /= 2) {
    const bool reckless = options_.plant.is("gpu_vectors", 1);  // plant 1: runs that cross the end of a row
    bool fits = (reckless || extent.value_or(0) % v == 0) && start.constant % v == 0 &&
                d.registers.size() % static_cast<size_t>(v) == 0 && d.shape[last] % v == 0;
    for (const auto& term : start.terms) fits &= term.coefficient % v == 0;
    for (const auto& digit : d.digits) fits &= digit.dim != static_cast<int>(last) || digit.stride % v == 0;
    for (size_t r = 0; fits && r < d.registers.size(); ++r) {
      std::vector<int> first = d.registers[r / static_cast<size_t>(v) * static_cast<size_t>(v)];
      fits &= first[last] % v == 0;
      first[last] += static_cast<int>(r % static_cast<size_t>(v));
      fits &= first == d.registers[r];
    }
    if (fits) return v;
  }
  return 1;
}

/// Moves the registers of a fragment from or to a global tensor in vectors of `v`.
void Lowering::copy_vectors(const ir::View& view, const Fragment& f, const ir::Value* tile, bool is_load, Operand oob,
                            int v, bool keep_packed) {
  const ir::Value* buffer = view.buffer;
  const DType dtype = buffer->type.dtype;
  const Scalar type = memory_type(dtype);
  const Operand owner = is_load ? Operand(1) : owns(f.distribution);
  const bool streams = !written_globals_.contains(buffer) &&
                       std::any_of(view.slices.begin(), view.slices.end(),
                                   [](const ir::Slice& s) { return !s.start.constant().has_value(); });
  int skip = 0;
  for_elements({}, &f.distribution, [&](const Coordinates& at, int r, Operand guard) {
    if (skip-- > 0) return;
    skip = v - 1;
    const Coordinates where = view_coordinates(view, at);
    const Operand exists = b_.logical_and(b_.logical_and(guard, owner), inside(buffer, where));
    if (exists.is(0) && !is_load) return;
    int immediate = 0;
    const Operand address = global_address(tile_.tensor_position(buffer), where, immediate);
    // What moves with the block is read once: it need not displace anything in L1.
    const Builder::Access access{Space::Global, immediate, is_load && streams ? CacheHint::NoAllocate : CacheHint::None,
                                 exists.is_constant ? Reg{} : exists.reg};
    const bool has_pairs = bytes(dtype) == 2;  // two elements a word
    const int words = has_pairs ? v / 2 : v;
    const Scalar word = has_pairs ? Scalar::B32 : type;
    if (!is_load) {
      std::vector<Operand> raw;
      for (int k = 0; k < v; ++k) {
        Operand x = f.registers[static_cast<size_t>(r + k)];
        if (register_type(tile->type.dtype) != register_type(dtype)) x = cast(tile->type.dtype, dtype, x);
        raw.push_back(x);
      }
      std::vector<Operand> out;
      for (size_t k = 0; k < static_cast<size_t>(words); ++k) {
        if (!has_pairs)
          out.push_back(to_memory(dtype, raw[k]));
        else if (dtype == DType::BF16 || dtype == DType::F16)
          out.push_back(b_.pack_pair(dtype == DType::F16 ? Scalar::F16x2 : Scalar::BF16x2, raw[2 * k], raw[2 * k + 1]));
        else
          out.push_back(b_.join(Scalar::B32, to_memory(dtype, raw[2 * k]), to_memory(dtype, raw[2 * k + 1])));
      }
      b_.store(word, address, out, access);
      return;
    }
    const std::vector<Reg> raw = b_.regs(words, word);
    if (!exists.is_constant)
      for (Reg w : raw) b_.assign(w, 0, word);
    b_.load_into(raw, word, address, access);
    if (keep_packed) {
      Packed& packed = packed_[tile];
      packed.dtype = dtype;
      packed.words.insert(packed.words.end(), raw.begin(), raw.end());
      return;
    }
    std::vector<Reg> elements;
    for (Reg w : raw) {
      if (!has_pairs) {
        elements.push_back(w);
        continue;
      }
      const auto [low, high] = b_.split(Scalar::B32, w);
      elements.insert(elements.end(), {low, high});
    }
    for (int k = 0; k < v; ++k) {
      const Operand x = identity_select(exists, dtype, from_memory(dtype, elements[static_cast<size_t>(k)]), oob);
      b_.assign(f.registers[static_cast<size_t>(r + k)],
                dtype == tile->type.dtype ? x : cast(dtype, tile->type.dtype, x));
    }
  });
}

void Lowering::fill(const ir::Op& o) {
  const auto& a = o.as<ir::FillAttributes>();
  const Operand x = operand(o.operands[0]);
  const ir::Value* buffer = a.dst.buffer;
  if (const auto v = variables_.find(buffer); v != variables_.end()) {
    for (Reg r : v->second)
      b_.assign(r,
                buffer->type.dtype == DType::Bool ? b_.select(Scalar::B32, x, 1, 0) : rounded(buffer->type.dtype, x));
    return;
  }
  if (const auto f = fragments_.find(buffer); f != fragments_.end()) {
    const Operand v =
        buffer->type.dtype == DType::Bool ? b_.select(Scalar::B32, x, 1, 0) : rounded(buffer->type.dtype, x);
    for (Reg r : f->second.registers) b_.assign(r, v);
    return;
  }
  writes(buffer);
  for_elements(static_extents(a.dst, o.location), nullptr, [&](const Coordinates& at, int, Operand guard) {
    store(buffer, view_coordinates(a.dst, at), x, guard);
  });
}

/// An element on its way from the source to the destination: converted unless what reads or stores it rounds anyway.
Operand Lowering::copied_value(const ir::CopyAttributes& a, Operand x) {
  const ir::Value *src = a.src.buffer, *dst = a.dst.buffer;
  const bool store_rounds =
      is_storage_float(dst->type.dtype) && register_type(src->type.dtype) == Scalar::F32 && !fragments_.contains(dst);
  return store_rounds || unrounded_.contains(dst) ? x : cast(src->type.dtype, dst->type.dtype, x);
}

void Lowering::copy(const ir::Op& o) {
  const auto& a = o.as<ir::CopyAttributes>();
  if (runs_ahead(o)) return;
  const ir::Value *src = a.src.buffer, *dst = a.dst.buffer;
  const auto from = fragments_.find(src), to = fragments_.find(dst);
  const bool bool_from = src->type.dtype == DType::Bool, bool_to = dst->type.dtype == DType::Bool;
  const auto converted = [&](Operand x) { return copied_value(a, x); };
  if (from != fragments_.end() && to != fragments_.end() && from->second.distribution == to->second.distribution) {
    for (size_t r = 0; r < from->second.registers.size(); ++r) {
      Operand x = from->second.registers[r];
      if (bool_from != bool_to || src->type.dtype != dst->type.dtype) {
        if (bool_from) x = b_.compare(Compare::Ne, Scalar::S32, x, 0);
        x = converted(x);
        if (bool_to) x = b_.select(Scalar::B32, x, 1, 0);
      }
      b_.assign(to->second.registers[r], x);
    }
    return;
  }
  const auto vector_of = [&](const ir::View& view, const Distribution& d) {
    const int v = run_length(view, d);
    return o.hints.vector ? std::min(v, o.hints.vector) : v;
  };
  const Operand oob = o.operands.empty() ? Operand(0) : operand(o.operands[0]);
  reads(src);
  writes(dst);
  if (from != fragments_.end() && to != fragments_.end()) {  // another layout: through shared memory
    const Fragment g = to->second;
    Fragment f = to_shared(src, o.location);
    barrier();
    for_elements({}, &g.distribution, [&](const Coordinates& at, int r, Operand guard) {
      const Operand x = converted(load(src, at, 0, guard));
      b_.assign(g.registers[static_cast<size_t>(r)], bool_to ? b_.select(Scalar::B32, x, 1, 0) : x);
    });
    barrier();
    shared_.erase(src);
    fragments_[src] = std::move(f);
    return;
  }
  const bool is_load = to != fragments_.end();
  const auto fragment = is_load ? to : from;
  const ir::View& view = is_load ? a.src : a.dst;
  const int v =
      fragment != fragments_.end() && !bool_from && !bool_to ? vector_of(view, fragment->second.distribution) : 1;
  if (v == 1) return copy_elements(o, oob);
  packed_.erase(dst);
  const bool is_float16 = src->type.dtype == DType::BF16 || src->type.dtype == DType::F16;
  if (is_load && is_float16 && oob.is(0) && view.buffer->type.shape.back().constant() && stays_packed(o, dst))
    return copy_vectors(view, fragment->second, dst, true, oob, v, true);
  const auto vectors = [&] { copy_vectors(view, fragment->second, is_load ? dst : src, is_load, oob, v); };
  if (view.buffer->type.shape.back().constant()) return vectors();
  const auto scoped = [&](const std::function<void()>& body) {
    index_.push();
    body();
    index_.pop();
  };
  const Operand length = index_.low_bits(extent(view.buffer, static_cast<int>(view.slices.size()) - 1));
  const Operand rest = b_.rem(Scalar::U32, length, v);
  b_.if_then(
      b_.compare(Compare::Eq, Scalar::U32, rest, 0), [&] { scoped(vectors); },
      [&] { scoped([&] { copy_elements(o, oob); }); });
}

// One element at a time.
void Lowering::copy_elements(const ir::Op& o, Operand oob) {
  const auto& a = o.as<ir::CopyAttributes>();
  const ir::Value *src = a.src.buffer, *dst = a.dst.buffer;
  const auto from = fragments_.find(src), to = fragments_.find(dst);
  const bool bool_from = src->type.dtype == DType::Bool, bool_to = dst->type.dtype == DType::Bool;
  const auto converted = [&](Operand x) { return copied_value(a, x); };
  if (from != fragments_.end()) {
    const Operand owner = owns(from->second.distribution);
    for_elements({}, &from->second.distribution, [&](const Coordinates& at, int r, Operand guard) {
      Operand x = from->second.registers[static_cast<size_t>(r)];
      if (bool_from) x = b_.compare(Compare::Ne, Scalar::S32, x, 0);
      store(dst, view_coordinates(a.dst, at), converted(x), b_.logical_and(guard, owner));
    });
    return;
  }
  if (to != fragments_.end()) {
    for_elements({}, &to->second.distribution, [&](const Coordinates& at, int r, Operand guard) {
      const Operand x = converted(load(src, view_coordinates(a.src, at), oob, guard));
      b_.assign(to->second.registers[static_cast<size_t>(r)], bool_to ? b_.select(Scalar::B32, x, 1, 0) : x);
    });
    return;
  }
  for_elements(static_extents(a.dst, o.location), nullptr, [&](const Coordinates& at, int, Operand guard) {
    store(dst, view_coordinates(a.dst, at), converted(load(src, view_coordinates(a.src, at), oob, guard)), guard);
  });
}

void Lowering::atomic_tile(const ir::Op& o) {
  const auto& a = o.as<ir::AtomicTileAttributes>();
  const auto from = fragments_.find(a.src.buffer);
  reads(a.src.buffer);
  writes(a.dst.buffer);
  if (from != fragments_.end()) {
    const Operand owner = owns(from->second.distribution);
    for_elements({}, &from->second.distribution, [&](const Coordinates& at, int r, Operand guard) {
      atomic(a.dst.buffer, a.kind, view_coordinates(a.dst, at),
             cast(a.src.buffer->type.dtype, a.dst.buffer->type.dtype, from->second.registers[static_cast<size_t>(r)]),
             b_.logical_and(guard, owner));
    });
    return;
  }
  for_elements(static_extents(a.src, o.location), nullptr, [&](const Coordinates& at, int, Operand guard) {
    const Operand x = load(a.src.buffer, view_coordinates(a.src, at), 0, guard);
    atomic(a.dst.buffer, a.kind, view_coordinates(a.dst, at),
           cast(a.src.buffer->type.dtype, a.dst.buffer->type.dtype, x), guard);
  });
}

}  // namespace tilewright::plan::gpu
