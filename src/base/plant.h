// A planted mistake: `--plant=<pass>:<n>` makes one pass take one deliberately wrong choice, so that tests can show that
// the fuzzer finds it. A pass asks the options object it was given (never a global):
//
//   const int64_t guard = options.plant.is("vectorize_parallel", 1) ? extent - 1 : extent;  // plant 1: last lane lost
//
// Numbers start at 1 and are documented where they are asked. A default-constructed Plant plants nothing.
#pragma once

#include <string>
#include <string_view>

#include "base/diagnostic.h"

namespace tilewright {

struct Plant {
  std::string pass;
  int number = 0;

  bool is(std::string_view pass_name, int n) const { return number == n && pass == pass_name; }
  bool is_empty() const { return number == 0; }
};

/// "tile_gemm:2". Error E1210 says what is wrong with the text.
Result<Plant> parse_plant(std::string_view text);
std::string to_string(const Plant& plant);

}  // namespace tilewright
