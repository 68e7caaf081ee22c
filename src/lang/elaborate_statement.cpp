// Statements: scopes, loops, branches, assignments.
#include <fmt/format.h>

#include <utility>

#include "lang/elaborator.h"
#include "lang/foreign.h"

namespace tilewright::lang {
namespace {

using enum DiagnosticCode;

constexpr int64_t kMostUnrolled = 4096;
constexpr int64_t kLargestTile = int64_t{1} << 26;

ir::MemorySpace memory_space(TileSpace space) {
  switch (space) {
    case TileSpace::Shared: return ir::MemorySpace::Shared;
    case TileSpace::Fragment: return ir::MemorySpace::Fragment;
    case TileSpace::Local: return ir::MemorySpace::Local;
    case TileSpace::Var: return ir::MemorySpace::Var;
  }
  return ir::MemorySpace::Shared;
}

std::vector<const Expr*> positional(const Expr& call) {
  std::vector<const Expr*> out;
  for (size_t i = 0; i < call.items.size(); ++i) {
    if (call.labels[i].empty()) out.push_back(call.items[i]);
  }
  return out;
}

}  // namespace

void Elaborator::scoped(const Block& block) {
  scopes_.emplace_back();
  statements(block);
  scopes_.pop_back();
}

void Elaborator::statements(const Block& block) {
  for (const Stmt* stmt : block) statement(*stmt);
}

void Elaborator::statement(const Stmt& stmt) {
  spend(stmt.location);
  b_.set_location(at(stmt.location));
  if (returned_) fail(E1050, stmt.location, "nothing runs after `return`", "`return` is the last statement of a fn");
  switch (stmt.kind) {
    case StmtKind::Let: return let(stmt);
    case StmtKind::Declare: return declare(stmt);
    case StmtKind::Assign: return assign(stmt);
    case StmtKind::For: return loop(stmt);
    case StmtKind::If: return branch(stmt);
    case StmtKind::While: return while_loop(stmt);
    case StmtKind::Grid: return grid(stmt);
    case StmtKind::Return:
      if (inlining_.empty()) fail(E1050, stmt.location, "`return` belongs to a fn; a kernel writes its outputs");
      returned_ = eval(*stmt.value);
      return;
    case StmtKind::Call:
      if (call_operation(*stmt.value)) return;
      if (const FnSyntax* fn = source_.find_function(stmt.value->text)) {
        call_fn(*fn, *stmt.value);
        return;
      }
      unknown_name(*stmt.value, true);
  }
}

void Elaborator::let(const Stmt& stmt) {
  Operand value = eval(*stmt.value);
  if (value.is_tile() && value.tile.rank() == 0) value = read(value.tile, stmt.value->location);
  if (value.kind == Operand::Kind::Scalar && value.value->name.empty()) value.value->name = stmt.name;
  if (scopes_.back().contains(stmt.name)) {
    fail(E1011, stmt.location, fmt::format("`{}` is already defined in this block", stmt.name),
         "a value named by `let` does not change; declare `x = var f32` for one that does");
  }
  bind(stmt.name, {.operand = std::move(value), .location = stmt.location, .is_let = true});
}

void Elaborator::declare(const Stmt& stmt) {
  const bool inside = stmt.space == TileSpace::Local || stmt.space == TileSpace::Var;
  if (level_ == Level::Kernel || (level_ == Level::Iteration && !inside)) {
    fail(E1050, stmt.location,
         level_ == Level::Kernel ? "tiles are declared inside a grid"
                                 : "shared and fragment tiles are declared outside `parallel`",
         level_ == Level::Kernel ? "" : "`local` and `var` are private to one iteration");
  }
  if (stmt.space == TileSpace::Local && level_ != Level::Iteration) {
    fail(E1050, stmt.location, "`local` tiles are private to one iteration of `parallel`",
         "use `fragment`, or `var` for a scalar");
  }
  if (scopes_.back().contains(stmt.name)) {
    fail(E1011, stmt.location, fmt::format("`{}` is already defined in this block", stmt.name));
  }
  if (stmt.space == TileSpace::Var && stmt.type.is_tensor) {
    fail(E1030, stmt.type.location, "a var is one scalar", "use `local` or `fragment` for several elements");
  }
  if (stmt.space != TileSpace::Var && stmt.type.shape.empty()) {
    fail(E1030, stmt.type.location, fmt::format("tile `{}` needs extents", stmt.name),
         fmt::format("{}[block_M, block_N]", stmt.type.dtype));
  }
  const DType dtype = dtype_of(stmt.type);
  std::vector<int64_t> shape;
  int64_t elements = 1;
  for (const Expr* extent : stmt.type.shape) {
    shape.push_back(static_integer(*extent, fmt::format("the extents of tile `{}`", stmt.name)));
    if (shape.back() == 0 && names_empty_dimension(*extent)) shape.back() = 1;
    if (shape.back() <= 0) {
      fail(E1033, extent->location,
           fmt::format("tile `{}` has extent {}; extents are 1 or more", stmt.name, shape.back()));
    }
    if (shape.back() > kLargestTile || (elements *= shape.back()) > kLargestTile) {
      fail(E2003, stmt.location,
           fmt::format("tile `{}` is too large: {} elements of {}, at most {} are allowed", stmt.name,
                       fmt::join(shape, " × "), name(dtype), kLargestTile),
           "choose smaller block sizes");
    }
  }
  ir::Value* buffer = b_.alloc(memory_space(stmt.space), dtype, shape, stmt.name, stmt.guarded);
  if (stmt.layout) {
    if (stmt.space != TileSpace::Shared)
      fail(E1110, stmt.layout->location, "only shared tiles have a layout hint", "the other layouts are inferred");
    buffer->def->hints.layout = hint<ir::LayoutHint>(stmt.layout, "layout");
  }
  TileRef whole{.view = b_.whole(buffer)};
  for (int i = 0; i < buffer->type.rank(); ++i) whole.axes.push_back(i);
  bind(stmt.name, {.operand = Operand::of(whole), .location = stmt.location});
  if (!stmt.value) return;
  ir::Value* value = coerce(rvalue(*stmt.value), compute_type(dtype), stmt.value->location);
  if (whole.rank() == 0) return b_.store(buffer, {}, value);
  if (level_ == Level::Iteration) fail(E1050, stmt.location, "a local tile is initialised element by element");
  b_.fill(whole.view, value);
}

void Elaborator::check_writable(const TileRef& target, const Location& location) {
  if (!inputs_.contains(target.view.buffer)) return;
  fail(E1052, location, fmt::format("`{}` is an input and cannot be written", target.view.buffer->name),
       fmt::format("declare it `inout {}: …`, or write to an output", target.view.buffer->name));
}

void Elaborator::assign(const Stmt& stmt) {
  const Expr& target = *stmt.target;
  if (target.kind == ExprKind::Name && !find(target.text)) {
    fail(E1010, target.location, fmt::format("`{}` is not defined, so it cannot be assigned to", target.text),
         fmt::format("`let {0} = …` names a value; `{0} = fragment f32[…]` declares a tile", target.text));
  }
  const Operand place = eval(target);
  if (!place.is_tile()) {
    fail(E1052, target.location, fmt::format("`{}` is {} and does not change", target.text, describe(place)),
         "declare `x = var f32` for a scalar that changes");
  }
  check_writable(place.tile, target.location);
  if (place.tile.rank() == 0) return assign_element(stmt, place.tile);
  assign_tile(stmt, place.tile);
}

Operand Elaborator::assigned_value(const Stmt& stmt, const TileRef& target) {
  const auto outer = std::exchange(wanted_, compute_type(target.type().dtype));
  Operand value;
  if (stmt.op == Operator::None) {
    value = rvalue(*stmt.value);
  } else {
    const Operand old = read(target, stmt.target->location);
    value = binary(stmt.op, old, rvalue(*stmt.value), stmt.location);
  }
  wanted_ = outer;
  return value;
}

void Elaborator::assign_element(const Stmt& stmt, const TileRef& target) {
  if (level_ == Level::Kernel) fail(E1050, stmt.location, "elements are assigned inside a grid");
  const Operand value = assigned_value(stmt, target);
  ir::Value* stored = coerce(value, compute_type(target.type().dtype), stmt.value->location);
  std::vector<ir::Index> indices;
  for (const ir::Slice& s : target.view.slices) indices.push_back(s.start);
  b_.set_location(at(stmt.target->location));
  b_.store(target.view.buffer, std::move(indices), stored);
}

void Elaborator::assign_tile(const Stmt& stmt, const TileRef& target) {
  need_level(Level::Grid, stmt.location, "a whole tile is assigned");
  std::vector<ir::Index> extents;
  for (int i = 0; i < target.rank(); ++i) {
    if (target.axes[static_cast<size_t>(i)] == TileRef::kBroadcast) {
      fail(E1041, stmt.target->location, "a broadcast axis cannot be assigned to");
    }
    extents.push_back(target.slice(i).extent);
  }
  b_.parallel(extents, [&](const std::vector<ir::Value*>& variables) {
    std::vector<ir::Index> element;
    for (const ir::Value* v : variables) element.push_back(b_.symbol(v));
    const auto* outer = std::exchange(element_, &element);
    element_extents_ = extents;
    const Level level = std::exchange(level_, Level::Iteration);
    const Operand value = assigned_value(stmt, target);
    ir::Value* stored = coerce(value, compute_type(target.type().dtype), stmt.value->location);
    std::vector<ir::Index> indices;
    size_t axis = 0;
    for (const ir::Slice& s : target.view.slices) indices.push_back(s.keep ? s.start + element[axis++] : s.start);
    b_.set_location(at(stmt.target->location));
    b_.store(target.view.buffer, std::move(indices), stored);
    level_ = level;
    element_ = outer;
  });
}

void Elaborator::loop(const Stmt& stmt) {
  const Expr& call = *stmt.value;
  const std::vector<const Expr*> bounds = positional(call);
  if (call.text == "serial") return serial_loop(stmt, bounds);
  if (call.text == "unroll") return unroll_loop(stmt, bounds);
  if (call.text == "parallel") return parallel_loop(stmt);
  if (call.text == "pipelined") return pipelined_loop(stmt);
  if (const auto hint = foreign_hint(call.text))
    fail(E1012, call.location, fmt::format("`{}` is not a loop of this language", call.text), *hint);
  static const std::vector<std::string> kLoops = {"serial", "unroll", "parallel", "pipelined"};
  const std::string near = closest(call.text, kLoops);
  fail(E1010, call.location, fmt::format("`{}` is not a loop", call.text),
       near.empty() ? "loops are serial(…), unroll(…), parallel(…) and pipelined(…)"
                    : fmt::format("did you mean `{}`?", near));
}

void Elaborator::bind_variables(const Stmt& stmt, const std::vector<ir::Value*>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    values[i]->name = stmt.names[i];
    bind(stmt.names[i],
         {.operand = Operand::of_index(b_.symbol(values[i])), .location = stmt.places[i], .is_let = true});
  }
}

