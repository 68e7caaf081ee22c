#include "adapters/tile/kernel_spelling.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace tilewright::adapters {
namespace {

TEST(KernelSpelling, ReadsAndPrintsFileKernelAndParameters) {
  const auto spelling = parse_kernel_spelling("k/matmul.tile:matmul?block_M=96,T=f16");
  ASSERT_TRUE(spelling.has_value());
  EXPECT_EQ(spelling->path, "k/matmul.tile");
  EXPECT_EQ(spelling->kernel, "matmul");
  EXPECT_EQ(spelling->params.at("block_M"), "96");
  EXPECT_EQ(to_string(*spelling), "k/matmul.tile:matmul?T=f16,block_M=96");
  EXPECT_EQ(to_string(*parse_kernel_spelling("a.tile")), "a.tile");
}

TEST(KernelSpelling, RefusesAParameterWithoutAValue) {
  const auto spelling = parse_kernel_spelling("a.tile?block_M");
  ASSERT_FALSE(spelling.has_value());
  EXPECT_EQ(spelling.error().message, "'block_M' is not PARAM=VALUE");
}

TEST(KernelOffers, AScaledProductIsAProductOfTheTransposedOperandAtScalesOfOne) {
  const auto offers = kernel_offers(*parse_kernel_spelling("kernels/matmul_fp8.tile"));
  ASSERT_TRUE(offers.has_value()) << offers.error().message;
  ASSERT_TRUE(offers->front().workload.has_value()) << offers->front().why_not;
  EXPECT_EQ(bench::workload_key(*offers->front().workload), "gemm:1024x1024x1024:nt");
  EXPECT_EQ(bench::to_string(offers->front().workload->dtypes), "e4m3/f32/bf16");
}

TEST(KernelOffers, AKernelOffersItsReferenceAtTheSizesOfItsExample) {
  const auto offers = kernel_offers(*parse_kernel_spelling("kernels/softmax.tile"));
  ASSERT_TRUE(offers.has_value()) << offers.error().message;
  ASSERT_EQ(offers->size(), 2u);
  for (const KernelOffer& offer : *offers) {
    ASSERT_TRUE(offer.workload.has_value()) << offer.why_not;
    EXPECT_EQ(offer.workload->operation, bench::Operation::Softmax);
  }
  EXPECT_EQ(offers->at(1).spelling.kernel, "online_softmax");
}

TEST(KernelOffers, OneKernelOfAFileByItsName) {
  const auto offers = kernel_offers(*parse_kernel_spelling("kernels/matmul.tile:matmul_nt?T=bf16"));
  ASSERT_TRUE(offers.has_value());
  ASSERT_EQ(offers->size(), 1u);
  EXPECT_EQ(bench::workload_key(*offers->front().workload), "gemm:1024x1024x1024:nt");
  EXPECT_EQ(offers->front().workload->dtypes.in, DType::BF16);
}

TEST(KernelOffers, SaysWhyThereIsNoWorkload) {
  const auto file = std::filesystem::temp_directory_path() / ("tw_offers_" + std::to_string(::getpid()) + ".tile");
  std::ofstream(file) << "kernel twice(A: f32[N]) -> (B: f32[N])\n  example N = 64\n{\n  grid (b: ceildiv(N, 64)) "
                         "threads(64) {\n    for i in parallel(64) { B[b*64 + i] = A[b*64 + i] * 2.0 }\n  }\n}\n";
  const auto offers = kernel_offers(*parse_kernel_spelling(file.string()));
  ASSERT_TRUE(offers.has_value()) << offers.error().message;
  EXPECT_FALSE(offers->front().workload.has_value());
  EXPECT_NE(offers->front().why_not.find("kernel 'twice' has no reference the benchmark can check"), std::string::npos)
      << offers->front().why_not;
  std::filesystem::remove(file);
}

TEST(KernelOffers, AKernelThatIsNotThere) {
  const auto offers = kernel_offers(*parse_kernel_spelling("kernels/softmax.tile:soft"));
  ASSERT_FALSE(offers.has_value());
  EXPECT_EQ(offers.error().message, "kernels/softmax.tile has no kernel 'soft'");
}

}  // namespace
}  // namespace tilewright::adapters
