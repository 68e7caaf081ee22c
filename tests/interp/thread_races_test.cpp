// Data races of one block's threads.
#include <gtest/gtest.h>

#include "interp/thread_machine.h"
#include "ir/thread_builder.h"

namespace tilewright::interp {
namespace {

using namespace ir::thread;

/// Every thread stores to its own word of shared memory, waits or not, and reads its neighbour's.
Status neighbours(bool waits) {
  Builder b("k");
  b.program().threads = 64;
  b.program().shared_bytes = 256;
  const Reg thread = b.special(SpecialRegister::ThreadX), base = b.special(SpecialRegister::SharedBase);
  const Value mine = b.mad(Scalar::U32, thread, 4, base);
  const Value next = b.mad(Scalar::U32, b.bit_xor(Scalar::U32, thread, 1), 4, base);
  b.line = 3;
  b.store(Scalar::B32, mine, std::vector<Value>{thread}, {Space::Shared});
  if (waits) b.emit(Op::Barrier, {}, {0, 64});
  b.line = 5;
  b.load(Scalar::B32, next, 1, {Space::Shared});
  return run_threads(b.finish(), {1, 1, 1}, {}, {}, {});
}

TEST(ThreadRaces, AReadOfAnotherThreadsWriteNeedsABarrier) {
  EXPECT_TRUE(neighbours(true));
  const Status s = neighbours(false);
  ASSERT_FALSE(s);
  EXPECT_EQ(s.error().code, DiagnosticCode::E9308);
  EXPECT_TRUE(s.error().message.starts_with("line 5: ld by thread ") || s.error().message.starts_with("line 3: st by "))
      << s.error().message;
  EXPECT_TRUE(s.error().message.ends_with(" with no barrier between")) << s.error().message;
}

TEST(ThreadRaces, AtomicsDoNotRaceButReadsOfThemDo) {
  for (const bool reads : {false, true}) {
    Builder b("k");
    b.program().threads = 32;
    b.program().shared_bytes = 16;
    const Reg base = b.special(SpecialRegister::SharedBase);
    b.emit(Op::Atomic, {}, {base, b.in_register(1)},
           {0, static_cast<int>(Space::Shared), static_cast<int>(AtomicKind::Add)})
        .type = Scalar::U32;
    if (reads) b.load(Scalar::B32, base, 1, {Space::Shared});
    const Status s = run_threads(b.finish(), {1, 1, 1}, {}, {}, {});
    EXPECT_EQ(s.has_value(), !reads);
    if (!s) {
      EXPECT_EQ(s.error().code, DiagnosticCode::E9308);
    }
  }
}

}  // namespace
}  // namespace tilewright::interp
