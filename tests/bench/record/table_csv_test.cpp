#include "bench/record/table_csv.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

namespace tilewright::bench {
namespace {

const Subject kGemm{"gemm:128x128x128:nn", "f32/f32/f32", "cpu:EPYC:2c"};

Cell measured(Stage stage, double value) {
  Cell cell = not_run({kGemm, "toy", stage}, "");
  cell.state = State::Measured;
  cell.value = value;
  return cell;
}

Cell check(bool ok) {
  Cell cell = measured(Stage::Check, 0);
  cell.value.reset();
  cell.detail["reference_ok"] = ok;
  return cell;
}

TEST(TableCsv, TemplateIsByteExact) {
  EXPECT_EQ(table_template(), "shape,dtype,device,reference_ok,compile_ms,warm_ms,model_ms,peak_mb\n,,,,not-run,,,\n");
}

TEST(TableCsv, TemplateReadsAsNoRows) {
  const auto rows = parse_table(table_template());
  ASSERT_TRUE(rows);
  EXPECT_TRUE(rows->empty());
}

TEST(TableCsv, WrittenRowsReadBack) {
  const TableRow row{kGemm, ReferenceOk::True, {State::Measured, 12.3456789}, {State::Measured, 0.001},
                     {},    {State::Failed, 0}};
  const std::string text = write_table({row});
  EXPECT_EQ(text, std::string(kTableHeader) +
                      "\ngemm:128x128x128:nn,f32/f32/f32,cpu:EPYC:2c,true,12.3457,0.001,not-run,failed\n");
  const auto back = parse_table(text);
  ASSERT_TRUE(back);
  EXPECT_EQ(write_table(*back), text);
}

TEST(TableCsv, EmptyMetricIsNotRun) {
  const auto rows = parse_table(std::string(kTableHeader) + "\ncopy:s,f32,cpu:x:1c,,,,,\n");
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->at(0).warm_ms.state, State::NotRun);
  EXPECT_EQ(rows->at(0).reference_ok, ReferenceOk::NotRun);
}

TEST(TableCsv, BadFieldsAreNamed) {
  const auto message = [](const std::string& line) {
    const auto rows = parse_table(std::string(kTableHeader) + "\n" + line + "\n");
    return rows ? std::string("accepted") : rows.error().message;
  };
  EXPECT_EQ(message("copy:8,f32,cpu:x:1c,true,abc,,,"),
            "line 2, column compile_ms: 'abc' is not a number, not-run or failed");
  EXPECT_EQ(message("copy:8,f32,cpu:x:1c,true,-1,,,"), "line 2, column compile_ms: -1 is negative");
  EXPECT_EQ(message("copy:8,f32,cpu:x:1c,true,nan,,,"),
            "line 2, column compile_ms: 'nan' is not a number, not-run or failed");
  EXPECT_EQ(message("copy:8,f32,cpu:x:1c,yes,1,,,"),
            "line 2, column reference_ok: 'yes' is not true, false or not-run");
  EXPECT_EQ(message("s,f32,true,1"), "line 2: 4 fields, expected 8");
  EXPECT_EQ(message(",f32,cpu:x:1c,true,1,,,"), "line 2, column shape: the shape is empty");
  EXPECT_EQ(message("garbage,f32,cpu:x:1c,true,1,1,1,1"),
            "line 2, column shape: 'garbage' is no workload key like gemm:64x64x64:nn");
  EXPECT_EQ(message("copy:8,f32,cpu:x:1c,false,not-run,1,,"),
            "line 2, column warm_ms: '1' although reference_ok is false: only an accepted result has times");
  EXPECT_EQ(message("copy:8,f32,cpu:x:1c,not-run,,,,7"),
            "line 2, column peak_mb: '7' although reference_ok is not-run: only an accepted result has times");
  EXPECT_EQ(message("copy:8,f32,cpu:x:1c,true,0,0,,"),
            "line 2, column warm_ms: no kernel takes 0 ms; what was not measured is not-run");
  EXPECT_EQ(message("copy:8,f32,cpu:x:1c,true,1,1,,\ncopy:8,f32,cpu:x:1c,true,1,2,,"),
            "line 3: copy:8 f32 cpu:x:1c has a row already");
  EXPECT_FALSE(parse_table("shape;dtype\n"));
  EXPECT_FALSE(parse_table(""));
}

TEST(TableCsv, WrongResultHidesEveryTiming) {
  const auto rows = make_table({check(false), measured(Stage::Warm, 1), measured(Stage::Compile, 2)}, "toy");
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(write_table(rows).find("false,not-run,not-run,not-run,not-run") != std::string::npos, true);
}

TEST(TableCsv, UncheckedResultHidesEveryTiming) {
  EXPECT_NE(write_table(make_table({measured(Stage::Warm, 1)}, "toy")).find("not-run,not-run,not-run,not-run,not-run"),
            std::string::npos);
}

TEST(TableCsv, ClaimsAndSimulationsNeverEnter) {
  Cell claim = measured(Stage::Warm, 1);
  claim.state = State::Claimed;
  Cell simulated = measured(Stage::Model, 1);
  simulated.qualifiers.simulated = true;
  const auto rows = make_table({check(true), claim, simulated}, "toy");
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].warm_ms.state, State::NotRun);
  EXPECT_EQ(rows[0].model_ms.state, State::NotRun);
}

class ReplaceFile : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / ("tw_replace_" + std::to_string(::getpid()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  static std::string text_of(const std::filesystem::path& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  std::filesystem::path folder_;
};

TEST_F(ReplaceFile, ALinkIsFollowedAndStays) {
  std::ofstream(folder_ / "target") << "old";
  std::filesystem::create_symlink("target", folder_ / "link");
  std::filesystem::create_symlink("link", folder_ / "second");
  ASSERT_TRUE(replace_file(folder_ / "second", "new"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "second"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "link"));
  EXPECT_EQ(text_of(folder_ / "target"), "new");
  std::filesystem::create_symlink("absent", folder_ / "dangling");
  ASSERT_TRUE(replace_file(folder_ / "dangling", "made"));
  EXPECT_EQ(text_of(folder_ / "absent"), "made");
}

TEST_F(ReplaceFile, WhatIsNoRegularFileIsWrittenInto) {
  const std::filesystem::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  ASSERT_TRUE(replace_file(pipe, "text"));
  char got[8] = {};
  EXPECT_EQ(::read(reader, got, sizeof got), 4);
  ::close(reader);
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  // Behind /dev/full by its own name in this folder: the link is followed, the node is written into and refuses.
  std::filesystem::create_symlink("/dev/full", folder_ / "full");
  const Status full = replace_file(folder_ / "full", "text");
  ASSERT_FALSE(full);
  EXPECT_EQ(code_text(full.error().code), "E3302");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
}

TEST(TableCsv, LatestCellCounts) {
  const auto rows = make_table({check(true), measured(Stage::Warm, 1), measured(Stage::Warm, 2)}, "toy");
  EXPECT_EQ(rows.at(0).warm_ms.value, 2);
}

}  // namespace
}  // namespace tilewright::bench
