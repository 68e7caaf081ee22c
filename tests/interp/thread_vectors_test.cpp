// The reference bodies of hardware instructions against outputs recorded on an H200 (tests/target/vectors/h200.bin).
#include <gtest/gtest.h>

#include "device/interpret_case.h"
#include "device/record_file.h"

namespace tilewright {
namespace {

using namespace device_cases;

TEST(ThreadVectors, EveryCaseRunsTheSameAtEveryMoment) {
  for (const VectorCase& c : vector_cases()) {
    const auto early = interpret(c, interp::Moment::Earliest), late = interpret(c, interp::Moment::Latest);
    ASSERT_TRUE(early) << c.name << ": " << early.error().message;
    ASSERT_TRUE(late) << c.name << ": " << late.error().message;
    EXPECT_EQ(*early, *late) << c.name;
  }
}

TEST(ThreadVectors, EqualWhatTheHardwareDid) {
  const Recording recording = read_recording(TW_SOURCE_DIR "/tests/target/vectors/h200.bin");
  ASSERT_FALSE(recording.empty());
  for (const VectorCase& c : vector_cases()) {
    const auto it = recording.find(c.name);
    ASSERT_NE(it, recording.end()) << c.name << " was never run on hardware: tests/device/runner vectors";
    const auto got = interpret(c, interp::Moment::Latest);
    ASSERT_TRUE(got) << c.name << ": " << got.error().message;
    EXPECT_EQ(difference(c, it->second, *got), "");
  }
}

}  // namespace
}  // namespace tilewright
