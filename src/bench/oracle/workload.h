// What is computed, as a value: an operator, its sizes, layout, mask or epilogue, lengths and dtypes; and its spelling,
// the workload key of table.csv:
//
//   op:dims[:variant][:mask or epilogue][:lens=<8 hex digits>]
//   gemm:4096x4096x4096:nt            gemm:b8x512x512x64:nn:bias-gelu
//   attn:b2hq32hkv8sq1024sk4096d128:bshd:causal-br
//   softmax:4096x4096   reduce:512x4096:sum   topk:64x32000:k8   add:1048576   gelu:64x4096:erf
//   kernel:swiglu_bias:M=64.N=96.K=80:ref=1b2c3d4e    what a `.tile` kernel's own `reference` says
//
// Guarantees: parse(print(w)) == w, print(parse(k)) is canonical (defaults of variant written, mask `none` and an empty
// epilogue left out), and a key never holds a comma, a quote or a space. `lens=` and `ref=` are digests: the lengths
// and the kernel's question travel beside the key. Layout letters of gemm describe row-major storage: n as in the
// formula (A[M,K], B[K,N]), t transposed (A[K,M], B[N,K]), so both operands contiguous in K is `nt`. Does not: know
// tensors (arguments.h), numbers of operations (cost.h), or how anything is computed.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/diagnostic.h"
#include "base/dtype.h"
#include "bench/oracle/kernel_question.h"
#include "bench/oracle/mask.h"

namespace tilewright::bench {

enum class Operation : uint8_t {
#define TW_OPERATION(enumerator, mnemonic, form, variants, summary) enumerator,
#include "bench/oracle/operation.def"
#undef TW_OPERATION
};

enum class DimsForm : uint8_t {
  Gemm,       ///< [b<B>x]MxNxK
  Gemv,       ///< MxK
  Attention,  ///< b<B>hq<HQ>hkv<HKV>sq<SQ>sk<SK>d<D>[dv<DV>]
  Rows,       ///< RxC
  Elements,   ///< N, or up to four extents joined by x
  Kernel,     ///< NAME:D=<extent>.E=<extent>…:ref=<digest>
};

/// One row of operation.def.
struct OperationInfo {
  Operation operation;
  std::string_view name;
  DimsForm form;
  std::string_view variants;
  std::string_view summary;
};
const OperationInfo& info(Operation operation);
std::span<const OperationInfo> all_operations();

/// Storage of the inputs, of sums, and of the output: "f16/f32/f16".
struct DTypes {
  DType in = DType::F32;
  DType acc = DType::F32;
  DType out = DType::F32;
  friend bool operator==(const DTypes&, const DTypes&) = default;
};
/// Accepts the triple and the short forms `f16` (f16/f32/f16) and `i8` (i8/i32/i32). E1604.
Result<DTypes> parse_dtypes(std::string_view text);
std::string to_string(const DTypes& dtypes);

/// What a gemm does to its sum before storing it.
struct Epilogue {
  bool bias = false;
  enum class Activation : uint8_t { None, Relu, Gelu, Silu } activation = Activation::None;
  friend bool operator==(const Epilogue&, const Epilogue&) = default;
};
std::string to_string(const Epilogue& epilogue);  ///< "", "bias", "bias-relu", "gelu"

struct Workload {
  Operation operation = Operation::Gemm;
  std::vector<std::pair<std::string, int64_t>> dims;  ///< in the key's order, by name: {"M", 64}, …
  std::string variant;                                ///< one of the operation's; "" when it has none
  Mask mask;                                          ///< of attention
  std::vector<SequenceLengths> lengths;               ///< of attention: one per batch entry, or empty
  Epilogue epilogue;                                  ///< of gemm
  KernelQuestion question;                            ///< of kernel
  DTypes dtypes;

  int64_t dim(std::string_view name) const;  ///< 1 when there is no such dimension (an unbatched gemm's B)
  void set_dim(std::string_view name, int64_t value);
  friend bool operator==(const Workload&, const Workload&) = default;
};

/// E1603 points at the segment that is wrong and says what is allowed. A key with `lens=` needs the lengths of that
/// digest, one of a kernel's own reference (`ref=`) its question.
Result<Workload> parse_workload(std::string_view key, const DTypes& dtypes, std::vector<SequenceLengths> lengths = {},
                                KernelQuestion question = {});
/// The extents of a question's tensor at the workload's dimensions; nothing when one is not known.
std::optional<std::vector<int64_t>> extents_of(const Workload& workload, const QuestionTensor& tensor);
std::string workload_key(const Workload& workload);
/// Checks what the grammar cannot: extents ≥ 0, HQ a multiple of HKV, lengths within bounds, group size divides K.
/// E1603.
Status validate(const Workload& workload);

}  // namespace tilewright::bench
