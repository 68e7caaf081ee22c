#include "candidate/worker.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <thread>

#include "candidate/child_process.h"

namespace tilewright::candidate {
namespace {

const std::string kToy = TW_SOURCE_DIR "/tests/toys/toy_worker.py";

struct Opened {
  CandidatePtr candidate;
  std::vector<Tensor> args;
};

Opened open_toy(const std::string& option, int timeout_ms = 5000) {
  Opened out{std::move(*make_worker_candidate(kToy + "?" + option, {})), {}};
  const Status status = out.candidate->open({.timeout = std::chrono::milliseconds(timeout_ms)});
  EXPECT_TRUE(status) << status.error().message;
  auto* memory = static_cast<float*>(*out.candidate->allocate_shared(3 * 64));
  for (int i = 0; i < 3; ++i)
    out.args.push_back({std::string(1, static_cast<char>('A' + i)), DType::F32, {3}, {1}, i == 2, memory + 16 * i});
  for (int i = 0; i < 3; ++i) memory[i] = static_cast<float>(i), memory[16 + i] = 100;
  return out;
}

TEST(WorkerCandidate, ComputesInSharedMemory) {
  Opened toy = open_toy("truth");
  EXPECT_EQ(toy.candidate->identity().name, "toy-worker-truth");
  EXPECT_EQ(toy.candidate->prepare({"{}", "abc"})->digest, "abc");
  const auto times = toy.candidate->launch_batch(toy.args, {.count = 3});
  ASSERT_TRUE(times) << times.error().message;
  EXPECT_EQ(times->launch_ms.size(), 3u);
  EXPECT_GE(times->launch_ms[0], 2.0);
  EXPECT_EQ(static_cast<float*>(toy.args[2].data)[2], 102);
}

TEST(WorkerCandidate, DeathIsReportedWithItsLastWords) {
  Opened toy = open_toy("die");
  const auto times = toy.candidate->launch_batch(toy.args, {});
  ASSERT_FALSE(times);
  EXPECT_EQ(times.error().code, DiagnosticCode::E3202);
  EXPECT_NE(times.error().message.find("exit 3"), std::string::npos) << times.error().message;
  EXPECT_NE(times.error().message.find("the toy worker dies now"), std::string::npos);
}

TEST(WorkerCandidate, HangIsKilled) {
  Opened toy = open_toy("hang", 1000);
  const auto times = toy.candidate->launch_batch(toy.args, {});
  ASSERT_FALSE(times);
  EXPECT_EQ(times.error().code, DiagnosticCode::E3203);
  EXPECT_NE(::kill(*toy.candidate->process_id(), 0), 0);
}

TEST(WorkerCandidate, GarbageIsABadReply) {
  Opened toy = open_toy("garbage");
  EXPECT_EQ(toy.candidate->launch_batch(toy.args, {}).error().code, DiagnosticCode::E3205);
}

TEST(WorkerCandidate, ANegativeTimeSpoilsTheTimeAndNotTheResult) {
  Opened toy = open_toy("negative");
  EXPECT_TRUE(toy.candidate->launch(toy.args, nullptr, nullptr));
  const auto times = toy.candidate->launch_batch(toy.args, {});
  ASSERT_FALSE(times);
  EXPECT_EQ(times.error().code, DiagnosticCode::E3205);
  EXPECT_NE(times.error().message.find("timer: a launch cannot take -"), std::string::npos) << times.error().message;
}

TEST(WorkerCandidate, MissingPackageIsNotInstalled) {
  auto toy = make_worker_candidate(kToy + "?missing", {});
  const Status status = (*toy)->open({});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, DiagnosticCode::E3204);
  EXPECT_EQ(status.error().help, "pip install nowhere");
}

TEST(WorkerCandidate, UnknownNameListsTheReadyOnes) {
  const auto made = make_worker_candidate("nothing", {.folder = TW_SOURCE_DIR "/workers"});
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().help.find("numpy"), std::string::npos) << made.error().help;
}

TEST(WorkerCandidate, TensorOutsideSharedMemoryIsOurBug) {
  Opened toy = open_toy("truth");
  float own[3] = {};
  toy.args[0].data = own;
  EXPECT_EQ(toy.candidate->launch_batch(toy.args, {}).error().code, DiagnosticCode::E9001);
}

TEST(ChildProcess, EndsAreNamed) {
  auto fine = ChildProcess::start({.argv = {"true"}});
  EXPECT_TRUE(fine->wait(std::chrono::seconds(5)).is_success());
  auto dead = ChildProcess::start({.argv = {"sh", "-c", "kill -SEGV $$"}});
  EXPECT_EQ(to_string(dead->wait(std::chrono::seconds(5))), "SIGSEGV");
  EXPECT_EQ(ChildProcess::start({.argv = {"/no/such/program"}}).error().code, DiagnosticCode::E3200);
  auto slow = ChildProcess::start({.argv = {"sleep", "100"}});
  EXPECT_EQ(to_string(slow->wait(std::chrono::milliseconds(50))), "SIGKILL");
}

TEST(ChildProcess, EnvironmentCanBeChanged) {
  auto child = ChildProcess::start(
      {.argv = {"sh", "-c", "echo $TW_A; echo ${HOME-none}"}, .env = {{"TW_A", "1"}, {"HOME", std::nullopt}}});
  EXPECT_EQ(*child->read_line(std::chrono::seconds(5)), "1");
  EXPECT_EQ(*child->read_line(std::chrono::seconds(5)), "none");
}

}  // namespace
}  // namespace tilewright::candidate
