#include "analysis/independence.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace tilewright::analysis {
namespace {

using ir::Index;
using ir::IndexOp;
using ir::OpKind;
using ir::Value;

struct Access {
  const ir::Op* op = nullptr;
  std::vector<Index> indices;
  bool is_write = false;
  bool is_atomic = false;
};

/// What happens inside one `parallel`: its variables and those of inner loops, and the accesses to outside buffers.
class Body {
 public:
  explicit Body(const ir::Op& parallel) {
    const auto& extents = parallel.as<ir::ParallelAttributes>().extents;
    const ir::Region& region = *parallel.regions[0];
    for (size_t i = 0; i < region.arguments.size(); ++i) {
      variables_[region.arguments[i]] = extents[i].constant();
      if (!extents[i].is_constant(1)) required_.push_back(region.arguments[i]);
    }
    ir::for_each_op(region, [&](ir::Op& op) { visit(op); });
  }

  const std::vector<const Value*>& required() const { return required_; }
  /// By buffer, in order of first access.
  const std::vector<std::pair<const Value*, std::vector<Access>>>& accesses() const { return accesses_; }
  bool is_private(const Value* buffer) const { return defined_.contains(buffer); }
  bool is_variable(const Value* v) const { return variables_.contains(v); }
  /// Trip count of a variable when it is known.
  std::optional<int64_t> extent(const Value* v) const { return variables_.at(v); }
  /// A value that may differ between iterations without being a variable.
  bool is_opaque(const Value* v) const { return defined_.contains(v); }

 private:
  void visit(const ir::Op& op) {
    for (const Value* v : op.results) defined_.insert(v);
    for (size_t r = 0; r < op.regions.size(); ++r) {
      const auto& arguments = op.regions[r]->arguments;
      for (size_t i = 0; i < arguments.size(); ++i) {
        if (op.kind == OpKind::For && i == 0) {
          const auto& a = op.as<ir::ForAttributes>();
          const auto trips = a.step.is_constant(1) ? (a.hi - a.lo).constant() : std::nullopt;
          variables_[arguments[i]] = a.lo.is_constant(0) ? trips : std::nullopt;
        } else {
          defined_.insert(arguments[i]);
        }
      }
    }
    if (op.kind == OpKind::Load || op.kind == OpKind::Store) {
      const auto& a = op.as<ir::AccessAttributes>();
      of(a.buffer).push_back({&op, a.indices, op.kind == OpKind::Store, false});
    } else if (op.kind == OpKind::Atomic) {
      const auto& a = op.as<ir::AtomicAttributes>();
      of(a.buffer).push_back({&op, a.indices, true, true});
    }
  }

  std::vector<Access>& of(const Value* buffer) {
    const auto found = std::ranges::find(accesses_, buffer, &std::pair<const Value*, std::vector<Access>>::first);
    return found != accesses_.end() ? found->second : accesses_.emplace_back(buffer, std::vector<Access>()).second;
  }

  std::map<const Value*, std::optional<int64_t>> variables_;
  std::vector<const Value*> required_;
  std::set<const Value*> defined_;
  std::vector<std::pair<const Value*, std::vector<Access>>> accesses_;
};

/// Which variables equal subscripts force to be equal.
class Determination {
 public:
  explicit Determination(const Body& body) : body_(body) {}

  void run(std::vector<Index> subscripts) {
    join_quotients(subscripts);
    bool progress = true;
    while (progress) {
      progress = false;
      for (const Index x : subscripts) progress |= learn(x);
    }
  }
  bool knows(const Value* v) const { return known_.contains(v); }

 private:
  struct Digit {
    const Value* variable;
    int64_t weight;
  };

  /// x // c and x % c together say as much as x.
  static void join_quotients(std::vector<Index>& subscripts) {
    const size_t count = subscripts.size();
    for (size_t i = 0; i < count; ++i) {
      for (size_t j = 0; j < count; ++j) {
        const ir::IndexNode *q = subscripts[i].node(), *r = subscripts[j].node();
        if (q->op == IndexOp::FloorDiv && r->op == IndexOp::FloorMod && q->a == r->a && q->b == r->b) {
          subscripts.emplace_back(q->a);
        }
      }
    }
  }

