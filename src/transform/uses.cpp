#include "transform/uses.h"

#include <algorithm>
#include <unordered_set>

#include "ir/attribute_fields.h"

namespace tilewright::transform {
namespace {

struct BufferCollector {
  std::vector<const ir::Value*>& out;
  template <typename T>
  void operator()(const char*, T&) {}
  void operator()(const char*, ir::Value*& v) {
    if (v) out.push_back(v);
  }
  void operator()(const char*, ir::View& v) {
    if (v.buffer) out.push_back(v.buffer);
  }
};

/// Every value an operation reads: operands, and symbols of its index expressions.
struct ValueCollector {
  std::unordered_set<const ir::Value*>& out;
  template <typename T>
  void operator()(const char*, T&) {}
  void operator()(const char*, ir::Index& x) { add(x); }
  void operator()(const char*, ir::Value*& v) { out.insert(v); }
  void operator()(const char*, ir::View& v) {
    out.insert(v.buffer);
    for (const ir::Slice& s : v.slices) add(s.start), add(s.extent);
  }
  void operator()(const char*, std::vector<ir::Index>& v) {
    for (ir::Index x : v) add(x);
  }
  void add(ir::Index x) {
    if (x) for_each_symbol(x, [this](const ir::Value* v) { out.insert(v); });
  }
};

bool sweep(ir::Region& region, const std::unordered_set<const ir::Value*>& used) {
  const auto is_dead = [&](const ir::Op* op) {
    const bool removable =
        op->kind == ir::OpKind::Alloc || (ir::info(op->kind).traits & ir::kPure && op->kind != ir::OpKind::Assume);
    return removable && op->result() &&
           std::ranges::none_of(op->results, [&](const ir::Value* v) { return used.contains(v); });
  };
  bool changed = std::erase_if(region.ops, is_dead) > 0;
  for (ir::Op* op : region.ops) {
    for (ir::Region* inner : op->regions) changed |= sweep(*inner, used);
  }
  return changed;
}

}  // namespace

std::vector<const ir::Value*> buffers_of(const ir::Op& op) {
  std::vector<const ir::Value*> out;
  ir::Attributes copy = op.attributes;
  visit_fields(copy, BufferCollector{out});
  return out;
}

std::unordered_map<const ir::Value*, std::vector<ir::Op*>> buffer_uses(const ir::Region& region) {
  std::unordered_map<const ir::Value*, std::vector<ir::Op*>> out;
  for_each_op(region, [&](ir::Op& op) {
    for (const ir::Value* buffer : buffers_of(op)) {
      auto& uses = out[buffer];
      if (uses.empty() || uses.back() != &op) uses.push_back(&op);
    }
  });
  return out;
}

bool remove_dead(ir::Kernel& kernel) {
  bool any = false;
  for (bool changed = true; changed;) {
    std::unordered_set<const ir::Value*> used;
    for_each_op(*kernel.body, [&](ir::Op& op) {
      for (const ir::Value* v : op.operands) used.insert(v);
      visit_fields(op.attributes, ValueCollector{used});
    });
    changed = sweep(*kernel.body, used);
    any |= changed;
  }
  return any;
}

}  // namespace tilewright::transform
