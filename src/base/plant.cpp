#include "base/plant.h"

#include <fmt/format.h>

#include <charconv>

namespace tilewright {

Result<Plant> parse_plant(std::string_view text) {
  const size_t colon = text.find(':');
  Plant plant;
  if (colon != std::string_view::npos && colon > 0) {
    plant.pass = text.substr(0, colon);
    const char* end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data() + colon + 1, end, plant.number);
    if (parsed.ec == std::errc() && parsed.ptr == end && plant.number > 0) return plant;
  }
  return fail(DiagnosticCode::E1210, fmt::format("'{}' does not name a planted mistake", text),
              "write PASS:N with N from 1, for example vectorize_parallel:1");
}

std::string to_string(const Plant& plant) { return fmt::format("{}:{}", plant.pass, plant.number); }

}  // namespace tilewright
