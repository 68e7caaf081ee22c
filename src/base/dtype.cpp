#include "base/dtype.h"

#include <array>

namespace tilewright {
namespace {

constexpr std::array kTable = {
#define TW_DTYPE(name, spelling, bits, kind, torch) DTypeInfo{DType::name, spelling, bits, DTypeKind::kind, torch},
#include "base/dtype.def"
#undef TW_DTYPE
};

}  // namespace

const DTypeInfo& info(DType dtype) { return kTable[static_cast<size_t>(dtype)]; }

std::optional<DType> parse_dtype(std::string_view text) {
  constexpr std::string_view kTorch = "torch.";
  if (text.starts_with(kTorch)) text.remove_prefix(kTorch.size());
  for (const DTypeInfo& row : kTable) {
    if (row.name == text || row.torch_name == text) return row.dtype;
  }
  return std::nullopt;
}

}  // namespace tilewright
