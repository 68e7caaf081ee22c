// scripts/verdict.sh at tiny sizes: from a registered objective to a verdict on real kernels, with rivals, tuning, cost
// and three replays of traffic. Which verdict is the machine's business; that nothing is missing for one is ours.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/command.h"

namespace tilewright::tools {
namespace {

namespace fs = std::filesystem;

class VerdictScript : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (test::tilewright({"run", "--help"}).code != 0) GTEST_SKIP() << "built without the compiler";
    out_ = fs::path(testing::TempDir()) / ("tw_verdict_" + std::to_string(::getpid())) / GetParam();
    fs::remove_all(out_);
  }
  void TearDown() override { fs::remove_all(out_); }
  test::Answer run() const {
    return test::run_program(
        {.argv = {"env", "TILEWRIGHT=" TW_BINARY_DIR "/bin/tilewright", "bash", TW_SOURCE_DIR "/scripts/verdict.sh",
                  GetParam(), "--small", "--out", out_.string()}});
  }
  fs::path out_;
};

TEST_P(VerdictScript, LeavesOnlyTheBudgetOpen) {
  const test::Answer answer = run();
  ASSERT_TRUE(answer.code == 6 || answer.code == 8) << answer.code << answer.out << answer.err;
  std::ifstream in(out_ / "decision.json");
  const auto decision = nlohmann::json::parse(in, nullptr, false);
  ASSERT_TRUE(decision.is_object()) << answer.out << answer.err;
  for (const auto& clause : decision["clauses"]) {
    const std::string text = clause.value("text", "");
    for (const char* missing :
         {"not measured", "was not run", "no human cost", "post-hoc", "unfair:", "does not count"})
      EXPECT_EQ(text.find(missing), std::string::npos) << clause.dump();
  }
  // What each way of serving costs was replayed, and the guide has it.
  for (const char* part : {"fallback share: ", "left on the table: ", "switches: ", "unexplained switches: 0"})
    EXPECT_NE(answer.out.find(part), std::string::npos) << part << "\n" << answer.out;
  EXPECT_EQ(answer.out.find("fallback share: not-run"), std::string::npos) << answer.out;
  EXPECT_TRUE(fs::exists(out_ / "report.html"));
  const test::Answer again = run();
  EXPECT_EQ(again.code, 2) << "an objective cannot come after the measurements";
}

INSTANTIATE_TEST_SUITE_P(Cases, VerdictScript, testing::Values("gemm", "attention"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace tilewright::tools
