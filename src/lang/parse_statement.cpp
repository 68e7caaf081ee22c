// Statements of the grammar.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lang/foreign.h"
#include "lang/parser.h"

namespace tilewright::lang {
namespace {

using enum DiagnosticCode;

std::optional<TileSpace> tile_space(const Token& token) {
  if (token.is_word("shared")) return TileSpace::Shared;
  if (token.is_word("fragment")) return TileSpace::Fragment;
  if (token.is_word("local")) return TileSpace::Local;
  if (token.is_word("var")) return TileSpace::Var;
  return std::nullopt;
}

Operator assignment_operator(const Token& token) {
  if (token.is("+=")) return Operator::Add;
  if (token.is("-=")) return Operator::Sub;
  if (token.is("*=")) return Operator::Mul;
  if (token.is("/=")) return Operator::Div;
  if (token.is("//=")) return Operator::FloorDiv;
  if (token.is("&=")) return Operator::BitAnd;
  if (token.is("|=")) return Operator::BitOr;
  if (token.is("^=")) return Operator::BitXor;
  if (token.is("<<=")) return Operator::Shl;
  if (token.is(">>=")) return Operator::Shr;
  return Operator::None;
}

/// `int x = 3` of C and C++.
bool is_declaring_word(const Token& token) {
  static constexpr std::array<std::string_view, 9> kWords = {"const", "int",  "float",    "double", "bool",
                                                             "auto",  "half", "unsigned", "long"};
  return std::ranges::find(kWords, token.text) != kWords.end() || parse_dtype(token.text).has_value();
}

}  // namespace

Stmt* Parser::make(StmtKind kind, Location location) {
  return &file_->stmts.emplace_back(Stmt{.kind = kind, .location = std::move(location)});
}

Block Parser::block(std::string_view of) {
  const Nesting nesting(*this);
  skip_newlines();
  const Token open = expect("{", fmt::format("to begin the body of {}", of));
  Block out;
  skip_newlines();
  while (!peek().is("}")) {
    if (peek().kind == TokenKind::End) {
      fail(E1001, peek(),
           fmt::format("expected `}}` to close the body of {} opened at line {}, got the end of file", of, open.line));
    }
    out.push_back(statement());
    end_statement();
  }
  take();
  return out;
}

const Stmt* Parser::statement() {
  const Token& token = peek();
  if (token.is_word("let")) return let_statement();
  if (token.is_word("for")) return for_statement();
  if (token.is_word("if")) return if_statement();
  if (token.is_word("while")) return while_statement();
  if (token.is_word("grid")) return grid_statement();
  if (token.is_word("return")) return return_statement();
  if (token.kind == TokenKind::Name && peek(1).is("=") && tile_space(peek(2)) && peek(3).kind == TokenKind::Name) {
    return declaration();
  }
  if (token.kind == TokenKind::Name && peek(1).kind == TokenKind::Name) {
    if (const auto hint = foreign_hint(token.text)) {
      fail(E1012, token, fmt::format("`{}` is not part of this language", token.text), *hint);
    }
    if (is_declaring_word(token)) {
      fail(E1012, token, "values are named by `let`, without a type",
           "write `let x = value`, or `x = var i32 = value` for one that changes");
    }
  }
  return assignment_or_call();
}

const Stmt* Parser::let_statement() {
  take();
  const Token name = expect_name("a name after `let`");
  Stmt* made = make(StmtKind::Let, at(name));
  made->name = name.text;
  expect("=", fmt::format("after `let {}`", name.text));
  if (tile_space(peek()) && peek(1).kind == TokenKind::Name) {
    fail(E1001, peek(), fmt::format("`let` names a value; a {} tile is declared without it", peek().text),
         fmt::format("write `{} = {} {}…`", name.text, peek().text, peek(1).text));
  }
  made->value = expression();
  return made;
}

const Stmt* Parser::for_statement() {
  const Token word = take();
  Stmt* made = make(StmtKind::For, at(word));
  do {
    const Token name = expect_name("a loop variable");
    made->names.push_back(name.text);
    made->places.push_back(at(name));
  } while (accept(","));
  if (!accept_word("in")) unexpected("`in` after the loop variables");
  made->value = expression();
  if (made->value->kind != ExprKind::Call) {
    Diagnostic d;
    d.code = E1001;
    d.location = made->value->location;
    d.message = "a loop runs over serial(…), unroll(…), parallel(…) or pipelined(…)";
    d.help = "write `for i in serial(n) { … }`";
    throw d;
  }
  made->body = block("the loop");
  return made;
}

const Stmt* Parser::if_statement() {
  const Nesting nesting(*this);
  const Token word = take();
  Stmt* made = make(StmtKind::If, at(word));
  made->value = expression();
  made->body = block("`if`");
  size_t ahead = 0;
  while (peek(ahead).kind == TokenKind::Newline) ++ahead;
  if (!peek(ahead).is_word("else")) return made;
  skip_newlines();
  take();
  if (peek().is_word("if")) {
    made->otherwise.push_back(if_statement());
  } else {
    made->otherwise = block("`else`");
  }
  return made;
}

const Stmt* Parser::while_statement() {
  const Token word = take();
  Stmt* made = make(StmtKind::While, at(word));
  made->value = expression();
  made->body = block("`while`");
  return made;
}

const Stmt* Parser::grid_statement() {
  const Token word = take();
  Stmt* made = make(StmtKind::Grid, at(word));
  expect("(", "after `grid`");
  while (!peek().is(")")) {
    const Token name = expect_name("a block variable");
    made->names.push_back(name.text);
    made->places.push_back(at(name));
    expect(":", fmt::format("between `{}` and its extent", name.text));
    made->extents.push_back(expression());
    if (!accept(",")) break;
  }
  expect(")", "after the extents of the grid");
  while (true) {
    if (accept_word("threads")) {
      expect("(", "after `threads`");
      made->threads = expression();
      expect(")", "after the number of threads");
    } else if (accept_word("persistent")) {
      made->persistent = true;
      if (!accept("(")) continue;
      if (!accept_word("group")) unexpected("`group = n`");
      expect("=", "after `group`");
      made->group = expression();
      expect(")", "after `group = n`");
    } else {
      break;
    }
  }
  made->body = block("the grid");
  return made;
}

const Stmt* Parser::return_statement() {
  const Token word = take();
  Stmt* made = make(StmtKind::Return, at(word));
  made->value = expression();
  return made;
}

const Stmt* Parser::declaration() {
  const Token name = take();
  Stmt* made = make(StmtKind::Declare, at(name));
  made->name = name.text;
  take();
  made->space = *tile_space(take());
  made->guarded = peek(1).kind == TokenKind::Name && accept_word("guarded");
  made->type = type();
  if (peek().is_word("layout") && peek(1).is("(")) {
    take(), take();
    made->layout = expression();
    expect(")", "after the layout");
  }
  if (accept("=")) made->value = expression();
  return made;
}

TypeSyntax Parser::type() {
  TypeSyntax out;
  out.location = at(peek());
  out.dtype = dtype_name();
  out.location.length = static_cast<int>(out.dtype.size());
  if (!accept("[")) return out;
  out.is_tensor = true;
  while (!peek().is("]")) {
    out.shape.push_back(expression());
    if (!accept(",")) break;
  }
  expect("]", "after the extents");
  return out;
}

/// Two names in a row after `=` can only be meant as a declaration.
void Parser::misspelled_tile_space(const Token& word) const {
  static const std::vector<std::string> kSpaces = {"shared", "fragment", "local", "var"};
  const std::string near = closest(word.text, kSpaces);
  if (peek(1).is_word("if"))
    fail(E1001, peek(1), "a choice between two values is a function here", "write select(condition, yes, no)");
  fail(E1010, word, fmt::format("`{}` is not a kind of tile", word.text),
       near.empty() ? "tiles are shared, fragment or local, scalars that change are var"
                    : fmt::format("did you mean `{}`?", near));
}

const Stmt* Parser::assignment_or_call() {
  const Token first = peek();
  const Expr* target = expression();
  const Operator op = assignment_operator(peek());
  if (op != Operator::None || peek().is("=")) {
    if (target->kind != ExprKind::Name && target->kind != ExprKind::Subscript) {
      fail(E1001, first, "only a name or an element can be assigned to",
           "write `x = value`, `A[i, j] = value` or `let x = value`");
    }
    const Token equals = take();
    Stmt* made = make(StmtKind::Assign, at(equals));
    made->target = target;
    made->op = op;
    if (tile_space(peek()) && peek(1).kind == TokenKind::Name) {
      fail(E1001, peek(), fmt::format("a {} tile is declared by a plain name", peek().text));
    }
    const bool goes_on = peek(1).is_word("and") || peek(1).is_word("or") || peek().is_word("not");
    if (peek().kind == TokenKind::Name && peek(1).kind == TokenKind::Name && !goes_on) misspelled_tile_space(peek());
    made->value = expression();
    return made;
  }
  if (target->kind != ExprKind::Call) {
    const auto hint = target->kind == ExprKind::Name ? foreign_hint(target->text) : std::nullopt;
    fail(E1001, first, "a value alone does nothing", hint.value_or("name it with `let x = …`, or assign it"));
  }
  Stmt* made = make(StmtKind::Call, target->location);
  made->value = target;
  return made;
}

}  // namespace tilewright::lang
