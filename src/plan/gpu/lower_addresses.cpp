// Addresses of elements, and the predicates that say which elements exist.
#include <algorithm>

#include "plan/gpu/lowering.h"

namespace tilewright::plan::gpu {

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

/// Elements from one position along `dim` to the next, in 64 bits.
Operand Lowering::stride(int tensor, size_t dim) {
  const ir::Index& x = arguments_.strides(tensor)[dim];
  if (options_.plant.is("gpu_addresses", 1)) {  // plant 1: rows lie one after another whatever their pitch
    const ir::Value* buffer = tile_.tensors[static_cast<size_t>(tensor)].buffer;
    return index_.in_64_bits(extent(buffer, buffer->type.rank() - 1));
  }
  if (const auto c = x.constant()) return *c;
  const uint64_t key = mix(1003, reinterpret_cast<uint64_t>(x.node()));
  if (const Operand* known = index_.find(key)) return *known;
  const auto slot = std::find(slots_.slots.begin(), slots_.slots.end(), x.symbol());
  const Operand out = slot != slots_.slots.end()
                          ? Operand(b_.load_param(first_slot_param_ + static_cast<int>(slot - slots_.slots.begin())))
                          : index_.in_64_bits(index_.value(x));
  index_.remember(key, out);
  return out;
}

// 64-bit address of the element; the constant part of the last coordinate becomes the immediate.
Operand Lowering::global_address(int tensor, const Coordinates& at, int& immediate) {
  const int element = bytes(tile_.tensors[static_cast<size_t>(tensor)].buffer->type.dtype);
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
    offset = unit ? b_.add(Scalar::S64, offset, wide) : b_.mad(Scalar::S64, wide, stride(tensor, d), offset);
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
  const Operand p = b_.compare(one_more ? Compare::Le : Compare::Lt, options_.wide_indices ? Scalar::U64 : Scalar::U32,
                               index_.widened(coordinate(at)), index_.value(n));
  index_.remember(key, p);
  return p;
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

}  // namespace tilewright::plan::gpu
