#include "interp/vector_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "interp/lane_ops.h"
#include "interp/lane_values.h"
#include "interp/scalar.h"

namespace tilewright::interp {
namespace {

enum class Flow : uint8_t { Continue, EndBlock };
using Step = std::expected<Flow, Diagnostic>;

class VectorMachine {
 public:
  VectorMachine(const ir::Kernel& kernel, const LaunchEnvironment& environment, const VectorOptions& options)
      : kernel_(kernel), environment_(environment), options_(options), values_(kernel, Mode::Values) {
    for (const Memory& m : environment.pointers) memories_.add(m);
    scratch_number_ = memories_.add({.name = "scratch"});
    for (size_t i = 0; i < kernel.slots.size() && i < environment.slots.size(); ++i) {
      values_[kernel.slots[i]] = Column::of_integer(DType::I64, environment.slots[i]);
    }
  }

  Result<VectorOutcome> run() {
    for (const ir::Op* op : kernel_.body->ops) {
      if (op->kind != ir::OpKind::Func) return std::unexpected(meaningless(*op));
    }
    if (environment_.launches.empty()) {
      for (const ir::Op* op : kernel_.body->ops) {
        if (const Step step = run_function(*op); !step) return std::unexpected(step.error());
      }
    }
    for (const std::string& symbol : environment_.launches) {
      const auto found = std::ranges::find_if(
          kernel_.body->ops, [&](const ir::Op* op) { return op->as<ir::FuncAttributes>().symbol == symbol; });
      if (found == kernel_.body->ops.end()) return fail(DiagnosticCode::E1211, fmt::format("no function {}", symbol));
      if (const Step step = run_function(**found); !step) return std::unexpected(step.error());
    }
    return std::move(outcome_);
  }

 private:
  static Diagnostic meaningless(const ir::Op& op) {
    return fail_at(DiagnosticCode::E1211, op.location,
                   fmt::format("`{}` has no meaning in the vector phase", ir::info(op.kind).mnemonic))
        .error();
  }

  Step run_function(const ir::Op& op) {
    const auto& a = op.as<ir::FuncAttributes>();
    std::vector<int64_t> extents;
    int64_t blocks = 1;
    for (const ir::Index e : a.blocks) {
      extents.push_back(values_.uniform(e));
      blocks *= std::max<int64_t>(extents.back(), 0);
    }
    scratch_.resize(static_cast<size_t>(a.scratch_bytes));
    memories_.replace(scratch_number_, {scratch_.data(), a.scratch_bytes, "scratch"});
    for (int64_t block = 0; block < blocks; ++block) {
      int64_t rest = block;
      for (size_t d = 0; d < extents.size(); ++d) {
        values_[op.regions[0]->arguments[d]] = Column::of_integer(DType::I64, rest % extents[d]);
        rest /= extents[d];
      }
      std::fill(scratch_.begin(), scratch_.end(), std::byte{0xFF});
      if (const Step step = run_region(*op.regions[0]); !step) return step;
    }
    return Flow::Continue;
  }

  Step run_region(const ir::Region& region) {
    for (const ir::Op* op : region.ops) {
      if (++outcome_.steps > options_.step_limit) {
        return fail_at(DiagnosticCode::E1209, op->location,
                       fmt::format("stopped after {} operations", options_.step_limit));
      }
      const Step step = run_op(*op);
      if (!step || *step == Flow::EndBlock) return step;
    }
    return Flow::Continue;
  }

  Step run_op(const ir::Op& op) {
    switch (op.kind) {
      case ir::OpKind::For: return run_for(op);
      case ir::OpKind::If: return run_if(op);
      case ir::OpKind::While: return run_while(op);
      case ir::OpKind::Yield:
      case ir::OpKind::Assume:
      case ir::OpKind::Prefetch: return Flow::Continue;
      case ir::OpKind::Return: return Flow::EndBlock;
      case ir::OpKind::Assert: return run_assert(op);
      case ir::OpKind::Print: return run_print(op);
      case ir::OpKind::Slot: return run_slot(op);
      case ir::OpKind::ArgumentPointer: return give(op, MemoryMap::address(op.as<ir::SlotAttributes>().number));
      case ir::OpKind::ScratchPointer:
        return give(op, MemoryMap::address(scratch_number_) + values_.uniform(op.as<ir::OffsetAttributes>().bytes));
      case ir::OpKind::Offset: return give(op, pointer(op) + values_.uniform(op.as<ir::OffsetAttributes>().bytes));
      case ir::OpKind::VectorLoad: return run_load(op);
      case ir::OpKind::VectorStore: return run_store(op);
      case ir::OpKind::Gather: return run_gather(op);
      case ir::OpKind::Scatter: return run_scatter(op);
      case ir::OpKind::AtomicMemory: return run_atomic(op);
      default: break;
    }
    if (values_.run_pure(op)) return Flow::Continue;
    return std::unexpected(meaningless(op));
  }

