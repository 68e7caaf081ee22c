// The block as a whole: scheduler of warps, checks of memory, arithmetic, ordinary loads and stores.
#include "interp/thread_block.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "interp/thread_alu.h"

namespace tilewright::interp::threads {

using namespace ir::thread;

void report(DiagnosticCode code, std::string message) { throw Failure{fail(code, std::move(message)).error()}; }

Block::Block(const Program& program, const std::vector<Step>& code, std::array<unsigned, 3> grid,
             std::array<unsigned, 3> index, std::span<const ThreadArgument> arguments,
             std::span<const ThreadBuffer> buffers, const ThreadOptions& options, int64_t& steps)
    : program_(program),
      code_(code),
      grid_(grid),
      index_(index),
      arguments_(arguments),
      buffers_(buffers),
      options_(options),
      steps_(steps),
      random_(options.seed * 7919 + index[0] + 131 * index[1] + 17389 * index[2]) {
  const auto granules = static_cast<size_t>((program.shared_bytes + kGranule - 1) / kGranule);
  shared_.assign(granules * kGranule, 0xcd);
  writing_.assign(granules, 0);
  reading_.assign(granules, 0);
  dirty_.assign(granules, 0);
  if (has_one_barrier()) races_.emplace(shared_.size());
  if (program.cluster > 1) cluster_uses_.assign(shared_.size() / 4, {});
  for (int w = 0; w < (program.threads + kLanes - 1) / kLanes; ++w) {
    Warp warp;
    warp.id = w;
    warp.regs.assign(size_t{program.register_count} * kLanes, 0xdeadbeefdeadbeefull);
    warp.in_flight.assign(program.register_count, 0);
    if ((w + 1) * kLanes > program.threads) warp.mask = (1u << (program.threads % kLanes)) - 1;
    warp.dead = ~warp.mask;
    warps_.push_back(std::move(warp));
  }
}

Block::Turn Block::turn() {
  if (options_.moment == Moment::Random && !copies_.empty() && random_() % 3 == 0) deliver(random_() % copies_.size());
  std::vector<Warp*> ready;
  for (Warp& warp : warps_) {
    if (warp.state == Warp::State::Mbarrier && phase_done(warp)) warp.state = Warp::State::Ready;
    if (warp.state == Warp::State::Cluster && cluster_->phase >= warp.cluster_waits) warp.state = Warp::State::Ready;
    if (warp.state == Warp::State::Ready) ready.push_back(&warp);
  }
  if (ready.empty()) {
    if (std::all_of(warps_.begin(), warps_.end(), [](const Warp& w) { return w.state == Warp::State::Done; }))
      return Turn::Done;
    return deliver_a_load() ? Turn::Ran : Turn::Stuck;
  }
  Warp& warp = *ready[random_() % ready.size()];
  const int burst = 1 + static_cast<int>(random_() % 64);
  for (int i = 0; i < burst && warp.state == Warp::State::Ready; ++i) step(warp);
  return Turn::Ran;
}

void Block::finish() {
  while (!copies_.empty()) deliver(0);
  for (const auto& [address, barrier] : mbarriers_)
    if (barrier.bytes != 0)
      report(DiagnosticCode::E9303,
             fmt::format("mbarrier at {} ends with {} expected bytes that never came", address, barrier.bytes));
}

void Block::touch(Warp& w, const Inst& inst) {
  if (w.matrix.empty()) return;
  for (const Value& v : inst.in)
    if (!v.is_constant && w.in_flight[v.reg.id])
      report(DiagnosticCode::E9301,
             fmt::format("line {}: register r{} is read while a matrix instruction that writes it is in flight",
                         inst.line, v.reg.id));
  if (inst.op == Op::Wgmma) return;
  for (Reg r : inst.out)
    if (w.in_flight[r.id])
      report(
          DiagnosticCode::E9301,
          fmt::format("line {}: register r{} is overwritten while a matrix instruction is in flight", inst.line, r.id));
}

size_t Block::shared_index(uint32_t address, size_t bytes, const Inst& inst) {
  if (address < kSharedBase || address - kSharedBase + bytes > shared_.size()) {
    report(DiagnosticCode::E9302,
           fmt::format("line {}: {} touches shared bytes {}..{} of {}", inst.line, mnemonic(inst.op),
                       int64_t{address} - kSharedBase, int64_t{address} - kSharedBase + static_cast<int64_t>(bytes),
                       shared_.size()));
  }
  return address - kSharedBase;
}

void Block::mark(std::vector<uint16_t>& what, size_t index, size_t bytes, int change) {
  for (size_t g = index / kGranule; g <= (index + bytes - 1) / kGranule; ++g)
    what[g] = static_cast<uint16_t>(what[g] + change);
}

void Block::check_free(size_t index, size_t bytes, const Inst& inst, bool writes) {
  for (size_t g = index / kGranule; g <= (index + bytes - 1) / kGranule; ++g) {
    if (writing_[g])
      report(DiagnosticCode::E9301, fmt::format("line {}: {} touches shared byte {} while a copy into it is in flight",
                                                inst.line, mnemonic(inst.op), g * kGranule));
    if (writes && reading_[g])
      report(DiagnosticCode::E9301, fmt::format("line {}: {} overwrites shared byte {} while it is being read",
                                                inst.line, mnemonic(inst.op), g * kGranule));
  }
}

void Block::check_fenced(size_t index, size_t bytes, const Inst& inst) {
  for (size_t g = index / kGranule; g <= (index + bytes - 1) / kGranule; ++g) {
    if (writing_[g])
      report(DiagnosticCode::E9301, fmt::format("line {}: {} reads shared byte {} while a copy into it is in flight",
                                                inst.line, mnemonic(inst.op), g * kGranule));
    if (dirty_[g])
      report(DiagnosticCode::E9304,
             fmt::format("line {}: {} reads shared byte {}, written by warp {} with no proxy fence since", inst.line,
                         mnemonic(inst.op), g * kGranule, dirty_[g] - 1));
  }
}

uint8_t* Block::global(uint64_t address, size_t bytes, const Inst& inst) {
  for (const ThreadBuffer& b : buffers_) {
    const auto begin = reinterpret_cast<uint64_t>(b.data);
    if (address >= begin && address + bytes <= begin + b.bytes) return reinterpret_cast<uint8_t*>(address);
  }
  report(DiagnosticCode::E9302, fmt::format("line {}: {} touches {} bytes at {:#x}, outside every buffer", inst.line,
                                            mnemonic(inst.op), bytes, address));
}

bool Block::has_one_barrier() const {
  return std::ranges::none_of(code_, [&](const Step& s) {
    if (s.kind != Step::Kind::Plain) return false;
    const Inst& i = *s.inst;
    const bool is_partial = i.op == Op::Barrier && !(i.in[0].is(0) && (i.in[1].is(0) || i.in[1].is(program_.threads)));
    return i.op == Op::MbarrierInit || i.op == Op::BarrierArrive || i.op == Op::SyncWarp || is_partial;
  });
}

void Block::report_race(const ThreadRaces::Race& race, const Inst& inst, int thread, const std::string& where) {
  const std::string other = race.other_thread < 0 ? "several threads" : fmt::format("thread {}", race.other_thread);
  report(DiagnosticCode::E9308,
         fmt::format("line {}: {} by thread {} touches {} that {} {} at line {} with no barrier between", inst.line,
                     mnemonic(inst.op), thread, where, other, race.other_wrote ? "wrote" : "read", race.other_line));
}

void Block::check_races(Space space, uint64_t address, size_t bytes, const Inst& inst, bool writes, int thread) {
  if (!races_) return;
  using Access = ThreadRaces::Access;
  const Access access = inst.op == Op::Atomic ? Access::Atomic : writes ? Access::Write : Access::Read;
  if (space == Space::Shared) {
    const size_t index =
        static_cast<uint32_t>(address) - kSharedBase;  // the upper half of the register is not the address
    if (const auto race = races_->shared(index, bytes, thread, inst.line, access))
      report_race(*race, inst, thread, fmt::format("shared byte {}", index));
    return;
  }
  const auto element = static_cast<size_t>(ir::thread::bytes(inst.type));
  for (size_t at = 0; at < bytes; at += element)
    if (const auto race = races_->global(address + at, thread, inst.line, access))
      report_race(*race, inst, thread, fmt::format("global address {:#x}", address + at));
}

uint8_t* Block::memory(Space space, uint64_t address, size_t bytes, const Inst& inst, bool writes, int thread) {
  if (address % bytes)
    report(DiagnosticCode::E9302, fmt::format("line {}: {} of {} bytes at misaligned address {:#x}", inst.line,
                                              mnemonic(inst.op), bytes, address));
  if (space == Space::Global) {
    uint8_t* p = global(address, bytes, inst);
    check_races(space, address, bytes, inst, writes, thread);
    return p;
  }
  const size_t index = shared_index(static_cast<uint32_t>(address), bytes, inst);
  check_free(index, bytes, inst, writes);
  check_races(space, address, bytes, inst, writes, thread);
  if (writes)
    for (size_t g = index / kGranule; g <= (index + bytes - 1) / kGranule; ++g)
      dirty_[g] = static_cast<uint16_t>(thread / kLanes + 1);
  return shared_.data() + index;
}

void Block::execute(Warp& w, const Inst& inst) {
  touch(w, inst);
  const uint32_t mask = active(w, inst);
  switch (op_class(inst.op)) {
    case OpClass::Alu: return alu(w, inst, mask);
    case OpClass::Memory: return access(w, inst, mask);
    case OpClass::Sync: return sync(w, inst, mask);
    case OpClass::Matrix: return matrix(w, inst);
    case OpClass::Copy: return copy(w, inst, mask);
    case OpClass::Control: return control(w, inst, mask);
  }
}

void Block::deadlock() {
  std::string who;
  for (const Warp& w : warps_) {
    if (w.state == Warp::State::Barrier)
      who += fmt::format("; warp {} at barrier {} (line {})", w.id, w.wait_address, w.wait_line);
    if (w.state == Warp::State::Cluster)
      who += fmt::format("; warp {} of block {} at the cluster's barrier (line {})", w.id, rank_, w.wait_line);
    if (w.state == Warp::State::Mbarrier) {
      const Mbarrier& m = mbarriers_[w.wait_address];
      who += fmt::format("; warp {} at mbarrier {} parity {} (line {}): {} of {} arrivals, {} bytes missing", w.id,
                         int64_t{w.wait_address} - kSharedBase, w.wait_parity, w.wait_line, m.count - m.pending,
                         m.count, m.bytes);
    }
  }
  report(DiagnosticCode::E9305, "deadlock" + who);
}

void Block::alu(Warp& w, const Inst& inst, uint32_t mask) {
  for (int lane = 0; lane < kLanes; ++lane) {
    if (!(mask >> lane & 1) || inst.op == Op::Undefined) continue;
    if (inst.op == Op::Special) {
      at(w, inst.out[0], lane) = special(w, inst, lane);
      continue;
    }
    if (inst.op == Op::ParamAddress) {
      at(w, inst.out[0], lane) = static_cast<uint64_t>(inst.attr[0]);
      continue;
    }
    const uint64_t a = get(w, inst.in[0], lane);
    if (inst.op == Op::MapShared) {
      at(w, inst.out[0], lane) = (get(w, inst.in[1], lane) + 1) << kRankShift | a;
      continue;
    }
    if (inst.op == Op::Split) {
      const int half = bytes(inst.type) * 4;
      at(w, inst.out[0], lane) = a & ((uint64_t{1} << half) - 1);
      at(w, inst.out[1], lane) = (a >> half) & ((uint64_t{1} << half) - 1);
      continue;
    }
    const uint64_t b = inst.in.size() > 1 ? get(w, inst.in[1], lane) : 0,
                   c = inst.in.size() > 2 ? get(w, inst.in[2], lane) : 0;
    at(w, inst.out[0], lane) = thread_alu(inst, a, b, c);
  }
}

uint64_t Block::special(const Warp& w, const Inst& inst, int lane) const {
  switch (static_cast<SpecialRegister>(inst.attr[0])) {
    case SpecialRegister::ThreadX: return static_cast<uint64_t>(w.id * kLanes + lane);
    case SpecialRegister::BlockX: return index_[0];
    case SpecialRegister::BlockY: return index_[1];
    case SpecialRegister::BlockZ: return index_[2];
    case SpecialRegister::GridX: return grid_[0];
    case SpecialRegister::GridY: return grid_[1];
    case SpecialRegister::GridZ: return grid_[2];
    case SpecialRegister::Lane: return static_cast<uint64_t>(lane);
    case SpecialRegister::ClusterRank: return static_cast<uint64_t>(rank_);
    case SpecialRegister::BlockThreads: return static_cast<uint64_t>(program_.threads);
    case SpecialRegister::SharedBase: return kSharedBase;
  }
  return 0;
}

void Block::access(Warp& w, const Inst& inst, uint32_t mask) {
  for (int lane = 0; lane < kLanes; ++lane) {
    if (!(mask >> lane & 1)) continue;
    if (inst.op == Op::LoadParam) {
      at(w, inst.out[0], lane) = arguments_[static_cast<size_t>(inst.attr[0])].bits;
      continue;
    }
    const uint64_t address = get(w, inst.in[0], lane) + static_cast<uint64_t>(static_cast<int64_t>(inst.attr[0]));
    if (inst.op == Op::Load)
      load(w, inst, lane, address);
    else if (inst.op == Op::Store)
      store(w, inst, lane, address);
    else
      atomic(w, inst, lane, address);
  }
}

void Block::load(Warp& w, const Inst& inst, int lane, uint64_t address) {
  const auto size = static_cast<size_t>(bytes(inst.type));
  const auto space = static_cast<Space>(inst.attr[1]);
  if (space == Space::Shared)
    check_cluster_order(w, rank_, static_cast<uint32_t>(address) - kSharedBase, size * inst.out.size(), inst, false);
  const uint8_t* p = space == Space::Cluster
                         ? cluster_memory(w, static_cast<uint32_t>(address), size * inst.out.size(), inst, false, lane)
                         : memory(space, address, size * inst.out.size(), inst, false, w.id * kLanes + lane);
  for (Reg r : inst.out) {
    uint64_t v = 0;
    std::memcpy(&v, p, size);
    at(w, r, lane) = v;
    p += size;
  }
}

void Block::store(Warp& w, const Inst& inst, int lane, uint64_t address) {
  const auto size = static_cast<size_t>(bytes(inst.type));
  const auto space = static_cast<Space>(inst.attr[1]);
  const size_t count = size * (inst.in.size() - 1);
  if (space == Space::Shared)
    check_cluster_order(w, rank_, static_cast<uint32_t>(address) - kSharedBase, count, inst, true);
  uint8_t* p = space == Space::Cluster ? cluster_memory(w, static_cast<uint32_t>(address), count, inst, true, lane)
                                       : memory(space, address, count, inst, true, w.id * kLanes + lane);
  for (size_t i = 1; i < inst.in.size(); ++i, p += size) {
    const uint64_t v = get(w, inst.in[i], lane);
    std::memcpy(p, &v, size);
  }
}

void Block::atomic(Warp& w, const Inst& inst, int lane, uint64_t address) {
  const auto size = static_cast<size_t>(bytes(inst.type));
  uint8_t* p = memory(static_cast<Space>(inst.attr[1]), address, size, inst, true, w.id * kLanes + lane);
  uint64_t old = 0;
  std::memcpy(&old, p, size);
  const uint64_t next = thread_atomic(static_cast<AtomicKind>(inst.attr[2]), inst.type, old, get(w, inst.in[1], lane));
  std::memcpy(p, &next, size);
  if (!inst.out.empty()) at(w, inst.out[0], lane) = old;
}

}  // namespace tilewright::interp::threads
