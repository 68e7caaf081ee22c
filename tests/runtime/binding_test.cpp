#include "runtime/binding.h"

#include <gtest/gtest.h>

#include <vector>

#include "runtime/matmul_recipe.h"

namespace tilewright::runtime {
namespace {

constexpr int64_t kM = 5, kK = 7, kN = 6;

/// Valid arguments of matmul_recipe() that a test bends in one place.
struct Call {
  std::vector<float> a = std::vector<float>(kM * kK), b = std::vector<float>(kK * kN), c = std::vector<float>(kM * kN);
  std::vector<std::vector<int64_t>> extents = {{kM, kK}, {kK, kN}, {kM, kN}};
  std::vector<std::vector<int64_t>> strides = {{kK, 1}, {kN, 1}, {kN, 1}};
  std::vector<tw_tensor> tensors;
  std::vector<tw_scalar> scalars;
  Recipe recipe = matmul_recipe();
  Binding binding;

  Call() {
    for (float* data : {a.data(), b.data(), c.data()})
      tensors.push_back({data, nullptr, nullptr, TW_F32, 2, 0, TW_CPU});
  }
  Status bind() {
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (!tensors[i].extents && !keep_null_extents) tensors[i].extents = extents[i].data();
      if (!strides[i].empty()) tensors[i].strides = strides[i].data();
    }
    return runtime::bind(recipe, arguments(), TW_CPU, binding);
  }
  tw_arguments arguments() const { return {tensors.data(), tensors.size(), scalars.data(), scalars.size()}; }
  bool keep_null_extents = false;
};

void expect_failure(Call& call, FailureCode code, const std::string& message, bool is_class_fact = false) {
  const Status status = call.bind();
  ASSERT_FALSE(status.has_value()) << message;
  EXPECT_EQ(name(status.error().code), name(code));
  EXPECT_EQ(status.error().message, message);
  EXPECT_EQ(status.error().is_class_fact, is_class_fact);
}

TEST(Binding, FillsSlotsInOrder) {
  Call call;
  call.strides[2] = {8, 1};
  call.c.resize(kM * 8);
  call.tensors[2].data = call.c.data();
  ASSERT_TRUE(call.bind().has_value());
  const std::vector<int64_t> expected = {kM, kK, kN, kK, 1, kN, 1, 8, 1, 0x3f800000, 1};
  EXPECT_EQ(std::vector<int64_t>(call.binding.slots, call.binding.slots + expected.size()), expected);
  EXPECT_EQ(call.binding.pointers[1], call.b.data());
  EXPECT_EQ(call.binding.ranges[0].high - call.binding.ranges[0].low, kM * kK * sizeof(float));
}

TEST(Binding, ADimensionOfAnOutputAloneNeedsItsExtents) {
  Call call;
  ASSERT_EQ(call.recipe.slots[2].kind, SlotKind::Dim);
  call.recipe.slots[2].argument = 2;  // N, from C instead of B
  for (size_t i = 0; i < 2; ++i) call.tensors[i].extents = call.extents[i].data();
  const Status status = bind_shapes(call.recipe, call.arguments(), call.binding);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(
      status.error().message,
      "C: axis 1 (N) is not known from the inputs: give the extents of C (from Python: pass the array with out=)");
}

TEST(Binding, ShapesAloneAreComparedWithThePlans) {
  Call call;
  for (size_t i = 0; i < 2; ++i) call.tensors[i].extents = call.extents[i].data();
  EXPECT_TRUE(bind_shapes(call.recipe, call.arguments(), call.binding).has_value());
  call.extents[1][0] = kK + 1;
  const Status status = bind_shapes(call.recipe, call.arguments(), call.binding);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().message, "B: axis 0 (K) has extent 8, expected 7, the extent of axis 1 of A");
}

TEST(Binding, MissingStridesMeanRowMajor) {
  Call call;
  call.strides = {{}, {}, {}};
  ASSERT_TRUE(call.bind().has_value());
  EXPECT_EQ(call.binding.slots[3], kK);
  EXPECT_EQ(call.binding.slots[7], kN);
}

