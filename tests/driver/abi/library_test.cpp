// libtilewright.so as a program uses it: C ABI only.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "tilewright/compiler.h"
#include "tilewright/tilewright.h"

namespace {

std::string take(tw_status* status) {
  std::string text = std::string(tw_status_code_text(status)) + ": " + tw_status_message(status);
  tw_status_free(status);
  return text;
}

constexpr const char* kScale = R"(
kernel scale_rows(A: T[M, N], s: f32 = 2.0) -> (C: T[M, N])
  param T: dtype = f16 in {f16, bf16, f32}
  param block_M = 8 in {4, 8, 16}
{
  grid (by: ceildiv(M, block_M)) threads(32) {
    for i, j in parallel(block_M, N) {
      C[by*block_M + i, j] = A[by*block_M + i, j] * s
    }
  }
}
)";

class Library : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/tw_library_XXXXXX";
    folder_ = mkdtemp(name);
    cache_ = folder_ + "/cache";
    setenv("TILEWRIGHT_CACHE_DIR", cache_.c_str(), 1);
    ASSERT_EQ(take(tw_device_open("cpu", nullptr, &device_)), "ok: ");
    ASSERT_EQ(take(tw_compiler_open(&compiler_)), "ok: ");
  }
  void TearDown() override {
    tw_compiler_close(compiler_);
    tw_device_close(device_);
    std::filesystem::remove_all(folder_);
  }

  tw_status* compile(const char* source, const tw_arguments* arguments, tw_compiled** compiled) {
    tw_compile_request request = {};
    request.struct_size = sizeof request;
    request.path = "test.tile";
    request.source = source;
    request.arguments = arguments;
    request.cache_folder = cache_.c_str();
    return tw_compiler_compile(compiler_, &request, compiled);
  }

  /// Compiles for 5×7 f32 arrays, runs, and checks; true when the artefact came from the cache.
  bool compile_and_run() {
    std::vector<float> a(35), c(35);
    for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i);
    const int64_t extents[] = {5, 7};
    const tw_tensor tensors[] = {{a.data(), extents, nullptr, TW_F32, 2, TW_TENSOR_READ_ONLY, TW_CPU},
                                 {c.data(), extents, nullptr, TW_F32, 2, 0, TW_CPU}};
    const tw_arguments arguments = {tensors, 2, nullptr, 0};
    tw_compiled* compiled = nullptr;
    EXPECT_EQ(take(compile(kScale, &arguments, &compiled)), "ok: ");
    if (!compiled) return false;
    const bool is_from_cache = tw_compiled_is_from_cache(compiled) != 0;
    tw_plan* plan = nullptr;
    EXPECT_EQ(take(tw_plan_load(device_, tw_compiled_data(compiled), tw_compiled_size(compiled), &plan)), "ok: ");
    tw_compiled_free(compiled);
    size_t bytes = 0;
    EXPECT_EQ(take(tw_plan_workspace_bytes(plan, &arguments, &bytes)), "ok: ");
    tw_buffer* workspace = nullptr;
    EXPECT_EQ(take(tw_buffer_allocate(device_, bytes, &workspace)), "ok: ");
    EXPECT_EQ(take(tw_execute(plan, &arguments, tw_buffer_data(workspace), bytes, nullptr)), "ok: ");
    for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(c[i], 2 * a[i]);
    tw_buffer_free(workspace);
    tw_plan_free(plan);
    return is_from_cache;
  }

  std::string folder_, cache_;
  tw_device* device_ = nullptr;
  tw_compiler* compiler_ = nullptr;
};

TEST_F(Library, CompilesForTheArgumentsAndRemembers) {
  EXPECT_FALSE(compile_and_run());  // T = f32 came from the arrays
  EXPECT_TRUE(compile_and_run());
  tw_compiler_close(compiler_);
  ASSERT_EQ(take(tw_compiler_open(&compiler_)), "ok: ");
  EXPECT_TRUE(compile_and_run());  // now from disk
}

