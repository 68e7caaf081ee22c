// What a user is told when something is refused: a code, a place, what was found, what is allowed, what to do.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright {

enum class DiagnosticCode : uint16_t {
#define TW_DIAGNOSTIC(code, name) code,
#include "base/diagnostic.def"
#undef TW_DIAGNOSTIC
};

std::string_view code_text(DiagnosticCode code);  ///< "E1001"
std::string_view name(DiagnosticCode code);       ///< "unexpected_token"

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
