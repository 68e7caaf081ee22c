#include "lang/program_digest.h"

#include <fmt/format.h>

#include "base/diagnostic.h"
#include "base/hash.h"
#include "lang/token.h"

namespace tilewright::lang {

std::string program_digest(std::string_view text) {
  std::string all;
  try {
    const TokenList list = tokenize(text, std::make_shared<const std::string>("a program"));
    for (size_t i = 0; i < list.tokens.size(); ++i) {
      const Token& token = list.tokens[i];
      const bool is_last = i + 1 == list.tokens.size() || list.tokens[i + 1].kind == TokenKind::End;
      if (token.kind == TokenKind::Newline && is_last) continue;
      all += fmt::format("{} {} {}\n", static_cast<int>(token.kind), token.text.size(), token.text);
    }
  } catch (const Diagnostic&) {
    return sha256_hex(std::string(text));
  }
  return sha256_hex(all);
}

}  // namespace tilewright::lang
