// Copies between a fragment and a tensor or a tile in shared memory in vectors of up to 16 bytes.
#include <algorithm>

#include "plan/gpu/lowering.h"

namespace tilewright::plan::gpu {

using ir::thread::CacheHint;

/// Rows of the buffer begin in steps of 16 bytes and their elements are neighbours.
bool Lowering::has_aligned_rows(const ir::Value* buffer) const {
  if (const auto tile = shared_.find(buffer); tile != shared_.end())
    return tile->second.has_panels || tile->second.pitch * bytes(buffer->type.dtype) % 16 == 0;
  const int position = tile_.tensor_position(buffer);
  return options_.aligned && position >= 0 && arguments_.strides(position).back().is_constant(1);
}

// Neighbouring registers of `d` that are neighbours in memory, aligned, and inside or outside the buffer together: 1,
// 2, 4 or 8.
int Lowering::run_length(const ir::View& view, const Distribution& d) const {
  const ir::Value* buffer = view.buffer;
  if (d.rank() == 0 || view.slices.empty() || !view.slices.back().keep || !has_aligned_rows(buffer)) return 1;
  const auto extent = buffer->type.shape.back().constant();  // not known: the caller asks at run time
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

/// An access of one vector; what moves with the block is read once, so it need not displace anything in L1.
Builder::Access Lowering::vector_access(const ir::View& view, bool is_load, int immediate, Operand exists) const {
  const bool streams = !written_globals_.contains(view.buffer) &&
                       std::any_of(view.slices.begin(), view.slices.end(),
                                   [](const ir::Slice& s) { return !s.start.constant().has_value(); });
  const Reg guard = exists.is_constant ? Reg{} : exists.reg;
  if (shared_.contains(view.buffer)) return {Space::Shared, immediate, CacheHint::None, guard};
  const CacheHint asked = cache_hint();
  return {Space::Global, immediate, asked == CacheHint::None && is_load && streams ? CacheHint::NoAllocate : asked,
          guard};
}

/// Elements as the words a vector store takes: two of 16 bits in one.
std::vector<Operand> Lowering::packed_words(DType dtype, const std::vector<Operand>& elements) {
  std::vector<Operand> out;
  if (bytes(dtype) != 2) {
    for (const Operand& x : elements) out.push_back(to_memory(dtype, x));
    return out;
  }
  for (size_t k = 0; k < elements.size(); k += 2) {
    const Operand low = elements[k], high = elements[k + 1];
    if (dtype == DType::BF16 || dtype == DType::F16) {
      out.push_back(b_.pack_pair(dtype == DType::F16 ? Scalar::F16x2 : Scalar::BF16x2, low, high));
    } else {
      const Operand first = to_memory(dtype, low);
      out.push_back(b_.join(Scalar::B32, first, to_memory(dtype, high)));
    }
  }
  return out;
}

void Lowering::store_vector(const VectorCopy& c, int r, Operand address, const Builder::Access& access) {
  const DType dtype = c.view->buffer->type.dtype, from = c.tile->type.dtype;
  std::vector<Operand> elements;
  for (int k = 0; k < c.length; ++k) {
    const Operand x = c.fragment->registers[static_cast<size_t>(r + k)];
    elements.push_back(register_type(from) != register_type(dtype) ? cast(from, dtype, x) : x);
  }
  b_.store(bytes(dtype) == 2 ? Scalar::B32 : memory_type(dtype), address, packed_words(dtype, elements), access);
}

void Lowering::load_vector(const VectorCopy& c, int r, Operand address, const Builder::Access& access, Operand exists) {
  const DType dtype = c.view->buffer->type.dtype;
  const bool has_pairs = bytes(dtype) == 2;  // two elements a word
  const Scalar word = has_pairs ? Scalar::B32 : memory_type(dtype);
  const std::vector<Reg> raw = b_.regs(has_pairs ? c.length / 2 : c.length, word);
  if (!exists.is_constant)
    for (Reg w : raw) b_.assign(w, 0, word);
  b_.load_into(raw, word, address, access);
  if (c.keep_packed) {
    Packed& packed = packed_[c.tile];
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
  for (int k = 0; k < c.length; ++k) {
    const Operand x = identity_select(exists, dtype, from_memory(dtype, elements[static_cast<size_t>(k)]), c.oob);
    b_.assign(c.fragment->registers[static_cast<size_t>(r + k)],
              dtype == c.tile->type.dtype ? x : cast(dtype, c.tile->type.dtype, x));
  }
}

/// Moves the registers of a fragment from or to memory in vectors.
void Lowering::copy_vectors(const VectorCopy& c) {
  const ir::Value* buffer = c.view->buffer;
  const Operand owner = c.is_load ? Operand(1) : owns(c.fragment->distribution);
  int skip = 0;
  for_elements({}, &c.fragment->distribution, [&](const Coordinates& at, int r, Operand guard) {
    if (skip-- > 0) return;
    skip = c.length - 1;
    const Coordinates where = view_coordinates(*c.view, at);
    const Operand exists = b_.logical_and(b_.logical_and(guard, owner), inside(buffer, where));
    if (exists.is(0) && !c.is_load) return;
    int immediate = 0;
    const auto tile = shared_.find(buffer);
    const Operand address = tile != shared_.end() ? shared_address(tile->second, buffer->type, where, immediate)
                                                  : global_address(tile_.tensor_position(buffer), where, immediate);
    const Builder::Access access = vector_access(*c.view, c.is_load, immediate, exists);
    c.is_load ? load_vector(c, r, address, access, exists) : store_vector(c, r, address, access);
  });
}

}  // namespace tilewright::plan::gpu
