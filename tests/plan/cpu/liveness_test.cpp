// Liveness of tiles after each operation of small kernels, out of regions and around loops.
#include "plan/cpu/liveness.h"

#include <gtest/gtest.h>

#include "lang/elaborate.h"

namespace tilewright::plan::cpu {
namespace {

using ir::Op;
using ir::OpKind;

/// A kernel with one tile `x` of 4 x 16; `body` stands where it is declared.
struct Program {
  explicit Program(const std::string& body) {
    const auto source = lang::parse_source(
        "kernel k(A: f32[M, N], n: i32) -> (C: f32[M, N])\n{\n grid (b: 1) threads(32) {\n"
        "  x = fragment f32[4, 16]; y = fragment f32[4, 16]\n" +
            body + "\n }\n}\n",
        "liveness.tile");
    EXPECT_TRUE(source);
    auto made = lang::instantiate(*source, "k", {});
    EXPECT_TRUE(made) << source->render(made.error());
    kernel = std::move(*made);
    for_each_op(*kernel.body, [&](Op& op) {
      if (op.kind == OpKind::Grid) grid = &op;
      if (op.kind == OpKind::Alloc && op.result()->name == "x") x = op.result();
      if (op.kind == OpKind::Copy) copies.push_back(&op);
    });
  }
  bool is_live(size_t copy) const { return is_live_after(*grid, *copies.at(copy), x); }

  ir::Kernel kernel;
  const Op* grid = nullptr;
  const ir::Value* x = nullptr;
  std::vector<const Op*> copies;
};

const char* kIn = "copy(A[0 :+ 4, 0 :+ 16], x)\n";
const char* kOut = "copy(x, C[0 :+ 4, 0 :+ 16])\n";

TEST(Liveness, EndsAtTheLastReader) {
  const Program p(std::string(kIn) + kOut);
  EXPECT_TRUE(p.is_live(0));
  EXPECT_FALSE(p.is_live(1));
}

TEST(Liveness, EndsWhereAllIsOverwritten) {
  const Program p(std::string(kIn) + "fill(x, 1.0)\n" + kOut);
  EXPECT_FALSE(p.is_live(0)) << "the fill replaces what the copy brought";
  const Program part(std::string(kIn) + "fill(x[0 :+ 2, :], 1.0)\n" + kOut);
  EXPECT_TRUE(part.is_live(0)) << "half of it is still read";
}

TEST(Liveness, GoesAroundLoops) {
  const Program p("clear(x)\nfor i in serial(3) {\n copy(x, C[0 :+ 4, 0 :+ 16])\n copy(A[0 :+ 4, 0 :+ 16], x)\n}\n");
  EXPECT_TRUE(p.is_live(1)) << "read by the next iteration";
  const Program q("for i in serial(3) {\n copy(A[0 :+ 4, 0 :+ 16], x)\n copy(x, C[0 :+ 4, 0 :+ 16])\n}\n");
  EXPECT_TRUE(q.is_live(0));
  EXPECT_FALSE(q.is_live(1)) << "every iteration overwrites it first";
}

TEST(Liveness, AnUpdateInPlaceReads) {
  const Program p(std::string(kIn) + "x = x + 1.0\n" + kOut);
  EXPECT_TRUE(p.is_live(0));
  const Program q(std::string(kIn) + "x = y + 1.0\n" + kOut);
  EXPECT_FALSE(q.is_live(0));
}

TEST(Liveness, AReaderUnderAConditionCounts) {
  const Program p(std::string(kIn) + "if n > 0 {\n copy(x, C[0 :+ 4, 0 :+ 16])\n}\n");
  EXPECT_TRUE(p.is_live(0));
  EXPECT_FALSE(p.is_live(1));
}

}  // namespace
}  // namespace tilewright::plan::cpu
