// The seed of a random test: printed, and taken back from TILEWRIGHT_TEST_SEED.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace tilewright::test {

inline uint64_t seed(uint64_t usual) {
  const char* text = std::getenv("TILEWRIGHT_TEST_SEED");
  const uint64_t value = text != nullptr ? std::strtoull(text, nullptr, 10) : usual;
  std::printf("seed %llu (TILEWRIGHT_TEST_SEED to change)\n", static_cast<unsigned long long>(value));
  return value;
}

}  // namespace tilewright::test
