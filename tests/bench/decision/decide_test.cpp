#include "bench/decision/decide.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "measure/random.h"

namespace tilewright::decision {
namespace {

using bench::Cell;
using bench::Stage;
using bench::State;

const bench::Subject kSubject{"gemm:64x64x64:nn", "f32/f32/f32", "cpu:toy:1c"};

/// Builds the record of a toy whose delays are planned.
class Record {
 public:
  Cell& add(const std::string& candidate, Stage stage, double value, double noise = 0.002) {
    Cell cell;
    cell.seq = cells.size() + 1;
    cell.subject = kSubject;
    cell.candidate = candidate;
    cell.stage = stage;
    cell.state = State::Measured;
    cell.value = value;
    cell.unit = std::string(bench::info(stage).unit);
    for (int process = 0; process < 6; ++process) {
      std::vector<double> samples;
      for (int i = 0; i < 200; ++i) samples.push_back(value * (1 + noise * random_.normal()));
      cell.samples.push_back(std::move(samples));
    }
    cell.n = 1200;
    cell.procs = 6;
    cell.contract_digest = "c0";
    cell.environment_digest = "e0";
    cell.detail = {{"budget", "full"}, {"threads", 1}, {"spelling", "lib:./" + candidate + ".so"}};
    cells.push_back(std::move(cell));
    return cells.back();
  }

  void whole_life(double warm_ms, double reference_ms, double compile_ms = 40) {
    add("ours", Stage::Check, 1);
    add("ours", Stage::Import, 5);
    add("ours", Stage::Compile, compile_ms);
    add("ours", Stage::FirstCall, 1);
    add("ours", Stage::Warm, warm_ms);
    add("ours", Stage::Peak, 100);
    rival("library", reference_ms);
  }
  void rival(const std::string& name, double warm_ms) {
    add(name, Stage::Check, 1);
    add(name, Stage::Warm, warm_ms);
  }
  void fail_last(const std::string& reason) {
    cells.back().state = State::Failed;
    cells.back().value.reset();
    cells.back().samples.clear();
    cells.back().reason = reason;
  }

  std::vector<Cell> cells;

