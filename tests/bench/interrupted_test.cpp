// What is recorded survives: kill -9, a torn line, a full disk, two benches in one folder.
#include <sys/resource.h>
#include <unistd.h>

#include <random>
#include <thread>

#include "support/seed.h"
#include "toy_bench.h"

namespace tilewright::bench {
namespace {

class Interrupted : public ToyBench {
 protected:
  std::vector<std::string> lines() const {
    std::vector<std::string> all;
    std::ifstream in(record());
    for (std::string line; std::getline(in, line);) all.push_back(line);
    return all;
  }
  /// Every line parses, no stage twice, all stages of a whole run there.
  void expect_whole(size_t stages) const {
    std::set<std::string> metrics;
    for (const Cell& cell : cells())
      EXPECT_TRUE(metrics.insert(std::string(info(cell.stage).metric)).second) << info(cell.stage).metric;
    EXPECT_EQ(metrics.size(), stages);
    for (const std::string& line : lines()) EXPECT_TRUE(nlohmann::json::accept(line)) << line;
    for (const auto& entry : std::filesystem::directory_iterator(out_))
      EXPECT_FALSE(entry.path().filename().string().starts_with("work-")) << "left behind: " << entry.path();
  }
};

TEST_F(Interrupted, KilledAtAnyMomentThenResumed) {
  ASSERT_EQ(bench("spin_us=200").code, 0);
  const size_t stages = cells().size();
  std::mt19937_64 random(test::seed(7));
  for (int round = 0; round < 3; ++round) {
    std::filesystem::remove_all(out_);
    std::vector<std::string> argv = words("spin_us=200");
    argv.insert(argv.begin(), TW_BINARY_DIR "/bin/tilewright");
    auto child = candidate::ChildProcess::start({.argv = argv});
    ASSERT_TRUE(child);
    const size_t wanted = 1 + random() % (stages - 1);
    for (int i = 0; i < 4000 && lines().size() < wanted; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 40));
    child->kill();
    const std::vector<std::string> before = lines();
    const test::Answer resumed = bench("spin_us=200", "gemm:32x24x16", {"--resume"});
    EXPECT_EQ(resumed.code, 0) << resumed.err;
    const std::vector<std::string> after = lines();
    for (size_t i = 0; i < before.size() && i < after.size(); ++i) EXPECT_EQ(before[i], after[i]) << "a line was lost";
    expect_whole(stages);
  }
}

TEST_F(Interrupted, ATornLineIsCutAndTheRestKept) {
  ASSERT_EQ(bench("spin_us=10").code, 0);
  const std::vector<std::string> whole = lines();
  {
    std::ofstream cut(record());
    for (size_t i = 0; i < 4; ++i) cut << whole[i] << "\n";
    cut << whole[4].substr(0, whole[4].size() / 2);
  }
  ASSERT_EQ(bench("spin_us=10", "gemm:32x24x16", {"--resume"}).code, 0);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(lines()[i], whole[i]);
  expect_whole(whole.size());
}

TEST_F(Interrupted, ADamagedLineInTheMiddleIsNamedAndNothingIsWritten) {
  ASSERT_EQ(bench("spin_us=10").code, 0);
  std::vector<std::string> whole = lines();
  whole[1] = whole[1].substr(0, 30);
  {
    std::ofstream damaged(record());
    for (const std::string& line : whole) damaged << line << "\n";
  }
  const std::string before = text_of(record());
  const test::Answer refused = bench("spin_us=10", "gemm:32x24x16", {"--resume"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("cells.jsonl:2:"), std::string::npos) << refused.err;
  EXPECT_TRUE(text_of(record()) == before) << "the record changed";
}

TEST_F(Interrupted, ASecondBenchInTheFolderIsRefusedAndTheFirstGoesOn) {
  std::vector<std::string> argv = words("compile_ms=300");
  argv.insert(argv.begin(), TW_BINARY_DIR "/bin/tilewright");
  auto first = candidate::ChildProcess::start({.argv = argv});
  ASSERT_TRUE(first);
  for (int i = 0; i < 4000 && lines().empty(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const test::Answer second = bench("spin_us=10");
  EXPECT_EQ(second.code, 2);
  EXPECT_NE(second.err.find("E3303"), std::string::npos) << second.err;
  while (first->read_line(std::chrono::seconds(60))) {
  }
  EXPECT_EQ(first->wait(std::chrono::seconds(60)).exit_code, 0);
  expect_whole(cells().size());
}

/// A full disk, as a limit on the size of files: what was recorded before stays whole, and the message says what to do.
TEST_F(Interrupted, AFullDiskLosesNothing) {
  ASSERT_EQ(bench("spin_us=10").code, 0);
  const std::string before = text_of(record());
  rlimit usual{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &usual), 0);
  const rlimit small{before.size() + 300, usual.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const test::Answer full = bench("spin_us=20");
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &usual), 0);
  EXPECT_NE(full.code, 0);
  EXPECT_NE(full.err.find("E3302"), std::string::npos) << full.err;
  EXPECT_TRUE(text_of(record()) == before) << "the record changed";
  EXPECT_EQ(bench("spin_us=20", "gemm:32x24x16", {"--resume"}).code, 0);
  EXPECT_TRUE(text_of(record()).starts_with(before));
}

}  // namespace
}  // namespace tilewright::bench
