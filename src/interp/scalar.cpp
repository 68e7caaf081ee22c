#include "interp/scalar.h"

#include <bit>

namespace tilewright::interp {

uint64_t bits_of(DType dtype, double real, int64_t integer) {
  switch (dtype) {
    case DType::F64: return std::bit_cast<uint64_t>(real);
    case DType::F32: return std::bit_cast<uint32_t>(static_cast<float>(real));
    case DType::F16: return f16_from(real);
    case DType::BF16: return bf16_from(real);
    case DType::E4M3: return e4m3_from(real);
    case DType::E5M2: return e5m2_from(real);
    default: break;
  }
  const int width = bits(dtype);
  return width == 64 ? static_cast<uint64_t>(integer) : static_cast<uint64_t>(integer) & ((uint64_t{1} << width) - 1);
}

void value_of_bits(DType dtype, uint64_t bits, double& real, int64_t& integer) {
  switch (dtype) {
    case DType::F64: real = std::bit_cast<double>(bits); return;
    case DType::F32: real = std::bit_cast<float>(static_cast<uint32_t>(bits)); return;
    case DType::F16: real = f16_to_float(static_cast<uint16_t>(bits)); return;
    case DType::BF16: real = bf16_to_float(static_cast<uint16_t>(bits)); return;
    case DType::E4M3: real = e4m3_to_float(static_cast<uint8_t>(bits)); return;
    case DType::E5M2: real = e5m2_to_float(static_cast<uint8_t>(bits)); return;
    default: integer = wrap(dtype, static_cast<int64_t>(bits)); return;
  }
}

}  // namespace tilewright::interp
