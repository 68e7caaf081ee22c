#include "interp/thread_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <random>

#include "interp/thread_alu.h"
#include "target/gpu_matrix.h"

namespace tilewright::interp {
namespace {

using namespace ir::thread;

constexpr uint32_t kSharedBase = 1024;  // address 0 is never a tile, so that a forgotten base is found
constexpr int kLanes = 32;
constexpr int kGranule = 16;

// Structured code laid flat: `target` is where control goes when the region is skipped or repeats.
struct Step {
  enum class Kind : uint8_t { Plain, IfBegin, Else, EndIf, LoopBegin, LoopEnd } kind = Kind::Plain;
  const Inst* inst = nullptr;
  int target = 0;
};

void flatten(const std::vector<Inst>& body, std::vector<Step>& out) {
  for (const Inst& inst : body) {
    const auto here = [&] { return static_cast<int>(out.size()); };
    if (inst.op == Op::If) {
      const size_t begin = out.size();
      out.push_back({Step::Kind::IfBegin, &inst, 0});
      flatten(inst.body, out);
      const size_t middle = out.size();
      out.push_back({Step::Kind::Else, &inst, 0});
      flatten(inst.orelse, out);
      out[begin].target = static_cast<int>(middle);
      out[middle].target = here();
      out.push_back({Step::Kind::EndIf, &inst, 0});
    } else if (inst.op == Op::Loop) {
      const int begin = here();
      out.push_back({Step::Kind::LoopBegin, &inst, 0});
      flatten(inst.body, out);
      out.push_back({Step::Kind::LoopEnd, &inst, begin + 1});
      out[static_cast<size_t>(begin)].target = here();
    } else {
      out.push_back({Step::Kind::Plain, &inst, 0});
    }
  }
}

struct Failure {
  Diagnostic diagnostic;
};
[[noreturn]] void report(DiagnosticCode code, std::string message) {
  throw Failure{fail(code, std::move(message)).error()};
}

struct Frame {
  bool is_loop;
  uint32_t entry, pending;  // if: lanes of the other branch still to run
  uint32_t exited = 0;      // loop: lanes that broke out
  int end = 0;
};

struct MatrixInFlight {
  const Inst* inst;
  std::array<std::array<uint64_t, kLanes>, 4> a{};
  uint64_t a_descriptor = 0, b_descriptor = 0;
  bool accumulates = false;
  bool is_computed = false;
  int group = 0;
};

struct Warp {
  int id = 0;
  int pc = 0;
  uint32_t mask = ~0u, dead = 0;
  std::vector<Frame> frames;
  std::vector<uint64_t> regs;      // [register][lane]
  std::vector<uint8_t> in_flight;  // registers a wgmma will write
  std::deque<MatrixInFlight> matrix;
  int matrix_group = 0;                              // groups committed so far
  std::vector<std::pair<int, size_t>> async_groups;  // cp.async: (group, index of the copy)
  int async_group = 0;
  int bulk_group = 0;
  enum class State : uint8_t { Ready, Barrier, Mbarrier, Done } state = State::Ready;
  uint32_t wait_address = 0, wait_parity = 0;
  int wait_line = 0;
};

struct NamedBarrier {
  int expected = 0, arrived = 0;
  std::vector<Warp*> waiting;
};

struct Mbarrier {
  int count = 0, pending = 0;
  int64_t bytes = 0;
  uint32_t phase = 0;
};

/// A copy that has been issued and has not taken effect.
struct Copy {
  enum class Kind : uint8_t { TmaLoad, TmaStore, Bulk, CpAsync } kind;
  Warp* warp = nullptr;
  int group = 0;
  uint32_t shared = 0;
  uint32_t barrier = 0;
  int line = 0;
  std::vector<uint8_t> data;  // loads: what arrives (global reads happen at issue)
  uint64_t bytes = 0;
  TensorMap map;
  std::array<int32_t, TensorMap::kMaxRank> at{};
  std::array<uint32_t, kLanes> lane_shared{};  // CpAsync
  uint32_t lanes = 0;
};

class Block {
 public:
  Block(const Program& program, const std::vector<Step>& code, std::array<unsigned, 3> grid,
        std::array<unsigned, 3> index, std::span<const ThreadArgument> arguments, std::span<const ThreadBuffer> buffers,
        const ThreadOptions& options, int64_t& steps)
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