constexpr const char* kBias = R"(
kernel add_bias(A: f32[N], optional bias: f32[N]) -> (C: f32[N])
{
  grid (b: ceildiv(N, 64)) threads(32) {
    for i in parallel(64) {
      if present(bias) { C[b*64 + i] = A[b*64 + i] + bias[b*64 + i] } else { C[b*64 + i] = A[b*64 + i] }
    }
  }
}
)";

// What a call leaves out is a fact of the plan: one compiled without never ignores what another call brings.
TEST_F(Library, AnAbsentTensorIsAFactOfThePlan) {
  const int64_t extents[] = {3};
  float a[] = {1, 2, 3}, bias[] = {10, 20, 30}, c[3] = {};
  tw_tensor tensors[] = {{a, extents, nullptr, TW_F32, 1, 0, TW_CPU},
                         {nullptr, nullptr, nullptr, TW_F32, 0, TW_TENSOR_ABSENT, TW_CPU},
                         {c, extents, nullptr, TW_F32, 1, 0, TW_CPU}};
  const tw_arguments arguments = {tensors, 3, nullptr, 0};
  tw_compiled* compiled = nullptr;
  ASSERT_EQ(take(compile(kBias, &arguments, &compiled)), "ok: ");
  tw_plan* plan = nullptr;
  ASSERT_EQ(take(tw_plan_load(device_, tw_compiled_data(compiled), tw_compiled_size(compiled), &plan)), "ok: ");
  tw_compiled_free(compiled);
  EXPECT_EQ(take(tw_execute(plan, &arguments, nullptr, 0, nullptr)), "ok: ");
  EXPECT_EQ(std::vector<float>(c, c + 3), (std::vector<float>{1, 2, 3}));
  tensors[1] = {bias, extents, nullptr, TW_F32, 1, 0, TW_CPU};
  EXPECT_EQ(take(tw_execute(plan, &arguments, nullptr, 0, nullptr)),
            "E1414: bias: was given, but this plan was compiled without it");
  tw_plan_free(plan);
}

TEST_F(Library, ErrorsCarryTheCaret) {
  tw_compiled* compiled = nullptr;
  const std::string text = take(
      compile("kernel broken(A: f32[N]) -> (C: f32[N])\n{\n  grid (b: M) threads(1) { }\n}\n", nullptr, &compiled));
  EXPECT_TRUE(text.starts_with("E1")) << text;
  EXPECT_NE(text.find("test.tile:3:"), std::string::npos) << text;
  EXPECT_NE(text.find("^"), std::string::npos) << text;
}

TEST_F(Library, ErrorsOfTheSyntaxCarryTheCaretToo) {
  tw_compiled* compiled = nullptr;
  EXPECT_EQ(take(compile("kernel broken(A: f32[N]) -> (C: f32[N])\n{\n  let n = 2 ** 3\n}\n", nullptr, &compiled)),
            "E1001: test.tile:3:14: error[E1001]: expected an expression, got `*`\n"
            "    3 |   let n = 2 ** 3\n"
            "      |              ^\n"
            "  help: a power is pow(x, y), a square x * x\n");
}

// tilewright/compiler.h: one kernel, a plan for each kind of arguments it meets.
TEST_F(Library, ACompiledKernelCompilesWhatItsArgumentsNeed) {
  const auto device = tilewright::Device::open("cpu");
  const auto compiler = tilewright::Compiler::open();
  ASSERT_TRUE(device && compiler);
  tilewright::CompiledKernel scale(*device, *compiler, {kScale, "scale_rows", "", {"block_M=4"}});
  const auto run = [&](auto zero, int64_t m, int64_t n, const auto& three) {
    using T = decltype(zero);
    const std::vector<T> a(static_cast<size_t>(m * n), three);
    std::vector<T> c(a.size());
    const tilewright::Arguments arguments({{a.data(), {m, n}}, {c.data(), {m, n}}}, {0.5});
    const tilewright::Status status = scale.run(arguments);
    EXPECT_TRUE(status) << status.message();
    const auto plan = scale.plan_for(arguments);
    return std::pair(c.back(), plan ? *plan : nullptr);
  };
  const auto [x, first] = run(0.0f, 5, 7, 3.0f);
  EXPECT_EQ(x, 1.5f);
  const auto [y, same] = run(0.0f, 9, 7, 3.0f);
  EXPECT_EQ(y, 1.5f);
  EXPECT_EQ(same, first);
  const auto [z, half] = run(tilewright::f16{}, 5, 7, tilewright::f16{0x4200});  // 3.0
  EXPECT_EQ(z.bits, 0x3e00);                                                     // 1.5
  EXPECT_NE(half, first);
  EXPECT_EQ(std::string(half->kernel()), "scale_rows");
}