TEST(Binding, EachErrorNamesTheArgument) {
  {
    Call call;
    call.tensors.pop_back();
    expect_failure(call, FailureCode::argument_count, "matmul takes 3 tensors (A, B, C), got 2");
  }
  {
    Call call;
    call.tensors[1].dtype = TW_F16;
    expect_failure(call, FailureCode::wrong_dtype, "B: expected f32, got f16");
  }
  {
    Call call;
    call.tensors[1].dtype = 77;
    expect_failure(call, FailureCode::wrong_dtype, "B: expected f32, got dtype 77");
  }
  {
    Call call;
    call.tensors[0].rank = 3;
    expect_failure(call, FailureCode::wrong_rank, "A: expected 2 axes, got 3");
  }
  {
    Call call;
    call.extents[1][0] = 8;
    call.b.resize(8 * kN);
    call.tensors[1].data = call.b.data();
    expect_failure(call, FailureCode::wrong_extent,
                   "B: axis 0 (K) has extent 8, expected 7, the extent of axis 1 of A");
  }
  {
    Call call;
    call.extents[0][1] = -1;
    expect_failure(call, FailureCode::wrong_extent, "A: axis 1 (K) has a negative extent, -1");
  }
  {
    Call call;
    call.tensors[0].data = nullptr;
    expect_failure(call, FailureCode::null_argument, "A: its data is null");
  }
  {
    Call call;
    call.keep_null_extents = true;
    expect_failure(call, FailureCode::null_argument, "A: the array of extents is null");
  }
  {
    Call call;
    call.tensors[0].flags = TW_TENSOR_ABSENT;
    expect_failure(call, FailureCode::null_argument, "A: is missing");
  }
  {
    Call call;
    call.recipe.tensors[0].is_absent = true;
    expect_failure(call, FailureCode::wrong_class, "A: was given, but this plan was compiled without it", true);
  }
  {
    Call call;
    call.tensors[2].flags = TW_TENSOR_READ_ONLY;
    expect_failure(call, FailureCode::read_only_argument, "C: the kernel writes it, but the tensor is read-only");
  }
  {
    Call call;
    call.tensors[1].device = TW_CUDA;
    expect_failure(call, FailureCode::wrong_device, "B: is not in the memory of the plan's device");
  }
  {
    Call call;
    call.tensors[1].data = reinterpret_cast<char*>(call.b.data()) + 2;
    expect_failure(call, FailureCode::wrong_alignment, "B: its address is not a multiple of the element size, 4");
  }
  {
    Call call;
    call.strides[2] = {0, 1};
    expect_failure(call, FailureCode::wrong_stride, "C: axis 0 (M) has stride 0, but the kernel writes it");
  }
  {
    Call call;
    call.recipe.requirements[0] = {
        .holds = combine(ExpressionOp::Eq, {combine(ExpressionOp::FloorMod, {slot(1), constant(16)}), constant(0)}),
        .text = "K % 16 == 0"};
    expect_failure(call, FailureCode::where_failed, "matmul needs K % 16 == 0 (M = 5, K = 7, N = 6)");
  }
}