  Step give(const ir::Op& op, int64_t v) {
    values_[op.result()] = Column::of_integer(DType::I64, v);
    return Flow::Continue;
  }
  int64_t pointer(const ir::Op& op) const { return values_[op.operands[0]].integer[0]; }

  Step run_slot(const ir::Op& op) {
    const auto number = static_cast<size_t>(op.as<ir::SlotAttributes>().number);
    if (number >= environment_.slots.size()) return std::unexpected(meaningless(op));
    return give(op, environment_.slots[number]);
  }

  void yield_into(const ir::Region& region, const std::vector<ir::Value*>& targets) {
    if (targets.empty() || region.ops.empty()) return;
    std::vector<Column> yielded;
    for (const ir::Value* v : region.ops.back()->operands) yielded.push_back(values_[v]);
    for (size_t i = 0; i < targets.size(); ++i) values_[targets[i]] = std::move(yielded[i]);
  }

  Step run_for(const ir::Op& op) {
    const auto& a = op.as<ir::ForAttributes>();
    const ir::Region& body = *op.regions[0];
    const std::vector<ir::Value*> carried(body.arguments.begin() + 1, body.arguments.end());
    for (size_t i = 0; i < carried.size(); ++i) values_[carried[i]] = values_[op.operands[i]];
    const int64_t lo = values_.uniform(a.lo), hi = values_.uniform(a.hi), step = values_.uniform(a.step);
    for (int64_t i = lo; step > 0 && i < hi; i += step) {
      values_[body.arguments[0]] = Column::of_integer(DType::I64, i);
      const Step flow = run_region(body);
      if (!flow || *flow == Flow::EndBlock) return flow;
      yield_into(body, carried);
    }
    for (size_t i = 0; i < op.results.size(); ++i) values_[op.results[i]] = values_[carried[i]];
    return Flow::Continue;
  }

  Step run_if(const ir::Op& op) {
    const size_t side = values_[op.operands[0]].integer[0] ? 0 : 1;
    if (side >= op.regions.size()) return Flow::Continue;
    const Step flow = run_region(*op.regions[side]);
    if (flow && *flow == Flow::Continue) yield_into(*op.regions[side], op.results);
    return flow;
  }

  Step run_while(const ir::Op& op) {
    const ir::Region& test = *op.regions[0];
    while (true) {
      Step flow = run_region(test);
      if (!flow || *flow == Flow::EndBlock) return flow;
      if (!values_[test.ops.back()->operands[0]].integer[0]) return Flow::Continue;
      flow = run_region(*op.regions[1]);
      if (!flow || *flow == Flow::EndBlock) return flow;
    }
  }

  Step run_assert(const ir::Op& op) {
    if (values_[op.operands[0]].integer[0]) return Flow::Continue;
    const auto id = static_cast<size_t>(op.as<ir::TextAttributes>().id);
    outcome_.failed_assertions.push_back(
        fail_at(DiagnosticCode::E1208, op.location, id < kernel_.texts.size() ? kernel_.texts[id].text : "").error());
    return Flow::EndBlock;
  }

  Step run_print(const ir::Op& op) {
    for (const ir::Value* v : op.operands) {
      const Column& c = values_[v];
      outcome_.printed += c.is_real() ? fmt::format("{:g} ", c.real[0]) : fmt::format("{} ", c.integer[0]);
    }
    outcome_.printed += '\n';
    return Flow::Continue;
  }

  std::unexpected<Diagnostic> outside(const ir::Op& op, int64_t address, int64_t bytes) const {
    return fail_at(
        DiagnosticCode::E1203, op.location,
        fmt::format("`{}` of {} bytes at {}", ir::info(op.kind).mnemonic, bytes, memories_.describe(address)));
  }

  /// Calls f(lane, bytes) for active lanes, `address_of(lane)` giving each lane's address.
  template <typename A, typename F>
  Step for_lanes(const ir::Op& op, int lanes, const ir::Value* mask, bool is_write, A address_of, F f) {
    const int64_t width = bytes(op.as<ir::MemoryAttributes>().storage);
    for (int i = 0; i < lanes; ++i) {
      if (mask && !values_[mask].integer_at(i)) continue;
      const int64_t address = address_of(i);
      std::byte* at = memories_.resolve(address, width, is_write);
      if (!at) return outside(op, address, width);
      f(i, at);
    }
    return Flow::Continue;
  }

