// Expressions of the grammar: precedence as in Python, without chained comparisons.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lang/foreign.h"
#include "lang/parser.h"

namespace tilewright::lang {
namespace {

using enum DiagnosticCode;

struct Row {
  std::string_view text;
  Operator op;
  int level;
};
constexpr int kComparison = 2;
constexpr int kTightest = 8;
constexpr std::array kBinary = {
    Row{"or", Operator::Or, 0},         Row{"and", Operator::And, 1},  Row{"<", Operator::Lt, 2},
    Row{"<=", Operator::Le, 2},         Row{">", Operator::Gt, 2},     Row{">=", Operator::Ge, 2},
    Row{"==", Operator::Eq, 2},         Row{"!=", Operator::Ne, 2},    Row{"|", Operator::BitOr, 3},
    Row{"^", Operator::BitXor, 4},      Row{"&", Operator::BitAnd, 5}, Row{"<<", Operator::Shl, 6},
    Row{">>", Operator::Shr, 6},        Row{"+", Operator::Add, 7},    Row{"-", Operator::Sub, 7},
    Row{"*", Operator::Mul, kTightest}, Row{"/", Operator::Div, 8},    Row{"//", Operator::FloorDiv, 8},
    Row{"%", Operator::FloorMod, 8}};

const Row* find_binary(const Token& token, int level) {
  if (token.kind != TokenKind::Symbol && token.kind != TokenKind::Name) return nullptr;
  for (const Row& row : kBinary) {
    if (row.level == level && row.text == token.text) return &row;
  }
  return nullptr;
}

}  // namespace

std::string_view spelling(Operator op) {
  switch (op) {
    case Operator::None: return "";
    case Operator::Not: return "not";
    case Operator::BitNot: return "~";
    case Operator::Neg: return "-";
    case Operator::Add:
    case Operator::Sub:
    case Operator::Mul:
    case Operator::Div:
    case Operator::FloorDiv:
    case Operator::FloorMod:
    case Operator::Lt:
    case Operator::Le:
    case Operator::Gt:
    case Operator::Ge:
    case Operator::Eq:
    case Operator::Ne:
    case Operator::And:
    case Operator::Or:
    case Operator::BitAnd:
    case Operator::BitOr:
    case Operator::BitXor:
    case Operator::Shl:
    case Operator::Shr: break;
  }
  for (const Row& row : kBinary) {
    if (row.op == op) return row.text;
  }
  return "";
}

Expr* Parser::make(ExprKind kind, Location location, std::vector<const Expr*> items) {
  int depth = 0;
  for (const Expr* item : items) depth = std::max(depth, item->depth);
  if (depth >= kDeepest) {
    Diagnostic d;
    d.code = E1006;
    d.location = std::move(location);
    d.message = fmt::format("this expression is more than {} operations deep", kDeepest);
    d.help = "name parts of it with `let`";
    throw d;
  }
  return &file_->exprs.emplace_back(
      Expr{.kind = kind, .depth = depth + 1, .location = std::move(location), .items = std::move(items)});
}

const Expr* Parser::expression() {
  const Nesting nesting(*this);
  return binary(0);
}

const Expr* Parser::binary(int level) {
  if (level > kTightest) return unary();
  if (level == kComparison && peek().is_word("not")) {
    const Nesting nesting(*this);
    const Token token = take();
    Expr* made = make(ExprKind::Unary, at(token), {binary(level)});
    made->op = Operator::Not;
    return made;
  }
  const Expr* left = binary(level + 1);
  while (const Row* row = find_binary(peek(), level)) {
    const Token token = take();
    Expr* made = make(ExprKind::Binary, at(token), {left, binary(level + 1)});
    made->op = row->op;
    left = made;
    if (level == kComparison && find_binary(peek(), level)) {
      fail(E1001, peek(), "comparisons do not chain", "write `a < b and b < c`");
    }
  }
  return left;
}

const Expr* Parser::unary() {
  if (!peek().is("-") && !peek().is("~") && !peek().is("+")) return postfix();
  const Nesting nesting(*this);
  const Token token = take();
  const Expr* operand = unary();
  if (token.is("+")) return operand;
  Expr* made = make(ExprKind::Unary, at(token), {operand});
  made->op = token.is("-") ? Operator::Neg : Operator::BitNot;
  return made;
}

/// `T.gemm`, `tl.load`, `A.shape`: what is written here instead.
void Parser::foreign_name(Location location, const Token& dot, const Token& member, const std::string& full) const {
  const bool is_joined = dot.line == location.line && dot.column == location.column + location.length;
  if (is_joined && member.kind == TokenKind::Name && member.column == dot.column + 1)
    location.length = static_cast<int>(full.size());
  Diagnostic d;
  d.code = E1012;
  d.location = std::move(location);
  d.message = fmt::format("`{}` is not part of this language", full);
  d.help = foreign_hint(full).value_or("names have no dots; dimensions are named in the kernel's header");
  throw d;
}

const Expr* Parser::postfix() {
  const Expr* base = primary();
  while (true) {
    if (peek().is("[")) {
      base = subscript(base);
    } else if (peek().is(".") && base->kind == ExprKind::Name) {
      const Token dot = take();
      const Token member = peek();
      const std::string full = base->text + "." + (member.kind == TokenKind::Name ? member.text : "");
      if (base->text == "torch" && member.kind == TokenKind::Name && parse_dtype(full)) {
        take();
        Expr* made = make(ExprKind::Name, base->location);
        made->text = full;
        base = made;
        continue;
      }
      foreign_name(base->location, dot, member, full);
    } else if (peek().is("(")) {
      fail(E1001, peek(), "only a name can be called");
    } else {
      return base;
    }
  }
}

const Expr* Parser::primary() {
  const Token token = peek();
  switch (token.kind) {
    case TokenKind::Integer:
    case TokenKind::Real: {
      take();
      Expr* made = make(token.kind == TokenKind::Integer ? ExprKind::Integer : ExprKind::Real, at(token));
      made->integer = token.integer;
      made->real = token.real;
      made->text = token.text;
      return made;
    }
    case TokenKind::Text: {
      take();
      Expr* made = make(ExprKind::Text, at(token));
      made->text = token.text;
      return made;
    }
    case TokenKind::Name: {
      take();
      if (peek().is("(")) return call(token);
      const bool flag = token.text == "true" || token.text == "false";
      Expr* made = make(flag ? ExprKind::Flag : ExprKind::Name, at(token));
      made->text = token.text;
      made->integer = token.text == "true";
      return made;
    }
    case TokenKind::Symbol:
      if (token.is("(")) {
        take();
        const Expr* inner = expression();
        if (peek().is(",")) fail(E1001, peek(), "there are no tuples", "extents are written in brackets: f32[m, n]");
        expect(")", "to close the parenthesis");
        return inner;
      }
      if (token.is("{")) return values();
      break;
    case TokenKind::Newline:
    case TokenKind::End: break;
  }
  unexpected("an expression", next_ == 0 ? "" : symbol_hint(list_.tokens[next_ - 1].text, token.text));
}

const Expr* Parser::call(const Token& name) {
  const Nesting nesting(*this);
  if (const auto hint = foreign_hint(name.text); hint && name.text.starts_with("alloc_")) {
    fail(E1012, name, fmt::format("`{}` is not part of this language", name.text), *hint);
  }
  expect("(", "after the name");
  std::vector<const Expr*> items;
  std::vector<std::string> labels;
  while (!peek().is(")")) {
    std::string label;
    if (peek().kind == TokenKind::Name && peek(1).is("=")) {
      label = take().text;
      take();
    } else if (!labels.empty() && !labels.back().empty()) {
      fail(E1040, peek(), "a positional argument cannot follow a named one");
    }
    items.push_back(expression());
    labels.push_back(std::move(label));
    if (!accept(",")) break;
  }
  if (!peek().is(")")) unexpected(fmt::format("`,` or `)` in the arguments of `{}`", name.text));
  take();
  Expr* made = make(ExprKind::Call, at(name), std::move(items));
  made->text = name.text;
  made->labels = std::move(labels);
  return made;
}

const Expr* Parser::subscript(const Expr* base) {
  const Nesting nesting(*this);
  expect("[", "");
  std::vector<const Expr*> items{base};
  while (!peek().is("]")) {
    items.push_back(subscript_item());
    if (!accept(",")) break;
  }
  if (!peek().is("]")) unexpected("`,` or `]` in the subscript");
  take();
  return make(ExprKind::Subscript, base->location, std::move(items));
}

const Expr* Parser::subscript_item() {
  if (peek().is(":") && (peek(1).is(",") || peek(1).is("]"))) return make(ExprKind::All, at(take()));
  if (peek().is("*") && (peek(1).is(",") || peek(1).is("]"))) return make(ExprKind::NewAxis, at(take()));
  if (peek().is_word("None")) {
    fail(E1012, peek(), "`None` is not part of this language", "a broadcast axis is spelled `*` here: m[:, *]");
  }
  if (peek().is(":"))
    fail(E1001, peek(), "a slice needs a start", "write `start :+ extent`, or `:` for the whole dimension");
  const Expr* first = expression();
  if (peek().is(":")) {
    fail(E1001, peek(), "slices are written with their extent", "write `start :+ extent` instead of `start:end`");
  }
  if (!peek().is(":+")) return first;
  const Token token = take();
  return make(ExprKind::Slice, at(token), {first, expression()});
}

const Expr* Parser::values() {
  const Nesting nesting(*this);
  const Token open = expect("{", "");
  std::vector<const Expr*> items;
  std::vector<std::string> labels;
  skip_newlines();
  while (!peek().is("}")) {
    std::string label;
    if (peek().kind == TokenKind::Name && peek(1).is(":")) {
      label = take().text;
      take();
    }
    items.push_back(expression());
    labels.push_back(std::move(label));
    skip_newlines();
    if (!accept(",")) break;
    skip_newlines();
  }
  if (!peek().is("}")) unexpected("`,` or `}` in the list of values", "lists are written out: there are no ranges");
  take();
  Expr* made = make(ExprKind::Values, at(open), std::move(items));
  made->labels = std::move(labels);
  return made;
}

std::string Parser::dtype_name() {
  const Token first = expect_name("a dtype");
  if (!peek().is(".")) return first.text;
  take();
  return first.text + "." + expect_name("the dtype's name").text;
}

}  // namespace tilewright::lang
