#include "ir/builder.h"

#include <utility>

namespace tilewright::ir {
namespace {

Type index_type() { return Type::scalar(DType::I64); }

}  // namespace

Op* Builder::op(OpKind kind, std::vector<Value*> operands, Attributes attributes, std::vector<Type> results) {
  Op* op = kernel_.new_op(kind, location_);
  op->operands = std::move(operands);
  if (!std::holds_alternative<NoAttributes>(attributes)) op->attributes = std::move(attributes);
  for (Type& type : results) {
    Value* v = kernel_.new_value(std::move(type));
    v->def = op;
    op->results.push_back(v);
  }
  region_->ops.push_back(op);
  return op;
}

Region* Builder::region_of(Op* op, const std::vector<Type>& arguments, const Body& body) {
  Region* region = kernel_.new_region(op);
  for (const Type& type : arguments) {
    Value* v = kernel_.new_value(type);
    v->owner = region;
    region->arguments.push_back(v);
  }
  Region* outer = std::exchange(region_, region);
  if (body) body(region->arguments);
  region_ = outer;
  return region;
}

Op* Builder::grid(GridAttributes attributes, const Body& body) {
  const std::vector<Type> variables(attributes.extents.size(), index_type());
  Op* made = op(OpKind::Grid, {}, std::move(attributes));
  region_of(made, variables, body);
  return made;
}

Op* Builder::for_loop(Index lo, Index hi, Index step, const Body& body) { return for_loop(lo, hi, step, {}, body); }

Op* Builder::for_loop(Index lo, Index hi, Index step, std::vector<Value*> initial, const Body& body) {
  std::vector<Type> carried;
  for (const Value* v : initial) carried.push_back(v->type);
  Op* made = op(OpKind::For, std::move(initial), ForAttributes{lo, hi, step}, carried);
  carried.insert(carried.begin(), index_type());
  region_of(made, carried, body);
  return made;
}

Op* Builder::pipelined(Index count, int stages, const Body& body) {
  Op* made = op(OpKind::Pipelined, {}, PipelinedAttributes{count, stages});
  region_of(made, {index_type()}, body);
  return made;
}

Op* Builder::parallel(std::vector<Index> extents, const Body& body) {
  const std::vector<Type> variables(extents.size(), index_type());
  Op* made = op(OpKind::Parallel, {}, ParallelAttributes{std::move(extents)});
  region_of(made, variables, body);
  return made;
}

Op* Builder::if_else(Value* condition, const Body& yes, const Body& no, std::vector<Type> results) {
  Op* made = op(OpKind::If, {condition}, {}, std::move(results));
  region_of(made, {}, yes);
  region_of(made, {}, no);
  return made;
}

Op* Builder::while_loop(const Body& condition, const Body& body) {
  Op* made = op(OpKind::While, {});
  region_of(made, {}, condition);
  region_of(made, {}, body);
  return made;
}

void Builder::yield(std::vector<Value*> values) { op(OpKind::Yield, std::move(values)); }

Value* Builder::alloc(MemorySpace space, DType dtype, const std::vector<int64_t>& shape, std::string name,
                      bool guarded) {
  std::vector<Index> extents;
  for (int64_t n : shape) extents.push_back(constant_index(n));
  Value* v =
      op(OpKind::Alloc, {}, AllocAttributes{guarded}, {Type::buffer(space, dtype, std::move(extents))})->result();
  v->name = std::move(name);
  return v;
}

View Builder::whole(Value* buffer) const {
  View view{.buffer = buffer};
  for (Index extent : buffer->type.shape) view.slices.push_back({constant_index(0), extent, true});
  return view;
}

void Builder::fill(View dst, Value* value) { op(OpKind::Fill, {value}, FillAttributes{std::move(dst)}); }
Op* Builder::copy(View src, View dst, Value* oob) {
  return op(OpKind::Copy, oob ? std::vector<Value*>{oob} : std::vector<Value*>{},
            CopyAttributes{std::move(src), std::move(dst)});
}
Op* Builder::gemm(GemmAttributes attributes) { return op(OpKind::Gemm, {}, std::move(attributes)); }
void Builder::reduce(ReduceAttributes attributes) { op(OpKind::Reduce, {}, std::move(attributes)); }

Value* Builder::load(Value* buffer, std::vector<Index> indices, Value* oob) {
  return op(OpKind::Load, oob ? std::vector<Value*>{oob} : std::vector<Value*>{},
            AccessAttributes{buffer, std::move(indices)}, {Type::scalar(compute_type(buffer->type.dtype))})
      ->result();
}
void Builder::store(Value* buffer, std::vector<Index> indices, Value* value) {
  op(OpKind::Store, {value}, AccessAttributes{buffer, std::move(indices)});
}
Value* Builder::real(DType dtype, double v, int lanes) {
  return op(OpKind::Constant, {}, ConstantAttributes{.real = v}, {Type::scalar(dtype, lanes)})->result();
}
Value* Builder::integer(DType dtype, int64_t v, int lanes) {
  return op(OpKind::Constant, {}, ConstantAttributes{.integer = v}, {Type::scalar(dtype, lanes)})->result();
}
Value* Builder::index_value(Index index) {
  return op(OpKind::IndexValue, {}, IndexAttributes{index}, {index_type()})->result();
}
Value* Builder::index_condition(Index index) {
  return op(OpKind::IndexValue, {}, IndexAttributes{index}, {Type::scalar(DType::Bool)})->result();
}
Value* Builder::unary(UnaryOp kind, Value* x) {
  const Type type = kind == UnaryOp::IsNan ? Type::scalar(DType::Bool, x->type.lanes) : x->type;
  return op(OpKind::Unary, {x}, UnaryAttributes{kind}, {type})->result();
}
Value* Builder::binary(BinaryOp kind, Value* x, Value* y) {
  return op(OpKind::Binary, {x, y}, BinaryAttributes{kind}, {x->type})->result();
}
Value* Builder::compare(CompareOp kind, Value* x, Value* y) {
  return op(OpKind::Compare, {x, y}, CompareAttributes{kind}, {Type::scalar(DType::Bool, x->type.lanes)})->result();
}
Value* Builder::select(Value* condition, Value* yes, Value* no) {
  return op(OpKind::Select, {condition, yes, no}, {}, {yes->type})->result();
}
Value* Builder::cast(Value* x, DType dtype) {
  if (x->type.dtype == dtype) return x;
  return op(OpKind::Cast, {x}, {}, {Type::scalar(dtype, x->type.lanes)})->result();
}

Value* Builder::slot(int number) { return op(OpKind::Slot, {}, SlotAttributes{number}, {index_type()})->result(); }
Value* Builder::argument(int number) {
  return op(OpKind::ArgumentPointer, {}, SlotAttributes{number}, {Type::pointer(MemorySpace::Global)})->result();
}
Value* Builder::scratch(Index bytes) {
  return op(OpKind::ScratchPointer, {}, OffsetAttributes{bytes}, {Type::pointer(MemorySpace::Scratch)})->result();
}
Value* Builder::offset(Value* pointer, Index bytes) {
  return op(OpKind::Offset, {pointer}, OffsetAttributes{bytes}, {pointer->type})->result();
}
Value* Builder::vload(Value* pointer, MemoryAttributes attributes, Type result, Value* mask) {
  std::vector<Value*> operands{pointer};
  if (mask) operands.push_back(mask);
  return op(OpKind::VectorLoad, std::move(operands), attributes, {std::move(result)})->result();
}
void Builder::vstore(Value* pointer, MemoryAttributes attributes, Value* value, Value* mask) {
  std::vector<Value*> operands{pointer, value};
  if (mask) operands.push_back(mask);
  op(OpKind::VectorStore, std::move(operands), attributes);
}
Value* Builder::broadcast(Value* scalar, int lanes) {
  return op(OpKind::Broadcast, {scalar}, {}, {Type::scalar(scalar->type.dtype, lanes)})->result();
}
Value* Builder::fma(Value* a, Value* b, Value* c) { return op(OpKind::Fma, {a, b, c}, {}, {a->type})->result(); }
Value* Builder::mask(Index active, int lanes) {
  return op(OpKind::Mask, {}, IndexAttributes{active}, {Type::scalar(DType::Bool, lanes)})->result();
}

}  // namespace tilewright::ir
