#include "target/gpu_matrix.h"

namespace tilewright::target {
namespace {

constexpr MmaRow kMma[] = {
#define TW_MMA(name, m, n, k, a, b, c, ra, rb, rc, arch) \
  {#name, m, n, k, Scalar::a, Scalar::b, Scalar::c, ra, rb, rc, arch},
#define TW_WGMMA(...)
#include "target/gpu_matrix.def"
#undef TW_MMA
#undef TW_WGMMA
};
constexpr WgmmaRow kWgmma[] = {
#define TW_MMA(...)
#define TW_WGMMA(name, k, a, b, c, transposable) {#name, k, Scalar::a, Scalar::b, Scalar::c, transposable},
#include "target/gpu_matrix.def"
#undef TW_MMA
#undef TW_WGMMA
};

constexpr int kSwizzleCode[] = {0, 3, 2, 1};  // None, B32, B64, B128 in bits 62-63

}  // namespace

const MmaRow& row(Mma mma) { return kMma[static_cast<int>(mma)]; }
const WgmmaRow& row(Wgmma wgmma) { return kWgmma[static_cast<int>(wgmma)]; }

Cell mma_a_cell(int bits, int lane, int r, int e) {
  const int per_register = bits >= 32 ? 1 : 32 / bits;
  return {lane / 4 + 8 * (r & 1), (r >> 1) * 4 * per_register + (lane % 4) * per_register + e};
}
Cell mma_b_cell(int bits, int lane, int r, int e) {
  const int per_register = bits >= 32 ? 1 : 32 / bits;
  return {r * 4 * per_register + (lane % 4) * per_register + e, lane / 4};
}
Cell mma_c_cell(int lane, int r) { return {lane / 4 + 8 * ((r >> 1) & 1), 8 * (r >> 2) + (lane % 4) * 2 + (r & 1)}; }

uint64_t encode(const MatrixDescriptor& d) {
  return (uint64_t{d.address >> 4} & 0x3fff) | (uint64_t{(d.leading >> 4) & 0x3fff} << 16) |
         (uint64_t{(d.stride >> 4) & 0x3fff} << 32) |
         (static_cast<uint64_t>(kSwizzleCode[static_cast<int>(d.swizzle)]) << 62);
}
MatrixDescriptor decode(uint64_t bits) {
  MatrixDescriptor d;
  d.address = static_cast<uint32_t>(bits & 0x3fff) << 4;
  d.leading = static_cast<uint32_t>((bits >> 16) & 0x3fff) << 4;
  d.stride = static_cast<uint32_t>((bits >> 32) & 0x3fff) << 4;
  constexpr Swizzle modes[] = {Swizzle::None, Swizzle::B128, Swizzle::B64, Swizzle::B32};
  d.swizzle = modes[bits >> 62];
  return d;
}

uint32_t k_major_address(const MatrixDescriptor& d, int mn, int k_byte) {
  const auto r = static_cast<uint32_t>(mn), kb = static_cast<uint32_t>(k_byte);
  if (d.swizzle == Swizzle::None)
    return d.address + (r % 8) * 16 + (r / 8) * d.stride + (kb / 16) * d.leading + kb % 16;
  const auto pitch = static_cast<uint32_t>(swizzle_bytes(d.swizzle));
  return swizzled(d.swizzle, d.address + (r % 8) * pitch + (r / 8) * d.stride + kb);
}

uint32_t mn_major_address(const MatrixDescriptor& d, int mn_byte, int k) {
  const auto mb = static_cast<uint32_t>(mn_byte), s = static_cast<uint32_t>(k);
  const auto span = static_cast<uint32_t>(swizzle_bytes(d.swizzle));
  const uint32_t along_mn = d.swizzle == Swizzle::None ? d.stride : d.leading;
  const uint32_t along_k = d.swizzle == Swizzle::None ? d.leading : d.stride;
  return swizzled(d.swizzle, d.address + mb % span + (mb / span) * along_mn + (s % 8) * span + (s / 8) * along_k);
}

}  // namespace tilewright::target
