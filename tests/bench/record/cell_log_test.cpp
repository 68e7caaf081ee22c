#include "bench/record/cell_log.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <functional>

namespace tilewright::bench {
namespace {

class CellLogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("tw_cells_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    path_ = folder_ / "cells.jsonl";
    std::filesystem::remove(path_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static Cell cell(Stage stage, double value) {
    Cell out = not_run({{"gemm:1x1x1", "f32/f32/f32", "cpu:x:1c"}, "toy", stage}, "");
    out.state = State::Measured;
    out.value = value;
    out.ci = Interval{value - 1, value + 1, 0.969};
    out.samples = {{value, 2 * value}, {value / 2}};
    out.command = {"tilewright", "bench"};
    out.detail["clock"] = "tsc";
    out.qualifiers.stale = true;
    return out;
  }
  void add_text(const std::string& text) { std::ofstream(path_, std::ios::app) << text; }

  std::filesystem::path folder_, path_;
};

TEST_F(CellLogTest, AppendedCellsReadBackEqual) {
  Cell a = cell(Stage::Warm, 1.5), b = cell(Stage::Compile, 20);
  {
    auto log = CellLog::open(path_);
    ASSERT_TRUE(log);
    ASSERT_TRUE(log->append(a));
    ASSERT_TRUE(log->append(b));
  }
  const auto file = read_cells(path_);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->cells, (std::vector<Cell>{a, b}));
  EXPECT_EQ(a.seq, 1u);
  EXPECT_EQ(b.seq, 2u);
}

TEST_F(CellLogTest, TornLastLineIsCutAndSeqGoesOn) {
  Cell a = cell(Stage::Warm, 1), b = cell(Stage::Warm, 2);
  { ASSERT_TRUE(CellLog::open(path_)->append(a)); }
  add_text("{\"seq\":2,\"sha");
  EXPECT_TRUE(read_cells(path_)->had_torn_line);
  { ASSERT_TRUE(CellLog::open(path_)->append(b)); }
  const auto file = read_cells(path_);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->cells.size(), 2u);
  EXPECT_EQ(file->cells[1].seq, 2u);
  EXPECT_FALSE(file->had_torn_line);
}

TEST_F(CellLogTest, DamagedLineInTheMiddleIsRefusedWithItsNumber) {
  Cell a = cell(Stage::Warm, 1);
  { ASSERT_TRUE(CellLog::open(path_)->append(a)); }
  add_text("garbage\n");
  const auto file = read_cells(path_);
  ASSERT_FALSE(file);
  EXPECT_NE(file.error().message.find("cells.jsonl:2:"), std::string::npos) << file.error().message;
}

// One damaged number each: it is refused where it is read, with its line.
TEST_F(CellLogTest, NumbersNoMeasurementGivesAreRefused) {
  const auto refusal = [&](const std::function<void(nlohmann::json&)>& damage) {
    nlohmann::json line = to_json(cell(Stage::Warm, 3));
    damage(line);
    std::filesystem::remove(path_);
    add_text(line.dump() + "\n");
    const auto file = read_cells(path_);
    return file ? std::string("read") : file.error().message;
  };
  const auto expect = [&](const std::string& what, const std::function<void(nlohmann::json&)>& damage) {
    const std::string message = refusal(damage);
    EXPECT_NE(message.find("cells.jsonl:1:"), std::string::npos) << message;
    EXPECT_NE(message.find(what), std::string::npos) << message;
  };
  EXPECT_EQ(refusal([](nlohmann::json&) {}), "read");
  expect("field 'value' of a cell is -3: no warm_ms is", [](nlohmann::json& j) { j["value"] = -3; });
  expect("field 'value' of a cell is 0: no warm_ms is", [](nlohmann::json& j) { j["value"] = 0; });
  expect("field 'unit' of a cell is 'us', warm_ms is in ms", [](nlohmann::json& j) { j["unit"] = "us"; });
  expect("is 100, and its samples lie in [1.5, 6]", [](nlohmann::json& j) { j["value"] = 100; });
  expect("field 'samples' of a cell has a -1", [](nlohmann::json& j) { j["samples"] = {{3, -1}}; });
  expect("field 'ci' of a cell is [4, 2] at level 0.9", [](nlohmann::json& j) { j["ci"] = {4, 2, 0.9}; });
  expect("field 'ci' of a cell is [2, 4] at level 95", [](nlohmann::json& j) { j["ci"] = {2, 4, 95}; });
  expect("field 'n' of a cell is -1", [](nlohmann::json& j) { j["n"] = -1; });
  expect("field 'detail' of a cell is not an object", [](nlohmann::json& j) { j["detail"] = 7; });
  expect("field 'value' of a cell is -3", [](nlohmann::json& j) {
    j["state"] = "claimed";
    j["value"] = -3;
  });
}

TEST_F(CellLogTest, SecondWriterIsRefused) {
  const auto first = CellLog::open(path_);
  const auto second = CellLog::open(path_);
  ASSERT_TRUE(first);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, DiagnosticCode::E3303);
}

TEST_F(CellLogTest, FailedWriteLeavesTheFileAsItWas) {
  Cell a = cell(Stage::Warm, 1), b = cell(Stage::Warm, 2);
  auto log = CellLog::open(path_);
  ASSERT_TRUE(log->append(a));
  const auto size = std::filesystem::file_size(path_);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{size + 10, before.rlim_max};
  const auto old = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  const auto written = log->append(b);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old);
  EXPECT_FALSE(written);
  EXPECT_EQ(std::filesystem::file_size(path_), size);
  EXPECT_TRUE(log->append(b));
}

TEST_F(CellLogTest, EveryBadFieldIsNamed) {
  const nlohmann::json good = to_json(cell(Stage::Warm, 1));
  for (const char* field : {"shape", "dtype", "device", "candidate", "metric", "state"}) {
    nlohmann::json bad = good;
    bad.erase(field);
    const auto parsed = parse_cell(bad);
    ASSERT_FALSE(parsed) << field;
    EXPECT_NE(parsed.error().message.find(field), std::string::npos);
    bad[field] = 7;
    EXPECT_FALSE(parse_cell(bad)) << field;
  }
}

TEST_F(CellLogTest, OnlyMeasuredAndClaimedCellsHaveValues) {
  nlohmann::json json = to_json(cell(Stage::Warm, 1));
  json["state"] = "not-run";
  EXPECT_FALSE(parse_cell(json));
  json["state"] = "claimed";
  EXPECT_TRUE(parse_cell(json));
  json.erase("value");
  EXPECT_FALSE(parse_cell(json));
}

}  // namespace
}  // namespace tilewright::bench
