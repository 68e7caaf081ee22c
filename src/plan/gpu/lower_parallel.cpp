// `parallel`: one thread computes the iterations whose elements it holds.
#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include "plan/gpu/lowering.h"
#include "plan/gpu/op_views.h"

namespace tilewright::plan::gpu {

using ir::OpKind;

void Lowering::begin_iteration(const ir::Op& o, const Coordinates& at, std::vector<int> offsets, Operand guard) {
  const auto& variables = o.regions[0]->arguments;
  iteration_offsets_ = std::move(offsets);
  for (size_t d = 0; d < variables.size(); ++d) {
    index_.bind(variables[d], at[d]);
    values_.erase(variables[d]);
    element_uses_[variables[d]] = uint64_t{1} << d;
  }
  iteration_guard_ = guard;
}

namespace {

bool is_replicated(const Distribution& d) {
  return std::ranges::any_of(d.digits, [](const auto& digit) { return digit.dim < 0 && digit.extent > 1; });
}

}  // namespace

/// An iteration may write the very memory it reads; when several threads do the same iteration, one of them would read
/// what another has written.
bool Lowering::stores_what_it_loads(const ir::Op& o) const {
  std::set<const ir::Value*> loaded;
  bool found = false;
  for_each_access(*o.regions[0], [&](const ir::Op& access, const ir::Value* buffer, const auto&) {
    if (access.kind != OpKind::Store && is_tracked(buffer)) loaded.insert(buffer);
  });
  for_each_store(*o.regions[0], [&](const ir::Value* buffer) { found |= loaded.contains(buffer); });
  return found;
}

void Lowering::parallel_body(const ir::Op& o, const Distribution& iteration, bool assume_guards, bool by_owners) {
  index_.push();
  assume_guards_ = assume_guards;
  stored_here_.clear();
  for_each_store(*o.regions[0], [&](const ir::Value* v) { stored_here_.insert(v); });
  std::vector<Operand> base;
  for (int d = 0; d < iteration.rank(); ++d) base.push_back(thread_coordinate(iteration, d));
  const Operand owner = owns(iteration);
  const auto iterations = [&](Operand guard) {
    index_.push();
    for (size_t r = 0; r < iteration.registers.size(); ++r) {
      Coordinates at;
      for (size_t d = 0; d < base.size(); ++d) at.push_back({base[d], iteration.registers[r][d]});
      begin_iteration(o, at, iteration.registers[r], b_.logical_and(guard, valid(iteration, static_cast<int>(r))));
      element_region(*o.regions[0]);
    }
    index_.pop();
  };
  if (by_owners)
    b_.if_then(owner, [&] { iterations(1); });
  else
    iterations(owner);
  assume_guards_ = false;
  index_.pop();
}

// Hazards of a `parallel`, once for the whole operation. A write after this operation's own read of the same buffer is
// none: iterations are independent.
void Lowering::parallel_hazards(const ir::Op& o) {
  Buffers loaded, stored;
  for_each_access(*o.regions[0], [&](const ir::Op& access, const ir::Value* buffer, const auto&) {
    if (access.kind == OpKind::Load) loaded.insert(buffer);
  });
  for_each_store(*o.regions[0], [&](const ir::Value* buffer) { stored.insert(buffer); });
  accesses(loaded, stored);
}

/// The layout of a fragment that is indexed by every variable of `o`; null when none is. `uses` says whether `o`
/// touches fragments at all.
const Distribution* Lowering::iteration_layout(const ir::Op& o, bool& uses) const {
  const auto rank = static_cast<int>(o.as<ir::ParallelAttributes>().extents.size());
  const Distribution* out = nullptr;
  for_each_access(*o.regions[0], [&](const ir::Op&, const ir::Value* v, const auto&) {
    const auto f = fragments_.find(v);
    if (f == fragments_.end()) return;
    uses = true;
    if (f->second.distribution.rank() == rank) out = &f->second.distribution;
  });
  return out;
}

/// Fragments whose layout is not this iteration's, seen through their variables, are read and written in shared memory
/// meanwhile; `by_owners`: all that are written, so that the other replicas get the new values.
std::vector<std::pair<const ir::Value*, Fragment>> Lowering::move_strangers(const ir::Op& o,
                                                                            const Distribution& iteration,
                                                                            bool by_owners) {
  std::vector<std::pair<const ir::Value*, Fragment>> moved;
  std::set<const ir::Value*> stored;
  if (by_owners) for_each_store(*o.regions[0], [&](const ir::Value* v) { stored.insert(v); });
  const auto& variables = o.regions[0]->arguments;
  for_each_access(*o.regions[0], [&](const ir::Op&, const ir::Value* v, const std::vector<ir::Index>& indices) {
    const auto f = fragments_.find(v);
    if (f == fragments_.end()) return;
    Distribution seen = iteration;
    for (int d = iteration.rank() - 1; d >= 0; --d) {
      const auto names_it = [&](const ir::Index& x) { return x.symbol() == variables[static_cast<size_t>(d)]; };
      if (!std::ranges::any_of(indices, names_it)) seen = slice(seen, d);
    }
    if (!(seen == f->second.distribution) || stored.contains(v)) moved.emplace_back(v, to_shared(v, o.location));
  });
  if (!moved.empty()) barrier();
  return moved;
}

void Lowering::parallel_over_fragments(const ir::Op& o, const Distribution& iteration) {
  const bool by_owners = is_replicated(iteration) && stores_what_it_loads(o);
  auto moved = move_strangers(o, iteration, by_owners);
  const auto truth = iteration.registers.size() >= 16 ? uniform_truth(o) : std::nullopt;
  const ir::Value* factors = moved.empty() ? row_factors(o) : nullptr;
  const bool skips_masks = options_.plant.is("gpu_elements", 2);  // plant 2: masks skipped
  if (factors)
    b_.if_then(any_is_not_one(factors), [&] { parallel_body(o, iteration, false, by_owners); });
  else if (truth)
    b_.if_then(
        *truth, [&] { parallel_body(o, iteration, true, by_owners); },
        [&] { parallel_body(o, iteration, skips_masks, by_owners); });
  else
    parallel_body(o, iteration, false, by_owners);
  if (!moved.empty()) barrier();
  for (auto& [v, fragment] : moved) from_shared(v, std::move(fragment));
}

/// Iterations whose number is known only at run time, one after another over the threads.
void Lowering::for_dynamic_elements(const ir::Op& o, const std::function<void(const Coordinates&)>& body) {
  Operand total = 1;
  std::vector<Operand> sizes;
  for (const ir::Index& n : o.as<ir::ParallelAttributes>().extents) {
    sizes.push_back(index_.value(n));
    total = b_.mul(index_.type(), total, b_.max(index_.type(), sizes.back(), 0));
  }
  const Scalar unsigned_type = options_.wide_indices ? Scalar::U64 : Scalar::U32;
  const auto one = [&](Reg i) {
    index_.push();
    Coordinates at(sizes.size());
    Operand e = i;
    for (size_t d = sizes.size(); d-- > 0;) {
      at[d] = {d == 0 ? e : b_.rem(unsigned_type, e, sizes[d]), 0};
      if (d > 0) e = b_.div(unsigned_type, e, sizes[d]);
    }
    body(at);
    index_.pop();
  };
  b_.for_range(index_.widened(thread_, Scalar::U32), total, threads_, one, index_.type());
}

void Lowering::parallel(const ir::Op& o) {
  if (const auto step = scale_step(o)) return defer_scale(o, *step);
  std::vector<int64_t> shape;
  for (const ir::Index& n : o.as<ir::ParallelAttributes>().extents) shape.push_back(n.constant().value_or(-1));
  // More elements a thread than this are a loop: code that grows with the tile takes the assembler minutes.
  constexpr int64_t kMostUnrolled = 64;
  const bool is_static = std::ranges::none_of(shape, [](int64_t n) { return n < 0; });
  const bool is_small = is_static && std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>()) <=
                                         kMostUnrolled * threads_;
  parallel_hazards(o);
  const ir::Op* outer = parallel_;
  parallel_ = &o;
  bool uses_fragments = false;
  const Distribution* identity = iteration_layout(o, uses_fragments);
  const auto body = [&](const Coordinates& at) {
    begin_iteration(o, at, std::vector<int>(shape.size()), 1);
    element_region(*o.regions[0]);
  };
  if (uses_fragments)
    parallel_over_fragments(o, identity ? Distribution(*identity) : row_major(shape, threads_, 4));
  else if (is_small)
    for_elements(shape, nullptr, [&](const Coordinates& at, int, Operand) { body(at); });
  else
    for_dynamic_elements(o, body);
  parallel_ = outer;
  for_each_store(*o.regions[0], [&](const ir::Value* v) {
    factors_.erase(v);
    packed_.erase(v);
  });
  if (!outer) end_if_failed(o);
}

}  // namespace tilewright::plan::gpu
