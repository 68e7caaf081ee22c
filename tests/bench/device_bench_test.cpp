// The harness on a device, with a stand-in for the CUDA driver in which device memory is the host's and a stream runs
// at once: a toy that computes there has its whole life measured; a kernel of ours, which does not run there, is
// refused.
#include <algorithm>

#include "bench/suite/hopper_suite.h"
#include "toy_bench.h"

namespace tilewright::bench {
namespace {

class DeviceBench : public ToyBench {
 protected:
  void SetUp() override {
    ToyBench::SetUp();
    folder_ = out_ / "driver";
    std::filesystem::create_directories(folder_);
    std::filesystem::create_symlink(TW_FAKE_CUDA, folder_ / "libcuda.so.1");
  }
  test::Answer run(std::vector<std::string> all, bool with_driver) const {
    all.insert(all.begin(), TW_BINARY_DIR "/bin/tilewright");
    const std::string path = with_driver ? folder_.string() : (out_ / "no-driver").string();
    return test::run_program({.argv = std::move(all), .env = {{"LD_LIBRARY_PATH", path}}});
  }
  std::vector<std::string> on_device(std::vector<std::string> words) const {
    words.insert(words.end(), {"--device", "cuda:0"});
    return words;
  }
  const Cell* find(const std::vector<Cell>& all, Stage stage) const {
    const auto at = std::ranges::find(all, stage, &Cell::stage);
    return at == all.end() ? nullptr : &*at;
  }
  static bool is_busy() {
    double load = 0;
    return getloadavg(&load, 1) == 1 && load > 2.0 * sysconf(_SC_NPROCESSORS_ONLN);
  }
  std::filesystem::path folder_;
};

TEST_F(DeviceBench, TheWholeLifeOfAToyOnADevice) {
  BenchOptions o = options("spin_us=50");
  o.timeout_ms = 120'000;
  o.device = "cuda:0";
  o.budget.sustained_rounds = 1;
  ::setenv("LD_LIBRARY_PATH", folder_.c_str(), 1);
  const auto report = run_bench(o);
  ::unsetenv("LD_LIBRARY_PATH");
  ASSERT_TRUE(report) << report.error().message;
  const auto recorded = cells();
  for (Stage stage :
       {Stage::Check, Stage::Import, Stage::DeviceInit, Stage::Compile, Stage::Load, Stage::FirstCall, Stage::Warm,
        Stage::Hot, Stage::Host, Stage::LaunchFloor, Stage::Steady, Stage::Burst, Stage::Peak}) {
    const Cell* cell = find(recorded, stage);
    ASSERT_NE(cell, nullptr) << info(stage).metric;
    if (cell->reason == "timer-disagrees" && is_busy()) GTEST_SKIP() << "every second launch is interrupted";
    EXPECT_EQ(cell->state, State::Measured) << info(stage).metric << ": " << cell->reason;
    EXPECT_EQ(cell->subject.device, "cuda:Fake-H200:sm_90");
  }
  EXPECT_GE(find(recorded, Stage::Warm)->value.value_or(0), 0.05);
  EXPECT_GE(find(recorded, Stage::Steady)->value.value_or(0), 0.05);
  EXPECT_EQ(find(recorded, Stage::Warm)->detail.value("flush", ""), "writes over twice the L2 cache");
  EXPECT_EQ(find(recorded, Stage::Peak)->detail.value("declared", ""), "memory of the device, without the tensors");
}

TEST_F(DeviceBench, AWrongResultOnADeviceIsNotTimed) {
  const auto answer = run(on_device(words("wrong=1")), true);
  EXPECT_EQ(answer.code, 3) << answer.out << answer.err;
  for (const Cell& cell : cells()) EXPECT_TRUE(cell.stage == Stage::Check || cell.state != State::Measured);
}

TEST_F(DeviceBench, WithoutADriverEveryCellSaysSo) {
  const auto answer = run(on_device(words("spin_us=10")), false);
  EXPECT_EQ(answer.code, 6) << answer.out << answer.err;
  EXPECT_NE(answer.out.find("libcuda.so.1 cannot be opened"), std::string::npos) << answer.out;
  const auto recorded = cells();
  ASSERT_FALSE(recorded.empty());
  for (const Cell& cell : recorded) {
    EXPECT_EQ(cell.state, State::NotRun);
    EXPECT_EQ(cell.subject.device, "cuda:0");
  }
}

TEST_F(DeviceBench, AKernelOfOursIsCompiledLoadedAndLaunchedThere) {
  if (test::tilewright({"run", "--help"}).code != 0) GTEST_SKIP() << "built without the compiler";
  const auto answer =
      run(on_device({"bench", "tile:kernels/elementwise.tile:add", "--op", "add:1000", "--budget", "selftest",
                     "--no-reference", "--model", "none", "--out", out_.string(), "--no-progress"}),
          true);
  EXPECT_EQ(answer.code, 3) << answer.out << answer.err;  // the stand-in runs no kernel: nothing was written
  const auto recorded = cells();
  const Cell* check = find(recorded, Stage::Check);
  ASSERT_NE(check, nullptr);
  EXPECT_EQ(check->state, State::Failed) << check->reason;
  EXPECT_NE(check->reason.find("writ"), std::string::npos) << check->reason;
}

TEST_F(DeviceBench, SuiteHopperWithoutADeviceListsEveryRowWithTheReason) {
  const auto answer =
      run({"bench", "--suite", "hopper", "--filter", "softmax", "--out", out_.string(), "--no-progress"}, false);
  EXPECT_EQ(answer.code, 6) << answer.err;
  EXPECT_NE(answer.out.find("rows softmax:65536x4096 bf16"), std::string::npos) << answer.out;
  EXPECT_NE(answer.out.find("not-run: no CUDA driver"), std::string::npos) << answer.out;
}

TEST_F(DeviceBench, SuiteHopperOnAnotherDeviceThanAHopperGoesToTheEnd) {
  if (test::tilewright({"run", "--help"}).code != 0) GTEST_SKIP() << "built without the compiler";
  const auto answer =
      run({"bench", "--suite", "hopper", "--filter", "launch", "--out", out_.string(), "--no-progress"}, true);
  EXPECT_EQ(answer.code, 6) << answer.out << answer.err;
  EXPECT_NE(answer.out.find("not timed: "), std::string::npos) << answer.out;
}

}  // namespace
}  // namespace tilewright::bench
