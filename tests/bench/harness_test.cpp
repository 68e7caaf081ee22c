// The harness from end to end on toys with planted costs and faults, through the real command and real child processes.
#include "bench/harness.h"

#include "toy_bench.h"

namespace tilewright::bench {
namespace {

class Harness : public ToyBench {};

TEST_F(Harness, AFirstCallOfHalfASecondIsCompileTimeAndNeverWarmTime) {
  const Outcome toy = run("first_ms=500");
  EXPECT_GE(toy.value(Stage::Compile).value_or(0), 500);
  EXPECT_LT(toy.value(Stage::Warm).value_or(1e9), 1);
  const TableRow line = row(toy.candidate);
  EXPECT_GE(line.compile_ms.value, 500);
  EXPECT_LT(line.warm_ms.value, 1);
  EXPECT_EQ(line.reference_ok, ReferenceOk::True);
}

TEST_F(Harness, ASlowImportMovesImportAlone) {
  const Outcome toy = run("import_ms=300");
  EXPECT_GE(toy.value(Stage::Import).value_or(0), 300);
  EXPECT_LT(toy.value(Stage::Compile).value_or(1e9), 300);
  EXPECT_LT(toy.value(Stage::Load).value_or(1e9), 300);
  EXPECT_LT(toy.value(Stage::Warm).value_or(1e9), 300);
}

TEST_F(Harness, ASpinOfTwoMillisecondsIsInsideTheWarmInterval) {
  BenchOptions o = options("spin_us=2000");
  o.budget.warm_processes = 3;
  const auto report = run_bench(o);
  ASSERT_TRUE(report);
  const Cell* warm = report->outcomes.front().find(Stage::Warm);
  ASSERT_TRUE(warm != nullptr && warm->ci);
  EXPECT_GE(warm->ci->high, 1.98);
  EXPECT_GE(*warm->value, 1.98) << "nothing can be faster than the spin";
  double load = 0;
  if (getloadavg(&load, 1) == 1 && load > 2.0 * sysconf(_SC_NPROCESSORS_ONLN))
    GTEST_SKIP() << "load average " << load << ": every second launch is interrupted";
  EXPECT_LE(warm->ci->low, 2.02);
}

TEST_F(Harness, A256MebibyteAllocationIsThePeak) {
  EXPECT_NEAR(run("alloc_mib=256").value(Stage::Peak).value_or(0), 256, 256 * 0.02);
}

TEST_F(Harness, AFilledCacheIsLoadedNotCompiled) {
  const Outcome toy = run("compile_ms=80");
  EXPECT_GE(toy.value(Stage::Compile).value_or(0), 80);
  EXPECT_LT(toy.value(Stage::Load).value_or(1e9), 80);
}

TEST_F(Harness, CheckComesBeforeEveryTiming) {
  run("spin_us=10");
  uint64_t check_seq = 0;
  for (const Cell& cell : cells()) {
    if (cell.stage == Stage::Check)
      check_seq = cell.seq;
    else
      EXPECT_LT(check_seq, cell.seq);
    EXPECT_GT(check_seq, 0u);
  }
}

TEST_F(Harness, AWrongResultHasNoTimingLine) {
  const Outcome toy = run("wrong=1");
  EXPECT_EQ(toy.find(Stage::Check)->state, State::Failed);
  for (const Cell& cell : cells()) EXPECT_EQ(cell.stage, Stage::Check);
  const std::string text = text_of(out_ / toy.candidate / "table.csv");
  EXPECT_NE(text.find(",false,not-run,not-run,not-run,not-run\n"), std::string::npos) << text;
}

TEST_F(Harness, TopLeftForBottomRightIsWrongOrUnfairAndNeverTimed) {
  const char* key = "attn:b1hq1hkv1sq128sk512d16:bshd:causal-br";
  EXPECT_EQ(run("mask=causal-tl", key).find(Stage::Check)->state, State::Failed);
  const Outcome honest = run("mask=causal-tl,echo=honest", key);
  EXPECT_NE(honest.find(Stage::Check)->reason.find("unfair:mask"), std::string::npos)
      << honest.find(Stage::Check)->reason;
  for (const Cell& cell : cells()) EXPECT_EQ(cell.stage, Stage::Check);
}

TEST_F(Harness, ACrashAndARefusalAreRecorded) {
  EXPECT_NE(run("crash=launch").find(Stage::Check)->reason.find("SIGABRT"), std::string::npos);
  EXPECT_EQ(run("refuse=compile").find(Stage::Check)->state, State::NotRun);
}

TEST_F(Harness, AHangIsKilledAndRecorded) {
  BenchOptions o = options("hang=launch");
  o.timeout_ms = 1500;
  const auto report = run_bench(o);
  ASSERT_TRUE(report);
  EXPECT_NE(report->outcomes.front().find(Stage::Check)->reason.find("did not answer"), std::string::npos);
}

TEST_F(Harness, ALyingWorkerIsFoundAndAnHonestOneIsNot) {
  BenchOptions o = options("");
  o.workloads = {*parse_workload("add:4", DTypes{})};
  for (const char* word : {"lie", "lie0.3", "zero", "truth"}) {
    o.candidates = {std::string("worker:") + TW_SOURCE_DIR "/tests/toys/toy_worker.py?" + word};
    const auto report = run_bench(o);
    ASSERT_TRUE(report);
    const Cell* warm = report->outcomes.front().find(Stage::Warm);
    ASSERT_NE(warm, nullptr) << report->outcomes.front().find(Stage::Check)->reason;
    const bool is_true = std::string(word) == "truth";
    EXPECT_EQ(warm->reason.starts_with("timer-disagrees: its clock says "), !is_true) << word << ": " << warm->reason;
    EXPECT_EQ(warm->state, is_true ? State::Measured : State::Failed) << word;
  }
}

TEST_F(Harness, AnImpossibleTimeIsAFailedMeasurementAndNoWrongResult) {
  BenchOptions o = options("");
  o.workloads = {*parse_workload("add:4", DTypes{})};
  o.candidates = {std::string("worker:") + TW_SOURCE_DIR "/tests/toys/toy_worker.py?negative"};
  const auto report = run_bench(o);
  ASSERT_TRUE(report);
  const Outcome& toy = report->outcomes.front();
  EXPECT_EQ(toy.find(Stage::Check)->state, State::Measured);
  ASSERT_NE(toy.find(Stage::Warm), nullptr);
  EXPECT_NE(toy.find(Stage::Warm)->reason.find("timer: a launch cannot take -"), std::string::npos);
}

TEST_F(Harness, AWorkerThatDiesHangsOrBabblesIsRecordedWithItsLastWords) {
  BenchOptions o = options("");
  o.workloads = {*parse_workload("add:4", DTypes{})};
  o.timeout_ms = 4000;
  const auto reason = [&](const char* word) {
    o.candidates = {std::string("worker:") + TW_SOURCE_DIR "/tests/toys/toy_worker.py?" + word};
    const auto report = run_bench(o);
    EXPECT_TRUE(report);
    return report ? report->outcomes.front().find(Stage::Check)->reason : "";
  };
  EXPECT_NE(reason("die").find("the toy worker dies now"), std::string::npos);
  EXPECT_NE(reason("hang").find("did not answer"), std::string::npos);
  EXPECT_NE(reason("garbage").find("is not a JSON object"), std::string::npos);
  for (const Cell& cell : cells()) EXPECT_EQ(cell.stage, Stage::Check);
}

TEST_F(Harness, TheCommandLeavesWithTheDocumentedCodes) {
  EXPECT_EQ(bench("spin_us=10", "gemm:16x16x16").code, 0);
  EXPECT_EQ(bench("wrong=1", "gemm:16x16x16").code, 3);
  const test::Answer unfair = bench("mask=causal-tl,echo=honest", "attn:b1hq1hkv1sq128sk512d16:bshd:causal-br");
  EXPECT_EQ(unfair.code, 3);
  EXPECT_NE(unfair.out.find("unfair:mask"), std::string::npos) << unfair.out;
  EXPECT_EQ(bench("refuse=compile", "gemm:16x16x16").code, 6);
  EXPECT_EQ(bench("spin_us=10", "gemm:nonsense").code, 2);
  EXPECT_EQ(test::tilewright({"bench", "magic:x"}).code, 2);
  EXPECT_EQ(test::tilewright({"nonsense"}).code, 2);
  const test::Answer blank = test::tilewright({"csv", "--template"});
  EXPECT_EQ(blank.code, 0);
  EXPECT_EQ(blank.out, "shape,dtype,device,reference_ok,compile_ms,warm_ms,model_ms,peak_mb\n,,,,not-run,,,\n");
}

}  // namespace
}  // namespace tilewright::bench
