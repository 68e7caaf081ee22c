#include "measure/latin_square.h"

#include <numeric>

#include "measure/random.h"

namespace tilewright::measure {

std::vector<std::vector<int>> latin_rounds(int rivals, int rounds, uint64_t seed) {
  Random random(seed);
  std::vector<std::vector<int>> out;
  std::vector<int> base(static_cast<size_t>(rivals)), shifts(static_cast<size_t>(rivals));
  while (static_cast<int>(out.size()) < rounds) {
    std::iota(base.begin(), base.end(), 0);
    std::iota(shifts.begin(), shifts.end(), 0);
    random.shuffle(std::span<int>(base));
    random.shuffle(std::span<int>(shifts));
    for (int shift : shifts) {
      if (static_cast<int>(out.size()) == rounds) break;
      std::vector<int>& order = out.emplace_back();
      for (int i = 0; i < rivals; ++i) order.push_back(base[static_cast<size_t>((i + shift) % rivals)]);
    }
  }
  return out;
}

}  // namespace tilewright::measure
