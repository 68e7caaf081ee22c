// Asynchronous copies: issued now, landing at the chosen moment, marked in flight between.
#include "interp/thread_block.h"

#include <fmt/format.h>

#include <cstring>

namespace tilewright::interp::threads {

using namespace ir::thread;

void Block::copy(Warp& w, const Inst& inst, uint32_t mask) {
  switch (inst.op) {
    case Op::CpAsync: return cp_async(w, inst, mask);
    case Op::CpAsyncCommit: ++w.async_group; return;
    case Op::CpAsyncWait: return wait_copies(w, Copy::Kind::CpAsync, w.async_group - inst.attr[0]);
    case Op::BulkCommit: ++w.bulk_group; return;
    case Op::BulkWait: return wait_copies(w, Copy::Kind::TmaStore, w.bulk_group - inst.attr[0]);
    case Op::PrefetchMap: return;
    default: break;
  }
  for (int lane = 0; lane < kLanes; ++lane)
    if (mask >> lane & 1) issue_bulk(w, inst, lane);
}

void Block::cp_async(Warp& w, const Inst& inst, uint32_t mask) {
  Copy c{Copy::Kind::CpAsync, &w, w.async_group};
  c.line = inst.line;
  c.bytes = static_cast<uint64_t>(inst.attr[0]);
  c.data.assign(c.bytes * kLanes, 0);
  c.lanes = mask;
  for (int lane = 0; lane < kLanes; ++lane) {
    if (!(mask >> lane & 1)) continue;
    const auto l = static_cast<size_t>(lane);
    c.lane_shared[l] = static_cast<uint32_t>(get(w, inst.in[0], lane));
    const auto count = static_cast<size_t>(get(w, inst.in[2], lane));
    if (count) std::memcpy(c.data.data() + l * c.bytes, global(get(w, inst.in[1], lane), count, inst), count);
    const size_t index = shared_index(c.lane_shared[l], c.bytes, inst);
    if (index % c.bytes)
      report(DiagnosticCode::E9302, fmt::format("line {}: cp.async to misaligned shared byte {}", inst.line, index));
    check_free(index, c.bytes, inst, true);
  }
  for (int lane = 0; lane < kLanes; ++lane)
    if (mask >> lane & 1) mark(writing_, c.lane_shared[static_cast<size_t>(lane)] - kSharedBase, c.bytes, 1);
  queue(std::move(c));
}

void Block::issue_bulk(Warp& w, const Inst& inst, int lane) {
  Copy c{Copy::Kind::Bulk, &w, w.bulk_group};
  c.line = inst.line;
  c.shared = static_cast<uint32_t>(get(w, inst.in[0], lane));
  if (inst.op == Op::BulkLoad) {
    c.bytes = get(w, inst.in[2], lane);
    c.barrier = static_cast<uint32_t>(get(w, inst.in[3], lane));
    const uint8_t* p = global(get(w, inst.in[1], lane), c.bytes, inst);
    c.data.assign(p, p + c.bytes);
  } else {
    describe_box(w, inst, lane, c);
  }
  const size_t index = shared_index(c.shared, c.bytes, inst);
  if (c.kind == Copy::Kind::TmaStore) {
    check_fenced(index, c.bytes, inst);
    mark(reading_, index, c.bytes, 1);
  } else {
    mbarrier(c.barrier, inst);
    check_free(index, c.bytes, inst, true);
    mark(writing_, index, c.bytes, 1);
  }
  queue(std::move(c));
}

void Block::describe_box(Warp& w, const Inst& inst, int lane, Copy& c) {
  const bool is_load = inst.op == Op::TmaLoad;
  c.kind = is_load ? Copy::Kind::TmaLoad : Copy::Kind::TmaStore;
  c.map = arguments_[get(w, inst.in[1], lane)].map;
  const size_t first = is_load ? 3 : 2;
  for (size_t i = first; i < inst.in.size(); ++i) c.at[i - first] = static_cast<int32_t>(get(w, inst.in[i], lane));
  if (inst.in.size() - first != static_cast<size_t>(c.map.rank))
    report(DiagnosticCode::E9303, fmt::format("line {}: {} coordinates for a tensor map of rank {}", inst.line,
                                              inst.in.size() - first, c.map.rank));
  c.bytes = static_cast<uint64_t>(c.map.element_bytes);
  for (int i = 0; i < c.map.rank; ++i) c.bytes *= c.map.box[static_cast<size_t>(i)];
  if (is_load) c.barrier = static_cast<uint32_t>(get(w, inst.in[2], lane));
  if (c.shared % 128)
    report(DiagnosticCode::E9302, fmt::format("line {}: bulk copy to shared byte {} that is not a multiple of 128",
                                              inst.line, int64_t{c.shared} - kSharedBase));
}

void Block::queue(Copy c) {
  copies_.push_back(std::move(c));
  if (options_.moment == Moment::Earliest) deliver(copies_.size() - 1);
}

void Block::wait_copies(Warp& w, Copy::Kind kind, int below_group) {
  for (size_t i = 0; i < copies_.size();) {
    const Copy& c = copies_[i];
    if (c.warp == &w && c.kind == kind && c.group < below_group)
      deliver(i);
    else
      ++i;
  }
}

bool Block::deliver_a_load() {
  for (size_t i = 0; i < copies_.size(); ++i)
    if (copies_[i].kind == Copy::Kind::TmaLoad || copies_[i].kind == Copy::Kind::Bulk) {
      deliver(i);
      return true;
    }
  return false;
}

// Calls `visit(shared offset, global byte address or null)` for every element of the box.
template <typename F>
void Block::for_box(const Copy& c, F&& visit) {
  const TensorMap& m = c.map;
  const auto element = static_cast<uint32_t>(m.element_bytes);
  uint32_t offset = 0;
  std::array<uint32_t, TensorMap::kMaxRank> i{};
  for (;;) {
    uint64_t address = m.address;
    bool inside = true;
    for (size_t d = 0; d < static_cast<size_t>(m.rank); ++d) {
      const int64_t x = int64_t{c.at[d]} + i[d];
      inside &= x >= 0 && x < static_cast<int64_t>(m.extent[d]);
      address += static_cast<uint64_t>(x) * (d == 0 ? element : m.stride[d]);
    }
    visit(swizzled(m.swizzle, c.shared + offset), inside ? address : 0);
    offset += element;
    size_t d = 0;
    while (d < static_cast<size_t>(m.rank) && ++i[d] == m.box[d]) i[d++] = 0;
    if (d == static_cast<size_t>(m.rank)) return;
  }
}

void Block::deliver(size_t position) {
  const Copy c = std::move(copies_[position]);
  copies_.erase(copies_.begin() + static_cast<std::ptrdiff_t>(position));
  switch (c.kind) {
    case Copy::Kind::CpAsync: return land_cp_async(c);
    case Copy::Kind::TmaStore: return land_store(c);
    case Copy::Kind::Bulk:
    case Copy::Kind::TmaLoad: return land_load(c);
  }
}

void Block::land_cp_async(const Copy& c) {
  Inst here;
  here.line = c.line;
  here.op = Op::CpAsync;
  for (size_t lane = 0; lane < kLanes; ++lane) {
    if (!(c.lanes >> lane & 1)) continue;
    const size_t index = c.lane_shared[lane] - kSharedBase;
    std::memcpy(shared_.data() + index, c.data.data() + lane * c.bytes, c.bytes);
    mark(writing_, index, c.bytes, -1);
    dirty_[index / kGranule] = static_cast<uint16_t>(c.warp->id + 1);
    check_races(Space::Shared, c.lane_shared[lane], c.bytes, here, true, c.warp->id * kLanes + static_cast<int>(lane));
  }
}

void Block::land_store(const Copy& c) {
  Inst here;
  here.line = c.line;
  here.op = Op::TmaStore;
  const auto element = static_cast<size_t>(c.map.element_bytes);
  for_box(c, [&](uint32_t shared, uint64_t address) {
    if (address) std::memcpy(global(address, element, here), shared_.data() + (shared - kSharedBase), element);
  });
  mark(reading_, c.shared - kSharedBase, c.bytes, -1);
}

void Block::land_load(const Copy& c) {
  Inst here;
  here.line = c.line;
  here.op = Op::TmaLoad;
  const size_t base = c.shared - kSharedBase;
  const auto element = static_cast<size_t>(c.map.element_bytes);
  if (c.kind == Copy::Kind::Bulk) {
    std::memcpy(shared_.data() + base, c.data.data(), c.bytes);
  } else {
    for_box(c, [&](uint32_t shared, uint64_t address) {
      uint8_t* p = shared_.data() + (shared - kSharedBase);
      if (address)
        std::memcpy(p, global(address, element, here), element);
      else
        std::memset(p, 0, element);
    });
  }
  mark(writing_, base, c.bytes, -1);
  for (size_t g = base / kGranule; g < (base + c.bytes + kGranule - 1) / kGranule; ++g) dirty_[g] = 0;
  Mbarrier& m = mbarriers_[c.barrier];
  m.bytes -= static_cast<int64_t>(c.bytes);
  turn(m);
}

}  // namespace tilewright::interp::threads
