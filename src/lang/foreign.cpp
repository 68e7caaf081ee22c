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
#include "lang/foreign.def"
#undef TW_FOREIGN
};

}  // namespace

std::optional<std::string> foreign_hint(std::string_view name) {
  const std::string_view last = name.substr(name.rfind('.') + 1);
  const std::string_view bare = last.substr(std::min(last.find_first_not_of('_'), last.size()));
  const std::string_view first = name.substr(0, name.find('.'));
  for (const Row& row : kRows) {
    if (row.there != name && row.there != last && row.there != bare && row.there != first) continue;
    const bool is_remark = row.here.starts_with("not ");
    return (is_remark ? "" : "spelled here as: ") + std::string(row.here);
  }
  if (name.size() == last.size()) return std::nullopt;
  // The same word behind a prefix: T.reduce_max, tl.exp.
  for (const auto& known : {operation_names(), function_names()}) {
    if (std::ranges::find(known, last) != known.end())
      return fmt::format("spelled here as: {}(…), without `{}`", last, name.substr(0, name.size() - last.size()));
  }
  return std::nullopt;
}

}  // namespace tilewright::lang
