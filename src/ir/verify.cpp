#include "ir/verify.h"

#include <fmt/format.h>

#include <unordered_set>

#include "ir/attribute_fields.h"
#include "ir/printer.h"

namespace tilewright::ir {
namespace {

constexpr int kAny = -1;

/// Counts of one row: operands and results between min and max (kAny: no limit), regions exactly.
struct Counts {
  int operands;
  int most_operands;
  int results;
  int most_results;
  int regions;
};

Counts counts(OpKind kind) {
  switch (kind) {
    case OpKind::Grid:
    case OpKind::Parallel: return {0, 0, 0, 0, 1};
    case OpKind::For:
    case OpKind::Pipelined: return {0, kAny, 0, kAny, 1};
    case OpKind::If: return {1, 1, 0, kAny, 2};
    case OpKind::While: return {0, 0, 0, 0, 2};
    case OpKind::Yield: return {0, kAny, 0, 0, 0};
    case OpKind::Func: return {0, 0, 0, 0, 1};
    case OpKind::Copy: return {0, 1, 0, 0, 0};
    case OpKind::Load: return {0, 1, 1, 1, 0};
    case OpKind::Fill:
    case OpKind::Store:
    case OpKind::Atomic:
    case OpKind::Assert: return {1, 1, 0, 0, 0};
    case OpKind::Gemm:
    case OpKind::Reduce:
    case OpKind::ReduceArg:
    case OpKind::Scan:
    case OpKind::AtomicTile:
    case OpKind::Assume:
    case OpKind::Return: return {0, 0, 0, 0, 0};
    case OpKind::Print: return {0, kAny, 0, 0, 0};
    case OpKind::Alloc:
    case OpKind::ArriveLast:
    case OpKind::Constant:
    case OpKind::IndexValue:
    case OpKind::Slot:
    case OpKind::ArgumentPointer:
    case OpKind::ScratchPointer:
    case OpKind::Iota:
    case OpKind::Mask: return {0, 0, 1, 1, 0};
    case OpKind::Unary:
    case OpKind::Cast:
    case OpKind::Offset:
    case OpKind::Broadcast:
    case OpKind::Extract:
    case OpKind::VectorReduce: return {1, 1, 1, 1, 0};
    case OpKind::Binary:
    case OpKind::Compare:
    case OpKind::Shuffle:
    case OpKind::AtomicMemory: return {2, 2, 1, 1, 0};
    case OpKind::Select:
    case OpKind::Fma: return {3, 3, 1, 1, 0};
    case OpKind::VectorLoad: return {1, 2, 1, 1, 0};
    case OpKind::Gather: return {2, 3, 1, 1, 0};
    case OpKind::VectorStore: return {2, 3, 0, 0, 0};
    case OpKind::Scatter: return {3, 4, 0, 0, 0};
    case OpKind::Prefetch: return {1, 1, 0, 0, 0};
  }
  return {0, kAny, 0, kAny, 0};
}

bool same(const Type& x, const Type& y) {
  return x.kind == y.kind && x.dtype == y.dtype && x.lanes == y.lanes && x.space == y.space && x.shape == y.shape;
}

class Verifier {
 public:
  explicit Verifier(const Kernel& kernel) : kernel_(kernel) {}

  void run() {
    for (const Dimension& d : kernel_.dimensions) arrive(d.value);
    for (const ScalarArgument& s : kernel_.scalars) {
      require(s.value->type.is_scalar(), "a scalar argument has a scalar type");
      arrive(s.value);
    }
    for (const TensorArgument& t : kernel_.tensors) {
      require(t.buffer && t.buffer->type.is_buffer() && t.buffer->type.space == MemorySpace::Global,
              "a tensor argument is a buffer in global memory");
      for (const Index& extent : t.buffer->type.shape) check_index(extent);
      arrive(t.buffer);
    }
    for (const Requirement& r : kernel_.requirements) check_index(r.condition);
    for (const auto& [x, y] : kernel_.aliases) {
      const auto n = static_cast<int>(kernel_.tensors.size());
      require(x >= 0 && y >= 0 && x < n && y < n, "an alias names two tensors");
    }
    check_region(*kernel_.body);
  }

