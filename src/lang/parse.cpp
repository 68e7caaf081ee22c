#include "lang/parse.h"

#include <fmt/format.h>

#include "lang/parser.h"

namespace tilewright::lang {

using enum DiagnosticCode;

Parser::Parser(std::string_view text, std::string file_name) : file_(std::make_shared<File>()) {
  file_->name = std::make_shared<const std::string>(std::move(file_name));
  list_ = tokenize(text, file_->name);
  file_->text = text;
}

const Token& Parser::peek(size_t ahead) const { return list_.tokens[std::min(next_ + ahead, list_.tokens.size() - 1)]; }

Token Parser::take() {
  Token token = peek();
  if (next_ + 1 < list_.tokens.size()) ++next_;
  return token;
}

bool Parser::accept(std::string_view symbol) {
  if (!peek().is(symbol)) return false;
  take();
  return true;
}

bool Parser::accept_word(std::string_view word) {
  if (!peek().is_word(word)) return false;
  take();
  return true;
}

Token Parser::expect(std::string_view symbol, std::string_view where) {
  if (!peek().is(symbol)) unexpected(fmt::format("`{}` {}", symbol, where));
  return take();
}

Token Parser::expect_name(std::string_view what) {
  if (peek().kind != TokenKind::Name) unexpected(what);
  return take();
}

void Parser::skip_newlines() {
  while (peek().kind == TokenKind::Newline || peek().is(";")) take();
}

void Parser::end_statement() {
  if (peek().kind == TokenKind::Newline || peek().is(";")) return skip_newlines();
  if (peek().is("}") || peek().kind == TokenKind::End) return;
  unexpected("the end of the statement", peek().is_word("if")
                                             ? "a choice between two values is select(condition, yes, no)"
                                             : "a statement ends at the end of the line or at `;`");
}

Location Parser::at(const Token& token) const {
  return {.file = file_->name, .line = token.line, .column = token.column, .length = token.length};
}

void Parser::fail(DiagnosticCode code, const Token& token, std::string message, std::string help) const {
  Diagnostic d;
  d.code = code;
  d.location = at(token);
  d.message = std::move(message);
  d.help = std::move(help);
  throw d;
}

void Parser::unexpected(std::string_view wanted, std::string help) const {
  const Token& token = peek();
  const bool named = token.kind == TokenKind::End || token.kind == TokenKind::Newline;
  const std::string got = named                           ? "the " + token.text
                          : token.kind == TokenKind::Text ? "a text"
                                                          : fmt::format("`{}`", token.text.substr(0, 60));
  fail(E1001, token, fmt::format("expected {}, got {}", wanted, got), std::move(help));
}

Parser::Nesting::Nesting(Parser& parser) : parser_(parser) {
  if (++parser_.depth_ > kDeepest) {
    --parser_.depth_;
    parser_.fail(E1006, parser_.peek(), fmt::format("nested more than {} levels deep", kDeepest),
                 "name parts with `let` or move them into a `fn`");
  }
}

Result<std::shared_ptr<const File>> parse_file(std::string_view text, std::string file_name) {
  try {
    return Parser(text, std::move(file_name)).run();
  } catch (Diagnostic& d) {
    return std::unexpected(std::move(d));
  }
}

}  // namespace tilewright::lang