  int64_t base(const ir::Op& op) {
    const ir::Index extra = op.as<ir::MemoryAttributes>().bytes;
    return pointer(op) + (extra ? values_.uniform(extra) : 0);
  }

  Step run_load(const ir::Op& op) {
    const ir::Type& type = op.result()->type;
    const DType storage = op.as<ir::MemoryAttributes>().storage;
    Column& out = start(op);
    const int64_t from = base(op);
    if (op.operands.size() < 2 && storage == DType::F32 && out.dtype == DType::F32) {
      const std::byte* at = memories_.resolve(from, 4 * type.lanes, false);
      if (!at) return outside(op, from, 4 * type.lanes);
      for (int i = 0; i < type.lanes; ++i) {
        float v;
        std::memcpy(&v, at + 4 * i, 4);
        out.real[static_cast<size_t>(i)] = v;
      }
      return Flow::Continue;
    }
    return for_lanes(
        op, type.lanes, op.operands.size() > 1 ? op.operands[1] : nullptr, false,
        [&](int i) { return from + int64_t{i} * bytes(storage); },
        [&](int i, const std::byte* at) { load_element(storage, at, out, i); });
  }

  Step run_store(const ir::Op& op) {
    const DType storage = op.as<ir::MemoryAttributes>().storage;
    const ir::Value* value = op.operands[1];
    const int64_t to = base(op);
    return for_lanes(
        op, value->type.lanes, op.operands.size() > 2 ? op.operands[2] : nullptr, true,
        [&](int i) { return to + int64_t{i} * bytes(storage); },
        [&](int i, std::byte* at) { store_element(storage, at, values_[value], i); });
  }

  Step run_gather(const ir::Op& op) {
    const DType storage = op.as<ir::MemoryAttributes>().storage;
    Column& out = start(op);
    const int64_t from = base(op);
    return for_lanes(
        op, op.result()->type.lanes, op.operands.size() > 2 ? op.operands[2] : nullptr, false,
        [&](int i) { return from + values_[op.operands[1]].integer_at(i); },
        [&](int i, const std::byte* at) { load_element(storage, at, out, i); });
  }

  Step run_scatter(const ir::Op& op) {
    const DType storage = op.as<ir::MemoryAttributes>().storage;
    const ir::Value* value = op.operands[2];
    const int64_t to = base(op);
    return for_lanes(
        op, value->type.lanes, op.operands.size() > 3 ? op.operands[3] : nullptr, true,
        [&](int i) { return to + values_[op.operands[1]].integer_at(i); },
        [&](int i, std::byte* at) { store_element(storage, at, values_[value], i); });
  }

  Step run_atomic(const ir::Op& op) {
    const auto& a = op.as<ir::AtomicMemoryAttributes>();
    const int64_t address = pointer(op);
    std::byte* at = memories_.resolve(address, bytes(a.storage), true);
    if (!at) return outside(op, address, bytes(a.storage));
    Column old, joined;
    old.reset(compute_type(a.storage), 1);
    load_element(a.storage, at, old, 0);
    const Column& x = values_[op.operands[1]];
    switch (a.kind) {
      case ir::AtomicKind::Add: binary(ir::BinaryOp::Add, old, x, Mode::Values, joined); break;
      case ir::AtomicKind::Max: binary(ir::BinaryOp::Max, old, x, Mode::Values, joined); break;
      case ir::AtomicKind::Min: binary(ir::BinaryOp::Min, old, x, Mode::Values, joined); break;
      case ir::AtomicKind::Or: binary(ir::BinaryOp::Or, old, x, Mode::Values, joined); break;
    }
    store_element(a.storage, at, joined, 0);
    if (op.result()) values_[op.result()] = old;
    return Flow::Continue;
  }

  /// The zeroed column of a load's result.
  Column& start(const ir::Op& op) {
    const ir::Type& type = op.result()->type;
    Column& out = values_[op.result()];
    out.reset(type.dtype, type.lanes);
    std::fill(out.real.begin(), out.real.end(), 0.0);
    std::fill(out.integer.begin(), out.integer.end(), 0);
    return out;
  }

  const ir::Kernel& kernel_;
  const LaunchEnvironment& environment_;
  VectorOptions options_;
  LaneValues values_;
  MemoryMap memories_;
  int scratch_number_ = 0;
  std::vector<std::byte> scratch_;
  VectorOutcome outcome_;
};

}  // namespace

Result<VectorOutcome> run_vector(const ir::Kernel& kernel, const LaunchEnvironment& environment,
                                 const VectorOptions& options) {
  return VectorMachine(kernel, environment, options).run();
}

}  // namespace tilewright::interp
