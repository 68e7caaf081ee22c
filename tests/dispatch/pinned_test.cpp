#include "dispatch/pinned.h"

#include <gtest/gtest.h>

#include <fstream>

namespace tilewright::dispatch {
namespace {

tune::BestBucket bucket(const std::string& when, int64_t block) {
  tune::BestBucket b;
  b.when = when;
  b.config = tune::Config({{"block_M", block}});
  b.identity = {"source", "gemm", "LLVM 19", "x86-64-v3", "cpu:x:1c", "Linux 6", "trials-1"};
  b.space_digest = "space";
  return b;
}

class PinnedTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = std::filesystem::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name();
    record_.buckets = {bucket("M <= 16", 16), bucket("M <= 128", 64)};
    write(tune::write_record(record_));
  }
  void write(const std::string& text) const { std::ofstream(path_) << text; }
  Pinned open(const Here& here) const {
    return Pinned::open(path_, [here](const tune::BestBucket&) -> Result<Here> { return here; });
  }
  std::filesystem::path path_;
  tune::BestRecord record_;
  Here here_{bucket("", 0).identity, "space"};
};

TEST_F(PinnedTest, TheFirstBucketThatHoldsServes) {
  const Pinned pinned = open(here_);
  EXPECT_EQ(pinned.choose({{"M", 16}}).bucket->config.number("block_M", 0), 16);
  EXPECT_EQ(pinned.choose({{"M", 17}}).bucket->config.number("block_M", 0), 64);
  EXPECT_EQ(pinned.choose({{"M", 129}}).bucket, nullptr);
  EXPECT_EQ(pinned.choose({{"M", 129}}).why, "no bucket holds M = 129");
  EXPECT_EQ(pinned.verified(), 2u);
  EXPECT_TRUE(pinned.notices().empty());
}

TEST_F(PinnedTest, OneByteOfSourceArchOrToolchainAndTheFallbackServes) {
  for (std::string tune::Identity::*field :
       {&tune::Identity::source, &tune::Identity::arch, &tune::Identity::toolchain}) {
    Here other = here_;
    (other.identity.*field)[0] ^= 1;
    const Pinned pinned = open(other);
    EXPECT_EQ(pinned.choose({{"M", 16}}).bucket, nullptr);
    EXPECT_NE(pinned.choose({{"M", 16}}).why.find("is stale"), std::string::npos);
    EXPECT_EQ(pinned.notices().size(), 2u);
  }
}

TEST_F(PinnedTest, AChangedByteAnywhereInTheRecordIsTheFallback) {
  const std::string text = tune::write_record(record_);
  for (size_t at = 0; at < text.size(); at += 7) {
    std::string changed = text;
    changed[at] ^= 1;
    write(changed);
    EXPECT_EQ(open(here_).choose({{"M", 16}}).bucket, nullptr) << "byte " << at;
  }
}

TEST_F(PinnedTest, WithoutARecordTheFallbackServes) {
  std::filesystem::remove(path_);
  const Pinned pinned = open(here_);
  EXPECT_EQ(pinned.choose({{"M", 16}}).bucket, nullptr);
  EXPECT_EQ(pinned.notices().size(), 1u);
}

TEST_F(PinnedTest, ExplainNamesRuleRecordAndHash) {
  const Pinned pinned = open(here_);
  EXPECT_EQ(explain(pinned, "best.json", {{"M", 16}}),
            "shape   M = 16\nrule    M <= 16\nserves  block_M=16\nrecord  best.json sha256 " +
                tune::record_digest(record_) + "\n");
  EXPECT_EQ(explain(pinned, "best.json", {{"M", 999}}),
            "shape   M = 999\nrule    none: no bucket holds M = 999\nserves  the fallback\nrecord  best.json sha256 " +
                tune::record_digest(record_) + "\n");
}

}  // namespace
}  // namespace tilewright::dispatch