  // Fields of attributes.
  template <typename T>
  void operator()(const char*, T&) {}
  void operator()(const char*, Index& v) {
    if (v) check_index(v);
  }
  void operator()(const char*, std::vector<Index>& v) {
    for (const Index& x : v) check_index(x);
  }
  void operator()(const char* field, Value*& v) {
    require(v != nullptr, fmt::format("field {} names a buffer", field));
    check_scope(v);
    require(v->type.is_buffer(), fmt::format("field {} is a buffer", field));
  }
  void operator()(const char* field, View& v) {
    require(v.buffer != nullptr, fmt::format("field {} has a buffer", field));
    check_scope(v.buffer);
    require(v.buffer->type.is_buffer() || v.buffer->type.kind == TypeKind::Tile,
            fmt::format("field {} views a buffer", field));
    require(static_cast<int>(v.slices.size()) == v.buffer->type.rank(),
            fmt::format("field {} has {} slices for {} dimensions", field, v.slices.size(), v.buffer->type.rank()));
    for (const Slice& s : v.slices) {
      check_index(s.start), check_index(s.extent);
      if (s.keep) continue;
      require(s.extent.is_constant(1), fmt::format("a dropped dimension of {} has extent 1", field));
    }
  }

 private:
  [[noreturn]] void fail(const std::string& rule) const {
    Diagnostic d;
    d.code = DiagnosticCode::E9002;
    d.message = fmt::format("invalid IR in kernel {}: {}", kernel_.name, rule);
    if (op_) {
      d.location = op_->location;
      d.message += fmt::format(" (at `{}`)", info(op_->kind).mnemonic);
    }
    d.help = "this is a defect of the compiler; please report it with the kernel";
    throw d;
  }
  void require(bool holds, const std::string& rule) const {
    if (!holds) fail(rule);
  }

  void arrive(const Value* v) {
    require(v != nullptr, "a value exists");
    require(defined_.insert(v).second, fmt::format("%{} is defined once", v->name));
  }
  void check_scope(const Value* v) const {
    require(v != nullptr, "operands exist");
    require(defined_.contains(v), fmt::format("%{} ({}) is defined before it is used", v->name, v->id));
  }
  void check_index(Index x) const {
    require(static_cast<bool>(x), "index expressions exist");
    require(x.node()->context == &kernel_.indices(), "index expressions belong to the kernel");
    for_each_symbol(x, [&](const Value* v) {
      check_scope(v);
      require(v->type.is_scalar() && v->type.dtype == DType::I64, fmt::format("symbol %{} is an i64 scalar", v->name));
    });
  }

  void check_region(const Region& region) {
    std::vector<const Value*> local;
    for (const Value* v : region.arguments) {
      require(v->owner == &region, "a region owns its arguments");
      arrive(v);
      local.push_back(v);
    }
    for (size_t i = 0; i < region.ops.size(); ++i) {
      const Op& op = *region.ops[i];
      op_ = &op;
      const bool terminator = info(op.kind).traits & kTerminator;
      require(!terminator || i + 1 == region.ops.size(), "a terminator is the last operation of its region");
      check_op(op);
      op_ = &op;
      for (const Value* v : op.results) {
        require(v->def == &op, "a result knows its operation");
        arrive(v);
        local.push_back(v);
      }
    }
    for (const Value* v : local) defined_.erase(v);
  }

