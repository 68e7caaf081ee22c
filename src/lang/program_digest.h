// What identifies the program in `.tile` text: the digest of its tokens, so that comments, white space and line breaks
// that end nothing do not matter. Text that has no tokens (a syntax error) is identified by its bytes.
#pragma once

#include <string>
#include <string_view>

namespace tilewright::lang {

std::string program_digest(std::string_view text);

}  // namespace tilewright::lang
