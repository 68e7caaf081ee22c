// How the words of references are called: positional arguments and names.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "kernels/reference.h"
#include "lang/foreign.h"

namespace tilewright::kernels {
namespace {

using enum DiagnosticCode;
using lang::Reference;

struct Usage {
  std::string_view word;
  size_t fewest, most;
  std::string_view names;
};
constexpr Usage kUsages[] = {
#define TW_REFERENCE_WORD(word, fewest, most, names, ...) {#word, fewest, most, names},
#include "kernels/reference_words.def"
#undef TW_REFERENCE_WORD
};

const Usage* usage_of(std::string_view word) {
  const auto* found = std::ranges::find(kUsages, word, &Usage::word);
  return found == std::end(kUsages) ? nullptr : found;
}

bool is_listed(std::string_view list, std::string_view name) {
  for (size_t at = list.find(name); at != std::string_view::npos; at = list.find(name, at + 1)) {
    const size_t end = at + name.size();
    if ((at == 0 || list[at - 1] == ' ') && (end == list.size() || list[end] == ' ')) return true;
  }
  return false;
}

[[noreturn]] void refuse_at(const Reference& r, std::string message, std::string help) {
  Diagnostic d;
  d.code = E1080;
  d.location = r.location;
  d.message = std::move(message);
  d.help = std::move(help);
  throw d;
}

void check_call(const Reference& r) {
  const Usage* usage = usage_of(r.name);
  if (!usage) {
    std::vector<std::string> known;
    for (const Usage& u : kUsages) known.emplace_back(u.word);
    const std::string near = lang::closest(r.name, known);
    refuse_at(r, fmt::format("`{}` is not a word of references", r.name),
              near.empty() ? "docs/grammar.md lists them" : fmt::format("did you mean `{}`?", near));
  }
  if (r.arguments.size() < usage->fewest || r.arguments.size() > usage->most) {
    refuse_at(r,
              fmt::format("`{}` takes {} argument{}, got {}", r.name,
                          usage->fewest == usage->most ? fmt::format("{}", usage->most)
                                                       : fmt::format("{} to {}", usage->fewest, usage->most),
                          usage->most == 1 ? "" : "s", r.arguments.size()),
              "docs/grammar.md lists the words of references");
  }
  for (const auto& [label, value] : r.named) {
    if (is_listed(usage->names, label)) continue;
    refuse_at(r, fmt::format("`{}` has no argument `{}`", r.name, label),
              usage->names.empty() ? "it takes positional arguments only"
                                   : fmt::format("its named arguments are: {}", usage->names));
  }
}

/// Words after `name =` are of the word called, not arguments.
void check_all(const Reference& r, std::span<const std::string> names) {
  if (r.kind == Reference::Kind::Name && r.name != "none" && std::ranges::find(names, r.name) == names.end()) {
    const std::string near = lang::closest(r.name, names);
    refuse_at(
        r, fmt::format("`{}` is not an argument or dimension of this kernel", r.name),
        near.empty() ? fmt::format("it has: {}", fmt::join(names, ", ")) : fmt::format("did you mean `{}`?", near));
  }
  if (r.kind != Reference::Kind::Call) return;
  check_call(r);
  for (const Reference& a : r.arguments) check_all(a, names);
}

}  // namespace

Status check_words(const Reference& reference, std::span<const std::string> names) {
  try {
    check_all(reference, names);
    return {};
  } catch (Diagnostic& d) {
    return std::unexpected(std::move(d));
  }
}

}  // namespace tilewright::kernels
