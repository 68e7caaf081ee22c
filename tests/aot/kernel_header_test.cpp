#include "aot/kernel_header.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "runtime/add_recipe.h"

namespace tilewright::aot {
namespace {

constexpr const char* kMain = R"(
#include <stdio.h>
#include "add.h"

static tw_tensor vector(float* data, const int64_t* n) {
  tw_tensor tensor = {0};
  tensor.data = data;
  tensor.extents = n;
  tensor.dtype = TW_F32;
  tensor.rank = 1;
  return tensor;
}

int main(void) {
  float a[3] = {1, 2, 3}, b[3] = {10, 20, 30}, c[3] = {0, 0, 0};
  const int64_t n = 3;
  size_t bytes = 0;
  tw_device* device = 0;
  tw_plan* plan = 0;
  tw_buffer* workspace = 0;
  tw_status* status = tw_device_open("cpu", 0, &device);
  if (!status) status = add_load(device, &plan);
  if (!status) status = add_workspace_bytes(plan, vector(a, &n), vector(b, &n), vector(c, &n), 0.5, &bytes);
  if (!status) status = tw_buffer_allocate(device, bytes, &workspace);
  if (!status) status = add_run(plan, vector(a, &n), vector(b, &n), vector(c, &n), 0.5, tw_buffer_data(workspace), bytes, 0);
  printf("%s %g %g %g\n", tw_status_code_text(status), c[0], c[1], c[2]);
  tw_status_free(status);
  tw_buffer_free(workspace);
  tw_plan_free(plan);
  tw_device_close(device);
  return 0;
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

class KernelHeader : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/tw_aot_XXXXXX";
    folder_ = mkdtemp(name);
    std::ofstream(folder_ + "/add.h") << kernel_header(runtime::add_artefact().recipe, "add.tile");
    std::ofstream(folder_ + "/main.c") << kMain;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
};

// A C program with the object and the header, and nothing but the run-time archive: no LLVM, no library of ours at run
// time.
TEST_F(KernelHeader, ACProgramLinksTheObject) {
  const std::string program = folder_ + "/program";
  const std::string build =
      "cc -std=c11 -Wall -Wextra -Wpedantic -Werror -I" TW_SOURCE_DIR "/include -I" + folder_ + " " + folder_ +
      "/main.c " TW_ADD_KERNEL " " TW_RUNTIME_ARCHIVE " " TW_SANITIZE_FLAGS " -lstdc++ -lm -lpthread -ldl -o " +
      program;
  ASSERT_EQ(output_of(build), "");
  EXPECT_EQ(output_of(program), "ok 6 12 18\n");
  const std::string needed = output_of("ldd " + program);
  EXPECT_EQ(needed.find("LLVM"), std::string::npos) << needed;
  EXPECT_EQ(needed.find("tilewright"), std::string::npos) << needed;
}

TEST_F(KernelHeader, IsValidCpp17) {
  std::ofstream(folder_ + "/main.cpp")
      << "#include \"add.h\"\n#include \"add.h\"\nint main() { return sizeof add_recipe == 0; }\n";
  EXPECT_EQ(
      output_of("c++ -std=c++17 -Wall -Wextra -Wpedantic -Werror -Wno-unused-function -fsyntax-only -I" TW_SOURCE_DIR
                "/include -I" +
                folder_ + " " + folder_ + "/main.cpp"),
      "");
}

TEST(KernelHeaderNames, AreIdentifiers) {
  EXPECT_EQ(c_name("matmul_relu"), "matmul_relu");
  EXPECT_EQ(c_name("a.b-c"), "a_b_c");
  EXPECT_EQ(c_name("3d"), "_3d");
}

}  // namespace
}  // namespace tilewright::aot
