// State of one block of a thread program while the interpreter runs it (see thread_machine.h for what is checked).
//
// Guarantees: every register, byte of shared memory and pending asynchronous operation of the block lives here; the
// bodies are in one file per kind of instruction: thread_block.cpp (scheduler, memory checks, arithmetic, loads and
// stores), thread_control.cpp, thread_sync.cpp, thread_copies.cpp, thread_matrix.cpp.
// Does not: share anything with another block; a diagnosis leaves by throwing Failure, caught in run_threads.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "interp/thread_machine.h"
#include "interp/thread_races.h"

namespace tilewright::interp::threads {

using ir::thread::Inst;
using ir::thread::Op;
using ir::thread::Program;
using ir::thread::Reg;
using ir::thread::Scalar;
using ir::thread::Space;
using ir::thread::Value;

constexpr uint32_t kSharedBase = 1024;  // address 0 is never a tile, so that a forgotten base is found
constexpr int kLanes = 32;
constexpr int kGranule = 16;
constexpr int kRankShift = 20;  // addresses of the cluster: block + 1 above the shared address

/// How a diagnosis leaves the machine.
struct Failure {
  Diagnostic diagnostic;
};
[[noreturn]] void report(DiagnosticCode code, std::string message);

// Structured code laid flat: `target` is where control goes when the region is skipped or repeats.
struct Step {
  enum class Kind : uint8_t { Plain, IfBegin, Else, EndIf, LoopBegin, LoopEnd } kind = Kind::Plain;
  const Inst* inst = nullptr;
  int target = 0;
};

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
  int cluster_arrivals = 0, cluster_waits = 0;
  enum class State : uint8_t { Ready, Barrier, Mbarrier, Cluster, Done } state = State::Ready;
  uint32_t wait_address = 0, wait_parity = 0;
  int wait_line = 0;
};

/// What the blocks of one cluster share.
class Block;
struct Cluster {
  std::vector<Block*> blocks;
  int arrived = 0;  ///< warps
  int phase = 0;    ///< barriers complete
};

/// Who touched a word of shared memory last, for order between the blocks of a cluster.
struct ClusterUse {
  int writer = -1, written_after = 0, write_line = 0;  ///< block, its arrivals at the cluster's barrier
  int reader = -1, read_after = 0, read_line = 0;
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

std::vector<Step> flatten(const std::vector<Inst>& body);

class Block {
 public:
  Block(const Program& program, const std::vector<Step>& code, std::array<unsigned, 3> grid,
        std::array<unsigned, 3> index, std::span<const ThreadArgument> arguments, std::span<const ThreadBuffer> buffers,
        const ThreadOptions& options, int64_t& steps);
  enum class Turn : uint8_t { Ran, Stuck, Done };
  /// One burst of one warp that can go on.
  Turn turn();
  /// All warps are done: what is still in flight lands, and barriers must be at rest.
  void finish();
  [[noreturn]] void deadlock();
  void join(Cluster& cluster, int rank) { cluster_ = &cluster, rank_ = rank; }

 private:
  // Registers.
  uint64_t& at(Warp& w, Reg r, int lane) { return w.regs[size_t{r.id} * kLanes + static_cast<size_t>(lane)]; }
  uint64_t get(Warp& w, const Value& v, int lane) {
    if (v.is_constant) return static_cast<uint64_t>(v.constant);
    return at(w, v.reg, lane);
  }
  void touch(Warp& w, const Inst& inst);
  uint32_t active(Warp& w, const Inst& inst) {
    uint32_t mask = w.mask;
    if (!inst.guard) return mask;
    for (int lane = 0; lane < kLanes; ++lane)
      if (((at(w, inst.guard, lane) & 1) != 0) == inst.guard_not) mask &= ~(1u << lane);
    return mask;
  }
  static int first_lane(uint32_t mask) { return std::countr_zero(mask); }

  // Shared and global memory.
  size_t shared_index(uint32_t address, size_t bytes, const Inst& inst);
  void mark(std::vector<uint16_t>& what, size_t index, size_t bytes, int change);
  void check_free(size_t index, size_t bytes, const Inst& inst, bool writes);
  void check_fenced(size_t index, size_t bytes, const Inst& inst);
  uint8_t* global(uint64_t address, size_t bytes, const Inst& inst);
  uint8_t* memory(Space space, uint64_t address, size_t bytes, const Inst& inst, bool writes, int thread);
  /// True when the barrier of the whole block is all that orders its threads: then races are exact.
  bool has_one_barrier() const;
  void check_races(Space space, uint64_t address, size_t bytes, const Inst& inst, bool writes, int thread);
  void report_race(const ThreadRaces::Race& race, const Inst& inst, int thread, const std::string& where);

