// The device as the harness uses it, on a stand-in for the driver in this process.
#include "bench/device_session.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "runtime/cuda/fake_cuda.h"

namespace tilewright::bench {
namespace {

/// The stand-in, under the driver's own name from now on.
FakeCuda& fake() {
  void* library = dlopen(TW_FAKE_CUDA, RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) std::fprintf(stderr, "%s\n", dlerror()), std::exit(99);
  return *reinterpret_cast<FakeCuda* (*)()>(dlsym(library, "fake_cuda"))();
}

TEST(DeviceSession, GraphsOfTwentyCallsAreReplayedAndAFailedCallIsTold) {
  FakeCuda& driver = fake();
  auto session = DeviceSession::open("cuda:0");
  ASSERT_TRUE(session) << session.error().message;
  EXPECT_EQ((*session)->name(), "cuda:Fake-H200:sm_90");
  int enqueued = 0;
  const int before = driver.launches;
  const auto ms = (*session)->timed_in_graphs(
      [&]() -> Status {
        EXPECT_TRUE(driver.is_capturing);
        ++enqueued;
        return {};
      },
      100);
  ASSERT_TRUE(ms) << ms.error().message;
  EXPECT_GE(*ms, 0);
  EXPECT_EQ(enqueued, 20);
  EXPECT_EQ(driver.launches - before, 1 + 5);  // one to wake it, then 100 calls as five replays
  EXPECT_EQ(driver.forbidden, 0);
  EXPECT_FALSE((*session)->timed_in_graphs([]() -> Status { return fail(DiagnosticCode::E9001, "no"); }, 20));
  EXPECT_FALSE(driver.is_capturing);
}

TEST(DeviceSession, BytesGoThereAndBackAndAnUnknownDeviceIsRefused) {
  fake();
  auto session = DeviceSession::open("cuda:0");
  ASSERT_TRUE(session);
  const std::vector<int> there = {3, 1, 4, 1, 5};
  std::vector<int> back(5);
  const auto memory = (*session)->allocate(20);
  ASSERT_TRUE(memory);
  ASSERT_TRUE((*session)->upload(*memory, there.data(), 20));
  ASSERT_TRUE((*session)->download(back.data(), *memory, 20));
  EXPECT_EQ(back, there);
  (*session)->release(*memory);
  EXPECT_EQ(DeviceSession::open("cuda:x").error().message, "--device cuda:x: there is no such device");
  EXPECT_EQ(DeviceSession::open("cuda:7").error().code, DiagnosticCode::E3051);
}

}  // namespace
}  // namespace tilewright::bench
