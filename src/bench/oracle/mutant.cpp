#include "bench/oracle/mutant.h"

#include <array>

namespace tilewright::bench {
namespace {

constexpr std::array kMutants = {
#define TW_MUTANT(enumerator, name, sentence) MutantInfo{Mutant::enumerator, name, sentence},
#include "bench/oracle/mutant.def"
#undef TW_MUTANT
};

bool is_product(const Workload& w) {
  const DimsForm form = info(w.operation).form;
  return form == DimsForm::Gemm || form == DimsForm::Gemv;
}

/// Summation along a row whose mistakes can be seen in the result.
bool sums_rows(const Workload& w) {
  switch (w.operation) {
    case Operation::Softmax:
    case Operation::RmsNorm:
    case Operation::LayerNorm:
    case Operation::Cumsum: return true;
    case Operation::Reduce: return w.variant == "sum" || w.variant == "mean" || w.variant == "abssum";
    default: return false;
  }
}

/// Sums stored as they are, so that the absolute rule bounds every value.
bool has_plain_sums(const Workload& w) {
  return sums_rows(w) && (w.operation == Operation::Cumsum || w.operation == Operation::Reduce);
}

bool is_bottom_right(const Workload& w) {
  return w.operation == Operation::Attention &&
         (w.mask.kind == MaskKind::CausalBottomRight || w.mask.kind == MaskKind::Window);
}

}  // namespace

const MutantInfo& info(Mutant mutant) { return kMutants[static_cast<size_t>(mutant)]; }
std::span<const MutantInfo> all_mutants() { return kMutants; }
int variant_count(Mutant mutant) { return mutant == Mutant::CausalOffByOne ? 2 : 1; }

bool applies(Mutant mutant, const Workload& w) {
  if (w.operation == Operation::Kernel) return false;  // planted in operators the oracle knows by name
  const bool attention = w.operation == Operation::Attention, product = is_product(w);
  switch (mutant) {
    case Mutant::LastKTileDropped:
      return info(w.operation).form != DimsForm::Elements || w.operation != Operation::Cast;
    case Mutant::EdgeMaskSkipped:
      return product ? w.operation != Operation::Gemv && w.dim("N") % 32 != 0
                     : attention && w.dim("SK") % 32 != 0 && w.lengths.empty();
    case Mutant::CausalOffByOne: return is_bottom_right(w) || w.mask.kind == MaskKind::CausalTopLeft;
    case Mutant::TopLeftForBottomRight: return is_bottom_right(w) && w.dim("SQ") != w.dim("SK");
    case Mutant::Fp16Accumulation:
      // Where the output is as coarse as f16 and no per-value bound applies, such sums are as good as the output's
      // rounding.
      return is_float(w.dtypes.acc) && bits(w.dtypes.acc) > 16 &&
             (product || has_plain_sums(w) || ((attention || sums_rows(w)) && bits(w.dtypes.out) > 16));
    case Mutant::WrongScale: return attention && w.dim("D") > 1;
    case Mutant::StaleAccumulator: return product || attention || sums_rows(w);
    case Mutant::SwappedStrides:
      return info(w.operation).form != DimsForm::Elements && w.operation != Operation::Gemv &&
             w.operation != Operation::Reduce && w.operation != Operation::ArgReduce;
    case Mutant::OneRowUnwritten: return true;
    case Mutant::TransposedB:
      return (w.operation == Operation::Gemm && w.dim("N") == w.dim("K")) ||
             (w.operation == Operation::Gemm && w.dim("N") > 1 && w.dim("K") > 1) ||
             (attention && w.dim("SK") >= w.dim("D"));
  }
  return false;
}

}  // namespace tilewright::bench
