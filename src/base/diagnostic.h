// What a user is told when something is refused: a code, a place, what was found, what is allowed, what to do.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright {

// Every number of the four families is an enumerator, so that adding a row to diagnostic.def, where codes get their names,
// recompiles one file. A code without a row is refused by tests/project.
#define TW_TEN_CODES(p) E##p##0, E##p##1, E##p##2, E##p##3, E##p##4, E##p##5, E##p##6, E##p##7, E##p##8, E##p##9
#define TW_HUNDRED_CODES(p)                                                                                         \
  TW_TEN_CODES(p##0), TW_TEN_CODES(p##1), TW_TEN_CODES(p##2), TW_TEN_CODES(p##3), TW_TEN_CODES(p##4),                 \
      TW_TEN_CODES(p##5), TW_TEN_CODES(p##6), TW_TEN_CODES(p##7), TW_TEN_CODES(p##8), TW_TEN_CODES(p##9)
#define TW_THOUSAND_CODES(p)                                                                                        \
  TW_HUNDRED_CODES(p##0), TW_HUNDRED_CODES(p##1), TW_HUNDRED_CODES(p##2), TW_HUNDRED_CODES(p##3),                     \
      TW_HUNDRED_CODES(p##4), TW_HUNDRED_CODES(p##5), TW_HUNDRED_CODES(p##6), TW_HUNDRED_CODES(p##7),                 \
      TW_HUNDRED_CODES(p##8), TW_HUNDRED_CODES(p##9)
// clang-format off
enum class DiagnosticCode : uint16_t {
  FamilyOf1000 = 999, TW_THOUSAND_CODES(1),
  FamilyOf2000 = 1999, TW_THOUSAND_CODES(2),
  FamilyOf3000 = 2999, TW_THOUSAND_CODES(3),
  FamilyOf9000 = 8999, TW_THOUSAND_CODES(9),
};
// clang-format on
#undef TW_TEN_CODES
#undef TW_HUNDRED_CODES
#undef TW_THOUSAND_CODES

std::string code_text(DiagnosticCode code);       ///< "E1001"
std::string_view name(DiagnosticCode code);  ///< "unexpected_token"; empty for a code without a row

/// A place in a source: 1-based line and column of a token `length` bytes long. `file` is shared by all tokens of a
/// file. `caller` is the place this one was reached from (an inlined `fn`, the embedding C++), or null.
struct Location {
  std::shared_ptr<const std::string> file;
  int line = 0;
  int column = 0;
  int length = 1;
  std::shared_ptr<const Location> caller;

  bool is_known() const { return line > 0; }
};

/// "matmul.tile:12:5", or "<unknown>".
std::string to_string(const Location& location);

enum class Severity : uint8_t { Note, Warning, Error };

struct Diagnostic {
  DiagnosticCode code = DiagnosticCode::E9001;
  Severity severity = Severity::Error;
  Location location;
  std::string message;  ///< one sentence: what, got, expected
  std::string help;     ///< what to do; may be empty
  struct Note {
    Location location;
    std::string text;
  };
  std::vector<Note> notes;
};

/// Text as a compiler prints it: `file:line:col: error[E1001]: message`, the source line with a caret when `source`
/// (the file's whole text) is given, notes, help.
std::string render(const Diagnostic& diagnostic, std::string_view source = {});

template <typename T>
using Result = std::expected<T, Diagnostic>;
using Status = Result<void>;

/// Builds the error side of a Result: `return fail(DiagnosticCode::E3101, "…", "…")`.
std::unexpected<Diagnostic> fail(DiagnosticCode code, std::string message, std::string help = {});
std::unexpected<Diagnostic> fail_at(DiagnosticCode code, const Location& location, std::string message,
                                    std::string help = {});

}  // namespace tilewright
