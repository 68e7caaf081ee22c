#include "lang/function.h"

#include <fmt/format.h>

#include <algorithm>

#include <array>
#include <cmath>

#include "base/narrow_float.h"
#include "lang/elaborator.h"
#include "lang/foreign.h"
#include "lang/operation.h"

namespace tilewright::lang {
namespace {

using enum DiagnosticCode;
using ir::UnaryOp;

constexpr std::array kFunctions = {
    Function{"abs", FunctionKind::Math, "x", UnaryOp::Abs},
    Function{"exp", FunctionKind::Math, "x", UnaryOp::Exp},
    Function{"exp2", FunctionKind::Math, "x", UnaryOp::Exp2},
    Function{"log", FunctionKind::Math, "x", UnaryOp::Log},
    Function{"log2", FunctionKind::Math, "x", UnaryOp::Log2},
    Function{"tanh", FunctionKind::Math, "x", UnaryOp::Tanh},
    Function{"erf", FunctionKind::Math, "x", UnaryOp::Erf},
    Function{"sigmoid", FunctionKind::Math, "x", UnaryOp::Sigmoid},
    Function{"rsqrt", FunctionKind::Math, "x", UnaryOp::Rsqrt},
    Function{"sqrt", FunctionKind::Math, "x", UnaryOp::Sqrt},
    Function{"sin", FunctionKind::Math, "x", UnaryOp::Sin},
    Function{"cos", FunctionKind::Math, "x", UnaryOp::Cos},
    Function{"floor", FunctionKind::Math, "x", UnaryOp::Floor},
    Function{"ceil", FunctionKind::Math, "x", UnaryOp::Ceil},
    Function{"round", FunctionKind::Math, "x", UnaryOp::Round},
    Function{"isnan", FunctionKind::Math, "x", UnaryOp::IsNan},
    Function{"min", FunctionKind::Min, "x…"},
    Function{"max", FunctionKind::Max, "x…"},
    Function{"pow", FunctionKind::Pow, "x, y"},
    Function{"ceildiv", FunctionKind::CeilDiv, "a, b"},
    Function{"select", FunctionKind::Select, "condition, yes, no"},
    Function{"cast", FunctionKind::Cast, "x, dtype"},
    Function{"bitcast", FunctionKind::Bitcast, "x, dtype"},
    Function{"lowest", FunctionKind::Lowest, "dtype"},
    Function{"highest", FunctionKind::Highest, "dtype"},
    Function{"present", FunctionKind::Present, "argument"},
    Function{"load", FunctionKind::Load, "element, oob"},
};

StaticValue extreme(DType dtype, bool highest) {
  if (is_float(dtype)) return highest ? largest_finite(dtype) : -largest_finite(dtype);
  if (dtype == DType::Bool) return highest;
  const int width = bits(dtype);
  if (is_unsigned_int(dtype)) return highest ? static_cast<int64_t>(~uint64_t{0} >> (64 - width)) : int64_t{0};
  return highest ? static_cast<int64_t>(~uint64_t{0} >> (65 - width))
                 : static_cast<int64_t>(~uint64_t{0} << (width - 1));
}

}  // namespace

const Function* find_function(std::string_view name) {
  for (const Function& f : kFunctions) {
    if (f.name == name) return &f;
  }
  return nullptr;
}

std::vector<std::string> function_names() {
  std::vector<std::string> out;
  for (const Function& f : kFunctions) out.emplace_back(f.name);
  for (const std::string& name : operation_names()) out.push_back(name);
  return out;
}

Operand Elaborator::apply_function(const Function& function, const Expr& call) {
  const Location& place = call.location;
  if (function.kind == FunctionKind::Min || function.kind == FunctionKind::Max) {
    if (call.items.size() < 2) fail(E1040, place, fmt::format("{}(…) needs two or more values", function.name));
    Operand out = rvalue(*call.items[0]);
    for (size_t i = 1; i < call.items.size(); ++i) {
      if (!call.labels[i].empty())
        fail(E1040, call.items[i]->location, fmt::format("`{}` has no argument `{}`", function.name, call.labels[i]));
      out = min_max(function.kind == FunctionKind::Max, out, rvalue(*call.items[i]), place);
    }
    return out;
  }
  const Slots slots = bind_slots(call, function.signature);
  const auto dtype = [&](const Expr& expr) {
    const Operand value = eval(expr);
    if (const auto* d = value.as<DType>()) return *d;
    fail(E1020, expr.location, fmt::format("a dtype is needed here, got {}", describe(value)),
         fmt::format("write {}", call.text + "(…, f32)"));
  };
  switch (function.kind) {
    case FunctionKind::Math: return math(function.op, rvalue(*slots[0]), place);
    case FunctionKind::CeilDiv: {
      const Operand a = rvalue(*slots[0]), b = rvalue(*slots[1]);
      const ir::Index divisor = to_index(b, slots[1]->location);
      if (divisor.is_constant(0) && !names_empty_dimension(*slots[1]))
        fail(E1041, slots[1]->location, "ceildiv by 0", "the block size is 1 or more");
      return Operand::of_index(ir::ceildiv(to_index(a, slots[0]->location), divisor));
    }
    case FunctionKind::Select: {
      const Operand condition = rvalue(*slots[0]);
      if (const auto* known = condition.as<bool>()) return rvalue(*slots[*known ? 1 : 2]);
      Operand yes = rvalue(*slots[1]);
      return select(condition, std::move(yes), rvalue(*slots[2]), place);
    }
    case FunctionKind::Pow: {
      const Operand x = rvalue(*slots[0]);
      return power(x, rvalue(*slots[1]), place);
    }
    case FunctionKind::Cast: return cast(rvalue(*slots[0]), dtype(*slots[1]), place);
    case FunctionKind::Bitcast: return bitcast(rvalue(*slots[0]), dtype(*slots[1]), place);
    case FunctionKind::Lowest: return Operand::of(extreme(dtype(*slots[0]), false));
    case FunctionKind::Highest: return Operand::of(extreme(dtype(*slots[0]), true));
    case FunctionKind::Present: {
      const Binding* found = slots[0]->kind == ExprKind::Name ? find(slots[0]->text) : nullptr;
      if (!found || !found->operand.is_tile())
        fail(E1041, slots[0]->location, "present(…) takes an optional tensor argument");
      return Operand::of(!found->is_absent);
    }
    case FunctionKind::Load: {
      const TileRef element = tile_of(*slots[0], "the element");
      ir::Value* oob = coerce(rvalue(*slots[1]), compute_type(element.type().dtype), slots[1]->location);
      return read(element, slots[0]->location, oob);
    }
    case FunctionKind::Min:
    case FunctionKind::Max: break;
  }
  return {};
}

namespace {

/// Where the name of an argument stands: before its value, on the same line.
Location place_of_label(const Source& source, Location value, const std::string& label) {
  std::string_view text = value.file ? source.text_of(*value.file) : std::string_view();
  for (int line = 1; line < value.line; ++line) text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  const size_t at = text.substr(0, static_cast<size_t>(std::max(0, value.column - 1))).rfind(label);
  if (at == std::string_view::npos) return value;
  value.column = static_cast<int>(at) + 1;
  value.length = static_cast<int>(label.size());
  return value;
}

}  // namespace

/// Sorts the arguments of `call` into the slots of a signature such as "src, dst, oob?".
Slots Elaborator::bind_slots(const Expr& call, std::string_view signature) {
  std::vector<std::string> names;
  std::vector<bool> optional;
  for (size_t at = 0; at < signature.size();) {
    const size_t end = std::min(signature.find(", ", at), signature.size());
    std::string name(signature.substr(at, end - at));
    optional.push_back(name.ends_with('?'));
    if (optional.back()) name.pop_back();
    names.push_back(std::move(name));
    at = end + 2;
  }
  const std::string usage = fmt::format("{}({})", call.text, signature);
  Slots out(names.size(), nullptr);
  for (size_t i = 0; i < call.items.size(); ++i) {
    size_t slot = i;
    if (!call.labels[i].empty()) {
      slot = static_cast<size_t>(std::ranges::find(names, call.labels[i]) - names.begin());
      if (slot == names.size()) {
        const auto hint = foreign_argument_hint(call.labels[i]);
        const std::string near = closest(call.labels[i], names);
        fail(E1040, place_of_label(source_, call.items[i]->location, call.labels[i]),
             fmt::format("`{}` has no argument `{}`", call.text, call.labels[i]),
             fmt::format("{}it takes {}",
                         hint           ? *hint + "; "
                         : near.empty() ? ""
                                        : fmt::format("did you mean `{}`? ", near),
                         usage));
      }
    }
    if (slot >= names.size()) {
      fail(E1040, call.items[i]->location,
           fmt::format("`{}` takes {} argument{}, got {}", call.text, names.size(), names.size() == 1 ? "" : "s",
                       call.items.size()),
           "it takes " + usage);
    }
    if (out[slot]) fail(E1040, call.items[i]->location, fmt::format("argument `{}` is given twice", names[slot]));
    out[slot] = call.items[i];
  }
  for (size_t i = 0; i < names.size(); ++i) {
    if (!out[i] && !optional[i])
      fail(E1040, call.location, fmt::format("`{}` needs an argument `{}`", call.text, names[i]), "it takes " + usage);
  }
  return out;
}

}  // namespace tilewright::lang