TEST_F(Library, ACompiledKernelSaysWhatIsWrong) {
  const auto device = tilewright::Device::open("cpu");
  const auto compiler = tilewright::Compiler::open();
  ASSERT_TRUE(device && compiler);
  std::vector<float> a(6), c(6);
  tilewright::CompiledKernel scale(*device, *compiler, {kScale, "scale_rows"});
  const tilewright::Status extents = scale.run({{a.data(), {2, 3}}, {c.data(), {3, 2}}});
  EXPECT_EQ(extents.code_text(), "E1405") << extents.message();
  tilewright::CompiledKernel wrong(*device, *compiler,
                                   {"kernel k(A: f32[N]) -> (C: f32[N])\n{\n  gird (b: N) { }\n}\n", "k"});
  const tilewright::Status text = wrong.run({{a.data(), {6}}, {c.data(), {6}}});
  EXPECT_NE(text.message().find("k.tile:3:"), std::string_view::npos) << text.message();
}

TEST_F(Library, ATargetNobodyKnowsIsNamed) {
  tw_compile_request request = {};
  request.struct_size = sizeof request;
  request.path = "test.tile";
  request.source = kScale;
  request.target = "cpu:nosuch";
  tw_compiled* compiled = nullptr;
  EXPECT_EQ(take(tw_compiler_compile(compiler_, &request, &compiled)),
            "E2502: error[E2502]: unknown target 'cpu:nosuch'\n  help: targets are cpu (this machine), cpu:x86-64-v3, "
            "cpu:x86-64-v4, cuda, cuda:sm_80, cuda:sm_90a\n");
}

TEST_F(Library, WhatWasNotFilledIsRefused) {
  tw_compile_request request = {};
  tw_compiled* compiled = nullptr;
  EXPECT_EQ(take(tw_compiler_compile(compiler_, &request, &compiled)),
            "E1417: tw_compile_request: struct_size is 0, set it to sizeof(tw_compile_request), here " +
                std::to_string(sizeof request));
  request.struct_size = sizeof request;
  request.path = "test.tile";
  request.source = kScale;
  request.parameter_count = 3;
  EXPECT_EQ(take(tw_compiler_compile(compiler_, &request, &compiled)), "E1417: the array of parameters is null");
  const tw_arguments arguments = {nullptr, 2, nullptr, 0};
  request.parameter_count = 0;
  request.arguments = &arguments;
  EXPECT_EQ(take(tw_compiler_compile(compiler_, &request, &compiled)), "E1417: the array of arguments is null");
}

TEST_F(Library, DeviceOptionsThatCannotServeAreRefused) {
  const auto open = [](tw_device_options options) {
    tw_device* device = nullptr;
    const std::string text = take(tw_device_open("cpu", &options, &device));
    tw_device_close(device);
    return text;
  };
  EXPECT_EQ(open({}), "E1417: tw_device_options: struct_size is 0, set it to sizeof(tw_device_options), here " +
                          std::to_string(sizeof(tw_device_options)));
  tw_device_options options = {};
  options.struct_size = sizeof options;
  EXPECT_EQ(open(options), "ok: ");
  options.threads = 100000;
  EXPECT_EQ(open(options), "E1416: threads is 100000: allowed are 0 (all that the process may use) to 4096");
  options.threads = -3;
  EXPECT_EQ(open(options), "E1416: threads is -3: allowed are 0 (all that the process may use) to 4096");
  tw_pool pool = {};
  options.threads = 0;
  options.pool = &pool;
  EXPECT_EQ(open(options), "E1417: pool->run is null");
  pool.run = [](void*, tw_task, void*, int64_t, int64_t) {};
  EXPECT_EQ(open(options), "E1417: pool->size is null");
  pool.size = [](void*) { return 0; };
  EXPECT_EQ(open(options), "E1416: pool->size() is 0: it must be at least 1");
}