 private:
  measure::Random random_{11};
};

Objective objective(const std::string& extra = "") {
  const std::string text = R"({"candidate": "ours", "min_gain": 0.05, "slo_ms": 5, "peak_mb": 200, "warmup_s": 1,
    "calls_per_day": 1e6, "horizon_days": 100, "human_cost": "excluded", "tuning_cost": "excluded", "accepted_by": "A", "accepted_on": "2026-01-31")" +
                           (extra.empty() ? "" : ", " + extra) + "}";
  Result<Objective> parsed = parse_objective(text, "objective.json");
  EXPECT_TRUE(parsed.has_value()) << (parsed ? "" : render(parsed.error()));
  return *parsed;
}

Decision decided(const Record& record, const Objective& o, std::vector<CostEntry> costs = {},
                 uint64_t measured_before = 0) {
  EvidenceInput input{.cells = record.cells, .costs = std::move(costs), .draws = {.resamples = 2000}};
  input.registration = Registration{o.digest, "2026-01-31T00:00:00.000Z", measured_before};
  return decide(o, collect(o, input).value());
}

const Clause& clause(const Decision& decision, const std::string& part) {
  const auto it =
      std::ranges::find_if(decision.clauses, [&](const Clause& c) { return c.name.find(part) != std::string::npos; });
  EXPECT_NE(it, decision.clauses.end()) << part;
  return *it;
}

TEST(BreakEven, ByHand) {
  const std::vector<double> ours(20, 1.0), theirs(20, 3.0), compile(3, 100.0);
  const std::vector<Draw> draws = draw_medians(ours, theirs, true, compile, {.resamples = 100});
  EXPECT_EQ(to_string(break_even(draws, {1, 0})), "50 [50, 50]");
  EXPECT_EQ(to_string(break_even(draws, {2, 20})), "110 [110, 110]");
  EXPECT_EQ(to_string(break_even(draws, {1, 0}, {.candidate = 3})), "never");
  EXPECT_EQ(to_string(break_even(draws, {0, 0})), "0 [0, 0]");
  EXPECT_TRUE(break_even({}, {1, 0}).is_never());
}

TEST(BreakEven, ASavingThatMayBeZeroMayNeverPay) {
  measure::Random random(3);
  std::vector<double> ours, theirs;
  for (int i = 0; i < 52; ++i) {
    ours.push_back(1 + 0.1 * random.normal());
    theirs.push_back(1.01 + 0.1 * random.normal());
  }
  const std::vector<double> compile = {100};
  const BreakEven value = break_even(draw_medians(ours, theirs, false, compile), {1, 0});
  EXPECT_TRUE(value.low.has_value());
  EXPECT_FALSE(value.high.has_value());
  EXPECT_TRUE(to_string(value).ends_with(", never]")) << to_string(value);
}

TEST(BreakEven, PairsCancelSharedNoise) {
  measure::Random random(4);
  std::vector<double> ours, theirs;
  for (int i = 0; i < 52; ++i) {
    const double phase = 1 + 0.3 * random.uniform();
    ours.push_back(1.0 * phase);
    theirs.push_back(1.02 * phase);
  }
  const std::vector<double> compile = {1};
  EXPECT_TRUE(break_even(draw_medians(ours, theirs, true, compile), {1, 0}).high.has_value());
  EXPECT_FALSE(break_even(draw_medians(ours, theirs, false, compile), {1, 0}).high.has_value());
  EXPECT_EQ(to_string(break_even(draw_medians(ours, theirs, true, compile, {.seed = 9}), {1, 0})),
            to_string(break_even(draw_medians(ours, theirs, true, compile, {.seed = 9}), {1, 0})));
}

TEST(Decide, AdoptsATwiceFasterToy) {
  Record record;
  record.whole_life(1.0, 2.0);
  const Decision decision = decided(record, objective());
  for (const Clause& c : decision.clauses) EXPECT_EQ(c.finding, Finding::Holds) << c.name << ": " << c.text;
  EXPECT_EQ(decision.verdict, Verdict::Adopt);
  EXPECT_NEAR(decision.gain, 0.5, 0.01);
}

TEST(Decide, RejectsASlowToyAndOneThatIsWrong) {
  Record slow;
  slow.whole_life(2.0, 1.0);
  EXPECT_EQ(decided(slow, objective()).verdict, Verdict::Reject);
  Record wrong;
  wrong.whole_life(1.0, 2.0);
  wrong.cells[0].state = State::Failed;
  wrong.cells[0].value.reset();
  wrong.cells[0].reason = "mask";
  const Decision decision = decided(wrong, objective());
  EXPECT_EQ(decision.verdict, Verdict::Reject);
  EXPECT_EQ(clause(decision, "correct").text, "rejected by the oracle: mask");
}

TEST(Decide, EachCapCanReject) {
  Record record;
  record.whole_life(1.0, 2.0);
  EXPECT_EQ(clause(decided(record, objective()), "peak").finding, Finding::Holds);
  for (const char* change : {R"("peak_mb": 200)", R"("slo_ms": 5)", R"("warmup_s": 1)"}) {
    Objective o = objective();
    if (std::string(change).find("peak") != std::string::npos) o.peak_mb = 99;
    if (std::string(change).find("slo") != std::string::npos) o.slo_ms = 0.5;
    if (std::string(change).find("warmup") != std::string::npos) o.warmup_s = 0.040;
    EXPECT_EQ(decided(record, o).verdict, Verdict::Reject) << change;
  }
  Objective few = objective();
  few.calls_per_day = 3;
  few.starts_per_day = 1;  // 41 calls repay a start, there are 3
  EXPECT_EQ(clause(decided(record, few), "per process start").finding, Finding::Violated);
}

TEST(Decide, ClaimsAloneAreInsufficient) {
  Record record;
  record.add("ours", Stage::Warm, 0.1).state = State::Claimed;
  record.add("library", Stage::Warm, 10).state = State::Claimed;
  const Decision decision = decided(record, objective());
  EXPECT_EQ(decision.verdict, Verdict::Insufficient);
  EXPECT_NE(clause(decision, "gain").text.find("the 2 claims on file are no measurements"), std::string::npos);
  for (const Clause& c : decision.clauses) {
    if (c.finding == Finding::Open) {
      EXPECT_FALSE(c.command.empty()) << c.name;
    }
  }
}

TEST(Decide, QuickEvidenceRejectsButNeverAdopts) {
  Record fast, slow;
  fast.whole_life(1.0, 2.0);
  slow.whole_life(2.0, 1.0);
  for (Record* record : {&fast, &slow}) {
    for (Cell& cell : record->cells) cell.detail["budget"] = "quick";
  }
  EXPECT_EQ(decided(fast, objective()).verdict, Verdict::Insufficient);
  EXPECT_EQ(decided(slow, objective()).verdict, Verdict::Reject);
}

TEST(Decide, AnObjectiveWrittenAfterwardsCannotAdopt) {
  Record record;
  record.whole_life(1.0, 2.0);
  const Objective o = objective();
  const Decision late = decided(record, o, {}, 3);
  EXPECT_EQ(late.verdict, Verdict::Insufficient);
  EXPECT_TRUE(late.is_post_hoc);
  EXPECT_NE(clause(late, "accepted").text.find("post-hoc: 3 cells"), std::string::npos);
  EvidenceInput unregistered{.cells = record.cells, .draws = {.resamples = 500}};
  EXPECT_EQ(decide(o, collect(o, unregistered).value()).verdict, Verdict::Insufficient);
  Objective nobody = o;
  nobody.accepted_by.clear();
  EXPECT_EQ(decided(record, nobody).verdict, Verdict::Insufficient);
}

TEST(Decide, StaleTimedOutAndUnmeasuredAreInsufficient) {
  Record record;
  record.whole_life(1.0, 2.0);
  Record stale = record, timed_out = record, missing = record;
  stale.cells[4].qualifiers.stale = true;
  timed_out.cells[4].stop_reason = "timeout";
  missing.cells.erase(missing.cells.begin() + 5);
  EXPECT_EQ(decided(stale, objective()).verdict, Verdict::Insufficient);
  EXPECT_EQ(decided(timed_out, objective()).verdict, Verdict::Insufficient);
  const Decision decision = decided(missing, objective());
  EXPECT_EQ(decision.verdict, Verdict::Insufficient);
  EXPECT_EQ(clause(decision, "peak").command,
            "tilewright bench lib:./ours.so --op gemm:64x64x64:nn --dtype f32/f32/f32 --reference lib:./library.so "
            "--budget full --threads 1");
}

TEST(Decide, WhereTheGateFailedNoDifferenceCounts) {
  for (const double ours : {1.0, 4.0}) {
    Record record;
    record.whole_life(ours, 2.0);
    EXPECT_EQ(clause(decided(record, objective()), " gain ").finding, ours < 2 ? Finding::Holds : Finding::Violated);
    Cell& ratio = record.add("ours", Stage::Ratio, 1);
    ratio.state = State::Failed;
    ratio.value.reset();
    ratio.reason = "noise: A/A gate, too noisy";
    ratio.detail["rival"] = "library";
    const Decision decision = decided(record, objective());
    EXPECT_EQ(decision.verdict, Verdict::Insufficient);
    for (const char* part : {" gain ", "per process start", "within the horizon"}) {
      EXPECT_EQ(clause(decision, part).finding, Finding::Open) << part;
      EXPECT_EQ(
          clause(decision, part).command,
          "tilewright compare lib:./ours.so lib:./library.so --op gemm:64x64x64:nn --dtype f32/f32/f32 --rounds 400 "
          "--threads 1 --out out");
    }
  }
}

TEST(Decide, HumanHoursEnterTheAdoption) {
  Record record;
  record.whole_life(1.0, 2.0);
  Objective o = objective(R"("human_rate_per_hour": 100, "machine_rate_per_hour": 4)");
  o.is_human_cost_excluded = false;
  EXPECT_EQ(clause(decided(record, o), "people").finding, Finding::Open);
  CostEntry hours{.seq = 1, .candidate = "ours", .kind = CostKind::Port, .hours = 10, .by = "A"};
  const Decision cheap = decided(record, o, {hours});
  // 10 h × 100 / 4 = 250 h of machine time at 1 ms a call: 9.0e8 calls, and the horizon has 1e8.
  EXPECT_NEAR(*cheap.break_evens.per_adoption->calls.calls, 9.0e8, 3e7);
  EXPECT_EQ(clause(cheap, "people").finding, Finding::Violated);
  o.calls_per_day = 1e8;
  EXPECT_EQ(clause(decided(record, o, {hours}), "people").finding, Finding::Holds);
}

TEST(Decide, FlipsReallyFlip) {
  Record record;
  record.whole_life(1.0, 2.0);
  const Decision decision = decided(record, objective());
  const auto flip = [&](const std::string& knob) {
    const auto it = std::ranges::find_if(decision.flips, [&](const Flip& f) { return f.knob == knob; });
    EXPECT_NE(it, decision.flips.end()) << knob;
    return it != decision.flips.end() ? *it : Flip{};
  };
  EXPECT_NEAR(flip("peak_mb").at, 200, 2);
  EXPECT_NEAR(flip("peak_mb cap").at, 100, 2);
  EXPECT_NEAR(flip("candidate warm_ms").at, 1.9, 0.03);  // 5 % below 2.0
  EXPECT_NEAR(flip("reference warm_ms").at, 1.0 / 0.95, 0.03);
  EXPECT_NEAR(flip("min_gain").at, 0.5, 0.01);
  Objective few = objective();
  few.calls_per_day = 1e4;
  const Decision thin = decided(record, few);
  const auto it = std::ranges::find(thin.flips, "calls_per_day", &Flip::knob);
  ASSERT_NE(it, thin.flips.end());
  EXPECT_NEAR(it->at, 41, 2);  // calls that repay one start
  EXPECT_NE(it->becomes, Verdict::Adopt);
}

TEST(Decide, PairedRoundsAreUsedWhenThereAreSome) {
  Record record;
  record.whole_life(1.0, 2.0);
  Cell& ratio = record.add("ours", Stage::Ratio, 0.5);
  ratio.detail["rival"] = "library";
  ratio.samples = {{1.0, 1.1, 1.2, 1.0, 1.1, 1.2}, {2.0, 2.2, 2.4, 2.0, 2.2, 2.4}};
  const Objective o = objective();
  EvidenceInput input{.cells = record.cells, .draws = {.resamples = 500}};
  EXPECT_TRUE(collect(o, input)->is_paired);
  ratio.detail["rival"] = "another";
  input.cells = record.cells;
  EXPECT_FALSE(collect(o, input)->is_paired);
}

TEST(Decide, TheFastestRivalIsTheReference) {
  Record record;
  record.whole_life(1.0, 2.0);
  record.rival("framework", 1.5);
  const Objective o = objective();
  const Evidence evidence = collect(o, {.cells = record.cells, .draws = {.resamples = 100}}).value();
  EXPECT_EQ(evidence.reference, "framework");
  EXPECT_EQ(evidence.rivals.size(), 2u);
}

TEST(Decide, AmdahlStandsBesideTheMeasurement) {
  Record record;
  record.whole_life(1.0, 2.0);
  record.add("ours", Stage::Model, 90).detail["share"] = 0.3;
  record.add("library", Stage::Model, 100);
  const Decision decision = decided(record, objective());
  ASSERT_TRUE(decision.amdahl.has_value());
  EXPECT_NEAR(decision.amdahl->predicted_gain, 0.15, 0.01);
  EXPECT_NEAR(*decision.amdahl->measured_gain, 0.1, 0.01);
  // Measured in turn, the pair counts; where identical models looked different, nothing does.
  for (Cell& cell : record.cells) {
    if (cell.candidate == "ours" && cell.stage == Stage::Model)
      cell.detail["model"] = {{"gate", {{"passed", true}}}, {"measured_speedup", 1.25}};
  }
  EXPECT_NEAR(decided(record, objective()).amdahl->measured_gain.value_or(0), 0.2, 1e-9);
  for (Cell& cell : record.cells) {
    if (cell.detail.contains("model")) cell.detail["model"]["gate"]["passed"] = false;
  }
  EXPECT_EQ(decided(record, objective()).amdahl->measured_gain, std::nullopt);
}

TEST(Decide, TheGuideHasThreeWaysAndAdmitsWhatWasNotRun) {
  Record record;
  record.whole_life(1.0, 2.0);
  const Decision decision = decided(record, objective());
  ASSERT_EQ(decision.options.size(), 3u);
  EXPECT_EQ(decision.options[2].numbers[1].second, "not-run");
  const Objective o = objective();
  const nlohmann::json json =
      to_json(decision, o, collect(o, {.cells = record.cells, .draws = {.resamples = 100}}).value());
  EXPECT_EQ(json["verdict"], "ADOPT");
  EXPECT_EQ(json["clauses"].size(), decision.clauses.size());
}

// The candidate got slower and its new pairing failed: the old ratio is about what is no longer there.
TEST(Decide, AnOldRatioDoesNotOutliveANewerMeasurement) {
  Record record;
  record.whole_life(2.0, 4.0);
  Cell& ratio = record.add("ours", Stage::Ratio, 0.5);
  ratio.detail["rival"] = "library";
  ratio.samples = {std::vector<double>(52, 2.0), std::vector<double>(52, 4.0)};
  EXPECT_EQ(decided(record, objective()).verdict, Verdict::Adopt);
  record.add("ours", Stage::Check, 1);
  for (const Stage stage : {Stage::Import, Stage::Compile, Stage::FirstCall, Stage::Peak}) record.add("ours", stage, 1);
  record.add("ours", Stage::Warm, 8.0);
  Objective o = objective();
  o.slo_ms = 20;
  EXPECT_EQ(decided(record, o).verdict, Verdict::Reject);
  record.cells.back() = Cell(record.cells[4]);  // as fast as before, measured anew
  record.cells.back().seq = record.cells.size();
  record.add("ours", Stage::Ratio, 1);
  record.fail_last("timer-disagrees");
  const Decision unpaired = decided(record, o);
  EXPECT_EQ(unpaired.verdict, Verdict::Insufficient);
  EXPECT_NE(clause(unpaired, "gain").text.find("the latest pairing failed: timer-disagrees"), std::string::npos);
}

TEST(Decide, SidesOfDifferentConditionsAreNotCompared) {
  for (const char* field : {"contract", "environment", "threads"}) {
    Record record;
    record.whole_life(1.0, 2.0);
    Cell& theirs = record.cells.back();
    if (std::string(field) == "contract") theirs.contract_digest = "other";
    if (std::string(field) == "environment") theirs.environment_digest = "other";
    if (std::string(field) == "threads") theirs.detail["threads"] = 2;
    const Decision decision = decided(record, objective());
    EXPECT_EQ(decision.verdict, Verdict::Insufficient) << field;
    EXPECT_NE(clause(decision, "gain").text.find(std::string("unfair:") + field), std::string::npos)
        << clause(decision, "gain").text;
    EXPECT_EQ(clause(decision, "process start").finding, Finding::Open) << field;
    // A loss under other conditions is none either.
    Record slow;
    slow.whole_life(2.0, 1.0);
    slow.cells.back().contract_digest = "other";
    EXPECT_EQ(decided(slow, objective()).verdict, Verdict::Insufficient);
  }
  Record mixed;
  mixed.whole_life(1.0, 2.0);
  mixed.cells[2].environment_digest = "other";
  EXPECT_NE(clause(decided(mixed, objective()), "process start").text.find("compile_ms is not of the same run"),
            std::string::npos);
}

TEST(Decide, ANamedSlowerReferenceIsNotTheReference) {
  Record record;
  record.whole_life(5.0, 8.0);
  record.rival("fastlib", 4.0);
  Objective o = objective(R"("reference": "library")");
  o.slo_ms = 20;
  const Decision decision = decided(record, o);
  EXPECT_EQ(decision.verdict, Verdict::Reject);
  const std::string text = clause(decision, "gain").text;
  EXPECT_NE(text.find("against fastlib; the objective names library, but fastlib is faster"), std::string::npos)
      << text;
  o.reference = "absent";
  EXPECT_NE(clause(decided(record, o), "gain").text.find("reference absent has no measured warm_ms"),
            std::string::npos);
}

TEST(Decide, ARivalCountsOnlyWhenItWasFoundRight) {
  Record never, wrong, later;
  for (Record* record : {&never, &wrong, &later}) record->whole_life(1.0, 2.0);
  std::erase_if(never.cells, [](const Cell& c) { return c.candidate == "library" && c.stage == Stage::Check; });
  wrong.add("library", Stage::Check, 1);
  wrong.fail_last("mask");
  later.add("library", Stage::Check, 1);
  for (const auto& [record, why] : {std::pair{&never, "its result was never checked"},
                                    {&wrong, "its result is wrong: mask"},
                                    {&later, "it was checked again, and not timed since"}}) {
    const Decision decision = decided(*record, objective());
    EXPECT_EQ(decision.verdict, Verdict::Insufficient) << why;
    EXPECT_NE(clause(decision, "gain").text.find(why), std::string::npos) << clause(decision, "gain").text;
  }
  wrong.rival("second", 2.5);
  EXPECT_EQ(decided(wrong, objective()).verdict, Verdict::Adopt);
}

TEST(Decide, TimesOlderThanTheLastCheckDecideNothing) {
  Record record;
  record.whole_life(1.0, 2.0);
  record.add("ours", Stage::Check, 1);
  const Decision decision = decided(record, objective());
  EXPECT_EQ(decision.verdict, Verdict::Insufficient);
  EXPECT_NE(clause(decision, "gain").text.find("warm_ms is older than the last check"), std::string::npos);
}

TEST(Decide, WhatWasNotMeasuredIsNotZeroInABreakEven) {
  Record record;
  record.whole_life(1.0, 2.0);
  Objective o = objective();
  o.is_tuning_cost_excluded = false;
  const Decision untuned = decided(record, o);
  EXPECT_EQ(untuned.verdict, Verdict::Insufficient);
  EXPECT_EQ(to_string(untuned.break_evens.per_upgrade), "not-run");
  EXPECT_EQ(clause(untuned, "toolchain upgrade").text, "tune_ms was not measured");
  EXPECT_EQ(clause(untuned, "toolchain upgrade").command,
            "tilewright tune lib:./ours.so --op gemm:64x64x64:nn --dtype f32/f32/f32 --space space.json --threads 1");
  record.add("ours", Stage::Tune, 1000).samples.clear();
  EXPECT_EQ(clause(decided(record, o), "toolchain upgrade").text, "re-validation was not run");
  const CostEntry validated{
      .seq = 1, .candidate = "ours", .kind = CostKind::Validate, .is_measured = true, .wall_ms = 500};
  const Decision whole = decided(record, o, {validated});
  EXPECT_EQ(whole.verdict, Verdict::Adopt);
  EXPECT_NEAR(*whole.break_evens.per_upgrade->calls.calls, 1540, 20);
  std::erase_if(record.cells, [](const Cell& c) { return c.candidate == "library"; });
  const Decision alone = decided(record, o, {validated});
  EXPECT_EQ(to_string(alone.break_evens.per_start), "not-run");
  EXPECT_EQ(to_json(alone, o, collect(o, {.cells = record.cells}).value())["break_even"]["per_start"], "not-run");
}

TEST(Decide, APrecompiledLibraryHasNothingToCompileAndRepaysItsFirstCall) {
  Record record;
  record.whole_life(1.0, 2.0);
  Cell& compile = record.cells.at(2);
  ASSERT_EQ(compile.stage, Stage::Compile);
  compile.state = State::NotRun;
  compile.value.reset();
  compile.samples.clear();
  compile.detail["precompiled"] = true;
  const Decision d = decided(record, objective());
  EXPECT_EQ(d.verdict, Verdict::Adopt);
  EXPECT_EQ(clause(d, "warm-up").text, "0.006 s from process start to the first warm call, nothing cached");
  ASSERT_TRUE(d.break_evens.per_start);
  EXPECT_NEAR(*d.break_evens.per_start->calls.calls, 1, 0.1) << "1 ms of a first call at 1 ms a call";
  compile.detail.erase("precompiled");
  EXPECT_EQ(clause(decided(record, objective()), "process start").text, "compile_ms was not measured");
}

TEST(Decide, OnlyTheFullBudgetAdopts) {
  for (const char* budget : {"ci", "quick", ""}) {
    Record record;
    record.whole_life(1.0, 2.0);
    for (Cell& cell : record.cells) cell.detail["budget"] = budget;
    EXPECT_EQ(decided(record, objective()).verdict, Verdict::Insufficient) << budget;
  }
}

TEST(Decide, ALoneValueHasNoSpread) {
  Record record;
  record.whole_life(1.0, 2.0);
  for (Cell& cell : record.cells) cell.samples.clear();
  const Decision decision = decided(record, objective());
  EXPECT_EQ(decision.verdict, Verdict::Insufficient);
  EXPECT_NE(clause(decision, "gain").text.find("a lone value has no spread"), std::string::npos);
  Record few;
  few.whole_life(1.0, 2.0);
  for (Cell& cell : few.cells) cell.samples.resize(3);
  EXPECT_NE(clause(decided(few, objective()), "gain").text.find("3 processes, and a 95 % interval needs 6"),
            std::string::npos);
}

TEST(Decide, AnAcceptanceHasANameAndADayBeforeItsRegistration) {
  Record record;
  record.whole_life(1.0, 2.0);
  Objective o = objective();
  o.accepted_on = "2099-01-01";
  EXPECT_EQ(clause(decided(record, o), "accepted").text,
            "accepted on 2099-01-01, after it was registered on 2026-01-31");
  o.accepted_on = "2026-02-01";  // the next day may be today elsewhere
  EXPECT_EQ(decided(record, o).verdict, Verdict::Adopt);
  o.accepted_by = " ";
  EXPECT_EQ(clause(decided(record, o), "accepted").text, "nobody has accepted the objective");
}

TEST(Decide, CommandsCanBeTypedAndLeadToTheRecord) {
  const Objective o = objective();
  const Decision nothing = decide(o, collect(o, {.cells = {}, .folder = "my out"}).value());
  EXPECT_EQ(clause(nothing, "correct").command, "tilewright bench KIND:ours --op SHAPE --budget full --out 'my out'");
}

TEST(Decide, CommandsOfAKernelOfOursNameItsFileSizesAndConfiguration) {
  Record record;
  record.whole_life(1.0, 2.0);
  for (Cell& cell : record.cells) {
    if (cell.candidate != "ours") continue;
    cell.detail["spelling"] = "tile:kernels/matmul.tile:matmul?T=f32";
    cell.detail["config"] = R"({"block_M": 96})";
    cell.detail["budget"] = "quick";
  }
  Objective o = objective();
  o.is_tuning_cost_excluded = false;
  const Decision d = decided(record, o);
  EXPECT_EQ(clause(d, "toolchain upgrade").command,
            "tilewright tune kernels/matmul.tile --kernel matmul --dim M=64,N=64,K=64 --threads 1");
  EXPECT_EQ(clause(d, "correct").command,
            "tilewright bench 'tile:kernels/matmul.tile:matmul?T=f32' --op gemm:64x64x64:nn --dtype f32/f32/f32 "
            "--reference lib:./library.so --config '{\"block_M\": 96}' --budget full --threads 1");
}

TEST(Decide, CommandsOfAKernelsOwnQuestionNameTheFileThatStatesIt) {
  Record record;
  record.whole_life(1.0, 2.0);
  for (Cell& cell : record.cells) {
    cell.subject.shape = "kernel:swiglu:M=8.N=16:ref=aef757a1";
    cell.detail["spelling"] = "tile:own.tile:" + cell.candidate;
    cell.detail["budget"] = "quick";
  }
  Objective o = objective();
  o.is_tuning_cost_excluded = false;
  const Decision d = decided(record, o);
  EXPECT_EQ(clause(d, "correct").command,
            "tilewright bench tile:own.tile:ours --op own.tile:swiglu --dim M=8,N=16 --dtype f32/f32/f32 --reference "
            "tile:own.tile:library --budget full --threads 1");
  EXPECT_EQ(clause(d, "toolchain upgrade").command,
            "tilewright tune own.tile --kernel ours --dim M=8,N=16 --threads 1");
}

TEST(Objective, RefusesWhatItDoesNotKnow) {
  const auto refusal = [](const std::string& text) {
    const Result<Objective> o = parse_objective(text, "o.json");
    return o ? std::string() : render(o.error());
  };
  EXPECT_NE(refusal("{").find("not a JSON object"), std::string::npos);
  EXPECT_NE(
      refusal(R"({"candidate":"a","calls_per_day":1,"horizon_days":1,"peak_mib":3})").find("'peak_mib': no such field"),
      std::string::npos);
  EXPECT_NE(refusal(R"({"candidate":"a","calls_per_day":1})").find("'horizon_days' is missing"), std::string::npos);
  EXPECT_NE(refusal(R"({"candidate":"a","calls_per_day":-1,"horizon_days":1})").find("expected 0 to inf, found -1"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"candidate":"a","calls_per_day":1,"horizon_days":1,"metric":"speed"})")
                .find("expected warm_ms or model_ms"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"candidate":"a","calls_per_day":1,"horizon_days":1,"accepted_on":"31.1.26"})")
                .find("expected a date"),
            std::string::npos);
  const std::string filled = objective_template("x");
  EXPECT_EQ(refusal(filled), "");
}

