#include "codegen/cpu/join_objects.h"

#include <gtest/gtest.h>

#include <cstring>

#include "codegen/cpu/compile.h"
#include "codegen/cpu/share_out.h"
#include "ir/builder.h"
#include "runtime/object_loader.h"
#include "tilewright/tilewright.h"

namespace tilewright::codegen {
namespace {

using namespace ir;

/// A function `symbol` that stores `value` in every element of argument 0: long enough for a thread when `steps` is.
void add_func(Builder& b, Kernel& kernel, const char* symbol, double value, int steps) {
  b.set_region(kernel.body);
  Op* func = b.op(OpKind::Func, {}, FuncAttributes{.symbol = symbol, .blocks = {b.constant_index(1)}});
  b.region_of(func, {Type::scalar(DType::I64)}, [&](const std::vector<Value*>&) {
    Value* out = b.argument(0);
    const MemoryAttributes first{.storage = DType::F32, .bytes = b.constant_index(0)};
    Value* sum = b.vload(out, first, Type::scalar(DType::F32, 8));
    for (int i = 0; i < steps; ++i) sum = b.binary(BinaryOp::Add, sum, b.real(DType::F32, value, 8));
    b.vstore(out, first, sum);
  });
}

Kernel two_funcs(int steps) {
  Kernel kernel;
  kernel.name = "two";
  kernel.phase = Phase::Vector;
  Builder b(kernel);
  add_func(b, kernel, "first", 1.25, steps);
  add_func(b, kernel, "second", 3.5, steps + 1);
  return kernel;
}

float run(const runtime::LoadedObject& object, const char* symbol) {
  alignas(32) float out[8] = {};
  void* const pointers[] = {out};
  tw_record record{};
  const tw_launch launch{nullptr, pointers, &record, nullptr, nullptr};
  alignas(64) char scratch[64];
  auto* const entry = reinterpret_cast<tw_cpu_entry>(object.find(symbol));
  EXPECT_NE(entry, nullptr) << symbol;
  if (entry) entry(&launch, 0, 1, scratch);
  return out[7];
}

TEST(JoinObjects, BothFunctionsKeepTheirConstants) {
  const auto object = compile_cpu(two_funcs(40), {});
  ASSERT_TRUE(object.has_value());
  const auto loaded = runtime::LoadedObject::load(object->object);
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  EXPECT_EQ(run(*loaded, "first"), 1.25f * 40);
  EXPECT_EQ(run(*loaded, "second"), 3.5f * 41);
}

TEST(JoinObjects, SameBytesEveryTime) {
  const auto once = compile_cpu(two_funcs(40), {}), again = compile_cpu(two_funcs(40), {});
  ASSERT_TRUE(once.has_value() && again.has_value());
  EXPECT_EQ(once->object, again->object);
}

TEST(JoinObjects, OneObjectStaysAsItIs) {
  const std::string bytes = "anything";
  EXPECT_EQ(join_objects(std::vector{bytes}), bytes);
}

TEST(ShareOut, ShortFunctionsStayTogether) {
  EXPECT_EQ(share_out(two_funcs(1)).size(), 1u);
  const auto parts = share_out(two_funcs(40));
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0][0]->as<FuncAttributes>().symbol, "second");
  EXPECT_EQ(parts[1][0]->as<FuncAttributes>().symbol, "first");
}

}  // namespace
}  // namespace tilewright::codegen
