#include "bench/suite/suite_run.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace tilewright::bench {
namespace {

using nlohmann::json;

/// One row of cpu-gemm, in a folder of its own; no worker can be started.
class SuiteRun : public testing::Test {
 protected:
  SuiteRun() {
    folder_ = std::filesystem::temp_directory_path() / ("tilewright-suite-run-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    options_.executable = "/nonexistent/tilewright";
    options_.suite = find_suite("cpu-gemm").value();
    options_.threads = {1};
    options_.filter = "3x5x7";
    options_.record = folder_ / "suite.jsonl";
    options_.program = "this build";
    options_.show_progress = false;
  }
  ~SuiteRun() override { std::filesystem::remove_all(folder_); }

  /// A finished row as an earlier run wrote it, followed by a line torn by its end.
  void record(const std::string& program) const {
    const json ours{{"candidate", "tile:x"}, {"name", "ours"}, {"ms", {1.0, 2.0, 3.0}}};
    const json key{{"suite", "cpu-gemm"}, {"program", program}, {"workload", "gemm:3x5x7"},
                   {"dtypes", "f32"},     {"threads", 1},       {"seed", 1},
                   {"rounds", 30}};
    std::ofstream(options_.record) << json{{"key", key}, {"result", {{"contenders", {ours}}}}}.dump() << "\n{\"key\": ";
  }

  std::filesystem::path folder_;
  SuiteOptions options_;
};

TEST_F(SuiteRun, ResumeTakesRecordedRowsOfThisBuildAlone) {
  options_.resume = true;
  record("this build");
  auto report = run_suite(options_);
  ASSERT_TRUE(report);
  ASSERT_EQ(report->rows.size(), 1u);
  EXPECT_EQ(report->rows[0].not_run, "");
  EXPECT_EQ(report->rows[0].ours().median_ms(), 2.0);
  record("another build");
  report = run_suite(options_);
  ASSERT_TRUE(report);
  EXPECT_NE(report->rows[0].not_run, "");
}

TEST_F(SuiteRun, WithoutResumeTheRecordStartsAnew) {
  record("this build");
  const auto report = run_suite(options_);
  ASSERT_TRUE(report);
  EXPECT_NE(report->rows[0].not_run, "");
  EXPECT_FALSE(std::filesystem::exists(options_.record));
}

TEST_F(SuiteRun, TheWholeLimitIsSharedByTheRowsThatAreLeft) {
  EXPECT_EQ(row_limit_s(options_, 0, 10), 20);  // no limit of the whole
  options_.total_limit_s = 280;
  EXPECT_EQ(row_limit_s(options_, 280, 28), 7);  // 10 s a row, of which 3 pass before the timing
  EXPECT_EQ(row_limit_s(options_, 280, 2), 20);
  EXPECT_EQ(row_limit_s(options_, -5, 2), 0.5);
  options_.row_limit_s = 4;
  EXPECT_EQ(row_limit_s(options_, 280, 28), 4);
}

}  // namespace
}  // namespace tilewright::bench
