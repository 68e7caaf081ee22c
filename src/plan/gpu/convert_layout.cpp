// Moves a fragment between layouts through shared memory.
#include <fmt/format.h>

#include "plan/gpu/lowering.h"

namespace tilewright::plan::gpu {

Fragment Lowering::to_shared(const ir::Value* v, const Location& location) {
  Fragment fragment = std::move(fragments_.at(v));
  SharedTile tile;
  const auto& shape = fragment.distribution.shape;
  tile.pitch = shape.empty() ? 1 : shape.back();
  int64_t count = 1;
  for (int64_t n : shape) count *= n;
  tile.offset = reserve_shared(count * bytes(v->type.dtype), 128, location);
  fact(fmt::format("fragment {}", v->name), "layout differs from its user's: converted through shared memory",
       location);
  fragments_.erase(v);
  shared_[v] = tile;
  barrier();
  const Operand owner = owns(fragment.distribution);
  for_elements({}, &fragment.distribution, [&](const Coordinates& at, int r, Operand guard) {
    const Operand x = from_register(v, fragment.registers[static_cast<size_t>(r)]);
    store(v, at, x, b_.logical_and(guard, owner));
  });
  return fragment;
}

void Lowering::from_shared(const ir::Value* v, Fragment fragment) {
  for_elements({}, &fragment.distribution, [&](const Coordinates& at, int r, Operand guard) {
    b_.assign(fragment.registers[static_cast<size_t>(r)], to_register(v, load(v, at, 0, guard)));
  });
  barrier();
  shared_.erase(v);
  fragments_[v] = std::move(fragment);
}

}  // namespace tilewright::plan::gpu