  void check_op(const Op& op) {
    const OpInfo& row = info(op.kind);
    require(row.is_legal_in(kernel_.phase), "the operation is legal in the kernel's phase");
    const Counts n = counts(op.kind);
    const auto operands = static_cast<int>(op.operands.size()), results = static_cast<int>(op.results.size());
    require(operands >= n.operands && (n.most_operands == kAny || operands <= n.most_operands),
            fmt::format("{} operands are not allowed", operands));
    require(results >= n.results && (n.most_results == kAny || results <= n.most_results),
            fmt::format("{} results are not allowed", results));
    require(static_cast<int>(op.regions.size()) == n.regions, fmt::format("{} regions are needed", n.regions));
    for (const Value* v : op.operands) check_scope(v);
    Attributes copy = op.attributes;
    visit_fields(copy, *this);
    for (const Value* v : op.results) {
      for (const Index& extent : v->type.shape) check_index(extent);
    }
    check_types(op);
    for (const Region* region : op.regions) {
      require(region->parent == &op, "a region knows its operation");
      check_region(*region);
    }
  }

  const Type& operand(const Op& op, size_t i) const { return op.operands[i]->type; }

  void check_types(const Op& op) {
    switch (op.kind) {
      case OpKind::Grid: return check_variables(op, op.as<GridAttributes>().extents.size(), 0);
      case OpKind::Parallel: return check_variables(op, op.as<ParallelAttributes>().extents.size(), 0);
      case OpKind::Func: return check_variables(op, op.as<FuncAttributes>().blocks.size(), 0);
      case OpKind::For:
      case OpKind::Pipelined: return check_variables(op, 1, op.operands.size());
      case OpKind::If: return check_if(op);
      case OpKind::While: return check_while(op);
      case OpKind::Fill: return check_scalar(op, 0, compute_type(op.as<FillAttributes>().dst.buffer->type.dtype));
      case OpKind::Copy: return check_copy(op);
      case OpKind::Gemm: return check_gemm(op.as<GemmAttributes>());
      case OpKind::Reduce: return check_reduce(op.as<ReduceAttributes>());
      case OpKind::ReduceArg: return check_reduce_arg(op.as<ReduceArgAttributes>());
      case OpKind::Scan: return check_equal_extents(op.as<ScanAttributes>().src, op.as<ScanAttributes>().dst);
      case OpKind::AtomicTile:
        return check_equal_extents(op.as<AtomicTileAttributes>().src, op.as<AtomicTileAttributes>().dst);
      case OpKind::ArriveLast:
        return require(op.as<ArriveLastAttributes>().counter.extents().empty(), "the counter is one element");
      case OpKind::Load: return check_load(op);
      case OpKind::Store: return check_access(op, op.as<AccessAttributes>().buffer, op.as<AccessAttributes>().indices);
      case OpKind::Atomic: return check_access(op, op.as<AtomicAttributes>().buffer, op.as<AtomicAttributes>().indices);
      case OpKind::Alloc: return check_alloc(op);
      case OpKind::Assert: return check_scalar(op, 0, DType::Bool);
      case OpKind::IndexValue: {
        const DType dtype = op.result()->type.dtype;
        return require(dtype == DType::I64 || dtype == DType::Bool, "an index is i64 or bool");
      }
      case OpKind::Unary: return check_unary(op);
      case OpKind::Binary:
        require(same(operand(op, 0), operand(op, 1)), "both operands have one type");
        return require(same(operand(op, 0), op.result()->type), "the result has the operands' type");
      case OpKind::Compare:
        require(same(operand(op, 0), operand(op, 1)), "both operands have one type");
        return require(op.result()->type.dtype == DType::Bool && op.result()->type.lanes == operand(op, 0).lanes,
                       "the result is bool");
      case OpKind::Select:
        require(operand(op, 0).dtype == DType::Bool, "the condition is bool");
        require(same(operand(op, 1), operand(op, 2)), "both branches have one type");
        return require(same(operand(op, 1), op.result()->type), "the result has the branches' type");
      case OpKind::Cast: return require(operand(op, 0).lanes == op.result()->type.lanes, "a cast keeps the lanes");
      case OpKind::Fma: return check_fma(op);
      case OpKind::Offset:
      case OpKind::VectorLoad:
      case OpKind::VectorStore:
      case OpKind::Gather:
      case OpKind::Scatter:
      case OpKind::Prefetch:
      case OpKind::AtomicMemory:
        return require(operand(op, 0).kind == TypeKind::Pointer, "the first operand is a pointer");
      case OpKind::Slot:
      case OpKind::ArgumentPointer:
      case OpKind::ScratchPointer:
      case OpKind::Broadcast:
      case OpKind::Iota:
      case OpKind::Extract:
      case OpKind::Shuffle:
      case OpKind::VectorReduce:
      case OpKind::Mask:
      case OpKind::Constant:
      case OpKind::Print:
      case OpKind::Assume:
      case OpKind::Yield:
      case OpKind::Return: return;
    }
  }

