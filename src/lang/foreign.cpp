#include "lang/foreign.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "lang/function.h"
#include "lang/operation.h"

namespace tilewright::lang {
namespace {

struct Row {
  std::string_view there;
  std::string_view here;
};
constexpr std::array kRows = {
#define TW_FOREIGN(there, here) Row{there, here},
#define TW_FOREIGN_ARGUMENT(there, here)
#include "lang/foreign.def"
#undef TW_FOREIGN
#undef TW_FOREIGN_ARGUMENT
};
constexpr std::array kArguments = {
#define TW_FOREIGN(there, here)
#define TW_FOREIGN_ARGUMENT(there, here) Row{there, here},
#include "lang/foreign.def"
#undef TW_FOREIGN
#undef TW_FOREIGN_ARGUMENT
};

std::string hint_text(std::string_view here) {
  return (here.starts_with("not ") ? "" : "spelled here as: ") + std::string(here);
}

}  // namespace

std::optional<std::string> foreign_hint(std::string_view name) {
  const std::string_view last = name.substr(name.rfind('.') + 1);
  const std::string_view bare = last.substr(std::min(last.find_first_not_of('_'), last.size()));
  const std::string_view first = name.substr(0, name.find('.'));
  for (const Row& row : kRows) {
    if (row.there != name && row.there != last && row.there != bare && row.there != first) continue;
    return hint_text(row.here);
  }
  if (name.size() == last.size()) return std::nullopt;
  // The same word behind a prefix: T.reduce_max, tl.exp.
  for (const auto& known : {operation_names(), function_names()}) {
    if (std::ranges::find(known, last) != known.end())
      return fmt::format("spelled here as: {}(…), without `{}`", last, name.substr(0, name.size() - last.size()));
  }
  return std::nullopt;
}

std::optional<std::string> foreign_argument_hint(std::string_view label) {
  for (const Row& row : kArguments) {
    if (row.there == label) return hint_text(row.here);
  }
  return std::nullopt;
}

std::string symbol_hint(std::string_view first, std::string_view second) {
  struct Pair {
    std::string_view first, second, here;
  };
  static constexpr std::array kPairs = {
      Pair{"*", "*", "a power is pow(x, y), a square x * x"},
      Pair{"&", "&", "spelled here as: a and b"},
      Pair{"|", "|", "spelled here as: a or b"},
      Pair{"==", "=", "equal is `==`"},
      Pair{"+", "=", "write `x += 1`, without a space"},
      Pair{"<", "-", "write `x = value`"},
  };
  for (const Pair& pair : kPairs) {
    if (pair.first == first && pair.second == second) return std::string(pair.here);
  }
  return {};
}

}  // namespace tilewright::lang
