#include "bench/oracle/mutant_selftest.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace tilewright::bench {
namespace {

struct Case {
  std::string_view key;
  std::string_view dtypes;
};

constexpr std::array<Case, 16> kControls = {{{"gemm:65x70x129:nn", "f32"},
                                             {"gemm:33x64x512:nt", "f16"},
                                             {"gemm:45x47x300:tn:bias-gelu", "bf16/f32/bf16"},
                                             {"gemm:31x33x65:tt:relu", "f16/f32/f32"},
                                             {"gemm:b2x17x19x100:nn", "i8"},
                                             {"gemm_w4:9x40x256:g128", "bf16"},
                                             {"attn:b1hq4hkv2sq33sk97d64:bshd:causal-br", "bf16"},
                                             {"attn:b2hq2hkv2sq40sk40d32:bhsd:causal-tl", "f16"},
                                             {"attn:b1hq2hkv1sq65sk33d64:bshd:causal-br", "f32"},
                                             {"attn:b1hq2hkv2sq20sk140d64:bshd:window-50", "f16"},
                                             {"attn:b1hq1hkv1sq20sk70d128:bshd:prefix-13", "f32"},
                                             {"softmax:17x1000", "f16"},
                                             {"rmsnorm:9x777", "bf16"},
                                             {"layernorm:9x512", "f32"},
                                             {"reduce:33x1025:sum", "f32"},
                                             {"cumsum:5x515", "f32"}}};

/// On which workload each mutant is planted.
Case host_of(Mutant mutant) {
  switch (mutant) {
    case Mutant::CausalOffByOne: return {"attn:b1hq2hkv1sq37sk101d64:bshd:causal-br", "bf16"};
    case Mutant::TopLeftForBottomRight: return {"attn:b1hq2hkv1sq32sk128d64:bshd:causal-br", "bf16"};
    case Mutant::WrongScale: return {"attn:b1hq2hkv1sq32sk128d64:bshd", "bf16"};
    case Mutant::Fp16Accumulation: return {"gemm:48x48x512:nn", "bf16/f32/bf16"};
    case Mutant::TransposedB: return {"gemm:48x64x64:nn", "f16"};
    case Mutant::LastKTileDropped:
    case Mutant::EdgeMaskSkipped:
    case Mutant::StaleAccumulator:
    case Mutant::SwappedStrides:
    case Mutant::OneRowUnwritten: return {"gemm:65x70x129:nn", "f16"};
  }
  return {};
}

Workload workload_of(const Case& c) { return *parse_workload(c.key, *parse_dtypes(c.dtypes)); }
std::string label(const Case& c) { return fmt::format("{} {}", c.key, to_string(*parse_dtypes(c.dtypes))); }

SelftestLine run_mutant(const MutantInfo& mutant, const CheckOptions& options) {
  const Case host = host_of(mutant.mutant);
  SelftestLine line{std::string(mutant.name), label(host), true, ""};
  for (int variant = 0; variant < variant_count(mutant.mutant); ++variant) {
    const ShapeReport shape = check_shape(workload_of(host), tile_kernel_candidate({mutant.mutant, variant}), options);
    line.as_expected = line.as_expected && shape.state == ShapeReport::State::Rejected;
    line.detail = shape.findings.empty() ? "accepted: nothing was noticed"
                                         : fmt::format("{}: {}", shape.findings[0].rule, shape.findings[0].text);
  }
  return line;
}

}  // namespace

bool MutantSelftest::passed() const {
  return std::ranges::all_of(mutants, &SelftestLine::as_expected) &&
         std::ranges::all_of(controls, &SelftestLine::as_expected);
}

MutantSelftest run_mutant_selftest(const DataSpec& data) {
  MutantSelftest result;
  CheckOptions options;
  options.contract.data = data;
  for (const MutantInfo& mutant : all_mutants()) result.mutants.push_back(run_mutant(mutant, options));
  int64_t tile = 16;
  for (const Case& control : kControls) {
    const ShapeReport shape =
        check_shape(workload_of(control), tile_kernel_candidate({std::nullopt, 0, tile}), options);
    const bool ok = shape.state == ShapeReport::State::Accepted;
    result.controls.push_back(
        {"control", label(control), ok,
         ok ? "accepted" : fmt::format("{}: {}", shape.findings[0].rule, shape.findings[0].text)});
    tile = tile == 64 ? 16 : tile * 2;
  }
  return result;
}

}  // namespace tilewright::bench
