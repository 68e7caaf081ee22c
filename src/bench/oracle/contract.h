// The contract: everything two implementations must agree on before their times may be compared, as canonical JSON.
//
// Canonical = keys sorted, no white space, numbers in shortest form, so equal contracts have equal bytes and equal
// SHA-256. Every candidate gets the text and echoes the digest, or the fields in which it differs
// (candidate/candidate.h). Example, gemm (a mask object, lengths and scale are there for attn; eps for norms):
//   {"args":[{"dtype":"f32","name":"A","role":"in","shape":[64,32],"strides":[32,1]},…],
//    "data":{"distribution":"normal","seed":1},"device":"cpu","dims":{"K":32,"M":64,"N":48},
//    "dtypes":{"acc":"f32","in":"f32","out":"f32"},"epilogue":"bias-relu","key":"gemm:64x48x32:nn:bias-relu",
//    "math":"ieee","op":"gemm","variant":"nn","version":1}
//   attn adds "scale":0.125,"mask":{"spec":"causal-br","digest":"<sha256>","valid_pairs":12},"lengths":[[q,k],…] or
//   null norms add "eps":1e-05
//   kernel adds "kernel":{"name":…,"tensors":[…],"scalars":[{"name":"eps","dtype":"f32","value":1e-05}],
//   "references":["mul(silu(matmul(X, Wg)), matmul(X, Wu))"]}
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/oracle/arguments.h"
#include "bench/oracle/data.h"
#include "candidate/candidate.h"

namespace tilewright::bench {

struct ContractOptions {
  std::string device = "cpu";
  std::string math = "ieee";  ///< "ieee", "tf32", "fast"
  DataSpec data;
};

inline constexpr double kNormEpsilon = 1e-5;
/// 1/sqrt(D) of attention.
double attention_scale(const Workload& workload);

nlohmann::json contract_json(const Workload& workload, const ContractOptions& options);
candidate::ContractText contract_text(const Workload& workload, const ContractOptions& options);
/// The workload a contract states (its `key`, `dtypes` and `lengths`). E1605.
Result<Workload> workload_of(const nlohmann::json& contract);

/// Dotted names of the fields whose values differ ("mask.spec", "args.1.strides", "dtypes.acc"), in sorted order.
std::vector<std::string> differing_fields(const nlohmann::json& reference, const nlohmann::json& other);

/// Nothing when the candidate echoed the contract's digest; else the first differing field, or "digest" when the echo
/// names none.
std::optional<std::string> unfair_field(const candidate::ContractText& contract, const candidate::Echo& echo);
/// E1606: `unfair:<field>`, with both values; the command leaves with code 3.
Status check_fair(const candidate::ContractText& contract, const candidate::Echo& echo,
                  const std::string& candidate_name);

}  // namespace tilewright::bench
