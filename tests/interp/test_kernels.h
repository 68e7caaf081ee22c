// Small kernels built by hand, shared by the interpreter's tests.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/builder.h"

namespace tilewright::interp {

/// A kernel under construction: dimensions, arguments and a builder whose location is line 1, 2, 3… of "test.tile".
struct TestKernel {
  ir::Kernel kernel;
  ir::Builder b{kernel};
  std::shared_ptr<const std::string> file = std::make_shared<std::string>("test.tile");

  void line(int n) { b.set_location({.file = file, .line = n, .column = 1}); }
  ir::Value* dimension(const std::string& name) {
    ir::Value* v = kernel.new_value(ir::Type::scalar(DType::I64), name);
    kernel.dimensions.push_back({name, v, std::nullopt});
    return v;
  }
  ir::Value* tensor(const std::string& name, DType dtype, std::vector<ir::Index> shape,
                    ir::Direction direction = ir::Direction::In) {
    ir::Value* v = kernel.new_value(ir::Type::buffer(ir::MemorySpace::Global, dtype, std::move(shape)), name);
    kernel.tensors.push_back({.buffer = v, .direction = direction});
    return v;
  }
  ir::Index at(const ir::Value* v) { return b.symbol(v); }
  ir::Index c(int64_t v) { return b.constant_index(v); }
  ir::View region(ir::Value* buffer, std::vector<ir::Slice> slices) { return {buffer, std::move(slices)}; }
};

/// relu(A · B) with the given tile, ragged edges and all.
inline ir::Kernel matmul_relu(int64_t block_m, int64_t block_n, int64_t block_k, DType type = DType::F32) {
  using namespace ir;
  TestKernel k;
  Value *m = k.dimension("M"), *n = k.dimension("N"), *kk = k.dimension("K");
  Value* a = k.tensor("A", type, {k.at(m), k.at(kk)});
  Value* bb = k.tensor("B", type, {k.at(kk), k.at(n)});
  Value* c = k.tensor("C", type, {k.at(m), k.at(n)}, Direction::Out);
  k.b.grid({.extents = {ceildiv(k.at(n), block_n), ceildiv(k.at(m), block_m)}}, [&](const std::vector<Value*>& block) {
    const Index row = k.at(block[1]) * block_m, column = k.at(block[0]) * block_n;
    Value* a_s = k.b.alloc(MemorySpace::Shared, type, {block_m, block_k}, "A_s");
    Value* b_s = k.b.alloc(MemorySpace::Shared, type, {block_k, block_n}, "B_s");
    const DType acc_type = is_float(type) ? DType::F32 : DType::I32;
    Value* acc = k.b.alloc(MemorySpace::Fragment, acc_type, {block_m, block_n}, "acc");
    Value* zero = is_float(type) ? k.b.real(acc_type, 0) : k.b.integer(acc_type, 0);
    k.b.fill(k.b.whole(acc), zero);
    k.b.pipelined(ceildiv(k.at(kk), block_k), 3, [&](const std::vector<Value*>& it) {
      const Index at = k.at(it[0]) * block_k;
      k.b.copy(k.region(a, {{row, k.c(block_m)}, {at, k.c(block_k)}}), k.b.whole(a_s));
      k.b.copy(k.region(bb, {{at, k.c(block_k)}, {column, k.c(block_n)}}), k.b.whole(b_s));
      k.b.gemm({.a = k.b.whole(a_s), .b = k.b.whole(b_s), .c = k.b.whole(acc)});
    });
    k.b.parallel({k.c(block_m), k.c(block_n)}, [&](const std::vector<Value*>& i) {
      Value* v = k.b.load(acc, {k.at(i[0]), k.at(i[1])});
      k.b.store(acc, {k.at(i[0]), k.at(i[1])}, k.b.binary(BinaryOp::Max, v, zero));
    });
    k.b.copy(k.b.whole(acc), k.region(c, {{row, k.c(block_m)}, {column, k.c(block_n)}}));
  });
  k.kernel.name = "matmul_relu";
  return std::move(k.kernel);
}

}  // namespace tilewright::interp