void Elaborator::serial_loop(const Stmt& stmt, const std::vector<const Expr*>& bounds) {
  if (level_ == Level::Kernel) fail(E1050, stmt.location, "loops run inside a grid", "use unroll(n) to repeat grids");
  if (bounds.empty() || bounds.size() > 3 || bounds.size() != stmt.value->items.size() || stmt.names.size() != 1) {
    fail(E1040, stmt.value->location, "a serial loop has one variable and 1 to 3 bounds",
         "serial(n), serial(first, end) or serial(first, end, step)");
  }
  const ir::Index lo = bounds.size() > 1 ? eval_index(*bounds[0]) : b_.constant_index(0);
  const ir::Index hi = eval_index(*bounds[bounds.size() > 1 ? 1 : 0]);
  int64_t step = 1;
  if (bounds.size() > 2) step = static_integer(*bounds[2], "the step of a loop");
  if (step < 1) fail(E1033, bounds[2]->location, fmt::format("the step is {}; steps are 1 or more", step));
  b_.for_loop(lo, hi, b_.constant_index(step), [&](const std::vector<ir::Value*>& variables) {
    scopes_.emplace_back();
    bind_variables(stmt, {variables[0]});
    statements(stmt.body);
    scopes_.pop_back();
  });
}

void Elaborator::unroll_loop(const Stmt& stmt, const std::vector<const Expr*>& bounds) {
  if (bounds.empty() || bounds.size() > 2 || bounds.size() != stmt.value->items.size() || stmt.names.size() != 1) {
    fail(E1040, stmt.value->location, "an unrolled loop has one variable and 1 or 2 bounds",
         "unroll(n) or unroll(first, end)");
  }
  const int64_t lo = bounds.size() > 1 ? static_integer(*bounds[0], "the bounds of an unrolled loop") : 0;
  const int64_t hi = static_integer(*bounds.back(), "the bounds of an unrolled loop");
  if (hi - lo > kMostUnrolled) {
    fail(E1041, stmt.value->location,
         fmt::format("{} iterations are too many to unroll; at most {}", hi - lo, kMostUnrolled), "use serial(n)");
  }
  for (int64_t i = lo; i < hi; ++i) {
    scopes_.emplace_back();
    bind(stmt.names[0], {.operand = Operand::of(i), .location = stmt.places[0], .is_let = true});
    statements(stmt.body);
    scopes_.pop_back();
  }
}

