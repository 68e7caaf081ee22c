// TW_NAME_FUNCTION(type, list) defines `name(type)` from the list of an enumeration's words: LIST(X) with X(enumerator,
// text). For the source file of the enumeration alone.
#pragma once

#include <string_view>

#define TW_NAME_CASE(enumerator, text) \
  case Enum::enumerator:               \
    return text;
#define TW_NAME_FUNCTION(type, list)  \
  std::string_view name(type v) {     \
    using Enum = type;                \
    switch (v) { list(TW_NAME_CASE) } \
    return {};                        \
  }
