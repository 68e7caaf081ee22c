// fold_clears (tile -> tile)
//
//   fill 0 {dst = %acc}
//   gemm {…, c = %acc, accumulate = true}      =>   gemm {…, c = %acc, accumulate = false}
//
// when both cover the whole tile and nothing between them mentions it. A gemm of depth 0 still clears.
// Plant fold_clears:1 folds any constant.
#pragma once

#include "transform/pass.h"

namespace tilewright::transform {

bool fold_clears(ir::Kernel& kernel, PassContext& context);

}  // namespace tilewright::transform