void Elaborator::pipelined_loop(const Stmt& stmt) {
  need_level(Level::Grid, stmt.location, "`pipelined` runs");
  const Slots slots = bind_slots(*stmt.value, "count, num_stages?");
  if (stmt.names.size() != 1) fail(E1040, stmt.location, "a pipelined loop has one variable");
  const int64_t stages = slots[1] ? static_integer(*slots[1], "the number of stages") : 2;
  if (stages < 1 || stages > 32) {
    fail(E1041, slots[1]->location, fmt::format("num_stages is {}; 1 to 32 are allowed", stages));
  }
  b_.pipelined(eval_index(*slots[0]), static_cast<int>(stages), [&](const std::vector<ir::Value*>& variables) {
    scopes_.emplace_back();
    bind_variables(stmt, variables);
    statements(stmt.body);
    scopes_.pop_back();
  });
}

void Elaborator::parallel_loop(const Stmt& stmt) {
  need_level(Level::Grid, stmt.location, "`parallel` runs");
  const std::vector<const Expr*> bounds = positional(*stmt.value);
  if (bounds.size() != stmt.names.size() || bounds.size() != stmt.value->items.size() || bounds.empty()) {
    fail(E1040, stmt.value->location,
         fmt::format("{} variable{} for {} extent{}", stmt.names.size(), stmt.names.size() == 1 ? "" : "s",
                     stmt.value->items.size(), stmt.value->items.size() == 1 ? "" : "s"),
         "for i, j in parallel(m, n) { … }");
  }
  std::vector<ir::Index> extents;
  for (const Expr* e : bounds) extents.push_back(eval_index(*e));
  b_.parallel(std::move(extents), [&](const std::vector<ir::Value*>& variables) {
    const Level outer = std::exchange(level_, Level::Iteration);
    scopes_.emplace_back();
    bind_variables(stmt, variables);
    statements(stmt.body);
    scopes_.pop_back();
    level_ = outer;
  });
}

