#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/print_text.h"
#include "interp/bounded.h"
#include "interp/lane_ops.h"
#include "interp/scalar.h"
#include "interp/tile_machine.h"

namespace tilewright::interp {
namespace {

std::string value_text(const Column& c, int64_t lane) {
  if (c.is_real()) return fmt::format("{:g}", c.real_at(lane));
  if (c.dtype == DType::Bool) return c.integer_at(lane) ? "true" : "false";
  if (c.dtype == DType::U64) return fmt::format("{}", static_cast<uint64_t>(c.integer_at(lane)));
  return fmt::format("{}", c.integer_at(lane));
}

constexpr size_t kPrintLimit = 1 << 20;

}  // namespace

void TileMachine::run_alloc(const ir::Op& op) {
  const ir::Value* buffer = op.result();
  std::shared_ptr<Storage>& s = storages_[buffer->id];
  if (!s) s = std::make_shared<Storage>();
  std::vector<int64_t> shape;
  for (const ir::Index e : buffer->type.shape) shape.push_back(values_.uniform(e));
  s->buffer = buffer;
  s->space = buffer->type.space;
  s->guarded = op.as<ir::AllocAttributes>().guarded;
  s->is_private = lanes_.parallel != nullptr;
  s->tracked_parallel = nullptr;
  s->allocate(buffer->type.dtype, std::move(shape), s->is_private ? lanes_.count : 1, values_.mode());
}

void TileMachine::report_bounds(const ir::Op& op, const Storage& s, const std::vector<int64_t>& at, int64_t lane) {
  findings.add(DiagnosticCode::E1203, op, s.buffer, [&]() -> Findings::Text {
    return {fmt::format("{}[{}] is outside {}[{}], by {}", s.buffer->name, fmt::join(at, ", "), s.buffer->name,
                        fmt::join(s.shape, ", "), place_text(lane)),
            "exclude it with an `if`, give the value to read with `oob =`, or declare the buffer `guarded`"};
  });
}

void TileMachine::addresses(const ir::Op& op, const ir::Value* buffer, const std::vector<ir::Index>& indices,
                            bool report, bool force_lanes) {
  Storage& s = storage(buffer);
  const bool uniform =
      !force_lanes && !s.is_private && std::ranges::all_of(indices, [&](ir::Index x) { return values_.is_uniform(x); });
  const int64_t n = uniform ? 1 : lanes_.count;
  addresses_.assign(static_cast<size_t>(n), 0);
  std::vector<Column> columns(indices.size());
  for (size_t d = 0; d < indices.size(); ++d) {
    values_.evaluate(indices[d], columns[d]);
    const int64_t extent = s.shape[d], stride = s.strides[d];
    for (int64_t i = 0; i < n; ++i) {
      const int64_t v = columns[d].integer_at(i);
      int64_t& a = addresses_[static_cast<size_t>(i)];
      a = v < 0 || v >= extent || a < 0 ? -1 : a + v * stride;
    }
  }
  if (s.is_private) {
    for (int64_t i = 0; i < n; ++i) {
      int64_t& a = addresses_[static_cast<size_t>(i)];
      if (a >= 0) a += i * s.size;
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    const auto k = static_cast<size_t>(i);
    if (!uniform && !lanes_.is_active(i)) {
      addresses_[k] = -1;
    } else if (addresses_[k] < 0 && report) {
      std::vector<int64_t> at;
      for (const Column& c : columns) at.push_back(c.integer_at(i));
      report_bounds(op, s, at, i);
    }
  }
}

void TileMachine::run_load(const ir::Op& op) {
  const auto& a = op.as<ir::AccessAttributes>();
  Storage& s = storage(a.buffer);
  const Column* outside = op.operands.empty() ? nullptr : &values_[op.operands[0]];
  const bool tracked = options_.check && lanes_.parallel && s.tracked_parallel == lanes_.parallel;
  addresses(op, a.buffer, a.indices, options_.check && !s.guarded && !outside,
            tracked || (outside && !outside->is_uniform()));
  Column& out = values_[op.result()];
  const auto n = static_cast<int64_t>(addresses_.size());
  out.reset(compute_type(s.dtype), n);
  if (out.is_real()) {
    if (!s.elements.bound.empty() || (outside && !outside->bound.empty())) out.bound.assign(addresses_.size(), 0);
  } else if (!s.elements.taint.empty() || (outside && !outside->taint.empty())) {
    out.taint.assign(addresses_.size(), 0);
  }
  for (int64_t i = 0; i < n; ++i) {
    const auto k = static_cast<size_t>(i);
    const int64_t at = addresses_[k];
    const auto from = static_cast<size_t>(at);
    if (out.is_real()) {
      out.real[k] = at >= 0 ? s.elements.real[from] : outside ? outside->real_at(i) : 0;
      if (!out.bound.empty()) {
        out.bound[k] = at >= 0   ? (s.elements.bound.empty() ? 0 : s.elements.bound[from])
                       : outside ? outside->bound_at(i)
                                 : 0;
      }
    } else {
      out.integer[k] = at >= 0 ? s.elements.integer[from] : outside ? outside->integer_at(i) : 0;
      if (!out.taint.empty()) {
        out.taint[k] = at >= 0 ? !s.elements.taint.empty() && s.elements.taint[from] : outside && outside->taint_at(i);
      }
    }
    if (options_.check && at >= 0) note_read(op, s, at, i);
  }
  if (values_.mode() == Mode::Values) return;
  for (const ir::Index index : a.indices) {
    for (int64_t i = 0; i < n; ++i) {
      if (!values_.is_tainted(index, i)) continue;
      const auto k = static_cast<size_t>(i);
      if (out.is_real()) {
        out.bound.resize(addresses_.size(), 0), out.bound[k] = kUnknown;
      } else {
        out.taint.resize(addresses_.size(), 0), out.taint[k] = 1;
      }
    }
  }
}

void TileMachine::put(Storage& s, int64_t element, const Column& value, int64_t lane) {
  const auto k = static_cast<size_t>(element);
  s.written[k] = 1;
  if (lanes_.doubtful) {
    if (s.elements.is_real()) {
      if (!s.elements.bound.empty()) s.elements.bound[k] = kUnknown;
    } else if (!s.elements.taint.empty()) {
      s.elements.taint[k] = 1;
    }
    return;
  }
  if (s.elements.is_real()) {
    s.elements.real[k] = value.real_at(lane);
    if (!s.elements.bound.empty()) s.elements.bound[k] = value.bound_at(lane);
  } else {
    s.elements.integer[k] = value.integer_at(lane);
    if (!s.elements.taint.empty()) s.elements.taint[k] = value.taint_at(lane);
  }
}

void TileMachine::run_store(const ir::Op& op) {
  const auto& a = op.as<ir::AccessAttributes>();
  Storage& s = storage(a.buffer);
  addresses(op, a.buffer, a.indices, options_.check && !s.guarded, lanes_.parallel != nullptr);
  Column value;
  cast(values_[op.operands[0]], s.dtype, values_.mode(), value);
  for (size_t k = 0; k < addresses_.size(); ++k) {
    if (addresses_[k] < 0) continue;
    const auto lane = static_cast<int64_t>(k);
    if (options_.check) note_write(op, s, addresses_[k], lane);
    put(s, addresses_[k], value, lane);
  }
  if (values_.mode() == Mode::Values) return;
  for (const ir::Index index : a.indices) {
    for (int64_t i = 0; i < lanes_.count; ++i) inconclusive |= lanes_.is_active(i) && values_.is_tainted(index, i);
  }
}

void TileMachine::join_atomic(ir::AtomicKind kind, Storage& s, int64_t element, const Column& value, int64_t lane) {
  const auto k = static_cast<size_t>(element);
  const DType type = compute_type(s.dtype);
  Column joined;
  joined.reset(s.dtype, 1);
  if (!s.elements.is_real()) {
    const int64_t old = s.elements.integer[k], x = value.integer_at(lane);
    const bool less = integer_less(type, old, x);
    int64_t v = old | x;
    if (kind == ir::AtomicKind::Add) v = ir::wrapping_add(old, x);
    if (kind == ir::AtomicKind::Max) v = less ? x : old;
    if (kind == ir::AtomicKind::Min) v = less ? old : x;
    joined.integer[0] = wrap(s.dtype, v);
    if (value.taint_at(lane) || s.elements.taint_at(element)) joined.taint = {1};
    return put(s, element, joined, 0);
  }
  const Bounded old = {s.elements.real[k], s.elements.bound.empty() ? 0 : s.elements.bound[k]};
  const Bounded x = {value.real_at(lane), value.bound_at(lane)};
  Bounded v;
  if (kind == ir::AtomicKind::Max) v = maximum(old, x);
  if (kind == ir::AtomicKind::Min) v = minimum(old, x);
  if (kind == ir::AtomicKind::Add) {
    v.v = old.v + x.v;
    if (values_.mode() == Mode::Values) {
      v.v = round_to(s.dtype, round_to(type, v.v));
    } else {
      const auto [found, is_first] = additions_.try_emplace({&s, element});
      Additions& sum = found->second;
      if (is_first) sum = {.magnitude = std::fabs(old.v), .spread = old.e};
      sum.magnitude += std::fabs(x.v), sum.spread += x.e, ++sum.count;
      const double u = Precision::of(s.dtype).u * static_cast<double>(sum.count);
      v.e = u < 1 && std::isfinite(v.v) ? sum.spread + u / (1 - u) * (sum.magnitude + sum.spread) : kUnknown;
    }
  }
  joined.real[0] = v.v;
  joined.bound = {v.e};
  put(s, element, joined, 0);
}

void TileMachine::run_atomic(const ir::Op& op) {
  const auto& a = op.as<ir::AtomicAttributes>();
  Storage& s = storage(a.buffer);
  addresses(op, a.buffer, a.indices, options_.check && !s.guarded, lanes_.parallel != nullptr);
  const Column& value = values_[op.operands[0]];
  for (size_t k = 0; k < addresses_.size(); ++k) {
    if (addresses_[k] < 0) continue;
    const auto lane = static_cast<int64_t>(k);
    if (options_.check) note_write(op, s, addresses_[k], lane, true);
    join_atomic(a.kind, s, addresses_[k], value, lane);
  }
}

void TileMachine::run_assume(const ir::Op& op) {
  if (!options_.check) return;
  const ir::Index condition = op.as<ir::IndexAttributes>().index;
  Column holds;
  values_.evaluate(condition, holds);
  for (int64_t i = 0; i < holds.lanes; ++i) {
    if (holds.integer_at(i) || (!holds.is_uniform() && !lanes_.is_active(i))) continue;
    findings.add(DiagnosticCode::E1207, op, nullptr, [&]() -> Findings::Text {
      return {fmt::format("`assume {}` does not hold, in {}",
                          ir::to_string(condition, [](const ir::Value* v) { return v->name; }), place_text(i)),
              "the compiler relies on it: results may be wrong without any sign"};
    });
  }
}

TileMachine::Step TileMachine::run_assert(const ir::Op& op) {
  const Column& holds = values_[op.operands[0]];
  for (int64_t i = 0; i < lanes_.count; ++i) {
    if (!lanes_.is_active(i) || holds.integer_at(i) || holds.taint_at(i)) continue;
    findings.add(DiagnosticCode::E1208, op, nullptr, [&]() -> Findings::Text {
      const auto id = static_cast<size_t>(op.as<ir::TextAttributes>().id);
      const std::string text = id < kernel_.texts.size() ? kernel_.texts[id].text : std::string();
      return {fmt::format("assertion failed in {}{}{}", place_text(i), text.empty() ? "" : ": ", text)};
    });
    return Flow::EndBlock;
  }
  return Flow::Continue;
}

void TileMachine::run_print(const ir::Op& op) {
  const auto id = static_cast<size_t>(op.as<ir::TextAttributes>().id);
  for (int64_t i = 0; i < lanes_.count && printed.size() < kPrintLimit; ++i) {
    if (!lanes_.is_active(i)) continue;
    std::vector<std::string> values;
    for (const ir::Value* v : op.operands) values.push_back(value_text(values_[v], i));
    printed += fill_print_text(id < kernel_.texts.size() ? kernel_.texts[id].text : "", values) + "\n";
  }
}

void TileMachine::check_division(const ir::Op& op) {
  const ir::BinaryOp kind = op.as<ir::BinaryAttributes>().op;
  if (kind != ir::BinaryOp::FloorDiv && kind != ir::BinaryOp::FloorMod && kind != ir::BinaryOp::Div) return;
  const Column& divisor = values_[op.operands[1]];
  if (divisor.is_real()) return;
  for (int64_t i = 0; i < divisor.lanes; ++i) {
    if (divisor.integer_at(i) != 0 || (!divisor.is_uniform() && !lanes_.is_active(i))) continue;
    findings.add(DiagnosticCode::E1205, op, nullptr, [&]() -> Findings::Text {
      return {fmt::format("integer division by zero, in {}", place_text(i)),
              "it gives 0; exclude it with an `if` when that is not meant"};
    });
  }
}

}  // namespace tilewright::interp