  void run() {
    for (;;) {
      if (options_.moment == Moment::Random && !copies_.empty() && random_() % 3 == 0)
        deliver(random_() % copies_.size());
      std::vector<Warp*> ready;
      for (Warp& warp : warps_) {
        if (warp.state == Warp::State::Mbarrier && phase_done(warp)) warp.state = Warp::State::Ready;
        if (warp.state == Warp::State::Ready) ready.push_back(&warp);
      }
      if (ready.empty()) {
        if (std::all_of(warps_.begin(), warps_.end(), [](const Warp& w) { return w.state == Warp::State::Done; }))
          break;
        if (!deliver_a_load()) deadlock();
        continue;
      }
      Warp& warp = *ready[random_() % ready.size()];
      const int burst = 1 + static_cast<int>(random_() % 64);
      for (int i = 0; i < burst && warp.state == Warp::State::Ready; ++i) step(warp);
    }
    while (!copies_.empty()) deliver(0);
    for (const auto& [address, barrier] : mbarriers_)
      if (barrier.bytes != 0)
        report(DiagnosticCode::E9303,
               fmt::format("mbarrier at {} ends with {} expected bytes that never came", address, barrier.bytes));
  }

 private:
  // ---- registers
  uint64_t& at(Warp& w, Reg r, int lane) { return w.regs[size_t{r.id} * kLanes + static_cast<size_t>(lane)]; }
  uint64_t get(Warp& w, const Value& v, int lane) {
    if (v.is_constant) return static_cast<uint64_t>(v.constant);
    return at(w, v.reg, lane);
  }
  void touch(Warp& w, const Inst& inst) {
    if (w.matrix.empty()) return;
    for (const Value& v : inst.in)
      if (!v.is_constant && w.in_flight[v.reg.id])
        report(DiagnosticCode::E9301,
               fmt::format("line {}: register r{} is read while a matrix instruction that writes it is in flight",
                           inst.line, v.reg.id));
    if (inst.op == Op::Wgmma) return;
    for (Reg r : inst.out)
      if (w.in_flight[r.id])
        report(DiagnosticCode::E9301,
               fmt::format("line {}: register r{} is overwritten while a matrix instruction is in flight", inst.line,
                           r.id));
  }
  uint32_t active(Warp& w, const Inst& inst) {
    uint32_t mask = w.mask;
    if (!inst.guard) return mask;
    for (int lane = 0; lane < kLanes; ++lane)
      if (((at(w, inst.guard, lane) & 1) != 0) == inst.guard_not) mask &= ~(1u << lane);
    return mask;
  }
  static int first_lane(uint32_t mask) { return std::countr_zero(mask); }

