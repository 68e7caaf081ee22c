#include "runtime/plan.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <numeric>
#include <thread>

#include "runtime/add_recipe.h"

namespace tilewright::runtime {
namespace {

struct AddCall {
  explicit AddCall(int64_t size) : n(size), a(size), b(size), c(size) {
    std::iota(a.begin(), a.end(), 0.0f);
    std::iota(b.begin(), b.end(), 1.0f);
    for (std::vector<float>* data : {&a, &b, &c}) tensors.push_back({data->data(), &n, nullptr, TW_F32, 1, 0, TW_CPU});
  }
  tw_arguments arguments() const { return {tensors.data(), tensors.size(), &scale, 1}; }
  bool is_right() const {
    for (int64_t i = 0; i < n; ++i) {
      if (c[i] != a[i] + 2.0f * b[i]) return false;
    }
    return true;
  }

  int64_t n;
  std::vector<float> a, b, c;
  std::vector<tw_tensor> tensors;
  tw_scalar scale = {TW_SCALAR_INTEGER, 0, {2}};
};

struct AlignedMemory {
  explicit AlignedMemory(size_t size) : bytes(size), data(std::aligned_alloc(64, (size + 63) / 64 * 64)) {}
  ~AlignedMemory() { std::free(data); }
  size_t bytes;
  void* data;
};

void execute(const Plan& plan, AddCall& call) {
  const AlignedMemory workspace(*plan.workspace_bytes(call.arguments()));
  const Status status = plan.execute(call.arguments(), workspace.data, workspace.bytes, nullptr);
  ASSERT_TRUE(status.has_value()) << status.error().message;
  EXPECT_TRUE(call.is_right());
}

TEST(Plan, ExecutesAtAnyExtent) {
  const auto device = open_cpu({.threads = 3});
  const auto plan = Plan::load(*device, add_artefact());
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  for (const int64_t n : {0, 1, 1023, 1024, 1025, 100'003}) {
    AddCall call(n);
    execute(*plan, call);
  }
}

TEST(Plan, WorkspaceIsScratchOfEveryWorker) {
  const auto device = open_cpu({.threads = 3});
  Artefact artefact = add_artefact();
  artefact.recipe.workspaces = {{.name = "w", .bytes = combine(ExpressionOp::Add, {slot(0), constant(1)})}};
  const auto plan = Plan::load(*device, artefact);
  ASSERT_TRUE(plan.has_value());
  AddCall call(100);
  EXPECT_EQ(*plan->workspace_bytes(call.arguments()), 128u + 3 * 4096);
  const Status status = plan->execute(call.arguments(), nullptr, 0, nullptr);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, FailureCode::small_workspace);
  EXPECT_EQ(status.error().message, "add needs a workspace of 12416 bytes for these shapes, got 0");
  const AlignedMemory memory(20000);
  const Status misaligned = plan->execute(call.arguments(), static_cast<char*>(memory.data) + 8, 19000, nullptr);
  EXPECT_EQ(misaligned.error().message, "add: the workspace must be 64-byte aligned");
}

TEST(Plan, InfersOutputs) {
  const auto device = open_cpu({.threads = 1});
  const auto plan = Plan::load(*device, add_artefact());
  AddCall call(77);
  call.tensors[2].extents = nullptr;
  call.tensors[2].data = nullptr;
  int64_t extents[TW_MAX_RANK] = {};
  ASSERT_TRUE(plan->infer_extents(call.arguments(), 2, extents).has_value());
  EXPECT_EQ(extents[0], 77);
  EXPECT_FALSE(plan->infer_extents(call.arguments(), 3, extents).has_value());
}

TEST(Plan, AFailedAssertionIsReported) {
  const auto device = open_cpu({.threads = 2});
  const auto plan = Plan::load(*device, add_artefact());
  AddCall call(5000);
  call.a[3000] = -12345.0f;
  const AlignedMemory workspace(*plan->workspace_bytes(call.arguments()));
  const Status status = plan->execute(call.arguments(), workspace.data, workspace.bytes, nullptr);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, FailureCode::assertion_failed);
  EXPECT_EQ(status.error().message, "add.tile:4:7: assertion failed: a[i] != -12345 (block 2, index 952)");
}

TEST(Plan, ConcurrentExecutionsNeedOnlyTheirOwnWorkspace) {
  const auto device = open_cpu({.threads = 2});
  const auto plan = Plan::load(*device, add_artefact());
  std::atomic<int> right = 0;
  const auto work = [&] {
    AddCall call(20'000);
    const AlignedMemory workspace(*plan->workspace_bytes(call.arguments()));
    for (int round = 0; round < 200; ++round) {
      std::fill(call.c.begin(), call.c.end(), -1.0f);
      right += plan->execute(call.arguments(), workspace.data, workspace.bytes, nullptr).has_value() && call.is_right();
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 4 * 200);
}

TEST(Plan, TheCallersPoolIsUsed) {
  struct Counting {
    std::atomic<int> runs = 0;
  } counting;
  const tw_pool pool = {&counting,
                        [](void* self, tw_task task, void* context, int64_t count, int64_t grain) {
                          ++static_cast<Counting*>(self)->runs;
                          for (int64_t begin = 0; begin < count; begin += grain) {
                            task(context, begin, std::min(count, begin + grain),
                                 static_cast<int32_t>(begin / grain % 5));
                          }
                        },
                        [](void*) { return int32_t{5}; }, [](void*) {}};
  const auto device = open_cpu({.pool = &pool});
  EXPECT_EQ(device->workers(), 5);
  Artefact artefact = add_artefact();
  const auto plan = Plan::load(*device, artefact);
  AddCall call(50'000);
  execute(*plan, call);
  EXPECT_EQ(counting.runs, 1);
  artefact.recipe.launches[0].cost_ns = slot(0);  // a nanosecond per element: 5000 are not worth a pool
  const auto cheap = Plan::load(*device, artefact);
  AddCall small(5000);
  execute(*cheap, small);
  EXPECT_EQ(counting.runs, 1);
  execute(*cheap, call);
  EXPECT_EQ(counting.runs, 2);
}

TEST(Plan, RunsInAChildAfterFork) {
  const auto device = open_cpu({.threads = 2});
  const auto plan = Plan::load(*device, add_artefact());
  AddCall call(50'000);
  execute(*plan, call);
  const pid_t child = fork();
  if (child == 0) {
    AddCall own(50'000);
    const AlignedMemory workspace(*plan->workspace_bytes(own.arguments()));
    const bool good =
        plan->execute(own.arguments(), workspace.data, workspace.bytes, nullptr).has_value() && own.is_right();
    _exit(good ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(Plan, RefusesWhatItCannotRun) {
  const auto device = open_cpu({.threads = 1});
  Artefact artefact = add_artefact();
  artefact.recipe.cpu_features = {"avx2", "warp-drive"};
  EXPECT_EQ(Plan::load(*device, artefact).error().code, FailureCode::missing_cpu_feature);
  EXPECT_NE(Plan::load(*device, artefact).error().message.find("warp-drive"), std::string::npos);
  artefact = add_artefact();
  artefact.recipe.launches[0].symbol = "nothing";
  EXPECT_EQ(Plan::load(*device, artefact).error().message, "object: has no entry 'nothing'");
  artefact = add_artefact();
  artefact.kind = CodeKind::Cubin;
  EXPECT_EQ(Plan::load(*device, artefact).error().code, FailureCode::wrong_device);
}

TEST(Plan, HugeGridsAndWorkspacesAreRefused) {
  const auto device = open_cpu({.threads = 2});
  Artefact artefact = add_artefact();
  artefact.recipe.launches[0].grid = {constant(INT64_MAX), constant(INT64_MAX)};
  AddCall call(10);
  auto plan = Plan::load(*device, artefact);
  const AlignedMemory workspace(*plan->workspace_bytes(call.arguments()));
  EXPECT_EQ(plan->execute(call.arguments(), workspace.data, workspace.bytes, nullptr).error().code,
            FailureCode::too_large);
  artefact = add_artefact();
  artefact.recipe.workspaces = {{.name = "w", .bytes = constant(INT64_MAX)},
                                {.name = "v", .bytes = constant(INT64_MAX)}};
  plan = Plan::load(*device, artefact);
  EXPECT_EQ(plan->workspace_bytes(call.arguments()).error().code, FailureCode::too_large);
}

}  // namespace
}  // namespace tilewright::runtime