  void check_scalar(const Op& op, size_t i, DType dtype) const {
    require(operand(op, i).is_scalar() && operand(op, i).dtype == dtype,
            fmt::format("operand {} is {}, not {}", i, name(dtype), to_text(operand(op, i))));
  }

  void check_variables(const Op& op, size_t variables, size_t carried) const {
    const std::vector<Value*>& arguments = op.regions[0]->arguments;
    require(arguments.size() == variables + carried, "the region has one argument per variable and carried value");
    for (size_t i = 0; i < variables; ++i) {
      require(arguments[i]->type.is_scalar() && arguments[i]->type.dtype == DType::I64,
              "loop and block variables are i64");
    }
    require(op.results.size() == carried, "one result per carried value");
    for (size_t i = 0; i < carried; ++i) {
      require(same(arguments[variables + i]->type, operand(op, i)) && same(op.results[i]->type, operand(op, i)),
              "carried values keep their type");
    }
    if (carried) check_yield(*op.regions[0], op.results);
  }

  void check_yield(const Region& region, const std::vector<Value*>& results) const {
    require(!region.ops.empty() && region.ops.back()->kind == OpKind::Yield, "the region ends with a yield");
    const Op& yield = *region.ops.back();
    require(yield.operands.size() == results.size(), "the yield gives every result");
    for (size_t i = 0; i < results.size(); ++i)
      require(same(yield.operands[i]->type, results[i]->type), "a yielded value has the result's type");
  }

  void check_if(const Op& op) const {
    check_scalar(op, 0, DType::Bool);
    if (op.results.empty()) return;
    for (const Region* region : op.regions) check_yield(*region, op.results);
  }

  void check_while(const Op& op) const {
    const Region& condition = *op.regions[0];
    require(!condition.ops.empty() && condition.ops.back()->kind == OpKind::Yield, "the condition ends with a yield");
    const Op& yield = *condition.ops.back();
    require(yield.operands.size() == 1 && operand(yield, 0).dtype == DType::Bool, "the condition yields one bool");
  }

  void check_alloc(const Op& op) const {
    const Type& type = op.result()->type;
    require(type.is_buffer() && type.space != MemorySpace::Global, "an allocation makes a buffer on the chip");
    require((type.space == MemorySpace::Var) == type.shape.empty(), "a var has no dimensions and every tile has some");
    for (const Index& extent : type.shape) {
      require(extent.constant() && *extent.constant() >= 1, "the extents of a tile are constants of 1 or more");
    }
  }

  void check_equal_extents(const View& x, const View& y) const {
    const std::vector<Index> a = x.extents(), b = y.extents();
    require(a.size() == b.size(), fmt::format("ranks {} and {} are equal", a.size(), b.size()));
    for (size_t i = 0; i < a.size(); ++i) require(a[i] == b[i], fmt::format("extents of dimension {} are equal", i));
  }

  void check_copy(const Op& op) const {
    const CopyAttributes& a = op.as<CopyAttributes>();
    check_equal_extents(a.src, a.dst);
    if (!op.operands.empty()) check_scalar(op, 0, compute_type(a.src.buffer->type.dtype));
  }

