// forward_copies (tile -> tile)
//
//   copy {src = %A[%y * 64 :+ 64, %k * 32 :+ 32], dst = %A_s}         gemm {a = %A[%y * 64 :+ 64, %k * 32 :+ 32], b =
//   …} gemm {a = %A_s, b = …}                                       =>
//
// A gemm operand that is a whole shared tile, last written by a plain copy of an unwritten global tensor in the same
// region, reads the tensor instead; the tile goes when nothing else uses it. Reads out of bounds give 0 either way.
// Plant forward_copies:1 forwards the first start of the source as 0.
#pragma once

#include "transform/pass.h"

namespace tilewright::transform {

bool forward_copies(ir::Kernel& kernel, PassContext& context);

}  // namespace tilewright::transform
