// The CUDA driver library, opened at run time: the same binary runs where no driver exists.
// Guarantees: no CUDA header or library is needed to build; every failing call becomes a Diagnostic naming the call,
// the error and what was being done; a fault that leaves the context unusable (bad address, trap, illegal instruction,
// …) is E3053 and never taken for a result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/diagnostic.h"
#include "base/tensor_map.h"

namespace tilewright::cuda {

struct Driver {
#define TW_CUDA(member, symbol, ...) int (*member)(__VA_ARGS__) = nullptr;
#include "runtime/cuda/driver.def"
#undef TW_CUDA
  /// Not in the table because a driver for older chips may lack it.
  int (*encode_tensor_map)(void*, int, uint32_t, void*, const uint64_t*, const uint64_t*, const uint32_t*,
                           const uint32_t*, int, int, int, int) = nullptr;
  int version = 0;  ///< 13000 for CUDA 13.0

  /// Opens libcuda.so.1 and initialises it, once a process. E3051: no driver or no usable device; E3052: driver too
  /// old.
  static Result<const Driver*> open();

  /// Success, or a Diagnostic: "<doing>: CUDA_ERROR_… (text)".
  Status check(int result, std::string_view doing) const;
};

/// True for results after which the context answers every call with the same error.
bool is_sticky(int result);

/// The 128 bytes a kernel takes for a tensor map. E1450 names what the hardware refuses: base alignment 16, stride
/// multiple of 16, extents.
struct alignas(64) EncodedTensorMap {
  uint64_t words[16];
};
Result<EncodedTensorMap> encode(const Driver& driver, const TensorMap& map);
/// The rules of `encode` that need no driver.
Status check_tensor_map(const TensorMap& map);

}  // namespace tilewright::cuda
