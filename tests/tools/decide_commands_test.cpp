// The commands of the Decide group as a user meets them: words in, exit code and text out.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "bench/record/cell_log.h"
#include "measure/random.h"
#include "tools/command.h"

namespace tilewright::tools {
namespace {

struct Answer {
  int code = 0;
  std::string out;
};

/// Runs one subcommand in this process, as main does.
Answer call(AddCommand add, std::vector<std::string> words) {
  CLI::App app;
  Session session;
  session.kinds = candidate::built_in_kinds(session.workers);
  const Run run = add(app, session);
  std::reverse(words.begin(), words.end());
  Answer answer;
  testing::internal::CaptureStdout();
  try {
    app.parse(words);
    const Result<ExitCode> code = run();
    answer.code = static_cast<int>(code ? *code : exit_code(code.error()));
    if (!code) std::printf("%s", render(code.error()).c_str());
  } catch (const CLI::ParseError& error) {
    answer.code = static_cast<int>(ExitCode::Usage);
  }
  answer.out = testing::internal::GetCapturedStdout();
  return answer;
}

class Commands : public testing::Test {
 protected:
  void SetUp() override {
    folder = std::filesystem::path(testing::TempDir()) / "decide_commands" /
             testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
  }
  std::string path(const std::string& name) const { return (folder / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder / name) << text;
    return path(name);
  }
  /// A whole life with planned times.
  void write_cells(double warm_ms, double reference_ms) const {
    std::filesystem::remove(folder / "cells.jsonl");
    bench::CellLog log = bench::CellLog::open(folder / "cells.jsonl").value();
    measure::Random random(1);
    const auto add = [&](const char* candidate, bench::Stage stage, double value) {
      bench::Cell cell;
      cell.subject = {"gemm:64x64x64:nn", "f32/f32/f32", "cpu:toy:1c"};
      cell.candidate = candidate;
      cell.stage = stage;
      cell.state = bench::State::Measured;
      cell.value = value;
      cell.unit = std::string(bench::info(stage).unit);
      cell.detail = {{"budget", "full"}, {"spelling", std::string("lib:./") + candidate + ".so"}};
      for (int p = 0; p < 6; ++p) {
        cell.samples.emplace_back();
        for (int i = 0; i < 200; ++i) cell.samples.back().push_back(value * (1 + 0.002 * random.normal()));
      }
      ASSERT_TRUE(log.append(cell).has_value());
    };
    for (const auto& [stage, value] : {std::pair{bench::Stage::Check, 1.0},
                                       {bench::Stage::Import, 5.0},
                                       {bench::Stage::Compile, 40.0},
                                       {bench::Stage::FirstCall, 1.0},
                                       {bench::Stage::Warm, warm_ms}}) {
      add("ours", stage, value);
    }
    add("library", bench::Stage::Check, 1.0);
    add("library", bench::Stage::Warm, reference_ms);
  }
  std::filesystem::path folder;
};

constexpr const char* kObjective =
    R"({"candidate":"ours","calls_per_day":1e6,"horizon_days":100,"human_cost":"excluded","tuning_cost":"excluded","accepted_by":"A","accepted_on":"2026-01-31"})";

TEST_F(Commands, DecideAdoptsRejectsAndSaysWhatIsMissing) {
  const std::string objective = write("objective.json", kObjective), out = folder.string();
  EXPECT_EQ(call(add_decide, {objective, "--out", out}).code, 6);
  EXPECT_EQ(call(add_decide, {"--register", objective, "--out", out}).code, 0);
  write_cells(1.0, 2.0);
  const Answer adopt = call(add_decide, {objective, "--out", out, "--resamples", "500"});
  EXPECT_EQ(adopt.code, 0) << adopt.out;
  EXPECT_TRUE(adopt.out.starts_with("ADOPT")) << adopt.out;
  EXPECT_NE(adopt.out.find("what would flip it"), std::string::npos);
  write_cells(2.0, 1.0);
  EXPECT_EQ(call(add_decide, {objective, "--out", out, "--resamples", "500"}).code, 8);
  std::ifstream in(folder / "decision.json");
  EXPECT_EQ(nlohmann::json::parse(in)["verdict"], "REJECT");
}

TEST_F(Commands, AnObjectiveRegisteredAfterMeasuringIsPostHoc) {
  const std::string objective = write("objective.json", kObjective);
  write_cells(1.0, 2.0);
  EXPECT_NE(call(add_decide, {"--register", objective, "--out", folder.string()}).out.find("post-hoc"),
            std::string::npos);
  EXPECT_EQ(call(add_decide, {objective, "--out", folder.string(), "--resamples", "500"}).code, 6);
}

TEST_F(Commands, MalformedInputIsTwo) {
  EXPECT_EQ(call(add_decide, {write("bad.json", "{")}).code, 2);
  EXPECT_EQ(call(add_traffic, {"stats", write("t.csv", "t_s,in\n1,2\n-3,4\n")}).code, 2);
  EXPECT_EQ(call(add_traffic, {"stats", write("e.csv", "")}).code, 2);
  EXPECT_EQ(call(add_traffic, {"simulate", write("ok.csv", "t_s,in\n1,2\n"), "--policy", "pad0"}).code, 2);
  EXPECT_EQ(call(add_traffic, {"simulate", path("ok.csv"), "--compile-ms", "-1"}).code, 2);
  EXPECT_EQ(call(add_claims, {"lint", write("c.csv", "a,b\n1,2\n")}).code, 2);
  EXPECT_EQ(call(add_cost, {"add", "--candidate", "c", "--hours", "-1", "--by", "A", "--out", folder.string()}).code,
            2);
  EXPECT_EQ(call(add_traffic, {"nonsense"}).code, 2);
}

TEST_F(Commands, TrafficTalksJson) {
  const std::string trace = write("t.csv", "t_s,in,out\n0,9,1\n1,10,1\n100,11,1\n");
  const Answer simulated = call(add_traffic, {"simulate", trace, "--policy", "pad10", "--json"});
  EXPECT_EQ(simulated.code, 0);
  EXPECT_EQ(nlohmann::json::parse(simulated.out)["keys"], 2);
  EXPECT_EQ(nlohmann::json::parse(simulated.out)["state"], "simulated");
  EXPECT_EQ(nlohmann::json::parse(call(add_traffic, {"snapshot", trace, "--policy", "pow2"}).out)["keys"].size(), 1u);
  EXPECT_EQ(nlohmann::json::parse(call(add_traffic, {"rare", trace, "--json"}).out)["key_count"], 3);
}

TEST_F(Commands, ClaimsAreKeptApart) {
  const std::string table = write(
      "table.md", "| M | N | K | Latency (s) | TFLOPS |\n|---|---|---|---|---|\n| 4096 | 4096 | 4096 | 0.25 | 550 |\n");
  const Answer lint = call(add_claims, {"lint", table, "--device", "h100"});
  EXPECT_EQ(lint.code, 4);
  EXPECT_NE(lint.out.find("unit_mismatch×1000"), std::string::npos);
  EXPECT_EQ(call(add_claims, {"import", table, "--device", "h100", "--candidate", "ours", "--source", "README",
                              "--as-of", "2026-01-31", "--out", folder.string()})
                .code,
            0);
  const std::string objective = write("objective.json", kObjective);
  const Answer decision = call(add_decide, {objective, "--out", folder.string()});
  EXPECT_EQ(decision.code, 6);
  EXPECT_NE(decision.out.find("claims on file are no measurements"), std::string::npos) << decision.out;
}

TEST_F(Commands, CostIsAppendedAndShown) {
  EXPECT_EQ(call(add_cost, {"add", "--candidate", "c", "--hours", "6", "--by", "A", "--out", folder.string()}).code, 0);
  EXPECT_EQ(nlohmann::json::parse(call(add_cost, {"show", "--json", "--out", folder.string()}).out)["hours"], 6.0);
}

TEST_F(Commands, CostBelongsToOneCandidate) {
  const std::string out = folder.string();
  ASSERT_EQ(call(add_cost, {"add", "--candidate", "mine", "--hours", "5000", "--by", "A", "--out", out}).code, 0);
  const Answer stolen =
      call(add_cost, {"add", "--candidate", "other", "--hours", "0", "--by", "B", "--corrects", "1", "--out", out});
  EXPECT_EQ(stolen.code, 2);
  EXPECT_NE(stolen.out.find("E1662"), std::string::npos) << stolen.out;
  EXPECT_EQ(call(add_cost, {"add", "--candidate", "other", "--hours", "3", "--by", "B", "--out", out}).code, 0);
  const std::string shown = call(add_cost, {"show", "--out", out}).out;
  EXPECT_NE(shown.find("mine: 5000 h of people to adopt"), std::string::npos) << shown;
  EXPECT_NE(shown.find("other: 3 h of people to adopt"), std::string::npos) << shown;
  EXPECT_NE(shown.find("re-validation not-run"), std::string::npos) << shown;
  EXPECT_EQ(call(add_cost, {"show", "--candidate", "other", "--out", out}).out.find("mine"), std::string::npos);
}

TEST_F(Commands, AMistypedRecordIsNoValidation) {
  const Answer answer =
      call(add_validate, {"--matrix", path("nofile.json"), "--candidate", "mine", "--out", folder.string()});
  EXPECT_EQ(answer.code, 2) << answer.out;
  EXPECT_FALSE(std::filesystem::exists(folder / "cost.jsonl"));
}

TEST_F(Commands, AReportSaysThatItsDecisionIsOld) {
  const std::string objective = write("objective.json", kObjective), out = folder.string();
  ASSERT_EQ(call(add_decide, {"--register", objective, "--out", out}).code, 0);
  write_cells(1.0, 2.0);
  ASSERT_EQ(call(add_decide, {objective, "--out", out, "--resamples", "500"}).code, 0);
  EXPECT_EQ(call(add_report, {out, "--export-markdown", "-"}).out.find("stale"), std::string::npos);
  {
    bench::CellLog log = bench::CellLog::open(folder / "cells.jsonl").value();
    bench::Cell wrong = bench::failed(bench::key(log.cells().front()), "mask");
    ASSERT_TRUE(log.append(wrong).has_value());
  }
  EXPECT_NE(call(add_report, {out, "--export-markdown", "-"}).out.find("## ADOPT (stale)"), std::string::npos);
}

TEST_F(Commands, AWrongKernelIsNotServed) {
  const std::string toy = std::string(TW_BINARY_DIR) + "/toys/toy.so";
  if (!std::filesystem::exists(toy)) GTEST_SKIP() << "the toy is not built";
  const std::string trace = write("t.csv", "t_s,in\n0,9\n1,10\n2,17\n");
  for (const char* serving : {"jit", "adaptive"}) {
    const Answer served = call(
        add_traffic, {"replay", trace, "--candidate", "lib:" + toy + "?wrong=1", "--op", "gemm:1x8x8:nn", "--policy",
                      "pad16", "--serving", serving, "--telemetry", path("t.jsonl"), "--out", folder.string()});
    EXPECT_EQ(served.code, 3) << served.out;
    EXPECT_EQ(served.out.find("p50"), std::string::npos) << served.out;
    EXPECT_FALSE(std::filesystem::exists(folder / "replay.json"));
  }
  EXPECT_EQ(call(add_traffic, {"replay", trace, "--candidate", "lib:" + toy, "--op", "gemm:1x8x8:nn", "--policy",
                               "pad16", "--out", folder.string()})
                .code,
            0);
  EXPECT_EQ(call(add_traffic, {"replay", trace, "--candidate", "lib:" + toy, "--op", "gemm:1x8x8:nn", "--serving",
                               "pinned", "--out", folder.string()})
                .code,
            2);
}

TEST_F(Commands, AClaimHasADayATypeAndAName) {
  const std::string table = write("table.md", "| M | N | K | Latency (ms) |\n|---|---|---|---|\n| 8 | 8 | 8 | 1 |\n");
  const auto import = [&](const char* day, const char* dtype, const char* candidate) {
    return call(add_claims, {"import", table, "--device", "h100", "--candidate", candidate, "--source", "README",
                             "--as-of", day, "--dtype", dtype, "--out", folder.string()})
        .code;
  };
  EXPECT_EQ(import("2026-13-45", "f16", "theirs"), 2);
  EXPECT_EQ(import("2199-01-01", "f16", "theirs"), 2);
  EXPECT_EQ(import("2026-01-31", "f99", "theirs"), 2);
  EXPECT_EQ(import("2026-01-31", "f16", "../../x"), 2);
  EXPECT_FALSE(std::filesystem::exists(folder / "cells.jsonl"));
  EXPECT_EQ(import("2026-01-31", "f16", "theirs"), 0);
}

TEST_F(Commands, ReadingMakesNoFileAndATornRecordIsNone) {
  EXPECT_EQ(call(add_history, {"show", "--db", path("none.db")}).code, 2);
  EXPECT_FALSE(std::filesystem::exists(folder / "none.db"));
  write("cells.jsonl", "{\"seq\":1,");
  EXPECT_EQ(call(add_report, {folder.string()}).code, 2);
  EXPECT_EQ(call(add_tune, {"lib:x.so", "--op", "gemm:8x8x8:nn", "--space", path("s.json"), "--runs", "-4"}).code, 2);
}

TEST_F(Commands, ReportAndHistoryReadARecord) {
  write_cells(1.0, 2.0);
  EXPECT_EQ(call(add_report, {folder.string()}).code, 0);
  EXPECT_GT(std::filesystem::file_size(folder / "report.html"), 10000u);
  EXPECT_NE(call(add_report, {folder.string(), "--export-markdown", "-"}).out.find("| ours |"), std::string::npos);
  EXPECT_EQ(call(add_report, {path("nowhere")}).code, 2);
  const std::string db = path("history.db");
  EXPECT_EQ(call(add_history, {"add", "abc", "--out", folder.string(), "--db", db}).code, 0);
  EXPECT_EQ(nlohmann::json::parse(call(add_history, {"show", "--db", db, "--json"}).out).size(), 2u);
}

TEST_F(Commands, AdaptiveReplayNeedsTelemetry) {
  const std::string trace = write("t.csv", "t_s,in\n0,9\n1,10\n");
  EXPECT_EQ(
      call(add_traffic, {"replay", trace, "--candidate", "lib:x.so", "--serving", "adaptive", "--out", folder.string()})
          .code,
      9);
}

/// The whole way on a real shared library: a space with a crashing, a hanging and a wrong configuration.
TEST_F(Commands, TuneVerifyReplayValidate) {
  const std::string library = std::string("lib:") + TW_BINARY_DIR + "/toys/tunable.so";
  if (!std::filesystem::exists(TW_BINARY_DIR "/toys/tunable.so")) GTEST_SKIP() << "the toy is not built";
  const std::string space = write(
      "space.json",
      R"({"params":[{"name":"mode","values":["ok","crash","hang","wrong"]},{"name":"spin_us","values":[3000,1000]}],
    "constraints":["mode == 'ok' or spin_us == 1000"]})");
  const std::string out = folder.string(), best = path("best.json");
  const Answer tuned =
      call(add_tune, {library, "--op", "gemm:8x8x8:nn", "--space", space, "--out", out, "--timeout-s", "8"});
  ASSERT_EQ(tuned.code, 0) << tuned.out;
  for (const char* seen : {"crashed", "hung", "wrong", "winner mode=ok spin_us=1000", "pruned"})
    EXPECT_NE(tuned.out.find(seen), std::string::npos) << seen << tuned.out;
  EXPECT_EQ(call(add_tune, {"verify", best}).code, 0);
  EXPECT_EQ(call(add_validate, {"--matrix", best, "--candidate", "ours", "--out", out}).code, 0);
  std::ifstream in(best);
  std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  text[text.find("\"arch\": \"") + 9] ^= 1;
  const std::string changed = write("changed.json", text);
  EXPECT_EQ(call(add_tune, {"verify", changed, "--record-only"}).code, 7);
  EXPECT_EQ(call(add_validate, {"--matrix", changed, "--candidate", "ours", "--out", out}).code, 7);
  const Answer served =
      call(add_traffic, {"replay", write("t.csv", "t_s,in\n0,9\n1,10\n2,17\n3,12\n"), "--candidate", library, "--op",
                         "gemm:1x8x8:nn", "--policy", "pad16", "--out", out, "--json"});
  EXPECT_EQ(served.code, 0) << served.out;
  EXPECT_EQ(nlohmann::json::parse(served.out)["jit_events"], 2);
}

}  // namespace
}  // namespace tilewright::tools
