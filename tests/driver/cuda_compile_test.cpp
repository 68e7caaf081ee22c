// Compiling for CUDA with no GPU: what the cache keeps apart and gives back, and which class serves which arrays.
#include "driver/cuda_compile.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "cache/kernel_cache.h"
#include "driver/cuda_call.h"
#include "driver/program.h"

namespace tilewright::driver {
namespace {

Program program(const std::string& file, const std::string& kernel, const std::map<std::string, std::string>& params) {
  auto loaded = load_program({.path = std::string(TW_SOURCE_DIR) + "/kernels/" + file,
                              .kernel = kernel,
                              .params = params,
                              .target = lang::Target::Cuda});
  EXPECT_TRUE(loaded) << loaded.error().rendered;
  return std::move(*loaded);
}

TEST(CudaCompile, TheCacheGivesBackTheArtefactAndKeepsClassesAndTargetsApart) {
  const Program add = program("elementwise.tile", "add", {});
  cache::KernelCache cache({.folder = ""});
  CudaCompileOptions options{.gpu = *target::parse_gpu("sm_90a"), .cache = &cache};
  const auto first = compile_cuda(add.kernel, options), again = compile_cuda(add.kernel, options);
  ASSERT_TRUE(first && again) << (first ? again.error().message : first.error().message);
  EXPECT_FALSE(first->is_from_cache);
  EXPECT_TRUE(again->is_from_cache);
  EXPECT_EQ(first->artefact.code, again->artefact.code);
  EXPECT_EQ(first->artefact.kind, again->artefact.kind);
  CudaCompileOptions unaligned = options, older = options, wide = options, device = options;
  unaligned.plan.aligned = false;
  wide.plan.wide_indices = true;
  older.gpu = *target::parse_gpu("sm_80");
  device.for_device = true;
  for (const CudaCompileOptions& other : {unaligned, wide, older, device})
    EXPECT_NE(cuda_compilation_key(add.kernel, other), cuda_compilation_key(add.kernel, options));
  EXPECT_EQ(cache.counts().made, 1);
}

/// The copy engine stores rows in pieces of 16 bytes: one element of two bytes overwrote its neighbours on an H200.
TEST(CudaCompile, ARowThatIsNoMultipleOf16BytesIsNotOfTheAlignedClass) {
  const auto arrays = [](int64_t rows, int64_t columns) {
    Arrays out;
    out.tensors.push_back(zeros(DType::BF16, {rows, columns}));
    return out;
  };
  EXPECT_TRUE(is_aligned_class(arrays(1, 8)));
  EXPECT_TRUE(is_aligned_class(arrays(5, 16)));
  EXPECT_FALSE(is_aligned_class(arrays(1, 1)));
  EXPECT_FALSE(is_aligned_class(arrays(1, 12)));
  EXPECT_FALSE(is_aligned_class(arrays(3, 13)));
  const Program product = program("matmul.tile", "matmul_nt", {{"T", "bf16"}});
  const auto compiled = compile_cuda(product.kernel, {.gpu = *target::parse_gpu("sm_90a"), .assembles = false});
  ASSERT_TRUE(compiled) << compiled.error().message;
  const auto& requirements = compiled->artefact.recipe.requirements;
  EXPECT_TRUE(std::ranges::any_of(requirements, [](const runtime::Requirement& r) {
    return r.is_guard && r.text == "N % 8 == 0 (rows of C stored by the copy engine)";
  }));
}

}  // namespace
}  // namespace tilewright::driver
