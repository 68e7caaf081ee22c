// The element types of tensors and tiles, as one table (dtype.def).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tilewright {

enum class DType : uint8_t {
#define TW_DTYPE(name, spelling, bits, kind, torch) name,
#include "base/dtype.def"
#undef TW_DTYPE
};

enum class DTypeKind : uint8_t { Bool, Int, UInt, Float };

/// One row of dtype.def. `bits` is the storage width of one element.
struct DTypeInfo {
  DType dtype;
  std::string_view name;
  int bits;
  DTypeKind kind;
  std::string_view torch_name;
};

const DTypeInfo& info(DType dtype);
inline std::string_view name(DType dtype) { return info(dtype).name; }
inline int bits(DType dtype) { return info(dtype).bits; }
inline int bytes(DType dtype) { return info(dtype).bits / 8; }
inline bool is_float(DType dtype) { return info(dtype).kind == DTypeKind::Float; }
inline bool is_signed_int(DType dtype) { return info(dtype).kind == DTypeKind::Int; }
inline bool is_unsigned_int(DType dtype) { return info(dtype).kind == DTypeKind::UInt; }
inline bool is_int(DType dtype) { return is_signed_int(dtype) || is_unsigned_int(dtype); }

/// True for floats that only exist in memory (f16, bf16, e4m3, e5m2): arithmetic on them happens in f32.
inline bool is_storage_float(DType dtype) { return is_float(dtype) && bits(dtype) < 32; }

/// The type in which arithmetic on `dtype` happens: f32 for storage floats, itself otherwise.
inline DType compute_type(DType dtype) { return is_storage_float(dtype) ? DType::F32 : dtype; }

/// Accepts our spelling and PyTorch's ("f16", "float16", "torch.float16").
std::optional<DType> parse_dtype(std::string_view text);

}  // namespace tilewright
