#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <fstream>

#include "runtime/add_recipe.h"
#include "tilewright/tilewright.h"

extern "C" int tw_test_c11_add(const char* kernel_file, const float* a, const float* b, float* c, int64_t n,
                               char* message);
std::string cpp17_add(const char* kernel_file, const std::vector<float>& a, const std::vector<float>& b,
                      std::vector<float>& c, float scale);
std::string cpp17_read_only_output(const char* kernel_file, const std::vector<float>& a);

extern thread_local int64_t tw_test_allocations;  // counting_new.cpp

namespace tilewright::runtime {
namespace {

std::string write_kernel() {
  const std::string path = testing::TempDir() + "tw_abi_add.twk";
  std::ofstream(path, std::ios::binary) << serialise(add_artefact());
  return path;
}

std::string take(tw_status* status) {
  std::string text =
      std::string(tw_status_code_text(status)) + " " + tw_status_name(status) + ": " + tw_status_message(status);
  tw_status_free(status);
  return text;
}

TEST(Abi, AC11ProgramRunsAKernel) {
  const std::string path = write_kernel();
  const std::vector<float> a = {1, 2, 3}, b = {10, 20, 30};
  std::vector<float> c(3);
  char message[256];
  EXPECT_EQ(tw_test_c11_add(path.c_str(), a.data(), b.data(), c.data(), 3, message), 0) << message;
  EXPECT_EQ(c, (std::vector<float>{11, 22, 33}));
  EXPECT_EQ(tw_test_c11_add("/nowhere.twk", a.data(), b.data(), c.data(), 3, message), 3006);
  EXPECT_STREQ(message, "/nowhere.twk: No such file or directory");
}

TEST(Abi, ACpp17ProgramRunsAKernel) {
  const std::string path = write_kernel();
  std::vector<float> c(3);
  EXPECT_EQ(cpp17_add(path.c_str(), {1, 2, 3}, {10, 20, 30}, c, 0.5f), "");
  EXPECT_EQ(c, (std::vector<float>{6, 12, 18}));
  EXPECT_EQ(cpp17_read_only_output(path.c_str(), {1, 2}),
            "E1409 read_only_argument c: the kernel writes it, but the tensor is read-only");
}

TEST(Abi, NullHandlesAreRefusedNotFollowed) {
  tw_plan* plan = nullptr;
  EXPECT_EQ(take(tw_plan_load(nullptr, "x", 1, &plan)), "E1417 invalid_handle: device is null");
  EXPECT_EQ(take(tw_execute(nullptr, nullptr, nullptr, 0, nullptr)), "E1417 invalid_handle: plan is null");
  EXPECT_EQ(take(tw_device_open("cpu", nullptr, nullptr)), "E1417 invalid_handle: device is null");
  EXPECT_EQ(take(nullptr), "ok ok: ");
  tw_device_close(nullptr);
  tw_plan_free(nullptr);
  tw_buffer_free(nullptr);
  tw_compiled_free(nullptr);
  tw_compiler_close(nullptr);
  EXPECT_EQ(tw_plan_tensor_count(nullptr), 0u);
  EXPECT_EQ(tw_abi_version(), TW_ABI_VERSION);
}

TEST(Abi, UnknownDevicesAndMissingCompilersAreNamed) {
  tw_device* device = nullptr;
  EXPECT_EQ(take(tw_device_open("tpu", nullptr, &device)),
            "E3005 no_such_device: no device is called 'tpu': use \"cpu\"");
  tw_compiler* compiler = nullptr;
  EXPECT_TRUE(take(tw_compiler_open(&compiler)).starts_with("E3007 no_compiler: ")) << "this test links no compiler";
}

TEST(Abi, BuffersKeepToTheirBytes) {
  tw_device* device = nullptr;
  ASSERT_EQ(tw_device_open("cpu", nullptr, &device), nullptr);
  tw_buffer* buffer = nullptr;
  ASSERT_EQ(tw_buffer_allocate(device, 100, &buffer), nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(tw_buffer_data(buffer)) % 64, 0u);
  EXPECT_EQ(tw_buffer_write(buffer, 92, "12345678", 8), nullptr);
  char read[8];
  EXPECT_EQ(tw_buffer_read(buffer, 92, read, 8), nullptr);
  EXPECT_EQ(std::string(read, 8), "12345678");
  EXPECT_EQ(take(tw_buffer_write(buffer, 93, "12345678", 8)),
            "E1405 wrong_extent: the range lies outside a buffer of 100 bytes");
  tw_buffer* huge = nullptr;
  EXPECT_TRUE(take(tw_buffer_allocate(device, SIZE_MAX, &huge)).starts_with("E3001 out_of_memory"));
  tw_buffer_free(buffer);
  tw_device_close(device);
}

TEST(Abi, ExecuteAllocatesNothing) {
  tw_device* device = nullptr;
  ASSERT_EQ(tw_device_open("cpu", nullptr, &device), nullptr);
  const std::string bytes = serialise(add_artefact());
  tw_plan* plan = nullptr;
  ASSERT_EQ(tw_plan_load(device, bytes.data(), bytes.size(), &plan), nullptr);
  std::vector<float> a(5000, 1.0f), b(5000, 2.0f), c(5000);
  int64_t n = 5000;
  tw_tensor tensors[] = {{a.data(), &n, nullptr, TW_F32, 1, 0, TW_CPU},
                         {b.data(), &n, nullptr, TW_F32, 1, 0, TW_CPU},
                         {c.data(), &n, nullptr, TW_F32, 1, 0, TW_CPU}};
  const tw_arguments arguments = {tensors, 3, nullptr, 0};
  tw_buffer* workspace = nullptr;
  size_t needed = 0;
  ASSERT_EQ(tw_plan_workspace_bytes(plan, &arguments, &needed), nullptr);
  ASSERT_EQ(tw_buffer_allocate(device, needed, &workspace), nullptr);
  ASSERT_EQ(tw_execute(plan, &arguments, tw_buffer_data(workspace), needed, nullptr), nullptr);  // starts the threads
  const int64_t before = tw_test_allocations;
  for (int round = 0; round < 100; ++round) {
    EXPECT_EQ(tw_execute(plan, &arguments, tw_buffer_data(workspace), needed, nullptr), nullptr);
  }
  EXPECT_EQ(tw_test_allocations, before);
  EXPECT_EQ(c[4999], 3.0f);
  tw_buffer_free(workspace);
  tw_plan_free(plan);
  tw_device_close(device);
}

TEST(Abi, PlansDescribeTheirArguments) {
  tw_device* device = nullptr;
  ASSERT_EQ(tw_device_open("cpu", nullptr, &device), nullptr);
  const std::string bytes = serialise(add_artefact());
  tw_plan* plan = nullptr;
  ASSERT_EQ(tw_plan_load(device, bytes.data(), bytes.size(), &plan), nullptr);
  EXPECT_STREQ(tw_plan_kernel(plan), "add");
  ASSERT_EQ(tw_plan_tensor_count(plan), 3u);
  tw_tensor_info tensor;
  ASSERT_EQ(tw_plan_tensor_info(plan, 2, &tensor), nullptr);
  EXPECT_STREQ(tensor.name, "c");
  EXPECT_EQ(tensor.access, TW_OUT);
  EXPECT_EQ(tensor.rank, 1);
  tw_scalar_info scalar;
  ASSERT_EQ(tw_plan_scalar_info(plan, 0, &scalar), nullptr);
  EXPECT_STREQ(scalar.name, "scale");
  EXPECT_EQ(scalar.has_default, 1);
  EXPECT_EQ(take(tw_plan_tensor_info(plan, 3, &tensor)), "E1416 unknown_argument: there is no tensor 3");
  tw_plan_free(plan);
  tw_device_close(device);
}

// python/tilewright.py over this library; its own tests print what failed.
TEST(Abi, PythonCallsKernels) {
  if (std::system("python3 -c '' 2>/dev/null") != 0) GTEST_SKIP() << "needs python3";
  const std::string command = "TILEWRIGHT_LIBRARY=" TW_RUNTIME_LIBRARY " TW_ADD_TWK=" + write_kernel() +
                              " python3 " TW_SOURCE_DIR "/tests/python/tilewright_test.py -q 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
}

// The shared library stands alone: it exports the C ABI only and needs nothing but libc.
TEST(Abi, TheSharedLibraryExportsOnlyTheAbi) {
  void* const library = dlopen(TW_RUNTIME_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  EXPECT_NE(dlsym(library, "tw_execute"), nullptr);
  EXPECT_EQ(dlsym(library, "_ZN10tilewright7runtime12parse_recipeESt17basic_string_viewIcSt11char_traitsIcEE"),
            nullptr);
  const auto version = reinterpret_cast<uint32_t (*)()>(dlsym(library, "tw_abi_version"));
  ASSERT_NE(version, nullptr);
  EXPECT_EQ(version(), TW_ABI_VERSION);
  dlclose(library);
}

TEST(Abi, TheSharedLibraryNeedsOnlyLibc) {
  const std::string command = "readelf -d " TW_RUNTIME_LIBRARY " | sed -n 's/.*NEEDED.*\\[\\(.*\\)\\]/\\1/p'";
  FILE* const pipe = popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  char line[256];
  int count = 0;
  while (std::fgets(line, sizeof line, pipe)) {
    std::string name(line);
    name.pop_back();
    ++count;
    const bool is_libc = name.starts_with("libc.so") || name.starts_with("libm.so") || name.starts_with("ld-linux") ||
                         name.starts_with("libpthread.so") || name.starts_with("libdl.so") ||
                         name.starts_with("libasan.so") || name.starts_with("libubsan.so") ||
                         name.starts_with("libgcc_s.so");
    EXPECT_TRUE(is_libc) << name;
  }
  pclose(pipe);
  EXPECT_GT(count, 0);
}

}  // namespace
}  // namespace tilewright::runtime
