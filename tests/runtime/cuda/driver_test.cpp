#include "runtime/cuda/driver.h"

#include <gtest/gtest.h>

#include "runtime/cuda/device.h"

namespace tilewright::cuda {
namespace {

TensorMap good_map() {
  TensorMap m;
  m.address = 1024;
  m.rank = 2;
  m.extent = {100, 50};
  m.stride = {2, 208};
  m.box = {64, 128};
  m.swizzle = Swizzle::B128;
  return m;
}

std::string refusal(const TensorMap& map) {
  const auto status = check_tensor_map(map);
  return status ? "" : status.error().message;
}

TEST(TensorMapRules, EachIsNamed) {
  EXPECT_EQ(refusal(good_map()), "");
  TensorMap m = good_map();
  m.address = 1032;
  EXPECT_EQ(refusal(m),
            "the copy engine cannot address this tensor: its first element is at an address that is not a multiple of "
            "16 (0x408)");
  m = good_map();
  m.stride[1] = 202;
  EXPECT_EQ(refusal(m),
            "the copy engine cannot address this tensor: stride 202 bytes of dimension 1 is not a multiple of 16");
  m = good_map();
  m.extent[1] = 0;
  EXPECT_EQ(refusal(m), "the copy engine cannot address this tensor: extent 0 of dimension 1");
  m = good_map();
  m.box[1] = 257;
  EXPECT_EQ(refusal(m), "the copy engine cannot address this tensor: box 257 of dimension 1");
  m = good_map();
  m.box[0] = 128;
  EXPECT_EQ(refusal(m), "the copy engine cannot address this tensor: inner box of 256 bytes exceeds its swizzle");
}

TEST(Driver, AMachineWithoutOneSaysSo) {
  const auto device = Device::open(0);
  if (device) GTEST_SKIP() << "this machine has " << device->facts().name;
  EXPECT_EQ(device.error().code, DiagnosticCode::E3051);
  EXPECT_FALSE(device.error().help.empty());
}

TEST(Driver, StickyFaultsAreTold) {
  for (const int result : {700, 702, 715, 716, 719, 710, 214}) EXPECT_TRUE(is_sticky(result)) << result;
  for (const int result : {0, 1, 2, 209, 400, 701}) EXPECT_FALSE(is_sticky(result)) << result;
}

}  // namespace
}  // namespace tilewright::cuda
