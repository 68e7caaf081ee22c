// Tensors with more than 2^31 elements: the class of 32-bit indices refuses them, that of 64-bit indices is right.
#include <sys/mman.h>

#include "plan/gpu/run_on_interpreter.h"
#include "runtime/binding.h"

namespace tilewright::plan::gpu {
namespace {

const char* kTail = R"(
kernel tail(X: u8[N]) -> (Y: u8[M])
  param block = 64
{
  grid (b: ceildiv(M, block)) threads(64) {
    for i in parallel(block) {
      let at = N - M + b*block + i
      Y[b*block + i] = X[at] + u8(at // 1000000000)
    }
  }
}
)";

constexpr int64_t kLarge = (int64_t{1} << 31) + 100, kSmall = 150;

runtime::Status bound(const GpuPlan& plan, void* x, void* y) {
  int64_t n = kLarge, m = kSmall;
  tw_tensor tensors[] = {{.data = x, .extents = &n, .dtype = TW_U8, .rank = 1},
                         {.data = y, .extents = &m, .dtype = TW_U8, .rank = 1}};
  runtime::Binding binding;
  return runtime::bind(plan.recipe, {tensors, 2, nullptr, 0}, TW_CPU, binding);
}

TEST(LargeTensors, TheClassOf32BitIndicesRefusesThem) {
  const ir::Kernel tile = tile_of({kTail, "tail", {}, {}, {}});
  const auto gpu = *target::parse_gpu("sm_90a");
  const auto small = plan(tile, gpu), wide = plan(tile, gpu, {.wide_indices = true});
  ASSERT_TRUE(small && wide);
  alignas(64) static uint8_t y[256];
  auto* x = reinterpret_cast<void*>(uintptr_t{1} << 40);  // never touched
  const auto refused = bound(*small, x, y);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().is_class_fact);
  EXPECT_NE(refused.error().message.find("N <= 1073741824 (32-bit indices)"), std::string::npos)
      << refused.error().message;
  EXPECT_TRUE(bound(*wide, x, y));
}

TEST(LargeTensors, TheClassOf64BitIndicesIsRight) {
  // Pages that nobody touches cost nothing.
  void* memory = mmap(nullptr, kLarge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) GTEST_SKIP() << "no address space for " << kLarge << " bytes";
  auto* x = static_cast<uint8_t*>(memory);
  for (int64_t i = kLarge - kSmall; i < kLarge; ++i) x[i] = static_cast<uint8_t>(i * 7);
  alignas(64) static uint8_t y[256];
  const auto made = plan(tile_of({kTail, "tail", {}, {}, {}}), *target::parse_gpu("sm_90a"), {.wide_indices = true});
  ASSERT_TRUE(made) << made.error().message;
  const auto call = device_cases::begin_call(
      made->recipe, {{reinterpret_cast<uint64_t>(x), {kLarge}}, {reinterpret_cast<uint64_t>(y), {kSmall}}}, {});
  EXPECT_EQ(call.problem, "");
  std::vector<interp::ThreadArgument> arguments;
  for (uint64_t p : call.pointers) arguments.push_back({p, {}});
  for (int64_t s : call.slots) arguments.push_back({static_cast<uint64_t>(s), {}});
  const std::vector<interp::ThreadBuffer> buffers = {{x, static_cast<size_t>(kLarge)}, {y, kSmall}};
  const auto ran = interp::run_threads(made->programs[0], device_cases::grid_of(made->recipe.launches[0], call),
                                       arguments, buffers, {});
  ASSERT_TRUE(ran) << ran.error().message;
  for (int64_t i = 0; i < kSmall; ++i) {
    const int64_t at = kLarge - kSmall + i;
    ASSERT_EQ(y[i], static_cast<uint8_t>(at * 7 + at / 1'000'000'000)) << i;
  }
  munmap(memory, kLarge);
}

}  // namespace
}  // namespace tilewright::plan::gpu