  /// The undetermined variables of x with their weights; nothing when x is not a weighted sum of them.
  std::optional<std::vector<Digit>> digits(Index x) const {
    std::vector<Digit> out;
    for (const ir::LinearForm::Term& term : ir::linear_form(x).terms) {
      const Value* v = term.factor.symbol();
      if (v && body_.is_variable(v)) {
        if (!knows(v)) out.push_back({v, term.coefficient < 0 ? -term.coefficient : term.coefficient});
        continue;
      }
      bool varies = false;
      ir::for_each_symbol(term.factor,
                          [&](const Value* s) { varies |= body_.is_opaque(s) || (body_.is_variable(s) && !knows(s)); });
      if (varies) return std::nullopt;
    }
    return out;
  }

  /// A mixed-radix number determines its digits: each weight exceeds the largest sum of the smaller ones.
  bool learn(Index x) {
    auto parts = digits(x);
    if (!parts || parts->empty()) return false;
    std::ranges::sort(*parts, {}, &Digit::weight);
    int64_t reach = 0;  // the largest sum of the digits so far
    for (size_t i = 0; i < parts->size(); ++i) {
      const Digit& d = (*parts)[i];
      if (d.weight <= reach) return false;
      if (i + 1 == parts->size()) break;
      const auto extent = body_.extent(d.variable);
      int64_t most = 0;
      if (!extent || __builtin_mul_overflow(d.weight, std::max<int64_t>(*extent - 1, 0), &most) ||
          __builtin_add_overflow(reach, most, &reach)) {
        return false;
      }
    }
    for (const Digit& d : *parts) known_.insert(d.variable);
    return true;
  }

  const Body& body_;
  std::set<const Value*> known_;
};

std::string spelling(const Value* v) { return v->name.empty() ? "_" : v->name; }

std::string subscripts_text(const Access& a) {
  std::vector<std::string> parts;
  for (const Index x : a.indices) parts.push_back(ir::to_string(x, spelling));
  return fmt::format("[{}]", fmt::join(parts, ", "));
}

bool varies(const Body& body, Index x) {
  bool found = false;
  ir::for_each_symbol(x, [&](const Value* v) { found |= body.is_variable(v) || body.is_opaque(v); });
  return found;
}

/// Two accesses that differ in a subscript which is the same in every iteration never meet.
bool is_apart(const Body& body, const Access& a, const Access& b) {
  for (size_t d = 0; d < a.indices.size(); ++d) {
    const auto difference = (a.indices[d] - b.indices[d]).constant();
    if (difference && *difference != 0 && !varies(body, a.indices[d]) && !varies(body, b.indices[d])) return true;
  }
  return false;
}

/// Why `a` (a write) and `b` may meet in different iterations; empty when they cannot.
std::string meeting(const Body& body, const Access& a, const Access& b, const std::string& name) {
  if (a.is_atomic && b.is_atomic) return {};
  if (is_apart(body, a, b)) return {};
  if (a.indices != b.indices) {
    return fmt::format("{} is written at {} and {} at {}", name, subscripts_text(a), b.is_write ? "written" : "read",
                       subscripts_text(b));
  }
  Determination determined(body);
  determined.run(a.indices);
  for (const Value* v : body.required()) {
    if (!determined.knows(v)) {
      return fmt::format("{} is written at {}, which may be one element for two values of {}", name, subscripts_text(a),
                         spelling(v));
    }
  }
  return {};
}

}  // namespace

std::vector<Unproven> unproven_accesses(const ir::Op& parallel) {
  const Body body(parallel);
  std::vector<Unproven> out;
  for (const auto& [buffer, accesses] : body.accesses()) {
    if (body.is_private(buffer)) continue;
    std::string reason;
    const ir::Op* where = nullptr;
    for (const Access& a : accesses) {
      if (!a.is_write) continue;
      for (const Access& b : accesses) {
        if (!reason.empty()) break;
        reason = meeting(body, a, b, spelling(buffer));
        where = b.op;
      }
    }
    if (!reason.empty()) out.push_back({&parallel, where, reason});
  }
  return out;
}

std::vector<Diagnostic> independence_notes(const ir::Kernel& kernel) {
  std::vector<Diagnostic> notes;
  ir::for_each_op(*kernel.body, [&](ir::Op& op) {
    if (op.kind != OpKind::Parallel) return;
    const std::vector<Unproven> unproven = unproven_accesses(op);
    if (unproven.empty()) return;
    Diagnostic note = {.code = DiagnosticCode::E1214,
                       .severity = Severity::Note,
                       .location = op.location,
                       .message = "the iterations of this `parallel` are not proven independent: " + unproven[0].reason,
                       .help = "`run --check` tests them on your data"};
    for (size_t i = 1; i < unproven.size(); ++i)
      note.notes.push_back({unproven[i].access->location, unproven[i].reason});
    notes.push_back(std::move(note));
  });
  return notes;
}

}  // namespace tilewright::analysis