  // ---- shared memory
  size_t shared_index(uint32_t address, size_t bytes, const Inst& inst) {
    if (address < kSharedBase || address - kSharedBase + bytes > shared_.size()) {
      report(DiagnosticCode::E9302,
             fmt::format("line {}: {} touches shared bytes {}..{} of {}", inst.line, mnemonic(inst.op),
                         int64_t{address} - kSharedBase, int64_t{address} - kSharedBase + static_cast<int64_t>(bytes),
                         shared_.size()));
    }
    return address - kSharedBase;
  }
  void mark(std::vector<uint16_t>& what, size_t index, size_t bytes, int change) {
    for (size_t g = index / kGranule; g <= (index + bytes - 1) / kGranule; ++g)
      what[g] = static_cast<uint16_t>(what[g] + change);
  }
  void check_free(size_t index, size_t bytes, const Inst& inst, bool writes) {
    for (size_t g = index / kGranule; g <= (index + bytes - 1) / kGranule; ++g) {
      if (writing_[g])
        report(DiagnosticCode::E9301,
               fmt::format("line {}: {} touches shared byte {} while a copy into it is in flight", inst.line,
                           mnemonic(inst.op), g * kGranule));
      if (writes && reading_[g])
        report(DiagnosticCode::E9301, fmt::format("line {}: {} overwrites shared byte {} while it is being read",
                                                  inst.line, mnemonic(inst.op), g * kGranule));
    }
  }
  void check_fenced(size_t index, size_t bytes, const Inst& inst) {
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
  uint8_t* global(uint64_t address, size_t bytes, const Inst& inst) {
    for (const ThreadBuffer& b : buffers_) {
      const auto begin = reinterpret_cast<uint64_t>(b.data);
      if (address >= begin && address + bytes <= begin + b.bytes) return reinterpret_cast<uint8_t*>(address);
    }
    report(DiagnosticCode::E9302, fmt::format("line {}: {} touches {} bytes at {:#x}, outside every buffer", inst.line,
                                              mnemonic(inst.op), bytes, address));
  }
  uint8_t* memory(Space space, uint64_t address, size_t bytes, const Inst& inst, bool writes, int warp) {
    if (address % bytes)
      report(DiagnosticCode::E9302, fmt::format("line {}: {} of {} bytes at misaligned address {:#x}", inst.line,
                                                mnemonic(inst.op), bytes, address));
    if (space == Space::Global) return global(address, bytes, inst);
    const size_t index = shared_index(static_cast<uint32_t>(address), bytes, inst);
    check_free(index, bytes, inst, writes);
    if (writes)
      for (size_t g = index / kGranule; g <= (index + bytes - 1) / kGranule; ++g)
        dirty_[g] = static_cast<uint16_t>(warp + 1);
    return shared_.data() + index;
  }

  // ---- one instruction
  void step(Warp& w) {
    if (++steps_ > options_.step_limit)
      report(DiagnosticCode::E9305, "the kernel did not finish within the step limit");
    if (w.pc >= static_cast<int>(code_.size()) || w.mask == 0) {
      if (w.pc >= static_cast<int>(code_.size()) || w.frames.empty()) {
        finish_warp(w);
        return;
      }
    }
    const Step& s = code_[static_cast<size_t>(w.pc)];
    ++w.pc;
    switch (s.kind) {
      case Step::Kind::Plain:
        if (w.mask) execute(w, *s.inst);
        return;
      case Step::Kind::IfBegin: {
        uint32_t yes = 0;
        for (int lane = 0; lane < kLanes; ++lane)
          if (get(w, s.inst->in[0], lane) & 1) yes |= 1u << lane;
        touch(w, *s.inst);
        Frame frame{false, w.mask, w.mask & ~yes};
        w.mask &= yes;
        w.frames.push_back(frame);
        if (w.mask == 0) w.pc = s.target;
        return;
      }
      case Step::Kind::Else: {
        Frame& frame = w.frames.back();
        w.mask = frame.pending & ~w.dead;
        if (w.mask == 0) w.pc = s.target;
        return;
      }
      case Step::Kind::EndIf: {
        const uint32_t entry = w.frames.back().entry;
        w.frames.pop_back();
        w.mask = entry & ~w.dead & ~exited(w);
        return;
      }
      case Step::Kind::LoopBegin:
        if (w.mask)
          w.frames.push_back({true, w.mask, 0, 0, s.target});
        else
          w.pc = s.target;
        return;
      case Step::Kind::LoopEnd: {
        Frame& frame = w.frames.back();
        w.mask = frame.entry & ~frame.exited & ~w.dead;
        if (w.mask) {
          w.pc = s.target;
        } else {
          w.mask = frame.entry & ~w.dead;
          w.frames.pop_back();
        }
        return;
      }
    }
  }
  static uint32_t exited(const Warp& w) {
    for (auto it = w.frames.rbegin(); it != w.frames.rend(); ++it)
      if (it->is_loop) return it->exited;
    return 0;
  }
  void finish_warp(Warp& w) {
    if (!w.matrix.empty())
      report(DiagnosticCode::E9301, fmt::format("warp {} ends with matrix instructions in flight", w.id));
    w.state = Warp::State::Done;
  }
  void converged(Warp& w, const Inst& inst) {
    const uint32_t full = (w.id + 1) * kLanes > program_.threads ? (1u << (program_.threads % kLanes)) - 1 : ~0u;
    if (w.mask != full)
      report(DiagnosticCode::E9306,
             fmt::format("line {}: {} by warp {} with lanes {:08x} only", inst.line, mnemonic(inst.op), w.id, w.mask));
  }

  void execute(Warp& w, const Inst& inst) {
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

  void alu(Warp& w, const Inst& inst, uint32_t mask) {
    for (int lane = 0; lane < kLanes; ++lane) {
      if (!(mask >> lane & 1)) continue;
      if (inst.op == Op::Special) {
        at(w, inst.out[0], lane) = special(w, inst, lane);
        continue;
      }
      if (inst.op == Op::ParamAddress) {
        at(w, inst.out[0], lane) = static_cast<uint64_t>(inst.attr[0]);
        continue;
      }
      const uint64_t a = get(w, inst.in[0], lane);
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
  uint64_t special(const Warp& w, const Inst& inst, int lane) const {
    switch (static_cast<SpecialRegister>(inst.attr[0])) {
      case SpecialRegister::ThreadX: return static_cast<uint64_t>(w.id * kLanes + lane);
      case SpecialRegister::BlockX: return index_[0];
      case SpecialRegister::BlockY: return index_[1];
      case SpecialRegister::BlockZ: return index_[2];
      case SpecialRegister::GridX: return grid_[0];
      case SpecialRegister::GridY: return grid_[1];
      case SpecialRegister::GridZ: return grid_[2];
      case SpecialRegister::Lane: return static_cast<uint64_t>(lane);
      case SpecialRegister::ClusterRank: return 0;
      case SpecialRegister::BlockThreads: return static_cast<uint64_t>(program_.threads);
      case SpecialRegister::SharedBase: return kSharedBase;
    }
    return 0;
  }

  void access(Warp& w, const Inst& inst, uint32_t mask) {
    const auto size = static_cast<size_t>(bytes(inst.type));
    const auto space = static_cast<Space>(inst.attr[1]);
    for (int lane = 0; lane < kLanes; ++lane) {
      if (!(mask >> lane & 1)) continue;
      if (inst.op == Op::LoadParam) {
        at(w, inst.out[0], lane) = arguments_[static_cast<size_t>(inst.attr[0])].bits;
        continue;
      }
      const uint64_t address = get(w, inst.in[0], lane) + static_cast<uint64_t>(static_cast<int64_t>(inst.attr[0]));
      if (inst.op == Op::Load) {
        const uint8_t* p = memory(space, address, size * inst.out.size(), inst, false, w.id);
        for (Reg r : inst.out) {
          uint64_t v = 0;
          std::memcpy(&v, p, size);
          at(w, r, lane) = v;
          p += size;
        }
      } else if (inst.op == Op::Store) {
        uint8_t* p = memory(space, address, size * (inst.in.size() - 1), inst, true, w.id);
        for (size_t i = 1; i < inst.in.size(); ++i, p += size) {
          const uint64_t v = get(w, inst.in[i], lane);
          std::memcpy(p, &v, size);
        }
      } else {
        uint8_t* p = memory(space, address, size, inst, true, w.id);
        uint64_t old = 0;
        std::memcpy(&old, p, size);
        const uint64_t next =
            thread_atomic(static_cast<AtomicKind>(inst.attr[2]), inst.type, old, get(w, inst.in[1], lane));
        std::memcpy(p, &next, size);
        if (!inst.out.empty()) at(w, inst.out[0], lane) = old;
      }
    }
  }

  void sync(Warp& w, const Inst& inst, uint32_t mask) {
    switch (inst.op) {
      case Op::Shuffle: return shuffle(w, inst);
      case Op::Redux: return redux(w, inst);
      case Op::Ballot: {
        converged(w, inst);
        uint64_t bits = 0;
        for (int lane = 0; lane < kLanes; ++lane) bits |= (get(w, inst.in[0], lane) & 1 & (w.mask >> lane)) << lane;
        for (int lane = 0; lane < kLanes; ++lane) at(w, inst.out[0], lane) = bits;
        return;
      }
      case Op::SyncWarp:
      case Op::SetMaxRegisters: return converged(w, inst);
      case Op::Barrier:
      case Op::BarrierArrive: return named_barrier(w, inst);
      case Op::FenceAsync:
        for (uint16_t& d : dirty_)
          if (d == w.id + 1) d = 0;
        return;
      case Op::MbarrierInit: {
        if (!mask) return;
        const int lane = first_lane(mask);
        const int count = static_cast<int>(get(w, inst.in[1], lane));
        mbarriers_[static_cast<uint32_t>(get(w, inst.in[0], lane))] = {count, count, 0, 0};
        return;
      }
      case Op::MbarrierArrive:
      case Op::MbarrierExpect:
        for (int lane = 0; lane < kLanes; ++lane) {
          if (!(mask >> lane & 1)) continue;
          Mbarrier& m = mbarrier(static_cast<uint32_t>(get(w, inst.in[0], lane)), inst);
          if (inst.op == Op::MbarrierExpect) m.bytes += static_cast<int64_t>(get(w, inst.in[1], lane));
          if (--m.pending < 0)
            report(DiagnosticCode::E9303,
                   fmt::format("line {}: warp {} arrives once too often at an mbarrier for {} arrivals", inst.line,
                               w.id, m.count));
          turn(m);
        }
        return;
      case Op::MbarrierWait: {
        if (!mask) return;
        const int lane = first_lane(mask);
        w.wait_address = static_cast<uint32_t>(get(w, inst.in[0], lane));
        w.wait_parity = static_cast<uint32_t>(get(w, inst.in[1], lane)) & 1;
        w.wait_line = inst.line;
        mbarrier(w.wait_address, inst);
        if (!phase_done(w)) w.state = Warp::State::Mbarrier;
        return;
      }
      default: return;
    }
  }
  void shuffle(Warp& w, const Inst& inst) {
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
  void redux(Warp& w, const Inst& inst) {
    converged(w, inst);
    uint64_t total = get(w, inst.in[0], 0);
    for (int lane = 1; lane < kLanes; ++lane)
      total = thread_atomic(static_cast<AtomicKind>(inst.attr[0]), inst.type, total, get(w, inst.in[0], lane));
    for (int lane = 0; lane < kLanes; ++lane) at(w, inst.out[0], lane) = total;
  }
  void named_barrier(Warp& w, const Inst& inst) {
    converged(w, inst);
    const auto id = static_cast<uint32_t>(get(w, inst.in[0], 0));
    int expected = static_cast<int>(get(w, inst.in[1], 0));
    if (expected == 0) expected = static_cast<int>(warps_.size()) * kLanes;
    NamedBarrier& barrier = barriers_[id];
    if (barrier.arrived && barrier.expected != expected)
      report(DiagnosticCode::E9306, fmt::format("line {}: barrier {} of {} threads joined with {}", inst.line, id,
                                                barrier.expected, expected));
    barrier.expected = expected;
    barrier.arrived += kLanes;
    if (inst.op == Op::Barrier) {
      w.state = Warp::State::Barrier;
      w.wait_address = id;
      w.wait_line = inst.line;
      barrier.waiting.push_back(&w);
    }
    if (barrier.arrived < barrier.expected) return;
    for (Warp* other : barrier.waiting) other->state = Warp::State::Ready;
    barrier = {};
  }
  Mbarrier& mbarrier(uint32_t address, const Inst& inst) {
    const auto it = mbarriers_.find(address);
    if (it == mbarriers_.end())
      report(DiagnosticCode::E9303, fmt::format("line {}: no mbarrier was initialised at shared byte {}", inst.line,
                                                int64_t{address} - kSharedBase));
    return it->second;
  }
  static void turn(Mbarrier& m) {
    if (m.pending == 0 && m.bytes == 0) {
      m.pending = m.count;
      ++m.phase;
    }
  }
  bool phase_done(const Warp& w) { return (mbarriers_[w.wait_address].phase & 1) != w.wait_parity; }

  // ---- asynchronous copies
  void copy(Warp& w, const Inst& inst, uint32_t mask) {
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
  void cp_async(Warp& w, const Inst& inst, uint32_t mask) {
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
  void issue_bulk(Warp& w, const Inst& inst, int lane) {
    Copy c{Copy::Kind::Bulk, &w, w.bulk_group};
    c.line = inst.line;
    c.shared = static_cast<uint32_t>(get(w, inst.in[0], lane));
    if (inst.op == Op::BulkLoad) {
      c.bytes = get(w, inst.in[2], lane);
      c.barrier = static_cast<uint32_t>(get(w, inst.in[3], lane));
      const uint8_t* p = global(get(w, inst.in[1], lane), c.bytes, inst);
      c.data.assign(p, p + c.bytes);
    } else {
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
  void queue(Copy c) {
    copies_.push_back(std::move(c));
    if (options_.moment == Moment::Earliest) deliver(copies_.size() - 1);
  }
  void wait_copies(Warp& w, Copy::Kind kind, int below_group) {
    for (size_t i = 0; i < copies_.size();) {
      const Copy& c = copies_[i];
      if (c.warp == &w && c.kind == kind && c.group < below_group)
        deliver(i);
      else
        ++i;
    }
  }
  bool deliver_a_load() {
    for (size_t i = 0; i < copies_.size(); ++i)
      if (copies_[i].kind == Copy::Kind::TmaLoad || copies_[i].kind == Copy::Kind::Bulk) {
        deliver(i);
        return true;
      }
    return false;
  }
  // Calls `visit(shared offset, global byte address or null)` for every element of the box.
  template <typename F>
  void for_box(const Copy& c, F&& visit) {
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
  void deliver(size_t position) {
    Copy c = std::move(copies_[position]);
    copies_.erase(copies_.begin() + static_cast<std::ptrdiff_t>(position));
    Inst here;
    here.line = c.line;
    if (c.kind == Copy::Kind::CpAsync) {
      for (size_t lane = 0; lane < kLanes; ++lane) {
        if (!(c.lanes >> lane & 1)) continue;
        const size_t index = c.lane_shared[lane] - kSharedBase;
        std::memcpy(shared_.data() + index, c.data.data() + lane * c.bytes, c.bytes);
        mark(writing_, index, c.bytes, -1);
        dirty_[index / kGranule] = static_cast<uint16_t>(c.warp->id + 1);
      }
      return;
    }
    const size_t base = c.shared - kSharedBase;
    const auto element = static_cast<size_t>(c.map.element_bytes);
    if (c.kind == Copy::Kind::TmaStore) {
      here.op = Op::TmaStore;
      for_box(c, [&](uint32_t shared, uint64_t address) {
        if (address) std::memcpy(global(address, element, here), shared_.data() + (shared - kSharedBase), element);
      });
      mark(reading_, base, c.bytes, -1);
      return;
    }
    if (c.kind == Copy::Kind::Bulk) {
      std::memcpy(shared_.data() + base, c.data.data(), c.bytes);
    } else {
      here.op = Op::TmaLoad;
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

  // ---- matrix instructions
  void matrix(Warp& w, const Inst& inst) {
    converged(w, inst);
    switch (inst.op) {
      case Op::LdMatrix:
      case Op::StMatrix: return matrix_rows(w, inst);
      case Op::Mma: return mma(w, inst);
      case Op::WgmmaCommit: ++w.matrix_group; return;
      case Op::WgmmaWait:
        while (!w.matrix.empty() && w.matrix.front().group < w.matrix_group - inst.attr[0]) retire(w);
        return;
      case Op::Wgmma: return wgmma(w, inst);
      default: return;
    }
  }
  void matrix_rows(Warp& w, const Inst& inst) {
    const bool is_load = inst.op == Op::LdMatrix;
    for (int t = 0; t < inst.attr[0]; ++t) {
      for (int lane = 0; lane < kLanes; ++lane) {
        uint32_t word = 0;
        const size_t operand = static_cast<size_t>(t) + 1;
        if (!is_load) word = static_cast<uint32_t>(get(w, inst.in[operand], lane));
        for (int e = 0; e < 2; ++e) {
          int row = lane / 4, column = (lane % 4) * 2 + e;
          if (inst.attr[1]) std::swap(row, column);
          const auto address = static_cast<uint32_t>(get(w, inst.in[0], t * 8 + row));
          if (address % 16)
            report(DiagnosticCode::E9302, fmt::format("line {}: {} row at misaligned shared byte {}", inst.line,
                                                      mnemonic(inst.op), int64_t{address} - kSharedBase));
          uint8_t* p = memory(Space::Shared, address + static_cast<uint32_t>(column) * 2, 2, inst, !is_load, w.id);
          if (is_load) {
            uint16_t v;
            std::memcpy(&v, p, 2);
            word |= uint32_t{v} << (16 * e);
          } else {
            const auto v = static_cast<uint16_t>(word >> (16 * e));
            std::memcpy(p, &v, 2);
          }
        }
        if (is_load) at(w, inst.out[static_cast<size_t>(t)], lane) = word;
      }
    }
  }
  static uint64_t part(Scalar type, uint64_t word, int e) {
    const int bits = 8 * bytes(type);
    return bits >= 32 ? word : (word >> (bits * e)) & ((uint64_t{1} << bits) - 1);
  }
  static uint64_t accumulated(Scalar type, uint64_t old, double sum) {
    if (type == Scalar::S32)
      return static_cast<uint32_t>(static_cast<int64_t>(static_cast<int32_t>(old)) + static_cast<int64_t>(sum));
    if (type == Scalar::F64) return std::bit_cast<uint64_t>(std::bit_cast<double>(old) + sum);
    return std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<float>(static_cast<uint32_t>(old)) + sum));
  }
  void mma(Warp& w, const Inst& inst) {
    const target::MmaRow& r = target::row(static_cast<target::Mma>(inst.attr[0]));
    const int bits = 8 * bytes(r.a), per = bits >= 32 ? 1 : 32 / bits;
    std::vector<double> a(static_cast<size_t>(r.m * r.k)), b(static_cast<size_t>(r.k * r.n));
    for (int lane = 0; lane < kLanes; ++lane) {
      for (int i = 0; i < r.a_registers; ++i)
        for (int e = 0; e < per; ++e) {
          const target::Cell c = target::mma_a_cell(bits, lane, i, e);
          a[static_cast<size_t>(c.row * r.k + c.column)] =
              thread_number(r.a, part(r.a, get(w, inst.in[static_cast<size_t>(i)], lane), e));
        }
      for (int i = 0; i < r.b_registers; ++i)
        for (int e = 0; e < per; ++e) {
          const target::Cell c = target::mma_b_cell(bits, lane, i, e);
          b[static_cast<size_t>(c.row * r.n + c.column)] =
              thread_number(r.b, part(r.b, get(w, inst.in[static_cast<size_t>(r.a_registers + i)], lane), e));
        }
    }
    std::vector<uint64_t> results;
    for (int lane = 0; lane < kLanes; ++lane)
      for (int i = 0; i < r.c_registers; ++i) {
        const target::Cell c = target::mma_c_cell(lane, i);
        double sum = 0;
        for (int k = 0; k < r.k; ++k)
          sum += a[static_cast<size_t>(c.row * r.k + k)] * b[static_cast<size_t>(k * r.n + c.column)];
        results.push_back(accumulated(
            r.accumulator, get(w, inst.in[static_cast<size_t>(r.a_registers + r.b_registers + i)], lane), sum));
      }
    size_t next = 0;
    for (int lane = 0; lane < kLanes; ++lane)
      for (int i = 0; i < r.c_registers; ++i) at(w, inst.out[static_cast<size_t>(i)], lane) = results[next++];
  }
  void wgmma(Warp& w, const Inst& inst) {
    MatrixInFlight m{&inst};
    m.accumulates = get(w, inst.in[0], 0) & 1;
    const bool from_registers = inst.attr[2];
    if (from_registers) {
      for (size_t r = 0; r < 4; ++r)
        for (int lane = 0; lane < kLanes; ++lane) m.a[r][static_cast<size_t>(lane)] = get(w, inst.in[1 + r], lane);
    } else {
      m.a_descriptor = get(w, inst.in[1], 0);
    }
    m.b_descriptor = get(w, inst.in[from_registers ? 5 : 2], 0);
    m.group = w.matrix_group;
    for_operand_bytes(w, m, [&](size_t index, size_t n) {
      check_fenced(index, n, inst);
      mark(reading_, index, n, 1);
    });
    for (Reg r : inst.out) w.in_flight[r.id] = 1;
    w.matrix.push_back(m);
    if (options_.moment == Moment::Earliest || (options_.moment == Moment::Random && random_() % 2))
      compute(w, w.matrix.back());
  }
  // Every 16 bytes of shared memory this warp's part of the instruction reads.
  template <typename F>
  void for_operand_bytes(Warp& w, const MatrixInFlight& m, F&& visit) {
    const Inst& inst = *m.inst;
    const target::WgmmaRow& r = target::row(static_cast<target::Wgmma>(inst.attr[0]));
    const int element = bytes(r.a);
    const auto operand = [&](uint64_t bits, bool mn_major, int first, int count) {
      const target::MatrixDescriptor d = target::decode(bits);
      if (mn_major) {
        for (int k = 0; k < r.k; ++k)
          for (int x = first * element; x < (first + count) * element; x += kGranule)
            visit(shared_index((target::mn_major_address(d, x, k)), kGranule, inst), kGranule);
      } else {
        for (int x = first; x < first + count; ++x)
          for (int k = 0; k < r.k * element; k += kGranule)
            visit(shared_index((target::k_major_address(d, x, k)), kGranule, inst), kGranule);
      }
    };
    if (!inst.attr[2]) operand(m.a_descriptor, inst.attr[3], 16 * (w.id % 4), 16);
    operand(m.b_descriptor, inst.attr[4], 0, inst.attr[1]);
  }
  double shared_number(Scalar type, uint32_t address) {
    uint64_t v = 0;
    std::memcpy(&v, shared_.data() + (address - kSharedBase), static_cast<size_t>(bytes(type)));
    return thread_number(type, v);
  }
  void compute(Warp& w, MatrixInFlight& m) {
    const Inst& inst = *m.inst;
    const target::WgmmaRow& r = target::row(static_cast<target::Wgmma>(inst.attr[0]));
    const int bits = 8 * bytes(r.a), per = bits >= 32 ? 1 : 32 / bits, n = inst.attr[1];
    std::vector<double> a(static_cast<size_t>(16 * r.k)), b(static_cast<size_t>(r.k * n));
    if (inst.attr[2]) {
      for (int lane = 0; lane < kLanes; ++lane)
        for (int i = 0; i < 4; ++i)
          for (int e = 0; e < per; ++e) {
            const target::Cell c = target::mma_a_cell(bits, lane, i, e);
            a[static_cast<size_t>(c.row * r.k + c.column)] =
                thread_number(r.a, part(r.a, m.a[static_cast<size_t>(i)][static_cast<size_t>(lane)], e));
          }
    } else {
      const target::MatrixDescriptor d = target::decode(m.a_descriptor);
      for (int x = 0; x < 16; ++x)
        for (int k = 0; k < r.k; ++k) {
          const int row = 16 * (w.id % 4) + x, element = bytes(r.a);
          a[static_cast<size_t>(x * r.k + k)] =
              shared_number(r.a, inst.attr[3] ? target::mn_major_address(d, row * element, k)
                                              : target::k_major_address(d, row, k * element));
        }
    }
    const target::MatrixDescriptor d = target::decode(m.b_descriptor);
    for (int k = 0; k < r.k; ++k)
      for (int x = 0; x < n; ++x) {
        const int element = bytes(r.b);
        b[static_cast<size_t>(k * n + x)] =
            shared_number(r.b, inst.attr[4] ? target::mn_major_address(d, x * element, k)
                                            : target::k_major_address(d, x, k * element));
      }
    for (int lane = 0; lane < kLanes; ++lane)
      for (int i = 0; i < n / 2; ++i) {
        const target::Cell c = target::mma_c_cell(lane, i);
        double sum = 0;
        for (int k = 0; k < r.k; ++k)
          sum += a[static_cast<size_t>(c.row * r.k + k)] * b[static_cast<size_t>(k * n + c.column)];
        uint64_t& out = at(w, inst.out[static_cast<size_t>(i)], lane);
        out = accumulated(r.accumulator, m.accumulates ? out : 0, sum);
      }
    // The registers and the operands stay in flight until the wait, whenever the sum is taken.
    m.is_computed = true;
  }
  void retire(Warp& w) {
    MatrixInFlight m = w.matrix.front();
    w.matrix.pop_front();
    if (!m.is_computed) compute(w, m);
    for_operand_bytes(w, m, [&](size_t index, size_t count) { mark(reading_, index, count, -1); });
    std::fill(w.in_flight.begin(), w.in_flight.end(), 0);
    for (const MatrixInFlight& other : w.matrix)
      for (Reg r : other.inst->out) w.in_flight[r.id] = 1;
  }

  void control(Warp& w, const Inst& inst, uint32_t mask) {
    switch (inst.op) {
      case Op::BreakIf: {
        uint32_t leave = 0;
        for (int lane = 0; lane < kLanes; ++lane)
          if (get(w, inst.in[0], lane) & 1) leave |= 1u << lane;
        leave &= mask;
        size_t depth = w.frames.size();
        while (depth > 0 && !w.frames[depth - 1].is_loop) --depth;
        Frame& loop = w.frames[depth - 1];
        loop.exited |= leave;
        w.mask &= ~leave;
        if (w.mask == 0 && (loop.entry & ~loop.exited & ~w.dead) == 0) {
          w.pc = loop.end;
          w.mask = loop.entry & ~w.dead;
          w.frames.resize(depth - 1);
        }
        return;
      }
      case Op::Return:
        w.dead |= mask;
        w.mask &= ~mask;
        if ((~w.dead & (~0u)) == 0) finish_warp(w);
        return;
      case Op::Trap:
        if (mask) report(DiagnosticCode::E9307, fmt::format("line {}: trap", inst.line));
        return;
      default: return;
    }
  }

  [[noreturn]] void deadlock() {
    std::string who;
    for (const Warp& w : warps_) {
      if (w.state == Warp::State::Barrier)
        who += fmt::format("; warp {} at barrier {} (line {})", w.id, w.wait_address, w.wait_line);
      if (w.state == Warp::State::Mbarrier) {
        const Mbarrier& m = mbarriers_[w.wait_address];
        who += fmt::format("; warp {} at mbarrier {} parity {} (line {}): {} of {} arrivals, {} bytes missing", w.id,
                           int64_t{w.wait_address} - kSharedBase, w.wait_parity, w.wait_line, m.count - m.pending,
                           m.count, m.bytes);
      }
    }
    report(DiagnosticCode::E9305, "deadlock" + who);
  }

  const Program& program_;
  const std::vector<Step>& code_;
  std::array<unsigned, 3> grid_, index_;
  std::span<const ThreadArgument> arguments_;
  std::span<const ThreadBuffer> buffers_;
  const ThreadOptions& options_;
  int64_t& steps_;
  std::mt19937_64 random_;
  std::vector<uint8_t> shared_;
  std::vector<uint16_t> writing_, reading_, dirty_;
  std::vector<Warp> warps_;
  std::vector<Copy> copies_;
  std::map<uint32_t, NamedBarrier> barriers_;
  std::map<uint32_t, Mbarrier> mbarriers_;
};

}  // namespace

Status run_threads(const Program& program, std::array<unsigned, 3> grid, std::span<const ThreadArgument> arguments,
                   std::span<const ThreadBuffer> buffers, const ThreadOptions& options) {
  std::vector<Step> code;
  flatten(program.body, code);
  int64_t steps = 0;
  try {
    for (unsigned z = 0; z < grid[2]; ++z)
      for (unsigned y = 0; y < grid[1]; ++y)
        for (unsigned x = 0; x < grid[0]; ++x)
          Block(program, code, grid, {x, y, z}, arguments, buffers, options, steps).run();
  } catch (const Failure& failure) {
    return std::unexpected(failure.diagnostic);
  }
  return {};
}

}  // namespace tilewright::interp
