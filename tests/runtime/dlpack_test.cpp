#include "runtime/dlpack.h"

#include <gtest/gtest.h>

namespace tilewright::runtime {
namespace {

TEST(Dlpack, ViewsWithoutCopying) {
  float data[12] = {};
  int64_t shape[] = {2, 3};
  int64_t strides[] = {6, 2};
  DlpackManaged managed = {{data, {1, 0}, 2, {2, 32, 1}, shape, strides, 8}, nullptr, nullptr};
  const auto view = view_dlpack(managed);
  ASSERT_TRUE(view.has_value()) << view.error().message;
  EXPECT_EQ(view->data, data + 2);
  EXPECT_EQ(view->extents, shape);
  EXPECT_EQ(view->strides, strides);
  EXPECT_EQ(view->dtype, TW_F32);
  EXPECT_EQ(view->rank, 2);
  EXPECT_EQ(view->device, TW_CPU);
  EXPECT_EQ(view->flags, 0u);
}

TEST(Dlpack, VersionOneKnowsReadOnly) {
  uint8_t data[4] = {};
  int64_t shape[] = {4};
  DlpackManagedVersioned managed = {1, 0, nullptr, nullptr, 1, {data, {2, 0}, 1, {4, 16, 1}, shape, nullptr, 0}};
  auto view = view_dlpack(managed);
  ASSERT_TRUE(view.has_value()) << view.error().message;
  EXPECT_EQ(view->dtype, TW_BF16);
  EXPECT_EQ(view->device, TW_CUDA);
  EXPECT_EQ(view->flags, TW_TENSOR_READ_ONLY);
  managed.major = 2;
  EXPECT_EQ(view_dlpack(managed).error().code, FailureCode::unsupported_tensor_source);
  EXPECT_EQ(view_dlpack(managed).error().message, "DLPack: version 2 is not understood");
}

TEST(Dlpack, RefusesByName) {
  int64_t shape[] = {4};
  DlpackManaged managed = {{nullptr, {1, 0}, 1, {5, 64, 1}, shape, nullptr, 0}, nullptr, nullptr};
  EXPECT_EQ(view_dlpack(managed).error().message, "DLPack: no element type has code 5, 64 bits, 1 lanes");
  managed.tensor.type = {2, 32, 4};
  EXPECT_FALSE(view_dlpack(managed).has_value());
  managed.tensor.type = {2, 32, 1};
  managed.tensor.device.type = 10;
  EXPECT_EQ(view_dlpack(managed).error().message, "DLPack: device type 10 is neither CPU nor CUDA");
  managed.tensor.device.type = 1;
  managed.tensor.rank = 9;
  EXPECT_EQ(view_dlpack(managed).error().message, "DLPack: has 9 axes");
}

}  // namespace
}  // namespace tilewright::runtime
