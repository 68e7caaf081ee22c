// The line a kernel's `print` gives: its words with the values put in.
//
// The words hold one place a value, in order: `{f}` a float, `{i}` a signed integer, `{u}` an unsigned one, `{b}` a
// bool; `{{` is a brace. Values without a place are appended.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tilewright {

std::string fill_print_text(std::string_view words, std::span<const std::string> values);

/// Values as generated code gives them: floats as the bits of a double, everything else as an i64.
std::string fill_print_text(std::string_view words, std::span<const int64_t> bits);

}  // namespace tilewright