  // Control.
  void step(Warp& w);
  void begin_if(Warp& w, const Step& s);
  void begin_else(Warp& w, const Step& s);
  void end_if(Warp& w);
  void begin_loop(Warp& w, const Step& s);
  void end_loop(Warp& w, const Step& s);
  static uint32_t exited(const Warp& w);
  void finish_warp(Warp& w);
  void converged(Warp& w, const Inst& inst);
  void execute(Warp& w, const Inst& inst);
  void control(Warp& w, const Inst& inst, uint32_t mask);
  void break_if(Warp& w, const Inst& inst, uint32_t mask);

  // Arithmetic, loads and stores.
  void alu(Warp& w, const Inst& inst, uint32_t mask);
  uint64_t special(const Warp& w, const Inst& inst, int lane) const;
  void access(Warp& w, const Inst& inst, uint32_t mask);
  void load(Warp& w, const Inst& inst, int lane, uint64_t address);
  void store(Warp& w, const Inst& inst, int lane, uint64_t address);
  void atomic(Warp& w, const Inst& inst, int lane, uint64_t address);

  // Synchronisation.
  void sync(Warp& w, const Inst& inst, uint32_t mask);
  void shuffle(Warp& w, const Inst& inst);
  void redux(Warp& w, const Inst& inst);
  void ballot(Warp& w, const Inst& inst);
  void named_barrier(Warp& w, const Inst& inst);
  void arrive_cluster(Warp& w, const Inst& inst);
  void wait_cluster(Warp& w, const Inst& inst);
  /// The bytes of another block's shared memory.
  uint8_t* cluster_memory(Warp& w, uint32_t address, size_t bytes, const Inst& inst, bool writes, int lane);
  void check_cluster_order(const Warp& w, int rank, size_t index, size_t bytes, const Inst& inst, bool writes);
  Mbarrier& mbarrier(uint32_t address, const Inst& inst);
  void init_mbarrier(Warp& w, const Inst& inst, uint32_t mask);
  void arrive(Warp& w, const Inst& inst, uint32_t mask);
  void wait_mbarrier(Warp& w, const Inst& inst, uint32_t mask);
  static void turn(Mbarrier& m);
  bool phase_done(const Warp& w);

  // Asynchronous copies.
  void copy(Warp& w, const Inst& inst, uint32_t mask);
  void cp_async(Warp& w, const Inst& inst, uint32_t mask);
  void issue_bulk(Warp& w, const Inst& inst, int lane);
  void describe_box(Warp& w, const Inst& inst, int lane, Copy& c);
  void queue(Copy c);
  void wait_copies(Warp& w, Copy::Kind kind, int below_group);
  bool deliver_a_load();
  // Calls `visit(shared offset, global byte address or null)` for every element of the box.
  template <typename F>
  void for_box(const Copy& c, F&& visit);
  void deliver(size_t position);
  void land_cp_async(const Copy& c);
  void land_store(const Copy& c);
  void land_load(const Copy& c);

  // Matrix instructions.
  void matrix(Warp& w, const Inst& inst);
  void matrix_rows(Warp& w, const Inst& inst);
  void mma(Warp& w, const Inst& inst);
  void wgmma(Warp& w, const Inst& inst);
  // Every 16 bytes of shared memory this warp's part of the instruction reads.
  template <typename F>
  void for_operand_bytes(Warp& w, const MatrixInFlight& m, F&& visit);
  double shared_number(Scalar type, uint32_t address);
  std::vector<double> left_operand(const Warp& w, const MatrixInFlight& m);
  std::vector<double> right_operand(const MatrixInFlight& m);
  void compute(Warp& w, MatrixInFlight& m);
  void retire(Warp& w);

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
  std::optional<ThreadRaces> races_;
  std::vector<Warp> warps_;
  Cluster* cluster_ = nullptr;
  int rank_ = 0;
  std::vector<ClusterUse> cluster_uses_;  // per word, in programs of clusters
  std::vector<Copy> copies_;
  std::map<uint32_t, NamedBarrier> barriers_;
  std::map<uint32_t, Mbarrier> mbarriers_;
};

}  // namespace tilewright::interp::threads
