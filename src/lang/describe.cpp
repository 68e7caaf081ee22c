// The query side of elaborate.h: arguments, parameters, rows, examples and references of a kernel.
#include <fmt/format.h>

#include <algorithm>

#include "lang/elaborator.h"
#include "lang/syntax_text.h"

namespace tilewright::lang {
namespace {

using enum DiagnosticCode;

Reference of_static(const Operand& value) {
  Reference out;
  if (const auto* v = value.as<int64_t>()) {
    out.kind = Reference::Kind::Number, out.number = static_cast<double>(*v);
  } else if (const auto* r = value.as<double>()) {
    out.kind = Reference::Kind::Number, out.number = *r;
  } else if (const auto* f = value.as<bool>()) {
    out.kind = Reference::Kind::Flag, out.flag = *f;
  } else if (const auto* d = value.as<DType>()) {
    out.kind = Reference::Kind::DType, out.dtype = *d;
  } else {
    out.kind = Reference::Kind::Text, out.name = std::get<std::string>(value.constant);
  }
  return out;
}

}  // namespace

std::string to_string(const Reference& reference) {
  switch (reference.kind) {
    case Reference::Kind::Name: return reference.name;
    case Reference::Kind::Number: return fmt::format("{}", reference.number);
    case Reference::Kind::Flag: return reference.flag ? "true" : "false";
    case Reference::Kind::DType: return std::string(name(reference.dtype));
    case Reference::Kind::Text: return fmt::format("\"{}\"", reference.name);
    case Reference::Kind::Call: break;
  }
  std::string inner;
  for (const Reference& a : reference.arguments) inner += (inner.empty() ? "" : ", ") + to_string(a);
  for (const auto& [label, a] : reference.named)
    inner += fmt::format("{}{} = {}", inner.empty() ? "" : ", ", label, to_string(a));
  return fmt::format("{}({})", reference.name, inner);
}

Reference Elaborator::reference_of(const Expr& expr) {
  Reference out = unplaced_reference_of(expr);
  if (!out.location.is_known()) out.location = expr.location;
  return out;
}

/// Parameters become values; operators become calls named after them; a decided `select` becomes its branch.
Reference Elaborator::unplaced_reference_of(const Expr& expr) {
  Reference out;
  switch (expr.kind) {
    case ExprKind::Integer: return of_static(Operand::of(expr.integer));
    case ExprKind::Real: return of_static(Operand::of(expr.real));
    case ExprKind::Flag: return of_static(Operand::of(expr.integer != 0));
    case ExprKind::Text: return of_static(Operand::of(expr.text));
    case ExprKind::Name: {
      const Binding* found = find(expr.text);
      if (found && found->operand.is_static()) return of_static(found->operand);
      if (!found && parse_dtype(expr.text)) return of_static(Operand::of(*parse_dtype(expr.text)));
      out.name = configuration_.absent.contains(expr.text) ? "none" : expr.text;
      return out;
    }
    case ExprKind::Call:
      if (expr.text == "select" && expr.items.size() == 3) {
        const Reference condition = reference_of(*expr.items[0]);
        if (condition.kind == Reference::Kind::Flag) return reference_of(*expr.items[condition.flag ? 1 : 2]);
      }
      out.kind = Reference::Kind::Call;
      out.name = expr.text;
      for (size_t i = 0; i < expr.items.size(); ++i) {
        Reference item = reference_of(*expr.items[i]);
        if (expr.labels[i].empty()) {
          out.arguments.push_back(std::move(item));
        } else {
          out.named.push_back({expr.labels[i], std::move(item)});
        }
      }
      return out;
    case ExprKind::Unary:
    case ExprKind::Binary: {
      out.kind = Reference::Kind::Call;
      bool decided = true;
      for (const Expr* item : expr.items) {
        out.arguments.push_back(reference_of(*item));
        decided &=
            out.arguments.back().kind != Reference::Kind::Name && out.arguments.back().kind != Reference::Kind::Call;
      }
      if (decided) return of_static(eval_static(expr, "this part of a reference"));
      static constexpr std::string_view kNames[] = {
          "",   "add", "sub", "mul", "div",    "floordiv", "floormod", "lt",  "le",  "gt",  "ge", "eq",
          "ne", "and", "or",  "not", "bitand", "bitor",    "xor",      "inv", "shl", "shr", "neg"};
      out.name = kNames[static_cast<int>(expr.op)];
      return out;
    }
    case ExprKind::Subscript:
    case ExprKind::Slice:
    case ExprKind::All:
    case ExprKind::NewAxis:
    case ExprKind::Values: break;
  }
  fail(E1001, expr.location, fmt::format("`{}` cannot be part of a reference", to_text(expr)),
       "a reference is made of calls, names and numbers: relu(matmul(A, B))");
}

KernelInfo Elaborator::describe_kernel() {
  KernelInfo out{.name = syntax_.name, .doc = syntax_.doc, .location = syntax_.location};
  const Parameters parameters = resolve_parameters();
  out.config_row = parameters.config_row;
  for (size_t i = 0; i < parameters.values.size(); ++i) {
    const ParamSyntax& p = syntax_.params[i];
    out.params.push_back({p.name, parameters.values[i].second, domain_of(p), p.location});
  }
  out.dims = dimension_names();
  for (const ArgumentSyntax& a : syntax_.arguments) {
    ArgumentInfo made{.name = a.name,
                      .kind = a.kind,
                      .is_tensor = a.type.is_tensor,
                      .optional = a.optional,
                      .dtype = dtype_of(a.type)};
    for (const Expr* extent : a.type.shape) made.shape.push_back(to_text(*extent));
    if (a.default_value) made.default_value = to_text(*a.default_value);
    out.arguments.push_back(std::move(made));
  }
  for (const ConfigSyntax& row : syntax_.configs) {
    ConfigInfo made{.target = row.target, .when = row.when ? to_text(*row.when) : ""};
    for (const Setting& s : row.settings) made.settings.emplace_back(s.name, to_text(*s.value));
    out.configs.push_back(std::move(made));
  }
  for (const std::vector<Setting>& example : syntax_.examples) {
    std::map<std::string, int64_t> sizes;
    for (const Setting& s : example) {
      if (std::ranges::find(out.dims, s.name) == out.dims.end()) {
        fail(E1015, s.location, fmt::format("kernel `{}` has no dimension `{}`", syntax_.name, s.name),
             fmt::format("it has: {}", fmt::join(out.dims, ", ")));
      }
      sizes[s.name] = static_integer(*s.value, "the size of an example");
    }
    out.examples.push_back(std::move(sizes));
  }
  for (const Expr* reference : syntax_.references) out.references.push_back(reference_of(*reference));
  return out;
}

}  // namespace tilewright::lang
