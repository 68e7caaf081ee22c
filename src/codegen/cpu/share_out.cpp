#include "codegen/cpu/share_out.h"

#include <algorithm>

namespace tilewright::codegen {
namespace {

/// Operations whose code takes about as long to make as a second thread and its tables.
constexpr int kWorthAThread = 40;

int length(const ir::Op& func) {
  int count = 0;
  ir::for_each_op(*func.regions[0], [&](ir::Op&) { ++count; });
  return count;
}

}  // namespace

Funcs all_funcs(const ir::Kernel& kernel) {
  Funcs out;
  for (const ir::Op* op : kernel.body->ops) {
    if (op->kind == ir::OpKind::Func) out.push_back(op);
  }
  return out;
}

std::vector<Funcs> share_out(const ir::Kernel& kernel) {
  const Funcs all = all_funcs(kernel);
  Funcs by_length = all;
  std::ranges::stable_sort(by_length, std::ranges::greater(), [](const ir::Op* func) { return length(*func); });
  Funcs parts[2];
  int lengths[2] = {0, 0};
  for (const ir::Op* func : by_length) {
    const int to = lengths[1] < lengths[0] ? 1 : 0;
    parts[to].push_back(func), lengths[to] += length(*func);
  }
  if (lengths[1] < kWorthAThread) return {all};
  const auto place = [&](const ir::Op* func) { return std::ranges::find(all, func); };
  for (Funcs& part : parts) std::ranges::sort(part, {}, place);
  return {std::move(parts[0]), std::move(parts[1])};
}

}  // namespace tilewright::codegen
