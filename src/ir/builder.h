// Builds operations at the end of a region. Thin: one function per operation, operands in the order of ops.def.
// Does not check anything: verify() does.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/ir.h"

namespace tilewright::ir {

class Builder {
 public:
  explicit Builder(Kernel& kernel) : kernel_(kernel), region_(kernel.body) {}

  Kernel& kernel() const { return kernel_; }
  Region* region() const { return region_; }
  void set_region(Region* region) { region_ = region; }
  void set_location(Location location) { location_ = std::move(location); }
  const Location& location() const { return location_; }

  Index constant_index(int64_t v) const { return kernel_.indices().constant(v); }
  Index symbol(const Value* v) const { return kernel_.indices().symbol(v); }

  /// Appends an operation with the given operands, attributes and result types.
  Op* op(OpKind kind, std::vector<Value*> operands, Attributes attributes = {}, std::vector<Type> results = {});

  /// Adds a region with arguments to `op` and calls `body` with the builder inside it.
  using Body = std::function<void(const std::vector<Value*>&)>;
  Region* region_of(Op* op, const std::vector<Type>& arguments, const Body& body);

  // Structure. Loop and block variables are i64 scalars.
  Op* grid(GridAttributes attributes, const Body& body);
  Op* for_loop(Index lo, Index hi, Index step, const Body& body);
  /// Loop with carried values; `body` gets the variable and the carried values and must end with yield().
  Op* for_loop(Index lo, Index hi, Index step, std::vector<Value*> initial, const Body& body);
  Op* pipelined(Index count, int stages, const Body& body);
  Op* parallel(std::vector<Index> extents, const Body& body);
  Op* if_else(Value* condition, const Body& yes, const Body& no = {}, std::vector<Type> results = {});
  Op* while_loop(const Body& condition, const Body& body);
  void yield(std::vector<Value*> values);
  Value* alloc(MemorySpace space, DType dtype, const std::vector<int64_t>& shape, std::string name,
               bool guarded = false);

  // Tiles.
  View whole(Value* buffer) const;
  void fill(View dst, Value* value);
  Op* copy(View src, View dst, Value* oob = nullptr);
  Op* gemm(GemmAttributes attributes);
  void reduce(ReduceAttributes attributes);

  // Elements and lanes.
  Value* load(Value* buffer, std::vector<Index> indices, Value* oob = nullptr);
  void store(Value* buffer, std::vector<Index> indices, Value* value);
  Value* real(DType dtype, double v, int lanes = 1);
  Value* integer(DType dtype, int64_t v, int lanes = 1);
  Value* index_value(Index index);      ///< i64
  Value* index_condition(Index index);  ///< bool
  Value* unary(UnaryOp op, Value* x);
  Value* binary(BinaryOp op, Value* x, Value* y);
  Value* compare(CompareOp op, Value* x, Value* y);
  Value* select(Value* condition, Value* yes, Value* no);
  Value* cast(Value* x, DType dtype);

  // Low level.
  Value* slot(int number);
  Value* argument(int number);
  Value* scratch(Index bytes);
  Value* offset(Value* pointer, Index bytes);
  Value* vload(Value* pointer, MemoryAttributes attributes, Type result, Value* mask = nullptr);
  void vstore(Value* pointer, MemoryAttributes attributes, Value* value, Value* mask = nullptr);
  Value* broadcast(Value* scalar, int lanes);
  Value* fma(Value* a, Value* b, Value* c);
  Value* mask(Index active, int lanes);

 private:
  Kernel& kernel_;
  Region* region_;
  Location location_;
};

}  // namespace tilewright::ir
