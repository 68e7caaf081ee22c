// `tune` on a `.tile` kernel: the space comes from the kernel, the winner serves `run` until something it was made from
// changes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/command.h"

namespace tilewright::tools {
namespace {

namespace fs = std::filesystem;

/// A product whose parameters include one that makes it wrong (1) or endless (2).
constexpr const char* kHazards = R"(kernel product(A: f32[M, K], B: f32[K, N]) -> (C: f32[M, N])
  param block_M = 32 in {16, 32, 48}
  param block_K = 32 in {32, 64}
  param fault = 0 in {0, 1, 2}
  where block_M * block_K <= 2048
  where fault == 0 or (block_M == 32 and block_K == 32)
  example M = 64, N = 64, K = 64
  reference matmul(A, B)
{
  grid (bx: ceildiv(N, 32), by: ceildiv(M, block_M)) threads(64) {
    A_s = shared f32[block_M, block_K]
    B_s = shared f32[block_K, 32]
    acc = fragment f32[block_M, 32]
    clear(acc)
    for k in pipelined(ceildiv(K, block_K), 2) {
      copy(A[by*block_M :+ block_M, k*block_K :+ block_K], A_s)
      copy(B[k*block_K :+ block_K, bx*32 :+ 32], B_s)
      gemm(A_s, B_s, acc)
    }
    if fault == 1 { acc = acc + 1.0 }
    if fault == 2 {
      for i in serial(M * 1000000000) { acc = acc * 0.5 }
    }
    copy(acc, C[by*block_M :+ block_M, bx*32 :+ 32])
  }
}
)";

class TuneKernel : public testing::Test {
 protected:
  void SetUp() override {
    if (test::tilewright({"run", "--help"}).code != 0) GTEST_SKIP() << "built without the compiler";
    folder_ = fs::path(testing::TempDir()) / ("tw_tune_kernel_" + std::to_string(::getpid())) /
              testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& text) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  nlohmann::json json(const std::string& name) const {
    std::ifstream in(folder_ / name);
    return nlohmann::json::parse(in, nullptr, false);
  }
  test::Answer tune(const std::string& kernel, const std::string& out, std::vector<std::string> more = {}) const {
    std::vector<std::string> words = {"tune",        kernel, "--dim", "M=64,N=64,K=64",
                                      "--timeout-s", "5",    "--out", path(out)};
    words.insert(words.end(), more.begin(), more.end());
    return test::tilewright(words);
  }
  fs::path folder_;
};

TEST_F(TuneKernel, TheSpaceIsTheKernelsOwnAndItsFaultsAreListed) {
  const std::string kernel = write("hazards.tile", kHazards);
  const test::Answer tuned = tune(kernel, "out");
  ASSERT_EQ(tuned.code, 0) << tuned.out << tuned.err;
  for (const char* seen : {"pruned", "requires block_M * block_K <= 2048", "wrong", "hung", "fault=0", "winner"})
    EXPECT_NE(tuned.out.find(seen), std::string::npos) << seen << "\n" << tuned.out;
  const nlohmann::json best = json("out/best.json");
  ASSERT_TRUE(best.is_object());
  EXPECT_EQ(best["cost"]["states"]["wrong"], 1);
  EXPECT_EQ(best["cost"]["states"]["hung"], 1);
  EXPECT_GE(best["cost"]["states"]["ok"], 2) << "points that plan to one program are tried once";
  EXPECT_EQ(best["buckets"][0]["when"], "M == 64 and N == 64 and K == 64");

  // It verifies, explains itself and serves `run` …
  const std::string record = path("out/best.json");
  EXPECT_EQ(test::tilewright({"tune", "verify", record}).code, 0);
  const test::Answer explained = test::tilewright({"tune", "explain", record, "--op", "gemm:64x64x64:nn"});
  EXPECT_EQ(explained.code, 0);
  EXPECT_NE(explained.out.find("rule    M == 64"), std::string::npos) << explained.out;
  EXPECT_NE(explained.out.find("sha256 " + best["digest"].get<std::string>()), std::string::npos) << explained.out;
  const test::Answer served = test::tilewright({"run", kernel, "--best", record, "--check"});
  EXPECT_EQ(served.code, 0) << served.err;
  EXPECT_NE(served.out.find("rule    M == 64"), std::string::npos) << served.out;
  const test::Answer other = test::tilewright({"run", kernel, "--best", record, "--dim", "M=65,N=64,K=64"});
  EXPECT_EQ(other.code, 0);
  EXPECT_NE(other.err.find("defaults serve: no bucket holds M = 65"), std::string::npos) << other.err;

  // … until the program changes (a comment changes nothing: own_kernel_test.cpp).
  write("hazards.tile", std::string(kHazards) + "fn another(x) = x\n");
  EXPECT_EQ(test::tilewright({"tune", "verify", record}).code, 7);
  const test::Answer fallback = test::tilewright({"run", kernel, "--best", record});
  EXPECT_EQ(fallback.code, 0);
  EXPECT_NE(fallback.err.find("is stale: source"), std::string::npos) << fallback.err;
  EXPECT_EQ(test::tilewright({"tune", "explain", record, "--op", "gemm:64x64x64:nn"}).code, 7);
}

/// Keys, digests and bits are functions of content: not of where the file lies, nor of what a process did before.
TEST_F(TuneKernel, EqualKeysFromAnyHistoryAndAnyCheckout) {
  const std::string here = write("here/product.tile", kHazards),
                    there = write("far/away/from/it/product.tile", kHazards);
  const std::string space = write("space.json", R"({"params": [{"name": "block_M", "values": [32, 16]}]})");
  ASSERT_EQ(tune(here, "a", {"--space", space}).code, 0);
  ASSERT_EQ(tune(there, "b", {"--space", space, "--seed", "7", "--jobs", "1"}).code, 0);
  const auto trials = [&](const std::string& out) {
    std::map<std::string, std::pair<std::string, std::string>> all;
    std::ifstream in(folder_ / out / "tune.jsonl");
    nlohmann::json header;
    for (std::string line; std::getline(in, line);) {
      const nlohmann::json entry = nlohmann::json::parse(line);
      if (entry.contains("artefact_digest"))
        all[entry["config"].dump()] = {entry["artefact_digest"], entry["output_digest"]};
    }
    return all;
  };
  EXPECT_EQ(trials("a").size(), 2u);
  EXPECT_EQ(trials("a"), trials("b"));
  const nlohmann::json a = json("a/best.json")["buckets"][0], b = json("b/best.json")["buckets"][0];
  EXPECT_EQ(a["identity"], b["identity"]);
  EXPECT_EQ(a["space"], b["space"]);
  // The record of one checkout verifies against the file of the other.
  const test::Answer verified =
      test::tilewright({"tune", "verify", path("a/best.json"), "--candidate", "tile:" + there + ":product"});
  EXPECT_EQ(verified.code, 0) << verified.err;
}

TEST_F(TuneKernel, WhatCannotBeTunedIsRefusedWithTheReason) {
  const test::Answer nothing = test::tilewright({"tune"});
  EXPECT_EQ(nothing.code, 2);
  const std::string kernel = write("hazards.tile", kHazards);
  const test::Answer bad = tune(kernel, "out", {"--dim", "M=x"});
  EXPECT_EQ(bad.code, 2);
  EXPECT_NE(bad.err.find("'x' is not a whole number"), std::string::npos) << bad.err;
  const test::Answer fixed = tune(kernel, "out", {"--param", "block_M=32,block_K=32,fault=0"});
  EXPECT_EQ(fixed.code, 2);
  EXPECT_NE(fixed.err.find("has no parameter to tune"), std::string::npos) << fixed.err;
}

}  // namespace
}  // namespace tilewright::tools
