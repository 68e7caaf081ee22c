// The order in which rivals run: a random cyclic Latin square. In every k rounds each of k rivals takes each position
// once, so a drift of the machine falls on all alike; base order and row order are random (Fisher and Yates,
// Statistical Tables, on Latin squares).
#pragma once

#include <cstdint>
#include <vector>

namespace tilewright::measure {

/// One permutation of 0…rivals−1 per round.
std::vector<std::vector<int>> latin_rounds(int rivals, int rounds, uint64_t seed);

}  // namespace tilewright::measure
