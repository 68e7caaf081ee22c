// Tokens of `.tile` text.
//
// A newline is a token only where it can end a statement: never inside ( ) or [ ], never after an operator, a comma or
// an opening bracket, and never twice in a row. Comments (`# …`) are kept aside for the documentation of kernels.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"

namespace tilewright::lang {

enum class TokenKind : uint8_t { Name, Integer, Real, Text, Symbol, Newline, End };

/// `text` is the spelling (for Text: the characters after escapes are resolved).
struct Token {
  TokenKind kind = TokenKind::End;
  std::string text;
  int line = 1;
  int column = 1;
  int length = 1;
  int64_t integer = 0;
  double real = 0;

  bool is(std::string_view symbol) const { return kind == TokenKind::Symbol && text == symbol; }
  bool is_word(std::string_view word) const { return kind == TokenKind::Name && text == word; }
};

struct TokenList {
  std::vector<Token> tokens;            ///< ends with an End token
  std::map<int, std::string> comments;  ///< by line; only lines that hold nothing else
};

/// Largest source accepted, in bytes.
inline constexpr size_t kLargestSource = size_t{1} << 20;

/// Throws Diagnostic (E1002–E1007).
TokenList tokenize(std::string_view text, const std::shared_ptr<const std::string>& file);

}  // namespace tilewright::lang
