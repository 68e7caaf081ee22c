// Hints: words of the tables in ir/hints.h, and numbers.
#include <fmt/format.h>

#include <bit>

#include "lang/elaborator.h"

namespace tilewright::lang {

using enum DiagnosticCode;

template <typename E>
E Elaborator::hint(const Expr* expr, std::string_view what) {
  if (!expr) return E{};
  const Operand value = eval_static(*expr, fmt::format("the hint `{}`", what));
  const auto* word = value.as<std::string>();
  std::string allowed;
  for (int i = 1; !ir::name(static_cast<E>(i)).empty(); ++i) {
    if (word && *word == ir::name(static_cast<E>(i))) return static_cast<E>(i);
    allowed += fmt::format("{}\"{}\"", allowed.empty() ? "" : ", ", ir::name(static_cast<E>(i)));
  }
  fail(E1110, expr->location,
       word ? fmt::format("`{}` has no value \"{}\"", what, *word)
            : fmt::format("`{}` is a text, got {}", what, describe(value)),
       fmt::format("allowed: {}; without the hint the compiler chooses", allowed));
}
template ir::MatrixUnit Elaborator::hint(const Expr*, std::string_view);
template ir::CacheHint Elaborator::hint(const Expr*, std::string_view);
template ir::LayoutHint Elaborator::hint(const Expr*, std::string_view);

int Elaborator::vector_hint(const Expr* expr) {
  if (!expr) return 0;
  const int64_t n = static_integer(*expr, "the hint `vector`");
  if (n >= 1 && n <= 64 && std::has_single_bit(static_cast<uint64_t>(n))) return static_cast<int>(n);
  fail(E1110, expr->location, fmt::format("vector = {} elements", n),
       "allowed: 1, 2, 4, 8, 16, 32, 64; without the hint the compiler chooses");
}

}  // namespace tilewright::lang
