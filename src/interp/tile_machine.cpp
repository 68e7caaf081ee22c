#include "interp/tile_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "interp/bounded.h"

namespace tilewright::interp {
namespace {

int64_t product(const std::vector<int64_t>& extents) {
  return std::accumulate(extents.begin(), extents.end(), int64_t{1},
                         [](int64_t x, int64_t y) { return x * std::max<int64_t>(y, 0); });
}

/// Buffers that iterations of `parallel` store to.
std::vector<const ir::Value*> stored_buffers(const ir::Op& parallel) {
  std::vector<const ir::Value*> out;
  for (const ir::Region* region : parallel.regions) {
    ir::for_each_op(*region, [&](ir::Op& op) {
      if (op.kind == ir::OpKind::Store) out.push_back(op.as<ir::AccessAttributes>().buffer);
      if (op.kind == ir::OpKind::Atomic) out.push_back(op.as<ir::AtomicAttributes>().buffer);
    });
  }
  return out;
}

}  // namespace

TileMachine::TileMachine(const ir::Kernel& kernel, const Options& options)
    : kernel_(kernel), options_(options), values_(kernel, options.mode) {
  uint32_t last = 0;
  for (const auto& t : kernel.tensors) last = std::max(last, t.buffer->id);
  ir::for_each_op(*kernel.body, [&](ir::Op& op) {
    for (const ir::Value* v : op.results) last = std::max(last, v->id);
    if (op.kind == ir::OpKind::Parallel) written_in_[&op] = stored_buffers(op);
  });
  storages_.resize(static_cast<size_t>(last) + 1);
}

Storage& TileMachine::bind(const ir::Value* buffer, std::shared_ptr<Storage> storage) {
  storages_[buffer->id] = std::move(storage);
  return *storages_[buffer->id];
}

Status TileMachine::run() {
  const Step step = run_region(*kernel_.body);
  if (!step) return std::unexpected(step.error());
  return {};
}

TileMachine::Step TileMachine::count_step(const ir::Op& op) {
  if (++steps_ <= options_.step_limit) return Flow::Continue;
  return fail_at(DiagnosticCode::E1209, op.location,
                 fmt::format("stopped after {} operations: the kernel does not seem to end", options_.step_limit),
                 "check the conditions of its loops, or try smaller sizes");
}

TileMachine::Step TileMachine::run_region(const ir::Region& region) {
  for (const ir::Op* op : region.ops) {
    if (const Step step = count_step(*op); !step) return step;
    const Step step = run_op(*op);
    if (!step || *step == Flow::EndBlock) return step;
  }
  return Flow::Continue;
}

TileMachine::Step TileMachine::run_op(const ir::Op& op) {
  element_operations += lanes_.count;
  switch (op.kind) {
    case ir::OpKind::Grid: return run_grid(op);
    case ir::OpKind::For: return run_for(op);
    case ir::OpKind::Pipelined: return run_pipelined(op);
    case ir::OpKind::Parallel: return run_parallel(op);
    case ir::OpKind::If: return run_if(op);
    case ir::OpKind::While: return run_while(op);
    case ir::OpKind::Yield: return Flow::Continue;  // read by the enclosing operation
    case ir::OpKind::Alloc: run_alloc(op); return Flow::Continue;
    case ir::OpKind::Fill: return run_fill(op);
    case ir::OpKind::Copy: return run_copy(op);
    case ir::OpKind::Gemm: return run_gemm(op);
    case ir::OpKind::Reduce: return run_reduce(op);
    case ir::OpKind::ReduceArg: return run_reduce_arg(op);
    case ir::OpKind::Scan: return run_scan(op);
    case ir::OpKind::AtomicTile: return run_atomic_tile(op);
    case ir::OpKind::ArriveLast: return run_arrive_last(op);
    case ir::OpKind::Load: run_load(op); return Flow::Continue;
    case ir::OpKind::Store: run_store(op); return Flow::Continue;
    case ir::OpKind::Atomic: run_atomic(op); return Flow::Continue;
    case ir::OpKind::Binary:
      if (options_.check) check_division(op);
      values_.run_pure(op);
      return Flow::Continue;
    case ir::OpKind::Print: run_print(op); return Flow::Continue;
    case ir::OpKind::Assert: return run_assert(op);
    case ir::OpKind::Assume: run_assume(op); return Flow::Continue;
    default: break;
  }
  if (values_.run_pure(op)) return Flow::Continue;
  return fail_at(DiagnosticCode::E1211, op.location,
                 fmt::format("`{}` has no meaning in the tile phase", ir::info(op.kind).mnemonic));
}

TileMachine::Step TileMachine::run_grid(const ir::Op& op) {
  grid_ = &op;
  grid_extents_.clear();
  for (const ir::Index e : op.as<ir::GridAttributes>().extents) grid_extents_.push_back(values_.uniform(e));
  const int64_t blocks = product(grid_extents_);
  ++grid_epoch_;
  arrivals_.clear();
  std::vector<int64_t> order(static_cast<size_t>(blocks));
  std::iota(order.begin(), order.end(), 0);
  if (options_.seed) std::shuffle(order.begin(), order.end(), std::mt19937_64(options_.seed));
  for (const int64_t block : order) {
    block_ = static_cast<int32_t>(block);
    happened_before_.clear();
    int64_t rest = block;
    const ir::Region& body = *op.regions[0];
    for (size_t d = 0; d < grid_extents_.size(); ++d) {
      values_[body.arguments[d]] = Column::of_integer(DType::I64, rest % grid_extents_[d]);
      rest /= grid_extents_[d];
    }
    const Step step = run_region(body);
    if (!step) return step;
  }
  grid_ = nullptr;
  return Flow::Continue;
}

TileMachine::Step TileMachine::run_parallel(const ir::Op& op) {
  if (lanes_.parallel) {
    return fail_at(DiagnosticCode::E1211, op.location, "a `parallel` inside another `parallel`",
                   "write one `parallel` over all of the variables");
  }
  std::vector<int64_t> extents;
  for (const ir::Index e : op.as<ir::ParallelAttributes>().extents) extents.push_back(values_.uniform(e));
  parallel_extents_ = extents;
  const int64_t total = product(extents);
  ++parallel_epoch_;
  if (options_.check) {
    for (const ir::Value* buffer : written_in_[&op]) {
      Storage* s = storages_[buffer->id].get();
      if (!s || s->is_private) continue;  // declared inside: private to each iteration
      s->by_iteration.enable(s->size);
      s->tracked_parallel = &op;
    }
  }
  const Lanes outer = lanes_;
  Step step = Flow::Continue;
  for (int64_t first = 0; first < total && step && *step == Flow::Continue; first += options_.batch) {
    lanes_ = {.first = first, .parallel = &op, .doubtful = outer.doubtful};
    step = run_batch(op, extents, first, std::min(options_.batch, total - first));
  }
  lanes_ = outer;
  return step;
}

TileMachine::Step TileMachine::run_batch(const ir::Op& op, const std::vector<int64_t>& extents, int64_t first,
                                         int64_t count) {
  lanes_.count = count;
  const ir::Region& body = *op.regions[0];
  int64_t inner = 1;
  for (size_t d = extents.size(); d-- > 0;) {
    Column& v = values_[body.arguments[d]];
    v.reset(DType::I64, count);
    int64_t at = first / inner % extents[d], left = inner - first % inner;
    for (int64_t lane = 0; lane < count; ++lane) {
      v.integer[static_cast<size_t>(lane)] = at;
      if (--left == 0) {
        left = inner;
        if (++at == extents[d]) at = 0;
      }
    }
    inner *= extents[d];
  }
  return run_region(body);
}

void TileMachine::yield_into(const ir::Region& region, const std::vector<ir::Value*>& targets, const Mask* mask) {
  if (targets.empty() || region.ops.empty() || region.ops.back()->kind != ir::OpKind::Yield) return;
  const ir::Op& yield = *region.ops.back();
  // All values are read before any is written: a loop may swap its carried values.
  std::vector<Column> yielded;
  for (const ir::Value* v : yield.operands) yielded.push_back(values_[v]);
  for (size_t i = 0; i < targets.size() && i < yielded.size(); ++i) {
    if (mask) {
      merge(values_[targets[i]], yielded[i], *mask);
    } else {
      values_[targets[i]] = std::move(yielded[i]);
    }
  }
}

TileMachine::Step TileMachine::run_for(const ir::Op& op) {
  const auto& a = op.as<ir::ForAttributes>();
  const ir::Region& body = *op.regions[0];
  const std::vector<ir::Value*> carried(body.arguments.begin() + 1, body.arguments.end());
  for (size_t i = 0; i < carried.size(); ++i) values_[carried[i]] = values_[op.operands[i]];
  if (!values_.is_uniform(a.lo) || !values_.is_uniform(a.hi) || !values_.is_uniform(a.step)) {
    return run_divergent_for(op);
  }
  const int64_t lo = values_.uniform(a.lo), hi = values_.uniform(a.hi), step = values_.uniform(a.step);
  if (values_.mode() == Mode::Bounded && (values_.is_tainted(a.lo, 0) || values_.is_tainted(a.hi, 0)))
    inconclusive = true;
  for (int64_t i = lo; step > 0 ? i < hi : step < 0 && i > hi; i += step) {
    values_[body.arguments[0]] = Column::of_integer(DType::I64, i);
    const Step flow = run_region(body);
    if (!flow || *flow == Flow::EndBlock) return flow;
    yield_into(body, carried, nullptr);
  }
  for (size_t i = 0; i < op.results.size(); ++i) values_[op.results[i]] = values_[carried[i]];
  return Flow::Continue;
}

TileMachine::Step TileMachine::run_divergent_for(const ir::Op& op) {
  const auto& a = op.as<ir::ForAttributes>();
  const ir::Region& body = *op.regions[0];
  const std::vector<ir::Value*> carried(body.arguments.begin() + 1, body.arguments.end());
  Column at, hi, by;
  values_.evaluate(a.lo, at), values_.evaluate(a.hi, hi), values_.evaluate(a.step, by);
  widen(at, lanes_.count);
  if (at.is_tainted() || hi.is_tainted() || by.is_tainted()) inconclusive = true;
  const Lanes outer = lanes_;
  Step flow = Flow::Continue;
  while (flow && *flow == Flow::Continue) {
    auto mask = std::make_shared<Mask>(static_cast<size_t>(outer.count));
    bool any = false;
    for (int64_t i = 0; i < outer.count; ++i) {
      const int64_t step = by.integer_at(i), v = at.integer_at(i), end = hi.integer_at(i);
      const bool more = outer.is_active(i) && (step > 0 ? v < end : step < 0 && v > end);
      (*mask)[static_cast<size_t>(i)] = more;
      any |= more;
    }
    if (!any) break;
    values_[body.arguments[0]] = at;
    lanes_.mask = mask;
    flow = run_region(body);
    yield_into(body, carried, mask.get());
    for (int64_t i = 0; i < outer.count; ++i) at.integer[static_cast<size_t>(i)] += by.integer_at(i);
  }
  lanes_ = outer;
  for (size_t i = 0; i < op.results.size(); ++i) values_[op.results[i]] = values_[carried[i]];
  return flow;
}

TileMachine::Step TileMachine::run_pipelined(const ir::Op& op) {
  const int64_t count = values_.uniform(op.as<ir::PipelinedAttributes>().count);
  if (values_.is_tainted(op.as<ir::PipelinedAttributes>().count, 0)) inconclusive = true;
  const ir::Region& body = *op.regions[0];
  for (int64_t i = 0; i < count; ++i) {
    values_[body.arguments[0]] = Column::of_integer(DType::I64, i);
    const Step flow = run_region(body);
    if (!flow || *flow == Flow::EndBlock) return flow;
  }
  return Flow::Continue;
}

std::shared_ptr<const TileMachine::Mask> TileMachine::narrowed(const Column& condition, bool wanted,
                                                               bool tainted_too) const {
  auto mask = std::make_shared<Mask>(static_cast<size_t>(lanes_.count));
  for (int64_t i = 0; i < lanes_.count; ++i) {
    const bool takes = (condition.integer_at(i) != 0) == wanted && !condition.taint_at(i);
    (*mask)[static_cast<size_t>(i)] = lanes_.is_active(i) && (tainted_too ? condition.taint_at(i) : takes);
  }
  return mask;
}

bool TileMachine::any_active(const std::shared_ptr<const Mask>& mask) const {
  return std::ranges::any_of(*mask, [](uint8_t m) { return m != 0; });
}

TileMachine::Step TileMachine::run_under(std::shared_ptr<const Mask> mask, bool doubtful, const ir::Region& region) {
  const Lanes outer = lanes_;
  lanes_.mask = std::move(mask);
  lanes_.doubtful |= doubtful;
  const Step flow = run_region(region);
  lanes_ = outer;
  return flow;
}

TileMachine::Step TileMachine::run_if(const ir::Op& op) {
  const Column condition = values_[op.operands[0]];
  const auto doubtful = narrowed(condition, true, true);
  for (size_t i = 0; i < op.results.size(); ++i) {
    const ir::Type& type = op.results[i]->type;
    values_[op.results[i]] = is_float(type.dtype) ? Column::of_real(type.dtype, 0) : Column::of_integer(type.dtype, 0);
  }
  for (const bool wanted : {true, false}) {
    const size_t side = wanted ? 0 : 1;
    if (side >= op.regions.size()) continue;
    const ir::Region& region = *op.regions[side];
    if (const auto mask = narrowed(condition, wanted, false); any_active(mask)) {
      const Step flow = run_under(mask, false, region);
      if (!flow || *flow == Flow::EndBlock) return flow;
      yield_into(region, op.results, mask.get());
    }
    if (!any_active(doubtful)) continue;
    const Step flow = run_under(doubtful, true, region);
    if (!flow || *flow == Flow::EndBlock) return flow;
    yield_into(region, op.results, doubtful.get());
  }
  if (any_active(doubtful)) {
    for (const ir::Value* v : op.results) {
      Column& c = values_[v];
      widen(c, lanes_.count);
      if (c.is_real() && c.bound.empty()) c.bound.assign(static_cast<size_t>(c.lanes), 0);
      if (!c.is_real() && c.taint.empty()) c.taint.assign(static_cast<size_t>(c.lanes), 0);
      for (size_t i = 0; i < doubtful->size(); ++i) {
        if (!(*doubtful)[i]) continue;
        (c.is_real() ? c.bound[i] = kUnknown : static_cast<double>(c.taint[i] = 1));
      }
    }
  }
  return Flow::Continue;
}

TileMachine::Step TileMachine::run_while(const ir::Op& op) {
  const ir::Region& test = *op.regions[0];
  const Lanes outer = lanes_;
  Step flow = Flow::Continue;
  for (int64_t turns = 0;; ++turns) {
    if (turns > options_.turn_limit) {
      flow =
          fail_at(DiagnosticCode::E1209, op.location,
                  fmt::format("stopped after {} turns of this `while`: it does not seem to end", options_.turn_limit),
                  "check that its condition becomes false");
      break;
    }
    flow = run_region(test);
    if (!flow || *flow == Flow::EndBlock || test.ops.empty()) break;
    const Column condition = values_[test.ops.back()->operands[0]];
    if (condition.is_tainted()) {
      inconclusive = true;
      break;
    }
    const auto mask = narrowed(condition, true, false);
    if (!any_active(mask)) break;
    lanes_.mask = mask;
    flow = run_region(*op.regions[1]);
    if (!flow || *flow == Flow::EndBlock) break;
  }
  lanes_ = outer;
  return flow;
}

}  // namespace tilewright::interp
