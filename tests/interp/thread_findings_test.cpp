// What the interpreter of thread programs says about broken ones: each with its exact text.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <vector>

#include "interp/thread_machine.h"
#include "ir/thread_builder.h"

namespace tilewright::interp {
namespace {

using namespace ir::thread;

struct Broken {
  const char* name;
  int threads;
  std::function<void(Builder&)> body;
  const char* says;
};

/// Shared byte 0 as the machine addresses it.
Value shared_base(Builder& b) { return b.special(SpecialRegister::SharedBase); }

std::string run(const Broken& broken) {
  Builder b(broken.name);
  b.program().threads = broken.threads;
  b.program().shared_bytes = 256;
  b.param("p", Param::Kind::Pointer);
  b.param("map", Param::Kind::TensorMap);
  b.line = 7;
  broken.body(b);
  const Program program = b.finish();
  alignas(16) static std::array<float, 64> memory{};
  const auto address = reinterpret_cast<uint64_t>(memory.data());
  TensorMap map;
  map.address = address, map.rank = 1, map.element_bytes = 4, map.extent[0] = 64, map.box[0] = 4;
  const std::array<ThreadArgument, 2> arguments = {ThreadArgument{.bits = address}, ThreadArgument{.map = map}};
  const ThreadBuffer buffer{memory.data(), sizeof memory};
  const Status done = run_threads(program, {1, 1, 1}, arguments, {&buffer, 1}, {.step_limit = 10000});
  return done ? "nothing" : render(done.error());
}

void store_word(Builder& b, Value address) {
  const std::array<Value, 1> one = {Value(1)};
  b.store(Scalar::B32, address, one, {.space = Space::Shared});
}

/// 16 bytes from global memory to shared byte 0, in flight afterwards.
void begin_copy(Builder& b) {
  b.if_then(b.compare(Compare::Eq, Scalar::U32, b.special(SpecialRegister::ThreadX), 0), [&] {
    b.emit(Op::CpAsync, {}, {shared_base(b), b.load_param(0), Value(16)}, {16});
  });
}

const std::vector<Broken>& programs() {
  static const std::vector<Broken> kPrograms = {
      {"read_in_flight", 32,
       [](Builder& b) {
         begin_copy(b);
         b.load(Scalar::B32, shared_base(b), 1, {.space = Space::Shared});
       },
       "error[E9301]: line 7: ld touches shared byte 0 while a copy into it is in flight\n"},
      {"outside_shared", 32, [](Builder& b) { store_word(b, b.add(Scalar::U32, shared_base(b), 256)); },
       "error[E9302]: line 7: st touches shared bytes 256..260 of 256\n"},
      {"no_mbarrier", 32, [](Builder& b) { b.emit(Op::MbarrierArrive, {}, {shared_base(b)}); },
       "error[E9303]: line 7: no mbarrier was initialised at shared byte 0\n"},
      {"arrives_twice", 32,
       [](Builder& b) {
         b.if_then(b.compare(Compare::Eq, Scalar::U32, b.special(SpecialRegister::ThreadX), 0), [&] {
           b.emit(Op::MbarrierInit, {}, {shared_base(b), Value(1)});
         });
         b.emit(Op::MbarrierExpect, {}, {shared_base(b), Value(16)});
       },
       "error[E9303]: line 7: warp 0 arrives once too often at an mbarrier for 1 arrivals\n"},
      {"no_proxy_fence", 32,
       [](Builder& b) {
         b.if_then(b.compare(Compare::Eq, Scalar::U32, b.special(SpecialRegister::ThreadX), 0), [&] {
           store_word(b, shared_base(b));
           b.emit(Op::TmaStore, {}, {shared_base(b), b.param_address(1), Value(0)});
         });
       },
       "error[E9304]: line 7: cp.async.bulk.tensor.store reads shared byte 0, written by warp 0 with no proxy fence "
       "since\n"},
      {"deadlock", 64,
       [](Builder& b) {
         b.if_then(b.compare(Compare::Lt, Scalar::U32, b.special(SpecialRegister::ThreadX), 32), [&] {
           b.emit(Op::Barrier, {}, {Value(1), Value(64)});
         });
       },
       "error[E9305]: deadlock; warp 0 at barrier 1 (line 7)\n"},
      {"endless", 32, [](Builder& b) { b.loop([&] { b.copy_of(1); }); },
       "error[E9305]: the kernel did not finish within the step limit\n"},
      {"divergent", 32,
       [](Builder& b) {
         b.if_then(b.compare(Compare::Lt, Scalar::U32, b.special(SpecialRegister::ThreadX), 8),
                   [&] { b.emit(Op::SyncWarp); });
       },
       "error[E9306]: line 7: bar.warp by warp 0 with lanes 000000ff only\n"},
      {"trap", 32, [](Builder& b) { b.emit(Op::Trap); }, "error[E9307]: line 7: trap\n"},
  };
  return kPrograms;
}

class BrokenProgram : public testing::TestWithParam<Broken> {};

TEST_P(BrokenProgram, IsDiagnosed) { EXPECT_EQ(run(GetParam()), GetParam().says); }

INSTANTIATE_TEST_SUITE_P(All, BrokenProgram, testing::ValuesIn(programs()),
                         [](const auto& p) { return std::string(p.param.name); });

}  // namespace
}  // namespace tilewright::interp
