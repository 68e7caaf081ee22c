// Prints what the run time itself costs; asserts no time. Run with
//   runtime_test --gtest_also_run_disabled_tests --gtest_filter='Overhead.*'
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "runtime/matmul_recipe.h"
#include "runtime/plan.h"
#include "runtime/pool.h"

namespace tilewright::runtime {
namespace {

int32_t do_nothing(const tw_launch*, int64_t, int64_t, void*) { return 0; }

template <typename Body>
std::pair<double, double> best_and_median_ns(Body&& body) {
  std::vector<double> samples;
  for (int sample = 0; sample < 51; ++sample) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 2000; ++i) body();
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
    samples.push_back(time.count() / 2000);
  }
  std::ranges::sort(samples);
  return {samples[0], samples[25]};
}

TEST(Overhead, DISABLED_OwnWorkOfExecute) {
  const auto device = open_cpu({.threads = 1});
  Recipe recipe = matmul_recipe();
  recipe.workspaces.clear();
  recipe.launches[0].cost_ns = constant(100);  // stays on the caller
  const tw_cpu_entry entries[] = {do_nothing};
  const auto plan = Plan::link(*device, recipe, entries);
  ASSERT_TRUE(plan.has_value());
  std::vector<float> a(64 * 64), b(64 * 64), c(64 * 64), scratch(1024);
  const int64_t extents[] = {64, 64};
  const int64_t strides[] = {64, 1};
  std::vector<tw_tensor> tensors;
  for (std::vector<float>* data : {&a, &b, &c})
    tensors.push_back({data->data(), extents, strides, TW_F32, 2, 0, TW_CPU});
  const tw_arguments arguments = {tensors.data(), 3, nullptr, 0};
  void* const memory = std::aligned_alloc(64, 4096);
  bool good = true;
  const auto [best, median] =
      best_and_median_ns([&] { good = plan->execute(arguments, memory, 4096, nullptr).has_value() && good; });
  EXPECT_TRUE(good);
  std::printf("execute, matmul with an empty body: best %.1f, median %.1f ns\n", best, median);
  std::free(memory);
}

// The clock of the core, for reading the other figures on a machine that is busy.
TEST(Overhead, DISABLED_HundredDependentAdds) {
  uint64_t value = 1;
  const auto [best, median] = best_and_median_ns([&] {
    for (int i = 0; i < 100; ++i) {
      value += 3;
      asm volatile("" : "+r"(value));
    }
  });
  std::printf("100 dependent additions: best %.1f, median %.1f ns\n", best, median);
}

TEST(Overhead, DISABLED_ForkJoin) {
  ThreadPool pool(2);
  std::atomic<int64_t> sum = 0;
  const auto [best, median] = best_and_median_ns([&] {
    pool.run(
        [](void* context, int64_t begin, int64_t, int32_t) { *static_cast<std::atomic<int64_t>*>(context) += begin; },
        &sum, 2, 1);
  });
  std::printf("fork-join of 2 threads: best %.1f, median %.1f ns\n", best, median);
}

}  // namespace
}  // namespace tilewright::runtime
