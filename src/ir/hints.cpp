#include "ir/hints.h"

#include "ir/enum_names.h"

namespace tilewright::ir {

TW_NAME_FUNCTION(MatrixUnit, TW_MATRIX_UNITS)
TW_NAME_FUNCTION(CacheHint, TW_CACHE_HINTS)
TW_NAME_FUNCTION(LayoutHint, TW_LAYOUT_HINTS)

std::string to_text(const Hints& hints) {
  std::string out;
  const auto add = [&](std::string_view field, const std::string& value) {
    out += (out.empty() ? "" : ", ") + std::string(field) + " = " + value;
  };
  const auto quoted = [](std::string_view text) { return '"' + std::string(text) + '"'; };
  if (hints.instruction != MatrixUnit::Any) add("instruction", quoted(name(hints.instruction)));
  if (hints.avoid != MatrixUnit::Any) add("avoid", quoted(name(hints.avoid)));
  if (hints.cache != CacheHint::Default) add("cache", quoted(name(hints.cache)));
  if (hints.vector) add("vector", std::to_string(hints.vector));
  if (hints.layout != LayoutHint::Inferred) add("layout", quoted(name(hints.layout)));
  return out;
}

}  // namespace tilewright::ir
