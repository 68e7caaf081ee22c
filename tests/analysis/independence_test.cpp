#include "analysis/independence.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "ir/builder.h"

namespace tilewright::analysis {
namespace {

using ir::Index;
using ir::Value;

/// A `parallel` over 8 × 4 whose body is given; X is a tensor of 64 × 64.
struct Fixture {
  ir::Kernel kernel;
  ir::Builder b{kernel};
  Value* x = kernel.new_value(
      ir::Type::buffer(ir::MemorySpace::Global, DType::F32, {b.constant_index(64), b.constant_index(64)}), "X");

  std::string reason(const std::function<void(Index i, Index j)>& body) {
    ir::Op* made = b.parallel({b.constant_index(8), b.constant_index(4)}, [&](const std::vector<Value*>& v) {
      v[0]->name = "i", v[1]->name = "j";
      body(b.symbol(v[0]), b.symbol(v[1]));
    });
    const auto unproven = unproven_accesses(*made);
    return unproven.empty() ? "" : unproven[0].reason;
  }
  void write(Index r, Index c) { b.store(x, {r, c}, b.real(DType::F32, 1)); }
};

TEST(Independence, ProvesWhatKernelsWrite) {
  Fixture f;
  EXPECT_EQ(f.reason([&](Index i, Index j) { f.write(i, j); }), "");
  EXPECT_EQ(f.reason([&](Index i, Index j) { f.write(j + 3, i * 2 + j); }), "");
  EXPECT_EQ(f.reason([&](Index i, Index j) { f.write(f.b.constant_index(0), i * 4 + j); }), "");
  EXPECT_EQ(f.reason([&](Index i, Index j) { f.write(floordiv(i, 2), floormod(i, f.b.constant_index(2))), (void)j; }),
            "X is written at [(i // 2), (i % 2)], which may be one element for two values of j");
  EXPECT_EQ(f.reason([&](Index i, Index j) { f.b.store(f.x, {i, j}, f.b.load(f.x, {i, j})); }), "");
}

TEST(Independence, NamesWhatItCannotProve) {
  Fixture f;
  EXPECT_EQ(f.reason([&](Index i, Index) { f.write(i, i); }),
            "X is written at [i, i], which may be one element for two values of j");
  EXPECT_EQ(f.reason([&](Index i, Index j) { f.write(f.b.constant_index(0), i * 3 + j); }),
            "X is written at [0, ((i * 3) + j)], which may be one element for two values of i");
  EXPECT_EQ(f.reason([&](Index i, Index j) {
    f.b.store(f.x, {i, j}, f.b.load(f.x, {i + 1, j}));
  }),
            "X is written at [i, j] and read at [(i + 1), j]");
  EXPECT_EQ(f.reason([&](Index i, Index j) {
               Value* at = f.b.cast(f.b.load(f.x, {i, j}), DType::I64);
               Value* other = f.kernel.new_value(f.x->type, "Y");
               f.b.store(other, {f.b.symbol(at), j}, f.b.real(DType::F32, 0));
             }).substr(0, 17),
            "Y is written at [");
}

TEST(Independence, PrivateBuffersAndAtomicsNeedNoProof) {
  Fixture f;
  EXPECT_EQ(f.reason([&](Index, Index) {
    Value* t = f.b.alloc(ir::MemorySpace::Local, DType::F32, {4}, "t");
    f.b.store(t, {f.b.constant_index(0)}, f.b.real(DType::F32, 1));
    f.b.op(ir::OpKind::Atomic, {f.b.real(DType::F32, 1)},
           ir::AtomicAttributes{ir::AtomicKind::Add, f.x, {f.b.constant_index(0), f.b.constant_index(0)}});
  }),
            "");
  EXPECT_EQ(f.reason([&](Index i, Index j) {
    f.write(i, f.b.constant_index(0) + j);
    f.b.load(f.x, {i, j});
  }),
            "");
}

/// Soundness: whenever random affine subscripts are proven, enumeration finds no two iterations on one element.
TEST(Independence, ProofsHoldForEveryIteration) {
  const uint32_t seed = 7;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const auto pick = [&](int n) { return static_cast<int64_t>(random() % static_cast<uint32_t>(n)); };
  int proven = 0;
  for (int round = 0; round < 2000; ++round) {
    Fixture f;
    std::vector<Index> subscripts;
    const Value *vi = nullptr, *vj = nullptr;
    const std::string reason = f.reason([&](Index i, Index j) {
      vi = i.symbol(), vj = j.symbol();
      for (int d = 0; d < 2; ++d) {
        Index s = i * (pick(6) - 1) + j * (pick(6) - 1) + pick(3);
        if (pick(5) == 0) s = floordiv(s, 1 + pick(4));
        if (pick(5) == 0) s = floormod(s, f.b.constant_index(1 + pick(9)));
        subscripts.push_back(s);
      }
      f.write(subscripts[0], subscripts[1]);
    });
    if (!reason.empty()) continue;
    ++proven;
    std::set<std::pair<int64_t, int64_t>> seen;
    for (int64_t i = 0; i < 8; ++i) {
      for (int64_t j = 0; j < 4; ++j) {
        const auto at = [&](Index x) { return ir::evaluate(x, [&](const Value* v) { return v == vi ? i : j; }); };
        ASSERT_TRUE(seen.insert({at(subscripts[0]), at(subscripts[1])}).second)
            << ir::to_string(subscripts[0], [](const Value* v) { return v->name; }) << ", "
            << ir::to_string(subscripts[1], [](const Value* v) { return v->name; });
      }
    }
  }
  EXPECT_GT(proven, 200);
}

}  // namespace
}  // namespace tilewright::analysis
