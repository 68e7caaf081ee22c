#include "measure/random.h"

#include <cmath>
#include <numbers>

namespace tilewright::measure {

uint64_t Random::next() {
  uint64_t z = state_ += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

uint64_t Random::below(uint64_t bound) {
  const uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
  uint64_t value = next();
  while (value >= limit) value = next();
  return value % bound;
}

double Random::uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

double Random::normal() {
  const double radius = std::sqrt(-2 * std::log(1 - uniform()));
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

}  // namespace tilewright::measure
