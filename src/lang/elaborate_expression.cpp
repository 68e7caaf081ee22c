// Expressions: names, subscripts, calls of fns and functions.
#include <fmt/format.h>

#include <algorithm>

#include <cmath>
#include <limits>
#include <utility>

#include "lang/elaborator.h"
#include "lang/foreign.h"
#include "lang/function.h"
#include "lang/syntax_text.h"

namespace tilewright::lang {
namespace {

using enum DiagnosticCode;

std::string plural(int n, std::string_view what) { return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s"); }

}  // namespace

Operand Elaborator::rvalue(const Expr& expr) {
  Operand value = eval(expr);
  return value.is_tile() ? read(value.tile, expr.location) : value;
}

Operand Elaborator::eval(const Expr& expr) {
  spend(expr.location);
  switch (expr.kind) {
    case ExprKind::Integer: return Operand::of(expr.integer);
    case ExprKind::Real: return Operand::of(expr.real);
    case ExprKind::Flag: return Operand::of(expr.integer != 0);
    case ExprKind::Text: return Operand::of(expr.text);
    case ExprKind::Name: return eval_name(expr);
    case ExprKind::Unary: return unary(expr.op, rvalue(*expr.items[0]), expr.location);
    case ExprKind::Binary: {
      if (expr.op == Operator::And || expr.op == Operator::Or) return eval_logic(expr);
      Operand x = rvalue(*expr.items[0]);
      const auto outer = wanted_;
      if (x.kind == Operand::Kind::Scalar) wanted_ = x.value->type.dtype;
      Operand y = rvalue(*expr.items[1]);
      wanted_ = outer;
      return binary(expr.op, std::move(x), std::move(y), expr.location);
    }
    case ExprKind::Call: return eval_call(expr);
    case ExprKind::Subscript: return eval_subscript(expr);
    case ExprKind::Slice:
    case ExprKind::All:
    case ExprKind::NewAxis: fail(E1001, expr.location, fmt::format("`{}` belongs into a subscript", to_text(expr)));
    case ExprKind::Values: fail(E1001, expr.location, "a list of values belongs behind `param` or `in`");
  }
  return {};
}

/// Compile-time operands decide without looking at the other side, so that `has_bias and bias[j] > 0` is fine.
Operand Elaborator::eval_logic(const Expr& expr) {
  const bool is_and = expr.op == Operator::And;
  const Operand x = rvalue(*expr.items[0]);
  if (!x.is_bool_like()) {
    fail(E1020, expr.items[0]->location, fmt::format("`{}` joins conditions, got {}", spelling(expr.op), describe(x)));
  }
  if (const auto* known = x.as<bool>()) {
    if (*known != is_and) return x;
    const Operand rest = rvalue(*expr.items[1]);
    if (!rest.is_bool_like()) {
      fail(E1020, expr.items[1]->location,
           fmt::format("`{}` joins conditions, got {}", spelling(expr.op), describe(rest)));
    }
    return rest;
  }
  return binary(expr.op, x, rvalue(*expr.items[1]), expr.location);
}

Operand Elaborator::eval_name(const Expr& expr) {
  if (const Binding* found = find(expr.text)) {
    if (found->is_absent) {
      fail(E1041, expr.location, fmt::format("`{}` is optional and not passed in this configuration", expr.text),
           fmt::format("guard its uses: if present({}) {{ … }}", expr.text));
    }
    return found->operand;
  }
  if (expr.text == "inf") return Operand::of(std::numeric_limits<double>::infinity());
  if (expr.text == "nan") return Operand::of(std::numeric_limits<double>::quiet_NaN());
  if (const auto dtype = parse_dtype(expr.text)) return Operand::of(*dtype);
  unknown_name(expr, false);
}

void Elaborator::unknown_name(const Expr& expr, bool called) {
  if (const auto hint = foreign_hint(expr.text)) {
    fail(E1012, expr.location, fmt::format("`{}` is not part of this language", expr.text), *hint);
  }
  std::vector<std::string> known;
  if (called) {
    known = source_.function_names();
    for (const std::string& name : function_names()) known.push_back(name);
  } else {
    for (const Scope& scope : scopes_) {
      for (const auto& [name, binding] : scope) known.push_back(name);
    }
    std::ranges::sort(known);
  }
  const std::string near = closest(expr.text, known);
  std::string help = near.empty() ? "" : fmt::format("did you mean `{}`?", near);
  if (near.empty() && called) {
    std::vector<std::string> names = function_names();
    std::erase_if(names, [](const std::string& name) { return !find_function(name); });
    help = fmt::format("functions are {}; `fn name(x) = …` makes one", fmt::join(names, ", "));
  }
  if (near.empty() && !called) help = "names come from the kernel's header, `let`, declarations and loops";
  fail(E1010, expr.location, fmt::format("`{}` is not {}", expr.text, called ? "a function" : "defined"),
       std::move(help));
}

Operand Elaborator::read(const TileRef& tile, const Location& location, ir::Value* oob) {
  if (tile.rank() > 0 && !element_) {
    fail(E1022, location,
         fmt::format("`{}` is {}; one element is needed here", tile.view.buffer->name, describe(Operand::of(tile))),
         "index it (x[i, j]), or assign a whole tile: y = f(x)");
  }
  if (level_ == Level::Kernel) fail(E1050, location, "elements are read inside a grid");
  if (tile.rank() > 0 && tile.rank() != static_cast<int>(element_->size())) {
    fail(E1030, location,
         fmt::format("`{}` has {} here, the tile assigned to has {}", tile.view.buffer->name,
                     plural(tile.rank(), "dimension"), element_->size()),
         "broadcasts are explicit: m[:, *] repeats m along a second dimension");
  }
  std::vector<ir::Index> indices;
  for (const ir::Slice& s : tile.view.slices) indices.push_back(s.start);
  for (int i = 0; i < tile.rank(); ++i) {
    const int dim = tile.axes[static_cast<size_t>(i)];
    if (dim == TileRef::kBroadcast) continue;
    const ir::Index extent = tile.slice(i).extent;
    const ir::Index wanted = element_extents_[static_cast<size_t>(i)];
    if (extent != wanted) {
      fail(E1031, location,
           fmt::format("dimension {} of `{}` has extent {}, the tile assigned to has {}", i, tile.view.buffer->name,
                       extent_text(extent), extent_text(wanted)),
           "extents must be equal; a broadcast is written m[:, *]");
    }
    indices[static_cast<size_t>(dim)] = indices[static_cast<size_t>(dim)] + (*element_)[static_cast<size_t>(i)];
  }
  b_.set_location(at(location));
  return Operand::of(b_.load(tile.view.buffer, std::move(indices), oob));
}

TileRef Elaborator::tile_of(const Expr& expr, std::string_view what) {
  Operand value = eval(expr);
  if (value.is_tile()) return std::move(value.tile);
  fail(E1022, expr.location, fmt::format("{} must be a tile or a region of one, got {}", what, describe(value)),
       "assign the expression to a tile first: t = …");
}

void Elaborator::check_bounds(const TileRef& tile, size_t dim, const Location& location) {
  const ir::Value& buffer = *tile.view.buffer;
  const ir::Slice& s = tile.view.slices[dim];
  const auto start = s.start.constant(), extent = s.extent.constant(), size = buffer.type.shape[dim].constant();
  if (s.keep && extent && *extent < 1) {
    fail(E1033, location, fmt::format("this slice has extent {}; extents are 1 or more", *extent));
  }
  if (buffer.type.space == ir::MemorySpace::Global || !size) return;
  const bool below = start && *start < 0;
  const bool above = extent && ((start && *start + *extent > *size) || *extent > *size);
  if (!below && !above) return;
  fail(E1032, location,
       fmt::format("dimension {} of `{}` has {} elements; {} :+ {} is outside", dim, buffer.name, *size,
                   start ? std::to_string(*start) : "a slice", extent ? std::to_string(*extent) : "…"),
       "only tensors of the caller may be accessed outside their bounds (reads give 0, writes are dropped)");
}

Operand Elaborator::eval_subscript(const Expr& expr) {
  const TileRef base = tile_of(*expr.items[0], "what is subscripted");
  TileRef out{.view = base.view};
  size_t axis = 0;
  const auto count = std::ranges::count_if(expr.items, [](const Expr* e) { return e->kind != ExprKind::NewAxis; }) - 1;
  if (count != base.rank()) {
    fail(E1030, expr.location,
         fmt::format("`{}` has {}, {} given", base.view.buffer->name, plural(base.rank(), "dimension"),
                     plural(static_cast<int>(count), "subscript")),
         "`:` takes a whole dimension, `start :+ extent` a part, an index drops it");
  }
  for (size_t i = 1; i < expr.items.size(); ++i) {
    const Expr& item = *expr.items[i];
    if (item.kind == ExprKind::NewAxis) {
      out.axes.push_back(TileRef::kBroadcast);
      continue;
    }
    const int dim = base.axes[axis++];
    if (item.kind == ExprKind::All) {
      out.axes.push_back(dim);
      continue;
    }
    const bool keep = item.kind == ExprKind::Slice;
    const ir::Index start = eval_index(keep ? *item.items[0] : item);
    if (keep) out.axes.push_back(dim);
    if (dim == TileRef::kBroadcast) continue;
    ir::Slice& slice = out.view.slices[static_cast<size_t>(dim)];
    ir::Index extent = keep ? eval_index(*item.items[1]) : b_.constant_index(1);
    if (extent.is_constant(0) && names_empty_dimension(*item.items[1])) extent = b_.constant_index(1);
    slice = {slice.start + start, extent, keep};
    check_bounds(out, static_cast<size_t>(dim), item.location);
  }
  return Operand::of(std::move(out));
}

/// A tile or region shaped by a dimension of size 0 has extent 1, outside the tensor (docs/semantics.md §2). A
/// parameter is not a size: one that is 0 is a mistake.
bool Elaborator::names_empty_dimension(const Expr& expr) const {
  bool empty = false;
  for_each_name(expr, [&](const std::string& name) {
    const Binding* found = find(name);
    const auto* size = found ? found->operand.as<int64_t>() : nullptr;
    empty |= size && *size == 0 && !found->is_parameter;
  });
  return empty;
}

ir::Index Elaborator::eval_index(const Expr& expr) {
  const bool outer = std::exchange(in_index_, true);
  const Operand value = rvalue(expr);
  in_index_ = outer;
  return to_index(value, expr.location);
}

Operand Elaborator::eval_static(const Expr& expr, std::string_view what) {
  Operand value = eval(expr);
  if (value.is_static()) return value;
  NeedsConstant needs;
  std::string culprit;
  if (value.kind == Operand::Kind::Index) {
    ir::for_each_symbol(value.index, [&](const ir::Value* v) {
      const auto found = dimension_of_.find(v);
      if (found == dimension_of_.end()) {
        culprit = v->name;
      } else {
        needs.dims.insert(found->second);
      }
    });
    if (culprit.empty()) throw needs;
  }
  fail(E1023, expr.location, fmt::format("{} must be known at compile time, got {}", what, describe(value)),
       "use parameters, constants and dimensions");
}

int64_t Elaborator::static_integer(const Expr& expr, std::string_view what) {
  try {
    const Operand value = eval_static(expr, what);
    if (const auto* v = value.as<int64_t>()) return *v;
    fail(E1020, expr.location, fmt::format("{} must be an integer, got {}", what, describe(value)));
  } catch (const NeedsConstant& needs) {
    for (const std::string& dim : needs.dims) {
      if (configuration_.dims.contains(dim)) continue;
      fail(E1060, expr.location, fmt::format("{} depend on dimension {}, whose size is not given", what, dim),
           fmt::format("pass --dim {}=…, or add it to an `example` line", dim));
    }
    throw;
  }
}

ir::Value* Elaborator::eval_condition(const Expr& expr) { return to_bool(rvalue(expr), expr.location); }

Operand Elaborator::eval_call(const Expr& expr) {
  if (const FnSyntax* fn = source_.find_function(expr.text)) {
    Operand result = call_fn(*fn, expr);
    if (fn->expression || !result.as<std::string>()) return result;
    fail(E1022, expr.location, fmt::format("fn `{}` returns nothing, and a value is needed here", fn->name),
         "end it with `return e`");
  }
  if (expr.text == "arrive_last") return do_arrive_last(expr, bind_slots(expr, "counter, n"));
  if (const auto dtype = find(expr.text) ? std::optional<DType>() : parse_dtype(expr.text)) {
    return cast(rvalue(*bind_slots(expr, "x")[0]), *dtype, expr.location);
  }
  if (const Binding* found = find(expr.text)) {
    if (const auto* dtype = found->operand.as<DType>())
      return cast(rvalue(*bind_slots(expr, "x")[0]), *dtype, expr.location);
  }
  const Function* function = find_function(expr.text);
  if (!function) unknown_name(expr, true);
  return apply_function(*function, expr);
}

Operand Elaborator::call_fn(const FnSyntax& fn, const Expr& call) {
  if (std::ranges::find(inlining_, &fn) != inlining_.end()) {
    fail(E1006, call.location, fmt::format("fn `{}` calls itself", fn.name), "fns are inlined; use a loop");
  }
  inlining_.push_back(&fn);
  std::string signature;
  for (const std::string& p : fn.parameters) signature += (signature.empty() ? "" : ", ") + p;
  const Slots slots = bind_slots(call, signature);
  Scope arguments;
  for (size_t i = 0; i < slots.size(); ++i) {
    Operand value = eval(*slots[i]);
    if (value.is_tile() && value.tile.rank() == 0 && value.tile.type().rank() > 0)
      value = read(value.tile, slots[i]->location);
    arguments.emplace(fn.parameters[i],
                      Binding{.operand = std::move(value), .location = slots[i]->location, .is_let = true});
  }
  std::vector<Scope> outer;
  outer.push_back(std::move(arguments));
  std::swap(outer, scopes_);
  const auto caller = std::exchange(caller_, std::make_shared<const Location>(at(call.location)));
  const auto returned = std::exchange(returned_, std::nullopt);
  Operand result;
  if (fn.expression) {
    result = eval(*fn.expression);
    if (result.is_tile() && (result.tile.rank() == 0 || element_)) result = read(result.tile, fn.expression->location);
  } else {
    scoped(fn.body);
    result = returned_.value_or(Operand::of(std::string("nothing")));
  }
  returned_ = returned;
  caller_ = caller;
  std::swap(outer, scopes_);
  inlining_.pop_back();
  b_.set_location(at(call.location));
  return result;
}

}  // namespace tilewright::lang
