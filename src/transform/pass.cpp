#include "transform/pass.h"

#include <algorithm>

#include "ir/verify.h"
#include "transform/fold_clears.h"
#include "transform/forward_copies.h"
#include "transform/join_gemm_steps.h"

namespace tilewright::transform {

const std::vector<PassInfo>& passes() {
  static const std::vector<PassInfo> kPasses = {
#define TW_PASS(function, text) {#function, &function, text},
#include "transform/passes.def"
#undef TW_PASS
  };
  return kPasses;
}

Status run_passes(ir::Kernel& kernel, const PassOptions& options, std::vector<Note>& notes) {
  PassContext context{options, notes};
  for (const PassInfo& pass : passes()) {
    if (std::ranges::find(options.disabled, pass.name) != options.disabled.end()) continue;
    pass.run(kernel, context);
  }
  return options.verify ? ir::verify(kernel) : Status{};
}

}  // namespace tilewright::transform