  void check_gemm(const GemmAttributes& g) const {
    const std::vector<Index> a = g.a.extents(), b = g.b.extents(), c = g.c.extents();
    require(a.size() == 2 && b.size() == 2 && c.size() == 2, "gemm operands have two dimensions");
    const size_t ta = g.transpose_a, tb = g.transpose_b;
    require(a[ta] == c[0] && b[1 - tb] == c[1] && a[1 - ta] == b[tb], "gemm extents agree");
  }

  void check_reduced(const View& src, const View& dst, int dim) const {
    std::vector<Index> left = src.extents();
    const std::vector<Index> right = dst.extents();
    require(dim >= 0 && dim < static_cast<int>(left.size()), "the reduced dimension exists");
    left.erase(left.begin() + dim);
    if (left.empty() && right.size() == 1)
      return require(right[0].is_constant(1), "one dimension reduces to one element");
    require(left == right, "the destination has the source's extents without the reduced dimension");
  }

  void check_reduce(const ReduceAttributes& a) const { check_reduced(a.src, a.dst, a.dim); }
  void check_reduce_arg(const ReduceArgAttributes& a) const {
    check_reduced(a.src, a.value, a.dim);
    check_reduced(a.src, a.index, a.dim);
  }

  void check_indices(const Value* buffer, const std::vector<Index>& indices) const {
    require(static_cast<int>(indices.size()) == buffer->type.rank(),
            fmt::format("{} indices for {} dimensions", indices.size(), buffer->type.rank()));
  }

  void check_load(const Op& op) const {
    const AccessAttributes& a = op.as<AccessAttributes>();
    check_indices(a.buffer, a.indices);
    const DType dtype = compute_type(a.buffer->type.dtype);
    require(op.result()->type.is_scalar() && op.result()->type.dtype == dtype,
            "a load gives the buffer's compute type");
    if (!op.operands.empty()) check_scalar(op, 0, dtype);
  }

  void check_access(const Op& op, const Value* buffer, const std::vector<Index>& indices) const {
    check_indices(buffer, indices);
    check_scalar(op, 0, compute_type(buffer->type.dtype));
  }

  /// Integers: each 32-bit lane adds the products of the narrower neighbouring elements that make it up.
  void check_fma(const Op& op) const {
    const Type &a = operand(op, 0), &b = operand(op, 1), &sum = operand(op, 2);
    require(same(sum, op.result()->type), "the result has the addend's type");
    if (is_float(sum.dtype)) return require(same(a, b) && same(a, sum), "three operands of one type");
    require(sum.dtype == DType::I32 && a.lanes == b.lanes && bits(a.dtype) == bits(b.dtype) && is_int(a.dtype) &&
                is_int(b.dtype) && a.lanes * bits(a.dtype) == sum.lanes * 32,
            "an integer dot product has as many bits in each factor as in its i32 sums");
  }

  void check_unary(const Op& op) const {
    const Type& from = operand(op, 0);
    const Type& to = op.result()->type;
    switch (op.as<UnaryAttributes>().op) {
      case UnaryOp::IsNan:
        return require(to.dtype == DType::Bool && is_float(from.dtype), "isnan takes a float and gives a bool");
      case UnaryOp::Bitcast:
        return require(bits(from.dtype) * from.lanes == bits(to.dtype) * to.lanes, "a bitcast keeps the width");
      default: return require(same(from, to), "the result has the operand's type");
    }
  }

  const Kernel& kernel_;
  std::unordered_set<const Value*> defined_;
  const Op* op_ = nullptr;
};

}  // namespace

Status verify(const Kernel& kernel) {
  try {
    Verifier(kernel).run();
    return {};
  } catch (Diagnostic& d) {
    return std::unexpected(std::move(d));
  }
}

}  // namespace tilewright::ir
