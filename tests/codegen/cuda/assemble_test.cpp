// Every instruction row prints PTX that the real assembler takes, with no GPU present.
#include "codegen/cuda/assemble.h"

#include <gtest/gtest.h>

#include "codegen/cuda/emit_ptx.h"
#include "device/vector_cases.h"

namespace tilewright::codegen {
namespace {

TEST(Assemble, EveryInstructionRow) {
  const auto assembler = Assembler::open();
  if (!assembler) GTEST_SKIP() << assembler.error().message;
  for (const auto& c : device_cases::vector_cases()) {
    const auto ptx = emit_ptx(c.program, {.architecture = c.architecture});
    ASSERT_TRUE(ptx) << c.name << ": " << ptx.error().message;
    const auto cubin =
        assembler->assemble(*ptx, "sm_" + std::to_string(c.architecture) + (c.program.needs_sm90a ? "a" : ""));
    ASSERT_TRUE(cubin) << c.name << ": " << cubin.error().message << *ptx;
    EXPECT_GT(cubin->resources.registers, 0) << c.name;
    EXPECT_EQ(cubin->resources.stack_bytes, 0) << c.name;
  }
}

TEST(Assemble, ALibraryThatIsNotThereIsNamed) {
  const auto assembler = Assembler::open("/nowhere/libnvJitLink.so.99");
  ASSERT_FALSE(assembler);
  EXPECT_EQ(assembler.error().code, DiagnosticCode::E3050);
  EXPECT_EQ(assembler.error().message,
            "the PTX assembler libnvJitLink was not found; tried /nowhere/libnvJitLink.so.99");
}

TEST(Assemble, ATextThatIsNotPtxComesBackWithTheLog) {
  const auto assembler = Assembler::open();
  if (!assembler) GTEST_SKIP() << assembler.error().message;
  const auto cubin = assembler->assemble(".version 8.0\n.target sm_90\nnonsense", "sm_90");
  ASSERT_FALSE(cubin);
  EXPECT_EQ(cubin.error().code, DiagnosticCode::E2553);
}

TEST(EmitPtx, BitsAreConvertedAsUnsignedNumbers) {
  using ir::thread::Scalar;
  const auto assembler = Assembler::open();
  constexpr Scalar kTypes[] = {Scalar::B16, Scalar::B32, Scalar::B64, Scalar::U16, Scalar::U32,
                               Scalar::U64, Scalar::S16, Scalar::S32, Scalar::S64};
  for (const Scalar from : kTypes) {
    for (const Scalar to : kTypes) {
      ir::thread::Builder b("k");
      const auto thread = b.special(ir::thread::SpecialRegister::ThreadX);
      const auto x = b.convert(from, Scalar::U32, thread);
      const ir::thread::Value converted[] = {b.convert(to, from, x)};
      b.store(to, thread, converted, {.space = ir::thread::Space::Shared});
      const auto ptx = emit_ptx(b.finish(), {.architecture = 80});
      ASSERT_TRUE(ptx) << ptx.error().message;
      for (size_t at = ptx->find("cvt."); at != std::string::npos; at = ptx->find("cvt.", at + 1))
        EXPECT_EQ(ptx->substr(at, ptx->find(' ', at) - at).find(".b"), std::string::npos) << *ptx;
      if (!assembler) continue;
      const auto cubin = assembler->assemble(*ptx, "sm_80");
      ASSERT_TRUE(cubin) << cubin.error().message << *ptx;
    }
  }
}

TEST(EmitPtx, RefusesHopperInstructionsForOlderChips) {
  ir::thread::Builder b("k");
  b.emit(ir::thread::Op::FenceAsync);
  const auto ptx = emit_ptx(b.finish(), {.architecture = 80});
  ASSERT_FALSE(ptx);
  EXPECT_EQ(ptx.error().code, DiagnosticCode::E2551);
  EXPECT_EQ(ptx.error().message, "kernel k uses fence.proxy.async, which needs sm_90; the target is sm_80");
}

}  // namespace
}  // namespace tilewright::codegen
