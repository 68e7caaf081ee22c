#include "lang/token.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace tilewright::lang {
namespace {

using enum DiagnosticCode;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name_part(char c) { return is_letter(c) || is_digit(c); }

/// Longest first.
constexpr std::array<std::string_view, 38> kSymbols = {
    "<<=", ">>=", "//=", "->", ":+", "//", "<=", ">=", "==", "!=", "<<", ">>", "+=", "-=", "*=", "/=", "&=", "|=", "^=",
    "(",   ")",   "[",   "]",  "{",  "}",  ",",  ";",  ":",  "=",  "+",  "-",  "*",  "/",  "%",  "<",  ">",  "&",  "|"};
constexpr std::string_view kSingles = "^~.";

class Lexer {
 public:
  Lexer(std::string_view text, const std::shared_ptr<const std::string>& file) : text_(text), file_(file) {}

  TokenList run() {
    check_is_text();
    while (at_ < text_.size()) step();
    if (!out_.tokens.empty()) newline();
    push(TokenKind::End, "end of file", 1);
    return std::move(out_);
  }

 private:
  [[noreturn]] void fail(DiagnosticCode code, int length, std::string message, std::string help = {}) {
    Diagnostic d;
    d.code = code;
    d.location = {.file = file_, .line = line_, .column = column(), .length = length};
    d.message = std::move(message);
    d.help = std::move(help);
    throw d;
  }

  int column() const { return static_cast<int>(at_ - line_start_) + 1; }

  void check_is_text() {
    if (text_.size() > kLargestSource) {
      fail(E1005, 1, fmt::format("the source is {} bytes long; at most {} are read", text_.size(), kLargestSource),
           "split it into files and `import` them");
    }
    if (const size_t zero = text_.find('\0'); zero != std::string_view::npos) {
      fail(E1007, 1, fmt::format("this is not text: byte {} is zero", zero), "pass a .tile file");
    }
  }

  void push(TokenKind kind, std::string spelling, size_t length) {
    out_.tokens.push_back({.kind = kind,
                           .text = std::move(spelling),
                           .line = line_,
                           .column = column(),
                           .length = static_cast<int>(length)});
  }

  void newline() {
    if (!open_.empty() && open_.back() != '{') return;
    if (out_.tokens.empty()) return;
    const Token& last = out_.tokens.back();
    if (last.kind == TokenKind::Newline || last.is_word("and") || last.is_word("or") || last.is_word("not")) return;
    if (last.kind == TokenKind::Symbol && !last.is(")") && !last.is("]") && !last.is("}")) return;
    push(TokenKind::Newline, "end of line", 1);
  }

  void step() {
    const char c = text_[at_];
    if (c == '\n') {
      newline();
      ++at_, ++line_, line_start_ = at_;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++at_;
    } else if (c == '#') {
      comment();
    } else if (is_letter(c)) {
      name();
    } else if (is_digit(c)) {
      number();
    } else if (c == '"') {
      quoted();
    } else {
      symbol();
    }
  }

  void comment() {
    const size_t end = std::min(text_.find('\n', at_), text_.size());
    const bool alone = text_.substr(line_start_, at_ - line_start_).find_first_not_of(" \t") == std::string_view::npos;
    if (alone) {
      std::string_view body = text_.substr(at_ + 1, end - at_ - 1);
      if (body.starts_with(' ')) body.remove_prefix(1);
      if (body.ends_with('\r')) body.remove_suffix(1);
      out_.comments.emplace(line_, std::string(body));
    }
    at_ = end;
  }

  void name() {
    size_t end = at_;
    while (end < text_.size() && is_name_part(text_[end])) ++end;
    push(TokenKind::Name, std::string(text_.substr(at_, end - at_)), end - at_);
    at_ = end;
  }

  void number() {
    size_t end = at_;
    bool real = false;
    const bool hex = text_.substr(at_).starts_with("0x") || text_.substr(at_).starts_with("0X");
    if (hex) end += 2;
    const auto peek = [&](size_t i) { return i < text_.size() ? text_[i] : '\0'; };
    for (; end < text_.size(); ++end) {
      const char c = text_[end];
      if (!hex && c == '.' && is_digit(peek(end + 1))) {
        real = true;
      } else if (!hex && (c == 'e' || c == 'E') &&
                 (is_digit(peek(end + 1)) ||
                  ((peek(end + 1) == '-' || peek(end + 1) == '+') && is_digit(peek(end + 2))))) {
        real = true;
        ++end;
      } else if (!is_name_part(c)) {
        break;
      }
    }
    std::string spelling(text_.substr(at_, end - at_));
    push(real ? TokenKind::Real : TokenKind::Integer, spelling, end - at_);
    std::erase(spelling, '_');
    Token& token = out_.tokens.back();
    if (real) {
      parse_real(token, spelling);
    } else {
      parse_integer(token, spelling, hex);
    }
    at_ = end;
  }