TEST(Binding, FactsOfTheClassAreToldApart) {
  {
    Call call;
    call.strides[0] = {2 * kK, 2};
    call.a.resize(2 * kM * kK);
    call.tensors[0].data = call.a.data();
    expect_failure(call, FailureCode::wrong_stride, "A: axis 1 (K) has stride 2, this plan needs 1 on the last axis",
                   true);
    call.recipe.tensors[0].facts.unit_inner_stride = false;
    EXPECT_TRUE(call.bind().has_value());
  }
  {
    Call call;
    call.recipe.tensors[0].facts.pitch_alignment = 16;
    expect_failure(call, FailureCode::wrong_stride,
                   "A: axis 0 (M) has a stride of 7 elements, this plan needs a multiple of 16 bytes", true);
  }
  {
    Call call;
    call.recipe.tensors[0].facts.alignment = 64;
    alignas(64) float storage[kM * kK + 1];
    call.tensors[0].data = storage + 1;
    expect_failure(call, FailureCode::wrong_alignment, "A: this plan needs an address that is a multiple of 64 bytes",
                   true);
  }
  {
    Call call;
    call.recipe.tensors[0].facts.max_bytes = 100;
    expect_failure(call, FailureCode::too_large, "A: spans 140 bytes, this plan takes less than 100", true);
  }
  {
    Call call;
    call.recipe.requirements[0] = {.holds = constant(0), .is_guard = true, .text = "M <= 4"};
    expect_failure(call, FailureCode::wrong_class, "this plan is for arguments with M <= 4 (M = 5, K = 7, N = 6)",
                   true);
  }
}

TEST(Binding, OverlapIsFoundByAddress) {
  {
    Call call;
    call.tensors[2].data = call.a.data() + 3;
    call.a.resize(200);
    expect_failure(call, FailureCode::aliased_argument, "C is written and overlaps A in memory");
    call.recipe.tensors[2].may_alias = {0};
    EXPECT_TRUE(call.bind().has_value());
  }
  {  // inputs may overlap
    Call call;
    call.b.resize(kM * kK);
    call.tensors[1].data = call.tensors[0].data;
    call.a.resize(100);
    call.tensors[0].data = call.tensors[1].data = call.a.data();
    EXPECT_TRUE(call.bind().has_value());
  }
  {  // left and right columns of one matrix share rows but no element
    Call call;
    std::vector<float> both(kK * 32);
    call.strides = {{32, 1}, {kN, 1}, {32, 1}};
    call.tensors[0].data = both.data();
    call.tensors[2].data = both.data() + kK;
    EXPECT_TRUE(call.bind().has_value());
    call.tensors[2].data = both.data() + kK - 1;
    expect_failure(call, FailureCode::aliased_argument, "C is written and overlaps A in memory");
    call.tensors[0].data = both.data() + 16;  // the written one first in memory
    call.tensors[2].data = both.data();
    EXPECT_TRUE(call.bind().has_value());
  }
}

// The definition, for every small pair of strided matrices: refused only if overlap by range, never accepted when an
// element is shared.
TEST(Binding, NoSharedElementIsEverAccepted) {
  std::vector<float> memory(400);
  for (int64_t pitch_a : {5, 6, 8, 12}) {
    for (int64_t pitch_c : {6, 8, 12, 16}) {
      for (int64_t start_c = 0; start_c < 60; ++start_c) {
        Call call;
        call.recipe.tensors[0].facts.unit_inner_stride = false;
        call.extents = {{3, 4}, {4, 2}, {3, 2}};
        call.strides = {{pitch_a, 1}, {2, 1}, {pitch_c, 1}};
        call.tensors[0].data = memory.data() + 20;
        call.tensors[2].data = memory.data() + start_c;
        bool shares = false;
        for (int64_t i = 0; i < 12; ++i) {
          for (int64_t j = 0; j < 6; ++j) {
            shares = shares || 20 + i / 4 * pitch_a + i % 4 == start_c + j / 2 * pitch_c + j % 2;
          }
        }
        const bool accepted = call.bind().has_value();
        EXPECT_FALSE(shares && accepted) << pitch_a << " " << pitch_c << " " << start_c;
        EXPECT_TRUE(shares || accepted || pitch_a != pitch_c) << pitch_a << " " << start_c;
      }
    }
  }
}

TEST(Binding, ZeroExtentsAreValidAndNeedNoMemory) {
  Call call;
  call.extents = {{0, kK}, {kK, kN}, {0, kN}};
  call.tensors[0].data = nullptr;
  call.tensors[2].data = nullptr;
  ASSERT_TRUE(call.bind().has_value());
  EXPECT_EQ(call.binding.slots[10], 0);
}