TEST_F(Library, StridesForEveryAxisOrNone) {
  const auto device = tilewright::Device::open("cpu");
  const auto compiler = tilewright::Compiler::open();
  ASSERT_TRUE(device && compiler);
  std::vector<float> a(60, 1), c(6);
  tilewright::CompiledKernel scale(*device, *compiler, {kScale, "scale_rows"});
  EXPECT_TRUE(scale.run({{a.data(), {2, 3}, {30, 1}}, {c.data(), {2, 3}}}));
  EXPECT_EQ(scale.run({{a.data(), {2, 3}, {30}}, {c.data(), {2, 3}}}).code_text(), "E1404");
  const int64_t extents[] = {2, 3};
  const tilewright::Tensor dynamic(a.data(), TW_F32, extents, 2, nullptr);
  EXPECT_TRUE(scale.run({dynamic, tilewright::Tensor({c.data(), extents, nullptr, TW_F32, 2, 0, TW_CPU})}));
}

TEST_F(Library, AParameterWithoutAValueIsNamed) {
  const char* parameters[] = {"block_M"};
  tw_compile_request request = {};
  request.struct_size = sizeof request;
  request.path = "test.tile";
  request.source = kScale;
  request.parameters = parameters;
  request.parameter_count = 1;
  tw_compiled* compiled = nullptr;
  EXPECT_EQ(take(tw_compiler_compile(compiler_, &request, &compiled)), "E3010: 'block_M' is not NAME=VALUE");
}

// The same source on a device of this machine, compiled for it and for the class of each call.
TEST_F(Library, CompiledKernelsRunOnACudaDevice) {
  const auto device = tilewright::Device::open("cuda:0");
  if (!device) GTEST_SKIP() << device.error().message();
  EXPECT_STREQ(device->name(), "cuda:0");
  const auto compiler = tilewright::Compiler::open();
  ASSERT_TRUE(compiler);
  tilewright::CompiledKernel scale(*device, *compiler, {kScale, "scale_rows"});
  for (const int64_t columns : {8, 7}) {
    for (const size_t shift : {0, 4}) {
      std::vector<float> a(static_cast<size_t>(5 * columns)), c(a.size());
      for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i);
      auto from = device->allocate(4 * a.size() + shift), to = device->allocate(4 * a.size());
      ASSERT_TRUE(from && to);
      ASSERT_TRUE(from->write(a.data(), 4 * a.size(), shift));
      auto* const first = reinterpret_cast<float*>(static_cast<char*>(from->data()) + shift);
      const tilewright::Status ran =
          scale.run({{first, {5, columns}, {}, TW_CUDA}, {static_cast<float*>(to->data()), {5, columns}, {}, TW_CUDA}});
      ASSERT_TRUE(ran) << ran.message();
      ASSERT_TRUE(to->read(c.data(), 4 * c.size()));
      for (size_t i = 0; i < a.size(); ++i) ASSERT_EQ(c[i], 2 * a[i]) << i;
    }
  }
}