TEST(Objective, RegistersOnceAndRemembersWhatWasMeasured) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "register";
  std::filesystem::remove_all(folder);
  const Objective o = objective();
  EXPECT_EQ(find_registration(folder, o).value(), std::nullopt);
  ASSERT_TRUE(register_objective(folder, o, 0).has_value());
  ASSERT_TRUE(register_objective(folder, o, 7).has_value());  // it was there before: nothing changes
  EXPECT_EQ(find_registration(folder, o).value()->measured_before, 0u);
  Objective other = o;
  other.digest = "other";
  EXPECT_EQ(find_registration(folder, other).value(), std::nullopt);
  // A laxer one for the same case, after it: the first no longer holds, and one of another case changes nothing.
  Objective elsewhere = other;
  elsewhere.shape = "gemm:8x8x8:nn";
  elsewhere.digest = "elsewhere";
  ASSERT_TRUE(register_objective(folder, elsewhere, 0).has_value());
  EXPECT_EQ(find_registration(folder, o).value()->superseded_at, "");
  ASSERT_TRUE(register_objective(folder, other, 3).has_value());  // after measuring: post-hoc itself
  EXPECT_EQ(find_registration(folder, o).value()->superseded_at, "");
  Objective last = o;
  last.digest = "last";
  ASSERT_TRUE(register_objective(folder, last, 0).has_value());
  EXPECT_NE(find_registration(folder, o).value()->superseded_at, "");
  EXPECT_EQ(find_registration(folder, last).value()->superseded_at, "");
}