void Elaborator::branch(const Stmt& stmt) {
  const Operand condition = rvalue(*stmt.value);
  if (const auto* known = condition.as<bool>()) return scoped(*known ? stmt.body : stmt.otherwise);
  if (level_ == Level::Kernel) {
    fail(E1023, stmt.value->location,
         "outside a grid `if` is decided at compile time, and this condition is not known then",
         "use parameters, or move the `if` into the grid");
  }
  ir::Value* holds = to_bool(condition, stmt.value->location);
  b_.set_location(at(stmt.location));
  b_.if_else(
      holds, [&](const auto&) { scoped(stmt.body); }, [&](const auto&) { scoped(stmt.otherwise); });
}

void Elaborator::while_loop(const Stmt& stmt) {
  if (level_ == Level::Kernel) fail(E1050, stmt.location, "loops run inside a grid");
  b_.while_loop([&](const auto&) { b_.yield({eval_condition(*stmt.value)}); }, [&](const auto&) { scoped(stmt.body); });
}

void Elaborator::grid(const Stmt& stmt) {
  need_level(Level::Kernel, stmt.location, "a grid runs");
  if (stmt.extents.empty() || stmt.extents.size() > 3) {
    fail(E1030, stmt.location, fmt::format("a grid has 1 to 3 extents, got {}", stmt.extents.size()),
         "fold two of them: h: H * B, then h % H and h // H");
  }
  ir::GridAttributes attributes;
  for (const Expr* e : stmt.extents) attributes.extents.push_back(eval_index(*e));
  const int64_t threads = stmt.threads ? static_integer(*stmt.threads, "the number of threads") : 128;
  if (threads < 1 || threads > 1024)
    fail(E1041, stmt.threads->location, fmt::format("threads({}): 1 to 1024 are allowed", threads));
  attributes.threads = static_cast<int>(threads);
  attributes.persistent = stmt.persistent;
  const int64_t group = stmt.group ? static_integer(*stmt.group, "the group of a persistent grid") : 0;
  if (group < 0 || group > 1024)
    fail(E1041, stmt.group->location, fmt::format("group = {}: 0 to 1024 are allowed", group));
  attributes.group = static_cast<int>(group);
  b_.grid(std::move(attributes), [&](const std::vector<ir::Value*>& variables) {
    level_ = Level::Grid;
    scopes_.emplace_back();
    bind_variables(stmt, variables);
    statements(stmt.body);
    scopes_.pop_back();
    level_ = Level::Kernel;
  });
}

}  // namespace tilewright::lang
