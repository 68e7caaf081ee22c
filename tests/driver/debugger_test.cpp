// gdb stops at lines of `.tile` files, in a kernel compiled in process and in an object built ahead of time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "driver/compiled_kernel.h"
#include "runtime/plan.h"

namespace tilewright::driver {
namespace {

constexpr const char* kKernel = R"(kernel twice(X: f32[N]) -> (Y: f32[N])
{
  grid (b: ceildiv(N, 64)) threads(32) {
    x = fragment f32[64]
    copy(X[b*64 :+ 64], x)
    x = x * 2
    copy(x, Y[b*64 :+ 64])
  }
}
)";

std::string output_of(const std::string& command) {
  FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  std::string out;
  char block[512];
  while (pipe && std::fgets(block, sizeof block, pipe)) out += block;
  if (pipe) pclose(pipe);
  return out;
}

bool has_debugger() { return output_of("gdb --version").starts_with("GNU gdb"); }

std::string stop_at_line(int line, const std::string& program) {
  return output_of(
      "gdb -batch -nx -ex 'set debuginfod enabled off' -ex 'set breakpoint pending on' -ex 'break twice.tile:" +
      std::to_string(line) + "' -ex run -ex backtrace --args " + program);
}

class Debugger : public testing::Test {
 protected:
  void SetUp() override {
    TW_NEEDS_COMPILER();
    if (!has_debugger()) GTEST_SKIP() << "gdb is not installed";
    char name[] = "/tmp/tw_debugger_XXXXXX";
    folder_ = mkdtemp(name);
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  std::string folder_;
};

/// The program under gdb: not a test by itself.
TEST(Debugged, DISABLED_RunsAKernel) {
  const Compilation compilation = compile_text(kKernel, "twice.tile");
  const auto device = runtime::open_cpu({.threads = 1, .visibility = {.debugger = true}});
  const auto plan = runtime::Plan::load(*device, compilation.artefact);
  ASSERT_TRUE(plan) << plan.error().message;
  std::vector<float> x(64, 1), y(64);
  const int64_t extent = 64;
  tw_tensor tensors[2] = {};
  for (int i = 0; i < 2; ++i)
    tensors[i] = {.data = i ? y.data() : x.data(), .extents = &extent, .dtype = TW_F32, .rank = 1, .device = TW_CPU};
  const tw_arguments arguments{tensors, 2, nullptr, 0};
  std::vector<std::byte> workspace(1 << 16);
  auto* const base = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(workspace.data()) + 63) / 64 * 64);
  ASSERT_TRUE(plan->execute(arguments, base, workspace.size() - 64, nullptr));
}

TEST_F(Debugger, StopsInAKernelCompiledInProcess) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const std::string out =
      stop_at_line(5, self + " --gtest_also_run_disabled_tests --gtest_filter=Debugged.DISABLED_RunsAKernel");
  EXPECT_THAT(out, testing::HasSubstr("twice_0")) << out;
  EXPECT_THAT(out, testing::ContainsRegex("at (\\./)?twice.tile:[567]")) << out;
}

TEST_F(Debugger, StopsInAnObjectBuiltAheadOfTime) {
  const Compilation compilation = compile_text(kKernel, "twice.tile");
  std::ofstream(folder_ + "/twice.o", std::ios::binary) << compilation.artefact.code;
  std::ofstream(folder_ + "/main.c") << R"(
#include <stdint.h>
#include <stdlib.h>
struct launch { const int64_t* slots; void* const* pointers; void* record; void* print; void* context; };
int32_t twice_0(const struct launch*, int64_t, int64_t, void*);
int main(void) {
  static float x[64], y[64];
  static int64_t slots[16];
  slots[0] = 64;
  void* pointers[2] = {x, y};
  const struct launch launch = {slots, pointers, 0, 0, 0};
  return twice_0(&launch, 0, 1, aligned_alloc(64, 65536));
}
)";
  ASSERT_EQ(output_of("cd " + folder_ + " && cc -O1 -g main.c twice.o -o program"), "");
  const std::string out = stop_at_line(5, folder_ + "/program");
  EXPECT_THAT(out, testing::HasSubstr("twice_0")) << out;
  EXPECT_THAT(out, testing::ContainsRegex("at (\\./)?twice.tile:[567]")) << out;
}

TEST(PerfMap, NamesTheKernelsFunctions) {
  TW_NEEDS_COMPILER();
  const Compilation compilation = compile_text(kKernel, "twice.tile");
  const auto device = runtime::open_cpu({.threads = 1, .visibility = {.perf_map = true}});
  ASSERT_TRUE(runtime::Plan::load(*device, compilation.artefact));
  const std::string path = "/tmp/perf-" + std::to_string(getpid()) + ".map";
  std::ifstream file(path);
  const std::string map((std::istreambuf_iterator<char>(file)), {});
  EXPECT_THAT(map, testing::ContainsRegex("[0-9a-f]+ [0-9a-f]+ twice_0\n"));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace tilewright::driver
