#include "tune/session.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "measure/clock.h"
#include "toy_runner.h"
#include "tune/best_record.h"
#include "tune/forked_process.h"

namespace tilewright::tune {
namespace {

Space space_of(const std::string& text) { return Space::from_json(nlohmann::json::parse(text)).value(); }

/// Twelve points; the fastest correct one is kind=ok us=400.
Space hazardous_space() {
  return space_of(
      R"({"params":[{"name":"kind","values":["ok","crash","hang","wrong"]},{"name":"us","values":[1000,400,700]}],
    "constraints":["kind != 'hang' or us == 400"]})");
}

std::filesystem::path fresh_log(const std::string& name) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / ("tune_" + name + ".jsonl");
  std::filesystem::remove(path);
  return path;
}

TuneOptions quick(const std::string& name) {
  TuneOptions options;
  options.log = fresh_log(name);
  options.limits.run_timeout_s = 0.5;
  options.limits.compile_timeout_s = 2;
  options.limits.stop = {.min_samples = 10, .min_total_ms = 1, .timeout_ms = 50};
  options.confirm_processes = 2;
  return options;
}

std::vector<nlohmann::json> lines_of(const std::filesystem::path& path) {
  std::vector<nlohmann::json> lines;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

int64_t in_seconds(double s) { return measure::kernel_ns() + static_cast<int64_t>(s * 1e9); }

TEST(ForkedProcess, TellsHowItEnded) {
  auto exits = ForkedProcess::start([](ParentChannel& c) {
                 c.send("hello");
                 fprintf(stderr, "last\nwords");
                 fflush(stderr);
                 _exit(3);
               }).value();
  EXPECT_EQ(exits.read_line(in_seconds(5)), "hello");
  EXPECT_EQ(exits.read_line(in_seconds(5)), std::nullopt);
  EXPECT_EQ(exits.describe_end(), "exited with code 3; it printed: last words");

  auto dies = ForkedProcess::start([](ParentChannel&) { raise(SIGKILL); }).value();
  EXPECT_EQ(dies.read_line(in_seconds(5)), std::nullopt);
  EXPECT_EQ(dies.end(), ForkedProcess::End::Killed);
  EXPECT_EQ(dies.describe_end(), "killed by signal 9 (Killed)");

  auto hangs = ForkedProcess::start([](ParentChannel&) { pause(); }).value();
  EXPECT_EQ(hangs.read_line(in_seconds(0.05)), std::nullopt);
  EXPECT_EQ(hangs.end(), ForkedProcess::End::TimedOut);
}

TEST(ForkedProcess, AnswersInLines) {
  auto echo = ForkedProcess::start([](ParentChannel& c) {
                while (auto line = c.receive()) c.send("<" + *line + ">");
              }).value();
  echo.send("a");
  echo.send("bb");
  EXPECT_EQ(echo.read_line(in_seconds(5)), "<a>");
  EXPECT_EQ(echo.read_line(in_seconds(5)), "<bb>");
}

TEST(Session, CrashHangAndWrongAreListedAndTheRightOneWins) {
  const Space space = hazardous_space();
  ToyRunner runner;
  const TuneOptions options = quick("hazards");
  const Result<TuneOutcome> outcome = tune(space, runner, options);
  ASSERT_TRUE(outcome.has_value()) << render(outcome.error());
  EXPECT_EQ(to_string(outcome->winner.config), "kind=ok us=400");
  EXPECT_FALSE(outcome->runoff.incumbent_kept);
  EXPECT_EQ(count_states(outcome->trials),
            (std::map<std::string, int64_t>{{"ok", 3}, {"crashed", 3}, {"hung", 1}, {"wrong", 3}}));
  for (const Trial& trial : outcome->trials) {
    if (trial.is_ok()) continue;
    EXPECT_FALSE(trial.reason.empty());
    EXPECT_TRUE(trial.samples_ms.empty()) << "no timing exists for a result that was not accepted";
  }
  EXPECT_EQ(space.pruned().size(), 2u);
  EXPECT_EQ(lines_of(options.log).size(), 1 + space.points().size());
}

TEST(Session, AWrongResultAfterTimingIsWrong) {
  ToyRunner runner;
  const Result<TuneOutcome> outcome =
      tune(space_of(R"({"params":[{"name":"kind","values":["ok","wrong-later","die"]}]})"), runner, quick("later"));
  ASSERT_TRUE(outcome.has_value());
  EXPECT_EQ(outcome->trials[1].state, TrialState::Wrong);
  EXPECT_EQ(outcome->trials[1].reason, "after timing: stale result");
  EXPECT_EQ(outcome->trials[2].reason, "while compiling: exited with code 7; it printed: assertion failed: layout");
}

TEST(Session, ParallelAndSerialAgree) {
  const Space space = hazardous_space();
  ToyRunner runner;
  TuneOptions serial = quick("serial"), parallel = quick("parallel");
  serial.jobs = 1;
  parallel.jobs = 4;
  const TuneOutcome a = tune(space, runner, serial).value(), b = tune(space, runner, parallel).value();
  EXPECT_EQ(a.winner.config, b.winner.config);
  for (size_t i = 0; i < a.trials.size(); ++i) {
    EXPECT_EQ(a.trials[i].point, b.trials[i].point);
    EXPECT_EQ(a.trials[i].state, b.trials[i].state);
  }
}

TEST(Session, TheIncumbentSurvivesATie) {
  const Space space = space_of(R"({"params":[{"name":"us","values":[1000,995,990,1500]}]})");
  ToyRunner runner;
  TuneOptions options = quick("tie");
  options.incumbent = config_from_json({{"us", 995}}).value();
  const TuneOutcome outcome = tune(space, runner, options).value();
  EXPECT_EQ(to_string(outcome.winner.config), "us=995");
  EXPECT_TRUE(outcome.runoff.incumbent_kept);
  options.incumbent = config_from_json({{"us", 5}}).value();
  EXPECT_EQ(tune(space, runner, options).error().message, "the required incumbent us=5 is not a point of the space");
}

TEST(Session, NothingCorrectIsAnError) {
  ToyRunner runner;
  const auto outcome =
      tune(space_of(R"({"params":[{"name":"kind","values":["wrong","crash"]}]})"), runner, quick("none"));
  ASSERT_FALSE(outcome.has_value());
  EXPECT_EQ(code_text(outcome.error().code), "E1654");
  EXPECT_EQ(outcome.error().message, "none of 2 configurations gives a correct result: 1 crashed, 1 wrong");
}

TEST(Session, AKilledTuningResumesWithoutDuplicates) {
  const Space space = hazardous_space();
  const TuneOptions options = quick("killed");
  const pid_t tuner = fork();
  if (tuner == 0) {
    ToyRunner runner;
    // The fifth configuration kills the tuner itself, not just its own process.
    runner.on_load = [&](const Config& config) {
      if (to_string(config) == "kind=crash us=400") kill(getppid(), SIGKILL);
    };
    TuneOptions serial = options;
    serial.jobs = 1;
    (void)tune(space, runner, serial);
    _exit(0);
  }
  int status = 0;
  waitpid(tuner, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  const size_t before = lines_of(options.log).size();
  EXPECT_GE(before, 2u);
  EXPECT_LT(before, 1 + space.points().size());
  std::ofstream(options.log, std::ios::app) << R"({"point":9,"sta)";  // and its last line was torn
  ToyRunner runner;
  const Result<TuneOutcome> outcome = tune(space, runner, options);
  ASSERT_TRUE(outcome.has_value()) << render(outcome.error());
  EXPECT_EQ(outcome->resumed, static_cast<int64_t>(before) - 1);
  std::multiset<size_t> points;
  for (const nlohmann::json& line : lines_of(options.log)) {
    if (line.contains("point")) points.insert(line["point"].get<size_t>());
  }
  EXPECT_EQ(points.size(), space.points().size());
  for (const size_t point : points) EXPECT_EQ(points.count(point), 1u);
}

TEST(Session, AForeignLogIsRefusedWithTheField) {
  const Space space = space_of(R"({"params":[{"name":"us","values":[1000]}]})");
  const TuneOptions options = quick("foreign");
  ToyRunner runner;
  ASSERT_TRUE(tune(space, runner, options).has_value());
  EXPECT_EQ(tune(space, runner, options)->resumed, 1);
  ToyRunner other;
  other.here.toolchain = "t2";
  const auto refused = tune(space, other, options);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(code_text(refused.error().code), "E1651");
  EXPECT_NE(refused.error().message.find("toolchain: recorded 't1', here 't2'"), std::string::npos);
  const auto wider = tune(space_of(R"({"params":[{"name":"us","values":[1000, 2000]}]})"), runner, options);
  ASSERT_FALSE(wider.has_value());
  EXPECT_NE(wider.error().message.find("space: recorded"), std::string::npos);
  std::ofstream(options.log) << "{}\n";
  EXPECT_EQ(code_text(tune(space, runner, options).error().code), "E1652");
}

class SavedRecord : public testing::Test {
 protected:
  void SetUp() override {
    const TuneOutcome outcome = tune(space, runner, quick("saved")).value();
    record.buckets = {make_bucket(outcome, runner.identity(), space)};
    record.buckets[0].when = "M <= 128";
    text = write_record(record);
  }
  Space space = space_of(R"({"params":[{"name":"us","values":[1000,400]}]})");
  ToyRunner runner;
  BestRecord record;
  std::string text;
};

TEST_F(SavedRecord, ReadsBackEqualAndFindsItsBucket) {
  const Result<BestRecord> back = read_record(text);
  ASSERT_TRUE(back.has_value()) << render(back.error());
  EXPECT_EQ(*back, record);
  EXPECT_EQ(to_string(back->find({{"M", 100}})->config), "us=400");
  EXPECT_EQ(back->find({{"M", 129}}), nullptr);
  EXPECT_EQ(back->find({{"N", 1}}), nullptr);
}

TEST_F(SavedRecord, AnyChangedByteIsRefused) {
  for (size_t at = 0; at < text.size(); ++at) {
    for (const char flip : {1, 4}) {
      std::string changed = text;
      changed[at] = static_cast<char>(changed[at] ^ flip);
      const Result<BestRecord> back = read_record(changed);
      ASSERT_FALSE(back.has_value()) << "byte " << at;
      ASSERT_EQ(code_text(back.error().code), "E1653");
    }
  }
  EXPECT_FALSE(read_record(text + "\n").has_value());
  EXPECT_FALSE(read_record(text.substr(0, text.size() - 1)).has_value());
  EXPECT_FALSE(read_record("").has_value());
}

TEST_F(SavedRecord, EveryDifferingFieldIsRefused) {
  EXPECT_TRUE(verify_bucket(record.buckets[0], runner.identity(), space.digest()).has_value());
  for (std::string Identity::*field : {&Identity::source, &Identity::workload, &Identity::toolchain, &Identity::arch,
                                       &Identity::device, &Identity::driver, &Identity::harness}) {
    Identity other = runner.identity();
    (other.*field) += "x";
    EXPECT_EQ(code_text(verify_bucket(record.buckets[0], other, space.digest()).error().code), "E1653");
  }
  EXPECT_FALSE(verify_bucket(record.buckets[0], runner.identity(), space.digest() + "x").has_value());
}

TEST_F(SavedRecord, ArtefactAndOutputAreComparedAndReplayLandsInside) {
  const TrialLimits limits = quick("x").limits;
  EXPECT_TRUE(verify_artefact(record.buckets[0], space, runner, limits).has_value());
  BestBucket other = record.buckets[0];
  other.output_digest[0] ^= 1;
  EXPECT_NE(verify_artefact(other, space, runner, limits).error().message.find("the output's bits changed"),
            std::string::npos);
  other = record.buckets[0];
  other.artefact_digest[0] ^= 1;
  EXPECT_NE(verify_artefact(other, space, runner, limits).error().message.find("the artefact changed"),
            std::string::npos);
  EXPECT_TRUE(replay_bucket(record.buckets[0], space, runner, limits, 0.02)->is_inside);
  other = record.buckets[0];
  other.ci_low_ms = other.ci_high_ms = other.ci_high_ms * 1.1;
  EXPECT_FALSE(replay_bucket(other, space, runner, limits, 0.02)->is_inside);
}

}  // namespace
}  // namespace tilewright::tune
