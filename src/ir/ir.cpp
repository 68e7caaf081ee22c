#include "ir/ir.h"

#include <array>
#include <functional>
#include <unordered_map>

#include "ir/attribute_fields.h"
#include "ir/enum_names.h"
#include "ir/printer.h"

namespace tilewright::ir {
namespace {

constexpr std::array kOps = {
#define TW_OP(kind, mnemonic, attributes, traits, phases, text) OpInfo{OpKind::kind, mnemonic, traits, phases, text},
#include "ir/ops.def"
#undef TW_OP
};

Attributes default_attributes(OpKind kind) {
  switch (kind) {
#define TW_OP(op_kind, mnemonic, attribute_type, traits, phases, text) \
  case OpKind::op_kind:                                                \
    return attribute_type{};
#include "ir/ops.def"
#undef TW_OP
  }
  return NoAttributes{};
}

/// Copies attributes, types and regions from one kernel into another, mapping values.
class Cloner {
 public:
  Cloner(const Kernel& from, Kernel& to) : from_(from), to_(to) {}

  void run() {
    to_.name = from_.name;
    to_.phase = from_.phase;
    to_.texts = from_.texts;
    to_.aliases = from_.aliases;
    for (const Value* v : from_.slots) to_.slots.push_back(map(v));
    for (const Dimension& d : from_.dimensions) to_.dimensions.push_back({d.name, map(d.value), d.constant});
    for (const ScalarArgument& s : from_.scalars) to_.scalars.push_back({map(s.value), s.default_value, s.location});
    for (TensorArgument t : from_.tensors) {
      t.buffer = map(t.buffer);
      to_.tensors.push_back(t);
    }
    for (const Requirement& r : from_.requirements) to_.requirements.push_back({map(r.condition), r.text, r.location});
    clone_ops(*from_.body, *to_.body);
  }

  template <typename T>
  void operator()(const char*, T&) {}
  void operator()(const char*, Index& v) { v = map(v); }
  void operator()(const char*, Value*& v) { v = map(v); }
  void operator()(const char*, View& v) {
    v.buffer = map(v.buffer);
    for (Slice& s : v.slices) s.start = map(s.start), s.extent = map(s.extent);
  }
  void operator()(const char*, std::vector<Index>& v) {
    for (Index& x : v) x = map(x);
  }

 private:
  Value* map(const Value* v) {
    if (!v) return nullptr;
    if (const auto found = values_.find(v); found != values_.end()) return found->second;
    Type type = v->type;
    for (Index& extent : type.shape) extent = map(extent);
    return values_.emplace(v, to_.new_value(std::move(type), v->name)).first->second;
  }
  Index map(Index x) {
    if (!x) return x;
    return substitute(
        x, [this](const Value* v) { return to_.indices().symbol(map(v)); }, to_.indices());
  }
  void clone_ops(const Region& from, Region& to) {
    for (const Op* op : from.ops) to.ops.push_back(clone_op(*op));
  }
  Op* clone_op(const Op& from) {
    Op* op = to_.new_op(from.kind, from.location);
    for (const Value* v : from.operands) op->operands.push_back(map(v));
    op->attributes = from.attributes;
    visit_fields(op->attributes, *this);
    op->hints = from.hints;
    for (const Value* v : from.results) {
      op->results.push_back(map(v));
      op->results.back()->def = op;
    }
    for (const Region* region : from.regions) {
      Region* copy = to_.new_region(op);
      for (const Value* v : region->arguments) {
        copy->arguments.push_back(map(v));
        copy->arguments.back()->owner = copy;
      }
      clone_ops(*region, *copy);
    }
    return op;
  }

  const Kernel& from_;
  Kernel& to_;
  std::unordered_map<const Value*, Value*> values_;
};

}  // namespace

const OpInfo& info(OpKind kind) { return kOps[static_cast<size_t>(kind)]; }

std::optional<OpKind> parse_op_kind(std::string_view mnemonic) {
  for (const OpInfo& row : kOps) {
    if (row.mnemonic == mnemonic) return row.kind;
  }
  return std::nullopt;
}

TW_NAME_FUNCTION(UnaryOp, TW_UNARY_OPS)
TW_NAME_FUNCTION(BinaryOp, TW_BINARY_OPS)
TW_NAME_FUNCTION(CompareOp, TW_COMPARE_OPS)
TW_NAME_FUNCTION(ReduceKind, TW_REDUCE_KINDS)
TW_NAME_FUNCTION(ScanKind, TW_SCAN_KINDS)
TW_NAME_FUNCTION(AtomicKind, TW_ATOMIC_KINDS)

std::string_view name(MemorySpace space) {
  static constexpr std::string_view kNames[] = {"global", "shared", "fragment", "local", "var", "scratch"};
  return kNames[static_cast<int>(space)];
}

Kernel::Kernel()
    : indices_(std::make_unique<IndexContext>()),
      values_(std::make_unique<std::deque<Value>>()),
      ops_(std::make_unique<std::deque<Op>>()),
      regions_(std::make_unique<std::deque<Region>>()) {
  body = new_region(nullptr);
}

Value* Kernel::new_value(Type type, std::string value_name) {
  const auto id = static_cast<uint32_t>(values_->size());
  return &values_->emplace_back(Value{.id = id, .type = std::move(type), .name = std::move(value_name)});
}

Op* Kernel::new_op(OpKind kind, Location location) {
  return &ops_->emplace_back(Op{.kind = kind, .location = std::move(location), .attributes = default_attributes(kind)});
}

Region* Kernel::new_region(Op* parent) {
  Region* region = &regions_->emplace_back();
  region->parent = parent;
  if (parent) parent->regions.push_back(region);
  return region;
}

int Kernel::tensor_position(const Value* buffer) const {
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].buffer == buffer) return static_cast<int>(i);
  }
  return -1;
}

Kernel clone(const Kernel& kernel) {
  Kernel copy;
  Cloner(kernel, copy).run();
  return copy;
}

bool equal(const Kernel& x, const Kernel& y) { return to_text(x, {.names = false}) == to_text(y, {.names = false}); }
Key128 content_key(const Kernel& kernel) { return hash128(to_text(kernel, {.names = false})); }

void for_each_op(const Region& region, const std::function<void(Op&)>& visit) {
  for (Op* op : region.ops) {
    visit(*op);
    for (const Region* inner : op->regions) for_each_op(*inner, visit);
  }
}

}  // namespace tilewright::ir