  void parse_real(Token& token, const std::string& spelling) {
    char* stop = nullptr;
    token.real = std::strtod(spelling.c_str(), &stop);
    if (*stop != '\0' || !std::isfinite(token.real)) {
      fail(E1004, token.length, fmt::format("`{}` is not a number in the range of f64", token.text),
           "write `inf` for infinity");
    }
  }

  void parse_integer(Token& token, const std::string& spelling, bool hex) {
    uint64_t bits = 0;
    const char* first = spelling.data() + (hex ? 2 : 0);
    const char* last = spelling.data() + spelling.size();
    const auto [stop, error] = std::from_chars(first, last, bits, hex ? 16 : 10);
    if (error == std::errc::result_out_of_range || (error == std::errc() && stop == last && !hex && bits >> 63)) {
      fail(E1004, token.length, fmt::format("`{}` does not fit in 64 bits", token.text),
           "the largest integer is 9223372036854775807 (or 0xffffffffffffffff for u64 bits)");
    }
    if (error != std::errc() || stop != last) {
      fail(E1004, token.length, fmt::format("`{}` is not a number", token.text));
    }
    token.integer = static_cast<int64_t>(bits);
  }

  void quoted() {
    std::string body;
    size_t end = at_ + 1;
    for (; end < text_.size() && text_[end] != '"' && text_[end] != '\n'; ++end) {
      if (text_[end] != '\\') {
        body += text_[end];
        continue;
      }
      const char c = ++end < text_.size() ? text_[end] : '\0';
      if (c != 'n' && c != 't' && c != '"' && c != '\\') {
        fail(E1003, static_cast<int>(end - at_), "unknown escape in a text", "\\n \\t \\\" and \\\\ are allowed");
      }
      body += c == 'n' ? '\n' : c == 't' ? '\t' : c;
    }
    if (end >= text_.size() || text_[end] != '"') {
      fail(E1003, static_cast<int>(end - at_), "this text has no closing quote on its line");
    }
    push(TokenKind::Text, std::move(body), end + 1 - at_);
    at_ = end + 1;
  }

  void symbol() {
    const std::string_view rest = text_.substr(at_);
    for (const std::string_view s : kSymbols) {
      if (rest.starts_with(s)) return take_symbol(s);
    }
    if (kSingles.find(rest[0]) != std::string_view::npos) return take_symbol(rest.substr(0, 1));
    const auto byte = static_cast<unsigned char>(rest[0]);
    if (byte >= 0x20 && byte < 0x7f) {
      fail(E1002, 1, fmt::format("`{}` has no meaning here", rest[0]),
           rest[0] == '@' && line_start_ == at_
               ? "decorators belong to Python; a kernel begins `kernel name(A: f32[M]) -> (C: f32[M])`"
           : rest[0] == '@'  ? "write gemm(A, B, C) for a matrix product"
           : rest[0] == '!'  ? "write `not` or `!=`"
           : rest[0] == '?'  ? "a choice between two values is select(condition, yes, no)"
           : rest[0] == '\'' ? "texts stand in double quotes"
                             : "");
    }
    fail(E1002, 1, fmt::format("byte 0x{:02x} has no meaning outside comments and texts", byte),
         rest.starts_with("\xef\xbb\xbf") ? "save the file without a byte order mark"
                                          : "the language is written in ASCII");
  }

  void take_symbol(std::string_view s) {
    push(TokenKind::Symbol, std::string(s), s.size());
    const char c = s[0];
    if (c == '(' || c == '[' || c == '{') open_.push_back(c);
    if ((c == ')' || c == ']' || c == '}') && !open_.empty()) open_.pop_back();
    at_ += s.size();
  }

  std::string_view text_;
  std::shared_ptr<const std::string> file_;
  TokenList out_;
  std::string open_;
  size_t at_ = 0;
  size_t line_start_ = 0;
  int line_ = 1;
};

}  // namespace

TokenList tokenize(std::string_view text, const std::shared_ptr<const std::string>& file) {
  return Lexer(text, file).run();
}

}  // namespace tilewright::lang
