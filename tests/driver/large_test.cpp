// More than 2^31 elements. The arrays are mapped and mostly never written, so they take address space, not memory.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "driver/compiled_kernel.h"
#include "runtime/plan.h"

namespace tilewright::driver {
namespace {

constexpr int64_t kRows = 33, kColumns = int64_t{1} << 26;
constexpr int64_t kElements = kRows * kColumns;
static_assert(kElements > INT32_MAX);

class MappedBytes {
 public:
  explicit MappedBytes(size_t bytes)
      : bytes_(bytes),
        data_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
  ~MappedBytes() {
    if (is_mapped()) munmap(data_, bytes_);
  }
  MappedBytes(const MappedBytes&) = delete;
  MappedBytes& operator=(const MappedBytes&) = delete;
  bool is_mapped() const { return data_ != MAP_FAILED; }
  int8_t* data() const { return static_cast<int8_t*>(data_); }

 private:
  size_t bytes_;
  void* data_;
};

tw_tensor tensor(void* data, const int64_t* extents, int32_t rank, int32_t dtype) {
  return {
      .data = data, .extents = extents, .strides = nullptr, .dtype = dtype, .rank = rank, .flags = 0, .device = TW_CPU};
}

void run(const std::string& text, std::vector<tw_tensor> tensors) {
  const Compilation compilation = compile_text(text);
  const auto device = runtime::open_cpu({.threads = 2});
  const auto plan = runtime::Plan::load(*device, compilation.artefact);
  ASSERT_TRUE(plan) << plan.error().message;
  const tw_arguments arguments{tensors.data(), tensors.size(), nullptr, 0};
  const auto bytes = plan->workspace_bytes(arguments);
  ASSERT_TRUE(bytes) << bytes.error().message;
  std::vector<std::byte> workspace(*bytes + 64);
  auto* const base = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(workspace.data()) + 63) / 64 * 64);
  const auto done = plan->execute(arguments, base, *bytes, nullptr);
  ASSERT_TRUE(done) << done.error().message;
}

TEST(Large, ElementsBeyondTheThirtyFirstBitAreRead) {
  TW_NEEDS_COMPILER();
  const MappedBytes x(kElements);
  if (!x.is_mapped()) GTEST_SKIP() << "no 2 GiB of address space";
  for (int64_t row = 0; row < kRows; ++row) {
    x.data()[(row + 1) * kColumns - 4096] = static_cast<int8_t>(row);
    x.data()[(row + 1) * kColumns - 1] = static_cast<int8_t>(-2 * row);
  }
  std::vector<int32_t> y(kRows, 12345);
  const int64_t extents[] = {kRows, kColumns};
  run(R"(kernel last_sums(X: i8[R, C]) -> (Y: i32[R])
{
  grid (r: R) threads(32) {
    x = shared i8[1, 4096]
    total = fragment i32[1]
    copy(X[r :+ 1, C - 4096 :+ 4096], x)
    reduce_sum(x, total, dim = 1)
    copy(total, Y[r :+ 1])
  }
}
)",
      {tensor(x.data(), extents, 2, TW_I8), tensor(y.data(), extents, 1, TW_I32)});
  for (int64_t row = 0; row < kRows; ++row) EXPECT_EQ(y[static_cast<size_t>(row)], -row);
}

TEST(Large, ElementsBeyondTheThirtyFirstBitAreWritten) {
  TW_NEEDS_COMPILER();
  const MappedBytes x(kElements), y(kElements);
  if (!x.is_mapped() || !y.is_mapped()) GTEST_SKIP() << "no 4 GiB of address space";
  for (int64_t row = 0; row < kRows; ++row) x.data()[(row + 1) * kColumns - 1] = static_cast<int8_t>(row + 1);
  const int64_t extents[] = {kRows, kColumns};
  run(R"(kernel last_columns(X: i8[R, C]) -> (Y: i8[R, C])
{
  grid (r: R) threads(32) { copy(X[r :+ 1, C - 64 :+ 64], Y[r :+ 1, C - 64 :+ 64]) }
}
)",
      {tensor(x.data(), extents, 2, TW_I8), tensor(y.data(), extents, 2, TW_I8)});
  for (int64_t row = 0; row < kRows; ++row) EXPECT_EQ(y.data()[(row + 1) * kColumns - 1], row + 1);
}

}  // namespace
}  // namespace tilewright::driver