TEST(Cost, IsAppendOnlyAndCorrected) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "cost.jsonl";
  std::filesystem::remove(path);
  ASSERT_TRUE(append_cost(path, {.candidate = "ours", .kind = CostKind::Port, .hours = 60, .by = "A"}).has_value());
  ASSERT_TRUE(append_cost(path, {.candidate = "ours", .kind = CostKind::Port, .hours = 6, .by = "A", .corrects = 1})
                  .has_value());
  ASSERT_TRUE(append_cost(path, {.candidate = "ours", .kind = CostKind::Upgrade, .hours = 2, .by = "B"}).has_value());
  ASSERT_TRUE(append_cost(path, {.candidate = "other", .kind = CostKind::Build, .hours = 9, .by = "B"}).has_value());
  ASSERT_TRUE(append_cost(path, {.candidate = "ours",
                                 .kind = CostKind::Validate,
                                 .is_measured = true,
                                 .wall_ms = 1500,
                                 .checked = 4,
                                 .failures = 1})
                  .has_value());
  EXPECT_FALSE(append_cost(path, {.candidate = "ours", .hours = -1, .by = "A"}).has_value());
  EXPECT_FALSE(append_cost(path, {.candidate = "ours", .hours = NAN, .by = "A"}).has_value());
  EXPECT_FALSE(append_cost(path, {.candidate = "ours", .hours = 1}).has_value());
  EXPECT_FALSE(append_cost(path, {.candidate = "ours", .hours = 1, .by = "A", .corrects = 99}).has_value());
  const std::vector<CostEntry> entries = read_costs(path).value();
  ASSERT_EQ(entries.size(), 5u);
  const CostSummary summary = summarise(entries, "ours");
  EXPECT_EQ(summary.hours, 8);
  EXPECT_EQ(summary.adoption_hours, 6);
  EXPECT_EQ(summary.upkeep_hours, 2);
  EXPECT_EQ(summary.validate_ms, 1500);
  EXPECT_EQ(summary.failures, 1);
  std::ofstream(path, std::ios::app) << "{\"kind\":\"lunch\"}\n";
  EXPECT_EQ(code_text(read_costs(path).error().code), "E1662");
}

