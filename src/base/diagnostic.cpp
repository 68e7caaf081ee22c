#include "base/diagnostic.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright {
namespace {

std::string_view severity_text(Severity severity) {
  switch (severity) {
    case Severity::Note: return "note";
    case Severity::Warning: return "warning";
    case Severity::Error: return "error";
  }
  return "error";
}

std::string_view source_line(std::string_view source, int line) {
  for (int i = 1; i < line; ++i) {
    const size_t end = source.find('\n');
    if (end == std::string_view::npos) return {};
    source.remove_prefix(end + 1);
  }
  return source.substr(0, source.find('\n'));
}

/// The source line and a caret under the token; control bytes show as '?', long lines are cut around the token.
std::string caret_lines(const Location& location, std::string_view source) {
  constexpr size_t kWidth = 160;
  const std::string_view line = source_line(source, location.line);
  if (line.empty()) return {};
  const size_t column = std::min<size_t>(location.column > 0 ? location.column - 1 : 0, line.size());
  const size_t begin = column > kWidth / 2 ? column - kWidth / 2 : 0;
  std::string shown(line.substr(begin, kWidth));
  for (char& c : shown) {
    if (c == '\t') c = ' ';
    if (static_cast<unsigned char>(c) < 32 || c == 127) c = '?';
  }
  const size_t room = shown.size() > column - begin ? shown.size() - (column - begin) : 1;
  const size_t length = std::clamp<size_t>(location.length > 0 ? location.length : 1, 1, std::max<size_t>(room, 1));
  const std::string gutter = fmt::format("{:>5} | ", location.line);
  return fmt::format("{}{}\n      | {}{}{}\n", gutter, shown, std::string(column - begin, ' '), "^",
                     std::string(length - 1, '~'));
}

}  // namespace

std::string code_text(DiagnosticCode code) { return fmt::format("E{}", static_cast<int>(code)); }

std::string_view name(DiagnosticCode code) {
  switch (code) {
#define TW_DIAGNOSTIC(number, text) \
  case DiagnosticCode::number: return #text;
#include "base/diagnostic.def"
#undef TW_DIAGNOSTIC
    default: return {};
  }
}

std::string to_string(const Location& location) {
  if (!location.is_known()) return location.file ? *location.file : "<unknown>";
  return fmt::format("{}:{}:{}", location.file ? *location.file : "<input>", location.line, location.column);
}

std::string render(const Diagnostic& diagnostic, std::string_view source) {
  const bool placed = diagnostic.location.is_known() || diagnostic.location.file;
  std::string out = placed ? to_string(diagnostic.location) + ": " : std::string();
  out +=
      fmt::format("{}[{}]: {}\n", severity_text(diagnostic.severity), code_text(diagnostic.code), diagnostic.message);
  if (!source.empty() && diagnostic.location.is_known()) out += caret_lines(diagnostic.location, source);
  for (const Location* at = diagnostic.location.caller.get(); at; at = at->caller.get()) {
    out += fmt::format("  called from {}\n", to_string(*at));
  }
  for (const Diagnostic::Note& note : diagnostic.notes) {
    out += note.location.is_known() ? fmt::format("  note: {}: {}\n", to_string(note.location), note.text)
                                    : fmt::format("  note: {}\n", note.text);
  }
  if (!diagnostic.help.empty()) out += fmt::format("  help: {}\n", diagnostic.help);
  return out;
}

std::unexpected<Diagnostic> fail(DiagnosticCode code, std::string message, std::string help) {
  return fail_at(code, Location{}, std::move(message), std::move(help));
}

std::unexpected<Diagnostic> fail_at(DiagnosticCode code, const Location& location, std::string message,
                                    std::string help) {
  Diagnostic diagnostic;
  diagnostic.code = code;
  diagnostic.location = location;
  diagnostic.message = std::move(message);
  diagnostic.help = std::move(help);
  return std::unexpected(std::move(diagnostic));
}

}  // namespace tilewright
