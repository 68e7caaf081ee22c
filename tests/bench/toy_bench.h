// A bench of the toys with planted costs (tests/toys), in a folder of its own.
#pragma once

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "bench/harness.h"
#include "bench/record/cell_log.h"
#include "bench/record/table_csv.h"
#include "support/command.h"

namespace tilewright::bench {

inline const std::string kToy = std::string("lib:") + TW_BINARY_DIR "/toys/toy.so?";

class ToyBench : public ::testing::Test {
 protected:
  void SetUp() override {
    out_ = std::filesystem::path(testing::TempDir()) / ("tw_bench_" + std::to_string(::getpid())) /
           testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(out_);
    std::filesystem::create_directories(out_);
  }
  void TearDown() override { std::filesystem::remove_all(out_); }

  BenchOptions options(const std::string& toy, const char* key = "gemm:32x24x16") const {
    BenchOptions o;
    o.executable = TW_BINARY_DIR "/bin/tilewright";
    o.command = {"tilewright", "bench"};
    o.candidates = {kToy + toy};
    o.workloads = {*parse_workload(key, DTypes{})};
    o.budget = *find_budget("selftest");
    o.out = out_;
    o.show_progress = false;
    o.timeout_ms = 20'000;
    return o;
  }
  Outcome run(const std::string& toy, const char* key = "gemm:32x24x16") {
    auto report = run_bench(options(toy, key));
    EXPECT_TRUE(report) << report.error().message;
    return report ? std::move(report->outcomes.front()) : Outcome{};
  }

  /// The command, on the same toy and folder.
  std::vector<std::string> words(const std::string& toy, const std::string& key = "gemm:32x24x16") const {
    return {"bench",   kToy + toy, "--op",  key,           "--budget",    "selftest", "--no-reference",
            "--model", "none",     "--out", out_.string(), "--timeout-s", "20",       "--no-progress"};
  }
  test::Answer bench(const std::string& toy, const std::string& key = "gemm:32x24x16",
                     const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all = words(toy, key);
    all.insert(all.end(), more.begin(), more.end());
    return test::tilewright(all);
  }

  std::filesystem::path record() const { return out_ / "cells.jsonl"; }
  std::vector<Cell> cells() const {
    const auto file = read_cells(record());
    EXPECT_TRUE(file) << file.error().message;
    return file ? file->cells : std::vector<Cell>{};
  }
  static std::string text_of(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  /// The one row of the toy's table.
  TableRow row(const std::string& candidate) const {
    const auto table = parse_table(text_of(out_ / candidate / "table.csv"));
    EXPECT_TRUE(table) << table.error().message;
    return table ? table->at(0) : TableRow{};
  }

  std::filesystem::path out_;
};

}  // namespace tilewright::bench