TEST(Cost, ACorrectionBelongsToOneCandidateAndOneEntryOnce) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "corrections.jsonl";
  std::filesystem::remove(path);
  const auto add = [&](const std::string& candidate, double hours, uint64_t corrects) {
    const Status status = append_cost(path, {.candidate = candidate, .hours = hours, .by = "A", .corrects = corrects});
    return status ? std::string() : status.error().message;
  };
  EXPECT_EQ(add("mine", 5000, 0), "");
  EXPECT_EQ(add("other", 0, 1), "entry 1 belongs to mine, not to other");
  EXPECT_EQ(add("mine", 6, 1), "");
  EXPECT_EQ(add("mine", 7, 1), "entry 1 is already corrected by 2; correct that one");
  EXPECT_EQ(add("mine", 8, 2), "");
  EXPECT_EQ(summarise(read_costs(path).value(), "mine").hours, 8);
  const CostEntry measured{.candidate = "mine", .kind = CostKind::Validate, .is_measured = true, .wall_ms = 9};
  ASSERT_TRUE(append_cost(path, measured).has_value());
  EXPECT_EQ(add("mine", 1, 4), "entry 4 was measured: a declaration corrects only a declaration");
  std::ofstream(path, std::ios::app) << R"({"candidate":"other","kind":"port","state":"declared","hours":0,"by":"B",)"
                                     << R"("at":"2026-01-31","corrects":3})"
                                     << "\n";
  const Diagnostic refusal = read_costs(path).error();
  EXPECT_EQ(refusal.location.line, 5);
  EXPECT_NE(refusal.message.find("entry 3 belongs to mine"), std::string::npos) << refusal.message;
}

}  // namespace
}  // namespace tilewright::decision
