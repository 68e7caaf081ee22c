#include "bench/stage_cells.h"

#include <gtest/gtest.h>

namespace tilewright::bench {
namespace {

using nlohmann::json;

Cell base() {
  Cell cell;
  cell.subject = {"gemm:8x8x8:nn", "f32/f32/f32", "cpu:x:1c"};
  cell.candidate = "toy";
  return cell;
}

json compiled(double call_ms, std::vector<double> launches, int compiles = 1, int hits = 0, const char* digest = "d") {
  return {{"compile_call_ms", call_ms}, {"device_init_ms", 1.0}, {"launch_ms", launches},   {"compiles", compiles},
          {"cache_hits", hits},         {"digest", digest},      {"phases", json::object()}};
}

json warmed(std::vector<double> warm, bool agree = true, json after = json::object(), const char* stop = "precision") {
  return {{"warm_ms", warm},         {"hot_ms", warm},     {"warm_stop", stop},
          {"hot_stop", "precision"}, {"flush", "clflush"}, {"clocks", {{"agree", agree}}},
          {"check_after", after}};
}

TEST(CompileCells, ALazyFirstCallCountsAsCompile) {
  const auto cells = compile_cells(base(), {compiled(1, {500, 0.5, 0.4, 0.6}), compiled(1, {502, 0.5, 0.4, 0.6})}, 0);
  const Cell& compile = cells.at(1);
  EXPECT_EQ(compile.stage, Stage::Compile);
  EXPECT_GE(*compile.value, 500);
  EXPECT_EQ(compile.procs, 2);
  EXPECT_GE(*cells.at(2).value, 499);
}

TEST(CompileCells, AFirstCallNoSlowerThanOthersAddsNothing) {
  EXPECT_EQ(*compile_cells(base(), {compiled(20, {0.5, 0.6, 0.4, 0.5})}, 0).at(1).value, 20);
}

TEST(CompileCells, ACacheHitIsNoColdCompile) {
  const auto cells = compile_cells(base(), {compiled(1, {1, 1}), compiled(1, {1, 1}, 0, 1)}, 0);
  EXPECT_EQ(cells.at(1).reason, "cache-not-empty");
  EXPECT_FALSE(cells.at(1).value);
}

TEST(CompileCells, AVendorsLibraryIsPrecompiled) {
  const auto cells = compile_cells(base(), {compiled(1, {1, 1}, 0, 0)}, 0);
  EXPECT_EQ(cells.at(1).state, State::NotRun);
  EXPECT_EQ(cells.at(1).reason, "precompiled: nothing is compiled");
  EXPECT_TRUE(is_precompiled(cells.at(1)));
  EXPECT_TRUE(cells.at(1).samples.empty() && !cells.at(1).value);
}

TEST(CompileCells, WorkThatIsNotCountedIsStillWork) {
  const auto cells = compile_cells(base(), {compiled(1, {501, 1}, 0, 0)}, 0);
  EXPECT_EQ(cells.at(1).state, State::Measured);
  EXPECT_GE(*cells.at(1).value, 500);
  EXPECT_FALSE(is_precompiled(cells.at(1)));
}

TEST(CompileCells, BytesOutsideTheCacheFolderAreRefused) {
  EXPECT_EQ(compile_cells(base(), {compiled(1, {1, 1})}, 24).at(1).reason, "persisting-cache");
}

TEST(LoadCell, NeedsTheSameArtefactAndNoCompile) {
  const json cold = compiled(20, {1, 1});
  EXPECT_EQ(load_cell(base(), {compiled(1, {1, 1}, 0, 1)}, cold).state, State::Measured);
  EXPECT_EQ(load_cell(base(), {compiled(1, {1, 1}, 0, 1, "other")}, cold).reason, "artefact-differs");
  EXPECT_EQ(load_cell(base(), {compiled(1, {1, 1}, 1, 0)}, cold).state, State::NotRun);
  EXPECT_EQ(load_cell(base(), {compiled(1, {1, 1}, 0, 0)}, compiled(1, {1, 1}, 0, 0)).state, State::NotRun);
}

TEST(WarmCells, HeadlineIsTheMedianOfProcessMedians) {
  const Cell warm = warm_cells(base(), {warmed({1, 1, 1}), warmed({3, 3, 3}), warmed({2, 2, 2})}, 0).front();
  EXPECT_EQ(*warm.value, 2);
  EXPECT_EQ(warm.ci->low, 1);
  EXPECT_EQ(warm.ci->high, 3);
  EXPECT_EQ(warm.n, 9);
  EXPECT_EQ(warm.samples.size(), 3u);
}

TEST(WarmCells, RefusalsHaveNoValue) {
  const auto reason = [](const json& result, double floor) {
    const Cell cell = warm_cells(base(), {warmed({1}), result}, floor).front();
    EXPECT_FALSE(cell.value.has_value() && cell.state == State::Failed);
    return cell.reason;
  };
  EXPECT_TRUE(reason(warmed({1}, false), 0).starts_with("timer-disagrees: its clock says "));
  EXPECT_EQ(reason(warmed({1, 0.1}), 0.5), "faster-than-floor");
  EXPECT_EQ(reason(warmed({1}, true, {{"accepted", false}, {"reason", "stale"}}), 0), "wrong-after-timing: stale");
  EXPECT_EQ(reason(warmed({1}), 0.5), "");
}

TEST(WarmCells, OneTimeoutMakesTheCellATimeout) {
  EXPECT_EQ(warm_cells(base(), {warmed({1}), warmed({1}, true, json::object(), "timeout")}, 0).front().stop_reason,
            "timeout");
}

TEST(WarmCells, ManySamplesAreThinnedButCounted) {
  const Cell warm = warm_cells(base(), {warmed(std::vector<double>(50'000, 1.0))}, 0).front();
  EXPECT_EQ(warm.n, 50'000);
  EXPECT_EQ(warm.samples.front().size(), 1000u);
}

TEST(RatioCell, SameNeedsAGateThatCanSeeTheMargin) {
  const std::vector<double> same(52, 1.0);
  std::vector<double> blunt;
  for (int i = 0; i < 52; ++i) blunt.push_back(1 + 0.08 * (i % 2));  // ± 4 % around itself
  const auto ratio = [&](const std::vector<double>& gate) {
    std::vector<double> other(gate.rbegin(), gate.rend());
    return ratio_cell(base(), {{"a", same}, {"b", same}, {"aa", {gate, other}}}, 0.02);
  };
  EXPECT_EQ(ratio(same).detail["verdict"], "SAME");
  const Cell cell = ratio(blunt);
  ASSERT_EQ(cell.state, State::Measured) << cell.reason;
  EXPECT_EQ(cell.detail["verdict"], "INCONCLUSIVE");
  EXPECT_TRUE(cell.detail.value("is_gate_too_wide", false));
}

TEST(RatioCell, AClockThatDisagreesGivesNoRatio) {
  const std::vector<double> same(52, 1.0);
  json clock = {{"hot_ms", 1.0}, {"batch_ms", 1.0}, {"batch_count", 20}, {"agree", true}};
  json lie = clock;
  lie["batch_ms"] = 3.0;
  lie["agree"] = false;
  const Cell cell = ratio_cell(base(),
                               {{"a", same},
                                {"b", same},
                                {"aa", {same, same}},
                                {"a_name", "mine"},
                                {"b_name", "theirs"},
                                {"clocks", {clock, lie}}},
                               0.02);
  EXPECT_EQ(cell.state, State::Failed);
  EXPECT_EQ(cell.reason, "timer-disagrees: its clock says 1 ms a launch, 20 in a row took 3 ms each (theirs)");
}

TEST(RatioCell, ANoisyGateGivesNoRatio) {
  std::vector<double> a(52, 1.0), b(52, 2.0), noisy;
  for (int i = 0; i < 24; ++i) noisy.push_back(i % 2 == 0 ? 1.0 : 3.0);
  const json fine{{"a", a}, {"b", b}, {"aa", {a, a}}, {"b_name", "rival"}};
  EXPECT_EQ(ratio_cell(base(), fine, 0.02).detail.value("verdict", ""), "FASTER");
  EXPECT_EQ(*ratio_cell(base(), fine, 0.02).value, 0.5);
  std::vector<double> ones(24, 1.0);
  const Cell gated = ratio_cell(base(), {{"a", a}, {"b", b}, {"aa", {noisy, ones}}}, 0.02);
  EXPECT_EQ(gated.state, State::Failed);
  EXPECT_FALSE(gated.value);
}

TEST(BrokenCell, NotInstalledIsNotRunAndACrashIsFailed) {
  Diagnostic d;
  d.message = "worker torch: PyTorch is not installed";
  d.help = "pip install torch";
  d.code = DiagnosticCode::E3204;
  EXPECT_EQ(broken_cell(base(), Stage::Check, d).state, State::NotRun);
  EXPECT_EQ(broken_cell(base(), Stage::Check, d).how_to_run, "pip install torch");
  d.code = DiagnosticCode::E3202;
  EXPECT_EQ(broken_cell(base(), Stage::Check, d).state, State::Failed);
}

TEST(PeakCell, IsInMebibytes) { EXPECT_EQ(*peak_cell(base(), {{"peak_bytes", 256 << 20}}).value, 256); }

TEST(StageCells, AfterTimingTheErrorsOfTheCheckAreAllowedAndNothingElse) {
  const nlohmann::json check{
      {"oracle", {{"main", {{"judgements", {{{"max_allowed", 2e-6}, {"rmse_allowed", 1e-7}}}}}}}}};
  const auto after = [](const char* rule, double max_error) {
    return nlohmann::json{
        {"accepted", false},
        {"judgements", {{{"findings", {{{"rule", rule}, {"text", ""}}}}, {"max_error", max_error}, {"rmse", 5e-8}}}}};
  };
  const auto held = [&](nlohmann::json result, const nlohmann::json& detail) {
    hold_to_check(result, detail);
    return result.value("accepted", false);
  };
  EXPECT_TRUE(held(after("relative", 1e-6), check));
  EXPECT_FALSE(held(after("relative", 3e-6), check));
  EXPECT_FALSE(held(after("pattern", 1e-6), check));
  EXPECT_FALSE(held(after("relative", 1e-6), nlohmann::json::object()));
  EXPECT_FALSE(held({{"accepted", false}, {"reason", "wrote outside its tensors"}}, check));
}

}  // namespace
}  // namespace tilewright::bench
