// The rules for a kernel's own reference, whose every value comes with a bound (kernels/reference.h):
//
//   pattern   NaN and infinities are where the oracle has them; a value within its bound of the overflow threshold may
//             differ
//   absolute  |y − y64| ≤ 2·bound + s + u_out·(|y64| + 2·bound) for every value, s = 16·u_acc·(|y64| + rms(y64)): the
//             kernel's formula may round where the expression does not; called vacuous, in writing, where half of the
//             bounds exceed a tenth of rms(y64)
//   relative  with 1000 values or more: max|y − y64| ≤ 4·max|yD − y64| + 4·u·max|y64| and the same of RMSE and rms,
//             yD the expression in the declared types, u the coarser of u_acc and u_out
//   exact     integer outputs are within their bound, which is 0 unless what is rounded was itself computed
//   undecided at most a tenth of the values may hang on a comparison nearer than rounding
#pragma once

#include "bench/oracle/judge.h"

namespace tilewright::bench {

Judgement judge_expression(const JudgeInput& input);

}  // namespace tilewright::bench
