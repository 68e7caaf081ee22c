// `traffic replay` for real: the matmul of kernels/ serves a small trace under every key policy, miss handling and
// serving policy.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "support/command.h"

namespace tilewright::tools {
namespace {

namespace fs = std::filesystem;

class ReplayKernel : public testing::Test {
 protected:
  void SetUp() override {
    if (test::tilewright({"run", "--help"}).code != 0) GTEST_SKIP() << "built without the compiler";
    folder_ = fs::path(testing::TempDir()) / ("tw_replay_kernel_" + std::to_string(::getpid())) /
              testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    // 48 requests of eight lengths: 4 keys under pad16, 3 under pow2, 2 buckets.
    std::string text = "t_s,in,out\n";
    for (int i = 0; i < 48; ++i) {
      lengths_.push_back(std::array{9, 23, 30, 25, 31, 29, 44, 58}[static_cast<size_t>(i % 8)]);
      text += std::to_string(i) + "," + std::to_string(lengths_.back()) + ",1\n";
    }
    std::ofstream(path("trace.csv")) << text;
    std::ofstream(path("buckets.txt")) << "32\n64\n";
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  test::Answer replay(std::vector<std::string> more) const {
    std::vector<std::string> words = {"traffic", "replay", path("trace.csv"), "--candidate",
                                      kKernel,   "--op",   "gemm:1x48x32:nn", "--threads",
                                      "1",       "--out",  path("out"),       "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return test::tilewright(words);
  }
  nlohmann::json replayed(std::vector<std::string> more) const {
    const test::Answer answer = replay(std::move(more));
    EXPECT_EQ(answer.code, 0) << answer.out << answer.err;
    nlohmann::json json = nlohmann::json::parse(answer.out, nullptr, false);
    EXPECT_TRUE(json.is_object()) << answer.out;
    return json.is_object() ? json : nlohmann::json::object();
  }

  const std::string kKernel = std::string("tile:") + TW_SOURCE_DIR + "/kernels/matmul.tile:matmul";
  fs::path folder_;
  std::vector<int> lengths_;
};

TEST_F(ReplayKernel, EveryKeyPolicyAndMissHandling) {
  const std::map<std::string, int> keys = {
      {"exact", static_cast<int>(std::set<int>(lengths_.begin(), lengths_.end()).size())},
      {"pad16", 4},
      {"pow2", 3},
      {"buckets=" + path("buckets.txt"), 2}};
  for (const auto& [policy, count] : keys) {
    for (const char* miss : {"block", "background"}) {
      const nlohmann::json r = replayed({"--policy", policy, "--miss", miss});
      EXPECT_EQ(r.value("state", ""), "measured");
      EXPECT_EQ(r.value("keys", 0), count) << policy;
      EXPECT_EQ(r.value("jit_events", 0), count) << policy << " " << miss;
      EXPECT_GT(r.value("compile_s", 0.0), 0);
      EXPECT_GE(r.value("p99_s", 0.0), r.value("p50_s", 1e9)) << r.dump();
      EXPECT_EQ(r.value("requests", 0), 48);
      if (std::string(miss) == "block") {
        EXPECT_EQ(r.value("fallbacks", -1), 0);
      }
    }
  }
}

TEST_F(ReplayKernel, PinnedServesWhatWasVerifiedAndNeverCompiles) {
  std::ofstream(path("space.json")) << R"({"params": [{"name": "block_M", "values": [24, 12]}]})";
  const test::Answer tuned =
      test::tilewright({"tune", TW_SOURCE_DIR "/kernels/matmul.tile", "--kernel", "matmul", "--dim", "N=48,K=32",
                        "--space", path("space.json"), "--traffic", path("trace.csv"), "--policy", "pad16", "--cases",
                        "1", "--threads", "1", "--out", path("out")});
  ASSERT_EQ(tuned.code, 0) << tuned.out << tuned.err;
  const std::string best = path("out/best.json");
  const nlohmann::json pinned = replayed({"--policy", "pad16", "--serving", "pinned", "--best", best});
  EXPECT_EQ(pinned.value("jit_events", -1), 0);
  EXPECT_EQ(pinned.value("fallbacks", 0), 12) << "the bucket M <= 32 serves six of eight lengths";
  EXPECT_EQ(pinned["left_on_table_ci_ms"].size(), 2u);
  EXPECT_EQ(pinned.value("distinct_outputs", 0), 1) << "equal bits in every call";

  // One changed byte, and everything is the fallback.
  std::ifstream in(best);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  text[text.find("\"arch\": \"") + 9] ^= 1;
  std::ofstream(path("changed.json")) << text;
  const test::Answer none = replay({"--policy", "pad16", "--serving", "pinned", "--best", path("changed.json")});
  EXPECT_EQ(none.code, 7) << none.err;
  EXPECT_EQ(nlohmann::json::parse(none.out).value("fallbacks", 0), 48);
  EXPECT_EQ(replay({"--serving", "pinned"}).code, 2) << "pinned to nothing";
  EXPECT_EQ(replay({"--serving", "pinned", "--best", path("absent.json")}).code, 2);
}

TEST_F(ReplayKernel, AdaptiveSwitchesOnlyWithALine) {
  EXPECT_EQ(replay({"--serving", "adaptive"}).code, 9);
  EXPECT_EQ(replay({"--serving", "adaptive", "--telemetry", path("nofolder/t.jsonl")}).code, 2);
  EXPECT_FALSE(fs::exists(path("nofolder"))) << "a mistyped path makes no folder";
  const nlohmann::json r =
      replayed({"--policy", "pow2", "--serving", "adaptive", "--telemetry", path("telemetry.jsonl")});
  EXPECT_EQ(r.value("unexplained_switches", -1), 0);
  int lines = 0;
  std::ifstream in(path("telemetry.jsonl"));
  for (std::string line; std::getline(in, line); ++lines) EXPECT_TRUE(nlohmann::json::accept(line)) << line;
  EXPECT_EQ(lines, r.value("switches", -1) + r.value("rollbacks", 0));
  EXPECT_GE(r.value("distinct_outputs", 0), 1);
}

}  // namespace
}  // namespace tilewright::tools