// The same kernel for a GPU, of the class that the call needs; no device is needed for a named architecture.
TEST_F(Library, CompilesForAnArchitectureOfGpus) {
  alignas(16) static float a[64], c[64];
  const auto compiled_for = [&](const float* from, int64_t columns, int32_t rank = 2) {
    const int64_t extents[] = {4, columns};
    const tw_tensor tensors[] = {
        {const_cast<float*>(from), extents, nullptr, TW_F32, rank, TW_TENSOR_READ_ONLY, TW_CUDA},
        {c, extents, nullptr, TW_F32, 2, 0, TW_CUDA}};
    const tw_arguments arguments = {tensors, 2, nullptr, 0};
    tw_compile_request request = {};
    request.struct_size = sizeof request;
    request.path = "test.tile";
    request.source = kScale;
    request.target = "cuda:sm_90a";
    request.arguments = &arguments;
    request.cache_folder = cache_.c_str();
    tw_compiled* compiled = nullptr;
    EXPECT_EQ(take(tw_compiler_compile(compiler_, &request, &compiled)), "ok: ");
    const std::string bytes(static_cast<const char*>(tw_compiled_data(compiled)), tw_compiled_size(compiled));
    tw_compiled_free(compiled);
    return bytes;
  };
  const std::string aligned = compiled_for(a, 8);
  EXPECT_NE(aligned.find("sm_90a"), std::string::npos);
  EXPECT_EQ(compiled_for(a, 8), aligned);
  EXPECT_EQ(compiled_for(a, 8, 100), aligned);  // the two extents there are tell nothing about a hundred
  EXPECT_NE(compiled_for(a + 1, 8), aligned);   // an address between steps of 16 bytes
  EXPECT_NE(compiled_for(a, 7), aligned);       // a pitch of 28 bytes
  EXPECT_NE(compiled_for(a, (int64_t{1} << 30) + 4), aligned);  // 64-bit index arithmetic
  tw_plan* plan = nullptr;
  EXPECT_EQ(take(tw_plan_load(device_, aligned.data(), aligned.size(), &plan)),
            "E1413: scale_rows was built for cuda:sm_90a, which is no CPU");
}

// Another LLVM with all its symbols in the global scope, alive before and after ours compiles.
TEST_F(Library, ASecondLlvmInTheProcessDoesNotDisturb) {
  void* other = nullptr;
  for (const char* name : {"libLLVM-14.so.1", "libLLVM-15.so.1", "libLLVM.so.19.1", "libLLVM.so"}) {
    if ((other = dlopen(name, RTLD_NOW | RTLD_GLOBAL))) break;
  }
  if (!other) GTEST_SKIP() << "no second libLLVM is installed";
  const auto create = reinterpret_cast<void* (*)()>(dlsym(other, "LLVMContextCreate"));
  const auto dispose = reinterpret_cast<void (*)(void*)>(dlsym(other, "LLVMContextDispose"));
  ASSERT_TRUE(create && dispose);
  void* const context = create();
  EXPECT_FALSE(compile_and_run());
  dispose(context);
  void* const again = create();
  EXPECT_NE(again, nullptr);
  dispose(again);
}

// The compiler's module lies beside the library, whatever name the library was opened by.
TEST_F(Library, FindsItsCompilerWhenNamedRelatively) {
  if (std::system("python3 -c '' 2>/dev/null") != 0) GTEST_SKIP() << "needs python3";
  const std::filesystem::path library = TW_LIBRARY;
  const std::string command = "cd " + library.parent_path().string() + " && TILEWRIGHT_CACHE_DIR=" + cache_ +
                              " TILEWRIGHT_LIBRARY=./" + library.filename().string() +
                              " PYTHONPATH=" TW_SOURCE_DIR
                              "/python python3 -c 'import tilewright; tilewright.load(\"" TW_SOURCE_DIR
                              "/kernels/matmul_relu.tile\")' 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
}

TEST_F(Library, PythonCompilesAndCalls) {
  if (std::system("python3 -c '' 2>/dev/null") != 0) GTEST_SKIP() << "needs python3";
  const std::string command = "TILEWRIGHT_CACHE_DIR=" + cache_ +
                              " TILEWRIGHT_LIBRARY=" TW_LIBRARY " TW_KERNELS=" TW_SOURCE_DIR
                              "/kernels python3 " TW_SOURCE_DIR "/tests/python/tilewright_test.py -q 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
}

}  // namespace
