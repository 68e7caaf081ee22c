// A kernel of one's own, with no library to compare with: bench, compare and tune judge it by its own `reference`.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/command.h"

namespace tilewright::tools {
namespace {

namespace fs = std::filesystem;

class OwnKernel : public testing::Test {
 protected:
  void SetUp() override {
    if (test::tilewright({"run", "--help"}).code != 0) GTEST_SKIP() << "built without the compiler";
    folder_ = fs::path(testing::TempDir()) / ("tw_own_kernel_" + std::to_string(::getpid())) /
              testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  static std::string text_of(const fs::path& file) {
    std::ifstream in(file);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }
  std::string copied(const char* name) const {
    fs::copy_file(std::string(TW_SOURCE_DIR "/tests/tools/inputs/") + name, path(name));
    return path(name);
  }
  test::Answer bench(std::vector<std::string> words) const {
    words.insert(words.begin(), {"bench"});
    for (const char* more : {"--no-progress", "--model", "none", "--threads", "1", "--out"}) words.emplace_back(more);
    words.push_back(path("out"));
    return test::tilewright(words);
  }
  /// Whether any cell is a measured time.
  bool has_times() const {
    std::ifstream in(folder_ / "out" / "cells.jsonl");
    for (std::string line; std::getline(in, line);) {
      const auto cell = nlohmann::json::parse(line, nullptr, false);
      if (cell.value("state", "") == "measured" && cell.value("unit", "") == "ms") return true;
    }
    return false;
  }
  fs::path folder_;
};

TEST_F(OwnKernel, AWrongConstantAndAWrongAxisAreRefusedBeforeAnyTiming) {
  const std::string swiglu = copied("own_swiglu.tile"), rows = copied("own_rows.tile");
  for (const std::string& wrong : {"tile:" + swiglu + ":swiglu?fault=1", "tile:" + rows + ":wrong_axis"}) {
    const test::Answer answer = bench({wrong});
    EXPECT_EQ(answer.code, 3) << answer.out << answer.err;
    EXPECT_NE(answer.out.find("differ from the reference expression"), std::string::npos) << answer.out;
    EXPECT_FALSE(has_times());
  }
}

TEST_F(OwnKernel, BenchFillsARowAndSaysWhatJudgedIt) {
  const std::string file = copied("own_rows.tile");
  test::Answer answer;
  for (int tries = 0; tries < 4; ++tries) {  // 4: another process took this processor while a batch was timed
    answer = bench({file, "--kernel", "rope", "--dim", "S=20,D=32"});
    if (answer.code != 4) break;
  }
  ASSERT_EQ(answer.code, 0) << answer.out << answer.err;
  for (const char* seen : {"kernel:rope:S=20.D=32:ref=", "reference: the kernel's own expression in float64: concat(",
                           "no library computes this expression"})
    EXPECT_NE(answer.out.find(seen), std::string::npos) << seen << "\n" << answer.out;
  EXPECT_TRUE(has_times());
  const std::string table = text_of(folder_ / "out" / "tile-own_rows-rope" / "table.csv");
  EXPECT_NE(table.find(",true,"), std::string::npos) << table;
  EXPECT_NE(text_of(folder_ / "out" / "cells.jsonl").find("the kernel's own expression in float64"), std::string::npos);
}

TEST_F(OwnKernel, WithoutAReferenceTheHelpSaysHowToStateOne) {
  const std::string file = copied("own_rows.tile");
  const test::Answer answer = bench({file, "--kernel", "unstated"});
  EXPECT_EQ(answer.code, 6);
  EXPECT_NE(answer.out.find("a line `reference silu(matmul(X, W)) * U` that says what every output is"),
            std::string::npos)
      << answer.out;
  const test::Answer tuned = test::tilewright({"tune", file, "--kernel", "unstated", "--out", path("tuned")});
  EXPECT_EQ(tuned.code, 2);
  EXPECT_NE(
      tuned.err.find("error[E1810]: kernel 'unstated' has no reference the benchmark can check (none): the kernel "
                     "has no `reference` line"),
      std::string::npos)
      << tuned.err;
  EXPECT_NE(tuned.err.find("state what every output is"), std::string::npos) << tuned.err;
}

TEST_F(OwnKernel, TwoKernelsOfTheSameArgumentsAreComparedOnOneQuestion) {
  const std::string file = copied("own_swiglu.tile");
  const test::Answer answer =
      test::tilewright({"compare", "tile:" + file + ":swiglu", "tile:" + file + ":swiglu_in_turn", "--rounds", "6",
                        "--delta", "90", "--threads", "1"});
  EXPECT_NE(answer.code, 3) << answer.out << answer.err;
  EXPECT_NE(answer.code, 2) << answer.out << answer.err;
  const test::Answer wrong =
      test::tilewright({"compare", "tile:" + file + ":swiglu_in_turn", "tile:" + file + ":swiglu?fault=1", "--op",
                        file + ":swiglu", "--rounds", "6", "--threads", "1"});
  EXPECT_EQ(wrong.code, 3) << wrong.out << wrong.err;
}

TEST_F(OwnKernel, TuneFindsAWinnerThatServesUntilTheProgramChanges) {
  const std::string file = copied("own_swiglu.tile");
  const test::Answer tuned = test::tilewright(
      {"tune", file, "--kernel", "swiglu", "--dim", "M=24,N=40,K=16", "--timeout-s", "20", "--out", path("out")});
  ASSERT_EQ(tuned.code, 0) << tuned.out << tuned.err;
  EXPECT_NE(tuned.out.find("winner"), std::string::npos);
  const std::string record = path("out/best.json");
  const auto best = nlohmann::json::parse(text_of(record), nullptr, false);
  const auto& bucket = best["buckets"][0];
  EXPECT_EQ(bucket["when"], "M == 24 and K == 16 and N == 40");
  EXPECT_EQ(test::tilewright({"tune", "verify", record}).code, 0);
  const test::Answer explained =
      test::tilewright({"tune", "explain", record, "--op", bucket["made_from"]["shape"].get<std::string>()});
  EXPECT_EQ(explained.code, 0) << explained.err;
  const std::string text = text_of(file);
  std::ofstream(file) << text << "# a comment changes nothing\n";
  const test::Answer served =
      test::tilewright({"run", file, "--kernel", "swiglu", "--dim", "M=24,N=40,K=16", "--best", record});
  EXPECT_NE(served.out.find("rule    M == 24"), std::string::npos) << served.out << served.err;
  std::ofstream(file) << text.substr(0, text.find("limit)\n")) << "limit + 0)\n"
                      << text.substr(text.find("limit)\n") + 7);
  EXPECT_EQ(test::tilewright({"tune", "verify", record}).code, 7) << "another program";
}

}  // namespace
}  // namespace tilewright::tools
