// Minimax polynomials of the exponentials in f32, shared by the planner (any vector instructions) and the code
// generator (AVX-512). Fits by Remez's exchange.
#pragma once

#include <array>

namespace tilewright::target {

/// 2^r = 1 + r·P(r) on [-1/2, 1/2].
inline constexpr std::array kExp2F32 = {0.693147188032,   0.240226510841,  0.0555035709429,
                                        0.00961803078251, 0.0013390871338, 0.000154697319775};
/// e^r = 1 + r + r²·Q(r) on [-ln2/2, ln2/2].
inline constexpr std::array kExpF32 = {0.500000002787, 0.166665748898, 0.0416663684982, 0.00836352414655,
                                       0.00139417164375};
/// ln2 in two parts, the first with so few bits that whole multiples of it are exact.
inline constexpr double kLn2High = 0.693145751953125, kLn2Low = 0.000001428606820309417232;

}  // namespace tilewright::target
