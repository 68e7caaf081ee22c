#include "lang/syntax_text.h"

#include <fmt/format.h>

namespace tilewright::lang {
namespace {

std::string list(const Expr& expr, size_t first, std::string_view between) {
  std::string out;
  for (size_t i = first; i < expr.items.size(); ++i) {
    if (i > first) out += ", ";
    const size_t label = i - first;
    if (first == 0 && label < expr.labels.size() && !expr.labels[label].empty()) {
      out += fmt::format("{}{}", expr.labels[label], between);
    }
    out += to_text(*expr.items[i]);
  }
  return out;
}

constexpr int kComparison = 3;  // does not chain

/// How tightly an expression binds; operands that bind looser than their operator get parentheses.
int tightness(const Expr& expr) {
  if (expr.kind == ExprKind::Unary) return expr.op == Operator::Not ? 2 : 10;
  if (expr.kind != ExprKind::Binary) return 11;
  switch (expr.op) {
    case Operator::Or: return 0;
    case Operator::And: return 1;
    case Operator::BitOr: return 4;
    case Operator::BitXor: return 5;
    case Operator::BitAnd: return 6;
    case Operator::Shl:
    case Operator::Shr: return 7;
    case Operator::Add:
    case Operator::Sub: return 8;
    case Operator::Mul:
    case Operator::Div:
    case Operator::FloorDiv:
    case Operator::FloorMod: return 9;
    default: return kComparison;
  }
}

std::string operand_text(const Expr& expr, int least) {
  return tightness(expr) < least ? fmt::format("({})", to_text(expr)) : to_text(expr);
}

}  // namespace

std::string to_text(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::Integer:
    case ExprKind::Real:
    case ExprKind::Flag:
    case ExprKind::Name: return expr.text;
    case ExprKind::Text: return fmt::format("\"{}\"", expr.text);
    case ExprKind::Unary:
      return fmt::format("{}{}{}", spelling(expr.op), expr.op == Operator::Not ? " " : "",
                         operand_text(*expr.items[0], tightness(expr)));
    case ExprKind::Binary:
      return fmt::format("{} {} {}", operand_text(*expr.items[0], tightness(expr) + (tightness(expr) == kComparison)),
                         spelling(expr.op), operand_text(*expr.items[1], tightness(expr) + 1));
    case ExprKind::Call: return fmt::format("{}({})", expr.text, list(expr, 0, " = "));
    case ExprKind::Subscript: return fmt::format("{}[{}]", to_text(*expr.items[0]), list(expr, 1, ""));
    case ExprKind::Slice: return fmt::format("{} :+ {}", to_text(*expr.items[0]), to_text(*expr.items[1]));
    case ExprKind::All: return ":";
    case ExprKind::NewAxis: return "*";
    case ExprKind::Values: return fmt::format("{{{}}}", list(expr, 0, ": "));
  }
  return {};
}

void for_each_name(const Expr& expr, const std::function<void(const std::string&)>& visit) {
  if (expr.kind == ExprKind::Name) visit(expr.text);
  for (const Expr* item : expr.items) for_each_name(*item, visit);
}

}  // namespace tilewright::lang
