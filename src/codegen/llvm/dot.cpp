#include "codegen/llvm/dot.h"

#include <llvm/IR/IntrinsicsX86.h>

namespace tilewright::codegen {

llvm::Value* lower_dot(llvm::IRBuilder<>& b, llvm::Value* x, llvm::Value* y, llvm::Value* sum) {
  const unsigned width = static_cast<unsigned>(sum->getType()->getPrimitiveSizeInBits().getFixedValue());
  if (width != 512 && width != 256) return nullptr;
  const bool wide = width == 512;
  if (x->getType()->getScalarSizeInBits() == 8) {
    const auto id = wide ? llvm::Intrinsic::x86_avx512_vpdpbusd_512 : llvm::Intrinsic::x86_avx512_vpdpbusd_256;
    return b.CreateIntrinsic(id, {}, {sum, b.CreateBitCast(y, sum->getType()), b.CreateBitCast(x, sum->getType())});
  }
  const auto id = wide ? llvm::Intrinsic::x86_avx512_pmaddw_d_512 : llvm::Intrinsic::x86_avx2_pmadd_wd;
  return b.CreateAdd(sum, b.CreateIntrinsic(id, {}, {x, y}));
}

}  // namespace tilewright::codegen
