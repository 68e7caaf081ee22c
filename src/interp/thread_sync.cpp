// Shuffles, votes, named barriers and mbarriers.
#include "interp/thread_block.h"

#include <fmt/format.h>

#include <algorithm>

#include "interp/thread_alu.h"

namespace tilewright::interp::threads {

using namespace ir::thread;

void Block::sync(Warp& w, const Inst& inst, uint32_t mask) {
  switch (inst.op) {
    case Op::Shuffle: return shuffle(w, inst);
    case Op::Redux: return redux(w, inst);
    case Op::Ballot: return ballot(w, inst);
    case Op::SyncWarp:
    case Op::SetMaxRegisters: return converged(w, inst);
    case Op::Barrier:
    case Op::BarrierArrive: return named_barrier(w, inst);
    case Op::ClusterArrive: return arrive_cluster(w, inst);
    case Op::ClusterWait: return wait_cluster(w, inst);
    case Op::FenceAsync:
      for (uint16_t& d : dirty_)
        if (d == w.id + 1) d = 0;
      return;
    case Op::MbarrierInit: return init_mbarrier(w, inst, mask);
    case Op::MbarrierArrive:
    case Op::MbarrierExpect: return arrive(w, inst, mask);
    case Op::MbarrierWait: return wait_mbarrier(w, inst, mask);
    default: return;
  }
}

void Block::ballot(Warp& w, const Inst& inst) {
  converged(w, inst);
  uint64_t bits = 0;
  for (int lane = 0; lane < kLanes; ++lane) bits |= (get(w, inst.in[0], lane) & 1 & (w.mask >> lane)) << lane;
  for (int lane = 0; lane < kLanes; ++lane) at(w, inst.out[0], lane) = bits;
}

void Block::init_mbarrier(Warp& w, const Inst& inst, uint32_t mask) {
  if (!mask) return;
  const int lane = first_lane(mask);
  const int count = static_cast<int>(get(w, inst.in[1], lane));
  mbarriers_[static_cast<uint32_t>(get(w, inst.in[0], lane))] = {count, count, 0, 0};
}

void Block::arrive(Warp& w, const Inst& inst, uint32_t mask) {
  for (int lane = 0; lane < kLanes; ++lane) {
    if (!(mask >> lane & 1)) continue;
    Mbarrier& m = mbarrier(static_cast<uint32_t>(get(w, inst.in[0], lane)), inst);
    if (inst.op == Op::MbarrierExpect) m.bytes += static_cast<int64_t>(get(w, inst.in[1], lane));
    if (--m.pending < 0)
      report(DiagnosticCode::E9303,
             fmt::format("line {}: warp {} arrives once too often at an mbarrier for {} arrivals", inst.line, w.id,
                         m.count));
    turn(m);
  }
}

void Block::wait_mbarrier(Warp& w, const Inst& inst, uint32_t mask) {
  if (!mask) return;
  const int lane = first_lane(mask);
  w.wait_address = static_cast<uint32_t>(get(w, inst.in[0], lane));
  w.wait_parity = static_cast<uint32_t>(get(w, inst.in[1], lane)) & 1;
  w.wait_line = inst.line;
  mbarrier(w.wait_address, inst);
  if (!phase_done(w)) w.state = Warp::State::Mbarrier;
}

void Block::shuffle(Warp& w, const Inst& inst) {
  converged(w, inst);
  std::array<uint64_t, kLanes> source{}, out{};
  for (int lane = 0; lane < kLanes; ++lane) source[static_cast<size_t>(lane)] = get(w, inst.in[0], lane);
  for (int lane = 0; lane < kLanes; ++lane) {
    const int b = static_cast<int>(get(w, inst.in[1], lane));
    int from = lane;
    switch (static_cast<ShuffleMode>(inst.attr[0])) {
      case ShuffleMode::Butterfly: from = lane ^ b; break;
      case ShuffleMode::Index: from = b & 31; break;
      case ShuffleMode::Up: from = lane - b < 0 ? lane : lane - b; break;
      case ShuffleMode::Down: from = lane + b > 31 ? lane : lane + b; break;
    }
    out[static_cast<size_t>(lane)] = source[static_cast<size_t>(from & 31)];
  }
  for (int lane = 0; lane < kLanes; ++lane) at(w, inst.out[0], lane) = out[static_cast<size_t>(lane)];
}

void Block::redux(Warp& w, const Inst& inst) {
  converged(w, inst);
  uint64_t total = get(w, inst.in[0], 0);
  for (int lane = 1; lane < kLanes; ++lane)
    total = thread_atomic(static_cast<AtomicKind>(inst.attr[0]), inst.type, total, get(w, inst.in[0], lane));
  for (int lane = 0; lane < kLanes; ++lane) at(w, inst.out[0], lane) = total;
}

void Block::named_barrier(Warp& w, const Inst& inst) {
  converged(w, inst);
  const auto id = static_cast<uint32_t>(get(w, inst.in[0], 0));
  int expected = static_cast<int>(get(w, inst.in[1], 0));
  if (expected == 0) expected = static_cast<int>(warps_.size()) * kLanes;
  NamedBarrier& barrier = barriers_[id];
  if (barrier.arrived && barrier.expected != expected)
    report(DiagnosticCode::E9306,
           fmt::format("line {}: barrier {} of {} threads joined with {}", inst.line, id, barrier.expected, expected));
  barrier.expected = expected;
  barrier.arrived += kLanes;
  if (inst.op == Op::Barrier) {
    w.state = Warp::State::Barrier;
    w.wait_address = id;
    w.wait_line = inst.line;
    barrier.waiting.push_back(&w);
  }
  if (barrier.arrived < barrier.expected) return;
  if (races_) races_->barrier();
  for (Warp* other : barrier.waiting) other->state = Warp::State::Ready;
  barrier = {};
}

void Block::arrive_cluster(Warp& w, const Inst& inst) {
  converged(w, inst);
  ++w.cluster_arrivals;
  if (++cluster_->arrived < static_cast<int>(cluster_->blocks.size() * warps_.size())) return;
  cluster_->arrived = 0;
  ++cluster_->phase;
  for (Block* b : cluster_->blocks)
    if (b->races_) b->races_->barrier();
}

void Block::wait_cluster(Warp& w, const Inst& inst) {
  converged(w, inst);
  if (++w.cluster_waits > w.cluster_arrivals)
    report(DiagnosticCode::E9306,
           fmt::format("line {}: warp {} waits at the cluster's barrier without having arrived", inst.line, w.id));
  w.wait_line = inst.line;
  if (cluster_->phase < w.cluster_waits) w.state = Warp::State::Cluster;
}

uint8_t* Block::cluster_memory(Warp& w, uint32_t address, size_t bytes, const Inst& inst, bool writes, int lane) {
  const int rank = static_cast<int>(address >> kRankShift) - 1;
  const uint32_t local = address & ((1u << kRankShift) - 1);
  if (rank < 0 || rank >= static_cast<int>(cluster_->blocks.size()))
    report(DiagnosticCode::E9302, fmt::format("line {}: {} at {:#x}, which is in no block of the cluster", inst.line,
                                              mnemonic(inst.op), address));
  Block& other = *cluster_->blocks[static_cast<size_t>(rank)];
  if (rank != rank_ && w.cluster_waits == 0)
    report(DiagnosticCode::E9305, fmt::format("line {}: {} to block {} of the cluster, which may not have begun: no "
                                              "barrier of the cluster has been waited for",
                                              inst.line, mnemonic(inst.op), rank));
  if (std::ranges::all_of(other.warps_, [](const Warp& x) { return x.state == Warp::State::Done; }))
    report(DiagnosticCode::E9305,
           fmt::format("line {}: {} to block {} of the cluster, which has ended", inst.line, mnemonic(inst.op), rank));
  other.check_cluster_order(w, rank_, local - kSharedBase, bytes, inst, writes);
  return other.memory(Space::Shared, local, bytes, inst, writes,
                      (rank_ == rank ? 0 : (rank_ + 1) * program_.threads) + w.id * kLanes + lane);
}

// Between blocks only the cluster's barrier orders: who waited for more arrivals than the other had made comes later.
void Block::check_cluster_order(const Warp& w, int rank, size_t index, size_t bytes, const Inst& inst, bool writes) {
  for (size_t word = index / 4; word < (index + bytes + 3) / 4 && word < cluster_uses_.size(); ++word) {
    ClusterUse& use = cluster_uses_[word];
    const bool meets_write = use.writer >= 0 && use.writer != rank && w.cluster_waits <= use.written_after;
    const bool meets_read = writes && use.reader >= 0 && use.reader != rank && w.cluster_waits <= use.read_after;
    if (meets_write || meets_read)
      report(DiagnosticCode::E9308,
             fmt::format("line {}: {} by block {} touches shared byte {} that block {} of the cluster {} at line {} "
                         "with no barrier of the cluster between",
                         inst.line, mnemonic(inst.op), rank, word * 4, meets_write ? use.writer : use.reader,
                         meets_write ? "wrote" : "read", meets_write ? use.write_line : use.read_line));
    if (writes)
      use.writer = rank, use.written_after = w.cluster_arrivals, use.write_line = inst.line;
    else
      use.reader = rank, use.read_after = w.cluster_arrivals, use.read_line = inst.line;
  }
}

Mbarrier& Block::mbarrier(uint32_t address, const Inst& inst) {
  const auto it = mbarriers_.find(address);
  if (it == mbarriers_.end())
    report(DiagnosticCode::E9303, fmt::format("line {}: no mbarrier was initialised at shared byte {}", inst.line,
                                              int64_t{address} - kSharedBase));
  return it->second;
}

void Block::turn(Mbarrier& m) {
  if (m.pending == 0 && m.bytes == 0) {
    m.pending = m.count;
    ++m.phase;
  }
}

bool Block::phase_done(const Warp& w) { return (mbarriers_[w.wait_address].phase & 1) != w.wait_parity; }

}  // namespace tilewright::interp::threads
