// Makes a failing case simpler: shorter lists of smaller choices that still fail the same way.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace tilewright::fuzz {

struct ShrinkOptions {
  int tries = 400;  ///< how many cases may be run
};

/// `still_fails` runs the case of a list of choices. Returns the simplest failing list found (the given one at worst).
std::vector<uint32_t> shrink(std::vector<uint32_t> choices,
                             const std::function<bool(const std::vector<uint32_t>&)>& still_fails,
                             const ShrinkOptions& options = {});

}  // namespace tilewright::fuzz
