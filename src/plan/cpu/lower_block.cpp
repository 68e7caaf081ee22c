// Structure: grids, loops, conditions, and the one dispatch over tile operations.
#include <fmt/format.h>

#include "plan/cpu/lowering.h"

namespace tilewright::plan::cpu {

using ir::Index;
using ir::Op;
using ir::OpKind;
using ir::Value;

Lowering::Lowering(const ir::Kernel& tile, ir::Kernel& vector, Arguments& arguments, runtime::Recipe& recipe,
                   const target::Cpu& cpu, const Options& options, std::vector<Fact>& facts)
    : tile_(tile),
      vector_(vector),
      arguments_(arguments),
      recipe_(recipe),
      cpu_(cpu),
      options_(options),
      facts_(facts),
      b_(vector) {
  const Index zero = number(0), large = number(int64_t{1} << 40);
  for (const Value* slot : vector_.slots) bounds_.declare(slot, {}, {});
  for (const ir::Dimension& d : tile_.dimensions) {
    if (const Index slot = arguments_.index_of(d.value); slot && slot.symbol())
      bounds_.declare(slot.symbol(), zero, large);
  }
  declare_divisions();
  for_each_op(*tile_.body, [this](Op& op) {
    if (op.kind != OpKind::Gemm) return;
    const auto& a = op.as<ir::GemmAttributes>();
    for (const ir::View* v : {&a.a, &a.b, &a.c}) gemm_buffers_.insert(v->buffer);
    const auto extents = a.c.extents();
    const auto rows = extents[0].constant(), columns = extents[1].constant();
    if (!rows || !columns) return;
    const DType compute = compute_type(a.c.buffer->type.dtype);
    int64_t& multiple = column_multiple_[a.c.buffer];
    multiple = std::max<int64_t>(multiple, choose_register_tile(cpu_, *rows, *columns, compute).columns());
  });
}

/// `where HQ % HK == 0` bounds h // (HQ // HK) when HK is not 0, which the recipe then checks.
void Lowering::declare_divisions() {
  for (const ir::Requirement& r : tile_.requirements) {
    const Index c = r.condition;
    if (c.op() != ir::IndexOp::Eq) continue;
    for (const auto& [rest, zero] :
         {std::pair(Index(c.node()->a), Index(c.node()->b)), std::pair(Index(c.node()->b), Index(c.node()->a))}) {
      if (!zero.is_constant(0) || rest.op() != ir::IndexOp::FloorMod) continue;
      const Index dividend = arguments_.map(Index(rest.node()->a)), divisor = arguments_.map(Index(rest.node()->b));
      if (!divisor.symbol()) continue;
      bounds_.declare_divides(divisor, dividend);
      const Index holds = logical_or(less(number(0), divisor), less_equal(dividend, number(0)));
      recipe_.requirements.push_back({arguments_.expression(holds), true, divisor.symbol()->name + " > 0"});
    }
  }
}

Status Lowering::run() {
  for (const Op* op : tile_.body->ops) {
    if (op->kind != OpKind::Grid) continue;
    if (Status done = lower_grid(*op); !done) return done;
  }
  return {};
}

Status Lowering::lower_grid(const Op& grid) {
  const auto& attributes = grid.as<ir::GridAttributes>();
  std::vector<Index> blocks;
  for (Index extent : attributes.extents) blocks.push_back(arguments_.map(extent));
  const std::string symbol = fmt::format("{}_{}", tile_.name, recipe_.launches.size());
  b_.set_region(vector_.body);
  b_.set_location(grid.location);
  Op* func = b_.op(OpKind::Func, {}, ir::FuncAttributes{symbol, blocks, attributes.threads, 0});
  scratch_bytes_ = 0;
  masks_.clear();
  pack_requests_.clear();
  grid_ = &grid;
  const size_t position = recipe_.launches.size();
  Status status;
  b_.region_of(func, std::vector<ir::Type>(blocks.size(), ir::Type::scalar(DType::I64)),
               [&](const std::vector<Value*>& at) {
                 for (size_t d = 0; d < blocks.size(); ++d) {
                   const Value* tile_variable = grid.regions[0]->arguments[d];
                   at[d]->name = tile_variable->name;
                   values_[tile_variable] = at[d];
                   bounds_.declare(at[d], number(0), blocks[d] - 1);
                 }
                 bind_arguments();
                 for (const Op* op : tile_.body->ops) {
                   if (op == &grid || !status) break;
                   if (op->kind != OpKind::Grid) status = lower_op(*op);
                 }
                 if (status) status = lower_region(*grid.regions[0]);
                 b_.op(OpKind::Return, {});
               });
  if (!status) return status;
  func->as<ir::FuncAttributes>().scratch_bytes = scratch_bytes_;
  runtime::Launch launch;
  launch.symbol = symbol;
  for (Index extent : blocks) launch.grid.push_back(arguments_.expression(extent));
  launch.scratch_bytes = runtime::constant(scratch_bytes_);
  recipe_.launches.push_back(std::move(launch));
  for (const PackRequest& request : pack_requests_) lower_packing(request, position);
  fact("scratch",
       fmt::format("{}: {} KiB per task; L1 {} KiB, L2 {} KiB", symbol, (scratch_bytes_ + 1023) / 1024,
                   cpu_.l1_bytes / 1024, cpu_.l2_bytes / 1024),
       grid.location);
  return {};
}

void Lowering::bind_arguments() {
  for (const ir::ScalarArgument& s : tile_.scalars) {
    const DType dtype = s.value->type.dtype;
    Value* bits = const_cast<Value*>(arguments_.index_of(s.value).symbol());
    Value* bound = bits;
    if (dtype == DType::F64) {
      bound = b_.op(OpKind::Unary, {bits}, ir::UnaryAttributes{ir::UnaryOp::Bitcast}, {s.value->type})->result();
    } else if (is_float(dtype)) {
      const DType raw = tilewright::bits(dtype) == 32 ? DType::I32 : DType::I16;
      bound = b_.op(OpKind::Unary, {b_.cast(bits, raw)}, ir::UnaryAttributes{ir::UnaryOp::Bitcast},
                    {ir::Type::scalar(dtype)})
                  ->result();
      bound = b_.cast(bound, compute_type(dtype));
    } else {
      bound = b_.cast(bits, dtype);
    }
    values_[s.value] = bound;
  }
  for (size_t i = 0; i < tile_.tensors.size(); ++i) place_argument(static_cast<int>(i));
}

Status Lowering::lower_region(const ir::Region& region) {
  for (size_t i = 0; i < region.ops.size(); ++i) {
    const Op* op = region.ops[i];
    if (op->kind == OpKind::Yield) break;
    b_.set_location(op->location);
    if (op->kind == OpKind::Copy && options_.fuse && lanes_.count == 1 && read_in_place(region, i)) continue;
    if (options_.fuse && lanes_.count == 1 &&
        (op->kind == OpKind::Parallel || op->kind == OpKind::Copy || op->kind == OpKind::Reduce)) {
      const FusedGroup group = find_group(region, i);
      if (const int lanes = group.members.empty() ? 0 : group_lanes(group); lanes > 1) {
        if (Status done = lower_group(group, lanes); !done) return done;
        i += group.consumed - 1;
        continue;
      }
    }
    if (op->kind == OpKind::Gemm) {
      i += lower_gemm(*op, i + 1 < region.ops.size() ? region.ops[i + 1] : nullptr);
      continue;
    }
    if (Status done = lower_op(*op); !done) return done;
    end_sources(*op);
  }
  if (!region.ops.empty()) end_sources(*region.ops.back());
  return {};
}

Status Lowering::lower_op(const Op& op) {
  switch (op.kind) {
    case OpKind::For: {
      const auto& a = op.as<ir::ForAttributes>();
      return lower_loop(op, map(a.lo), map(a.hi), map(a.step));
    }
    case OpKind::Pipelined: return lower_loop(op, number(0), map(op.as<ir::PipelinedAttributes>().count), number(1));
    case OpKind::Parallel: return lower_parallel(op);
    case OpKind::If: return lower_if(op);
    case OpKind::While: return lower_while(op);
    case OpKind::Alloc: return place(op);
    case OpKind::Fill: return lower_fill(op), Status{};
    case OpKind::Copy: return lower_copy(op), Status{};
    case OpKind::Gemm: return lower_gemm(op, nullptr), Status{};
    case OpKind::Reduce: return lower_reduce(op), Status{};
    case OpKind::ReduceArg: return lower_reduce_arg(op), Status{};
    case OpKind::Scan: return lower_scan(op), Status{};
    case OpKind::AtomicTile: return lower_atomic_tile(op), Status{};
    case OpKind::ArriveLast: return lower_arrive_last(op), Status{};
    case OpKind::Atomic: return lower_atomic(op), Status{};
    case OpKind::Load:
    case OpKind::Store:
    case OpKind::Constant:
    case OpKind::IndexValue:
    case OpKind::Unary:
    case OpKind::Binary:
    case OpKind::Compare:
    case OpKind::Select:
    case OpKind::Cast:
    case OpKind::Print:
    case OpKind::Assert:
    case OpKind::Assume:
      if (op.result() && hoisted_.contains(op.result())) return {};
      return lower_element(op), Status{};
    default: break;
  }
  return fail_at(DiagnosticCode::E9001, op.location,
                 fmt::format("`{}` is not a tile operation", ir::info(op.kind).mnemonic));
}

Status Lowering::lower_loop(const Op& op, Index lo, Index hi, Index step) {
  std::vector<Value*> initial;
  for (const Value* v : op.operands) initial.push_back(widen(value(v)));
  Status status;
  const ir::Region& body = *op.regions[0];
  Op* made = b_.for_loop(lo, hi, step, initial, [&](const std::vector<Value*>& at) {
    at[0]->name = body.arguments[0]->name;
    for (size_t i = 0; i < at.size(); ++i) values_[body.arguments[i]] = at[i];
    bounds_.declare(at[0], lo, hi - 1);
    ++loop_depth_;
    status = lower_region(body);
    --loop_depth_;
    if (!status) return;
    std::vector<Value*> next;
    if (!op.results.empty()) {
      for (const Value* v : body.ops.back()->operands) next.push_back(widen(value(v)));
    }
    b_.yield(std::move(next));
  });
  for (size_t i = 0; i < op.results.size(); ++i) values_[op.results[i]] = made->results[i];
  return status;
}

Status Lowering::lower_if(const Op& op) {
  Value* test = value(op.operands[0]);
  if (test->type.lanes > 1) return lower_divergent_if(op, test);
  Status status;
  std::vector<ir::Type> types;
  for (const Value* v : op.results) types.push_back(ir::Type::scalar(v->type.dtype, lanes_.count));
  const auto side = [&](size_t n) {
    return [&, n](const std::vector<Value*>&) {
      if (!status || n >= op.regions.size()) return;
      status = lower_region(*op.regions[n]);
      std::vector<Value*> yields;
      if (status && !op.results.empty()) {
        for (const Value* v : op.regions[n]->ops.back()->operands) yields.push_back(widen(value(v)));
      }
      b_.yield(std::move(yields));
    };
  };
  Op* made = b_.if_else(test, side(0), side(1), types);
  for (size_t i = 0; i < op.results.size(); ++i) values_[op.results[i]] = made->results[i];
  return status;
}

/// Both sides run, each with its lanes' predicate; results are selected.
Status Lowering::lower_divergent_if(const Op& op, Value* test) {
  Value* outer = lanes_.predicate;
  std::vector<Value*> yields[2];
  for (size_t n = 0; n < op.regions.size() && n < 2; ++n) {
    lanes_.predicate = both(outer, n == 0 ? test : b_.unary(ir::UnaryOp::Not, test));
    if (Status done = lower_region(*op.regions[n]); !done) return done;
    if (op.results.empty()) continue;
    for (const Value* v : op.regions[n]->ops.back()->operands) yields[n].push_back(value(v));
  }
  lanes_.predicate = outer;
  for (size_t i = 0; i < op.results.size(); ++i) values_[op.results[i]] = select(test, yields[0][i], yields[1][i]);
  return {};
}

Status Lowering::lower_while(const Op& op) {
  Status status;
  b_.while_loop(
      [&](const std::vector<Value*>&) {
        status = lower_region(*op.regions[0]);
        if (status) b_.yield({value(op.regions[0]->ops.back()->operands[0])});
      },
      [&](const std::vector<Value*>&) {
        if (status) status = lower_region(*op.regions[1]);
        b_.yield({});
      });
  return status;
}

}  // namespace tilewright::plan::cpu
