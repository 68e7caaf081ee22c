// join_gemm_steps (tile -> tile)
//
//   pipelined {count = %n} (%k) {
//     gemm {a = %A[%y * 64 :+ 64, %k * 32 :+ 32], b = %B[…], c = %acc}     =>  gemm {a = %A[%y * 64 :+ 64, 0 :+ %n *
//     32], …}
//   }
//
// A loop whose body is one accumulating gemm, whose operands move along the depth by exactly their extent, becomes one
// gemm over the whole depth. The planner then chooses the cache blocks, whatever block_K says.
// Plant join_gemm_steps:1 drops the last step.
#pragma once

#include "transform/pass.h"

namespace tilewright::transform {

bool join_gemm_steps(ir::Kernel& kernel, PassContext& context);

}  // namespace tilewright::transform