TEST(Binding, HugeSizesAreExactOrRefused) {
  Call call;
  const int64_t huge = int64_t{1} << 40;
  call.extents = {{huge, huge}, {huge, 1}, {huge, 1}};
  call.strides = {{}, {}, {}};
  expect_failure(call, FailureCode::too_large, "A: its extents have more than 2^63 elements");
  call.extents = {{3, 1}, {1, 2}, {3, 2}};
  call.strides = {{INT64_MAX / 2, 1}, {2, 1}, {2, 1}};
  expect_failure(call, FailureCode::too_large, "A: its elements leave the address space");
  call.strides[0] = {INT64_MAX, 1};
  expect_failure(call, FailureCode::too_large, "A: axis 0 (M) has a stride that leaves the address space");
  // 2^33 bytes of i8 in one tensor: nothing overflows (the memory is never touched by the checks).
  call.recipe.tensors[0].dtype = TW_I8;
  call.tensors[0].dtype = TW_I8;
  call.tensors[0].data = reinterpret_cast<void*>(uintptr_t{1} << 44);
  call.extents = {{int64_t{1} << 20, int64_t{1} << 13}, {int64_t{1} << 13, 1}, {int64_t{1} << 20, 1}};
  call.tensors[1].data = reinterpret_cast<void*>(uintptr_t{1} << 45);
  call.tensors[2].data = reinterpret_cast<void*>(uintptr_t{1} << 46);
  call.strides = {{int64_t{1} << 13, 1}, {1, 1}, {1, 1}};
  ASSERT_TRUE(call.bind().has_value());
  EXPECT_EQ(call.binding.ranges[0].high - call.binding.ranges[0].low, uintptr_t{1} << 33);
}

TEST(Binding, NegativeStridesCoverTheirRange) {
  Call call;
  call.strides[0] = {-kK, 1};
  call.tensors[0].data = call.a.data() + (kM - 1) * kK;
  ASSERT_TRUE(call.bind().has_value());
  EXPECT_EQ(call.binding.ranges[0].low, reinterpret_cast<uintptr_t>(call.a.data()));
  EXPECT_EQ(call.binding.ranges[0].high, reinterpret_cast<uintptr_t>(call.a.data() + call.a.size()));
}

TEST(Binding, ScalarsAreConvertedOnceOrRefused) {
  const auto integer = [](int64_t value) {
    tw_scalar scalar = {TW_SCALAR_INTEGER, 0, {}};
    scalar.value.integer = value;
    return scalar;
  };
  const auto floating = [](double value) {
    tw_scalar scalar = {TW_SCALAR_FLOAT, 0, {}};
    scalar.value.floating = value;
    return scalar;
  };
  Call call;
  call.scalars = {floating(0.5)};
  ASSERT_TRUE(call.bind().has_value());
  EXPECT_EQ(call.binding.slots[9], 0x3f000000);
  call.scalars = {integer(2)};
  ASSERT_TRUE(call.bind().has_value());
  EXPECT_EQ(call.binding.slots[9], 0x40000000);
  call.recipe.scalars[0] = {.name = "n", .dtype = TW_I8};
  call.scalars = {floating(1.5)};
  expect_failure(call, FailureCode::wrong_scalar, "n: expected i8, got a float");
  call.scalars = {integer(200)};
  expect_failure(call, FailureCode::wrong_scalar, "n: 200 does not fit i8");
  call.scalars = {};
  expect_failure(call, FailureCode::wrong_scalar, "n: has no default and was not given");
  call.scalars = {integer(-3)};
  ASSERT_TRUE(call.bind().has_value());
  EXPECT_EQ(call.binding.slots[9], -3);
  call.scalars = {integer(1), integer(2)};
  expect_failure(call, FailureCode::argument_count, "matmul takes 1 scalars, got 2");
}

}  // namespace
}  // namespace tilewright::runtime
