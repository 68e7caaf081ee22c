#include "adapters/rival/blas_attention.h"

#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "adapters/rival/blas.h"
#include "adapters/rival/product_contract.h"

namespace tilewright::adapters {
namespace {

using Json = nlohmann::json;

constexpr int64_t kLanes = 16;
typedef float Floats __attribute__((vector_size(4 * kLanes)));
typedef int32_t Ints __attribute__((vector_size(4 * kLanes)));

struct Attention {
  int64_t batch = 0, query_heads = 0, key_heads = 0, queries = 0, keys = 0, depth = 0, value_depth = 0;
  bool sequence_first = true;  ///< bshd
  std::string mask = "none";
  float scale = 1;

  /// Keys that query `i` sees are [0, visible(i)).
  int64_t visible(int64_t i) const {
    const int64_t seen = mask == "none" ? keys : mask == "causal-br" ? i + keys - queries + 1 : i + 1;
    return std::clamp<int64_t>(seen, 0, keys);
  }
};

Result<Attention> parse_attention(const candidate::ContractText& contract, const std::string& who) {
  const Json json = Json::parse(contract.json, nullptr, /*allow_exceptions=*/false);
  const auto refused = [&](const std::string& why) {
    return fail(DiagnosticCode::E3201, fmt::format("{} does f32 attention without lengths, the contract {}", who, why));
  };
  if (!json.is_object() || json.value("op", "") != "attn") return refused("asks for another operator");
  const Json& dims = json["dims"];
  Attention a;
  a.batch = dims.value("B", int64_t{1});
  a.query_heads = dims.value("HQ", int64_t{1});
  a.key_heads = dims.value("HKV", int64_t{1});
  a.queries = dims.value("SQ", int64_t{0});
  a.keys = dims.value("SK", int64_t{0});
  a.depth = dims.value("D", int64_t{0});
  a.value_depth = dims.value("DV", a.depth);
  a.sequence_first = json.value("variant", "bshd") == "bshd";
  a.mask = json["mask"].value("spec", "none");
  a.scale = json.value("scale", 1.0F);
  if (json.contains("lengths") && !json["lengths"].is_null()) return refused("has lengths");
  if (json["dtypes"].value("in", "") != "f32" || json["dtypes"].value("out", "") != "f32")
    return refused("is of another type");
  if (a.mask != "none" && a.mask != "causal-br" && a.mask != "causal-tl") return refused("masks by " + a.mask);
  return a;
}

/// 2^x for x ≤ 0: the integer part into the exponent, a Taylor polynomial of degree 6 for a rest within ±1/2.
[[gnu::always_inline]] inline void power_of_two(Floats& x) {
  x = x < -126.0F ? Floats{} - 126.0F : x;
  const Ints whole = __builtin_convertvector(x - 0.5F, Ints);
  const Floats f = x - __builtin_convertvector(whole, Floats);
  Floats p = f * 1.5403530e-4F + 1.3333558e-3F;
  p = p * f + 9.6181291e-3F;
  p = p * f + 5.5504109e-2F;
  p = p * f + 2.4022651e-1F;
  p = p * f + 6.9314718e-1F;
  p = p * f + 1.0F;
  const Ints exponent = (whole + 127) << 23;
  Floats power;
  std::memcpy(&power, &exponent, sizeof power);
  x = p * power;
}

[[gnu::always_inline]] inline float exponentiate_here(float* s, int64_t count, float scale) {
  const int64_t body = count / kLanes * kLanes;
  float top = -std::numeric_limits<float>::infinity();
  Floats tops = Floats{} + top;
  for (int64_t j = 0; j < body; j += kLanes) {
    Floats v;
    std::memcpy(&v, s + j, sizeof v);
    tops = tops > v ? tops : v;
  }
  for (int64_t l = 0; l < kLanes; ++l) top = std::max(top, tops[l]);
  for (int64_t j = body; j < count; ++j) top = std::max(top, s[j]);
  if (top == -std::numeric_limits<float>::infinity()) top = 0;
  Floats sums{};
  for (int64_t j = 0; j < body; j += kLanes) {
    Floats x;
    std::memcpy(&x, s + j, sizeof x);
    x = (x - top) * scale;
    power_of_two(x);
    std::memcpy(s + j, &x, sizeof x);
    sums += x;
  }
  float sum = 0;
  for (int64_t l = 0; l < kLanes; ++l) sum += sums[l];
  for (int64_t j = body; j < count; ++j) sum += s[j] = std::exp2((s[j] - top) * scale);
  return sum;
}

#if defined(__x86_64__)
__attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,fma"))) float exponentiate_512(float* s, int64_t n, float k) {
  return exponentiate_here(s, n, k);
}
__attribute__((target("avx2,fma"))) float exponentiate_256(float* s, int64_t n, float k) {
  return exponentiate_here(s, n, k);
}
#endif

class BlasAttention final : public candidate::Candidate {
 public:
  explicit BlasAttention(BlasAttentionOptions options) : options_(std::move(options)) {}

  Status open(const candidate::OpenOptions& open) override {
    if (auto cpu = needs_cpu(open, options_.name); !cpu) return cpu;
    threads_ = open.threads;
    auto blas = Blas::open(BlasKind::OpenBlas, options_.path, options_.python);
    if (!blas) return std::unexpected(blas.error());
    blas_ = *std::move(blas);
    blas_->set_threads(1);  // the tasks are what runs in parallel
    return {};
  }

  candidate::Identity identity() const override {
    return {options_.name,
            blas_ ? "OpenBLAS " + blas_->version() : "",
            {{"path", blas_ ? blas_->path() : options_.path}, {"softmax", "vectorised, exp2 polynomial"}}};
  }

  Result<candidate::Echo> prepare(const candidate::ContractText& contract) override {
    auto attention = parse_attention(contract, options_.name);
    if (!attention) return std::unexpected(attention.error());
    a_ = *attention;
    rows_ = options_.rows_per_task > 0 ? std::min(options_.rows_per_task, a_.queries) : a_.queries;
    rows_ = std::max<int64_t>(rows_, 1);
    return candidate::Echo{contract.digest, {}};
  }

  Result<candidate::Compiled> compile(const std::string&) override { return candidate::Compiled{}; }
  Result<int64_t> workspace_bytes() override { return 4 * rows_ * std::max<int64_t>(a_.keys, 1) * threads_; }

  Status launch(std::span<const candidate::Tensor> args, void* workspace, void*) override {
    const int64_t blocks = (a_.queries + rows_ - 1) / rows_, tasks = a_.batch * a_.query_heads * blocks;
    std::atomic<int64_t> next = 0;
    const auto work = [&](int64_t thread) {
      float* scores = static_cast<float*>(workspace) + thread * rows_ * std::max<int64_t>(a_.keys, 1);
      for (int64_t t; (t = next.fetch_add(1)) < tasks;) {
        // The longest rows of a causal mask first, so that threads end together.
        const int64_t block = blocks - 1 - t / (a_.batch * a_.query_heads), head = t % (a_.batch * a_.query_heads);
        run_block(args, scores, head / a_.query_heads, head % a_.query_heads, block * rows_);
      }
    };
    std::vector<std::jthread> others;
    for (int64_t t = 1; t < std::min<int64_t>(threads_, tasks); ++t) others.emplace_back(work, t);
    work(0);
    return {};
  }

  std::vector<std::string> installed_paths() const override { return {blas_ ? blas_->path() : options_.path}; }

 private:
  /// First element of row `row` of a head, and the distance of its rows.
  struct Rows {
    float* data;
    int64_t pitch;
  };
  Rows rows_of(const candidate::Tensor& t, int64_t b, int64_t heads, int64_t head, int64_t row) const {
    const int64_t length = t.shape[a_.sequence_first ? 1 : 2], depth = t.shape[3];
    auto* data = static_cast<float*>(t.data);
    if (a_.sequence_first) return {data + ((b * length + row) * heads + head) * depth, heads * depth};
    return {data + ((b * heads + head) * length + row) * depth, depth};
  }

  void run_block(std::span<const candidate::Tensor> args, float* scores, int64_t b, int64_t head, int64_t first) const {
    const int64_t rows = std::min(rows_, a_.queries - first), key_head = head / (a_.query_heads / a_.key_heads);
    const int64_t seen = a_.visible(first + rows - 1);
    const Rows q = rows_of(args[0], b, a_.query_heads, head, first), k = rows_of(args[1], b, a_.key_heads, key_head, 0),
               v = rows_of(args[2], b, a_.key_heads, key_head, 0), o = rows_of(args[3], b, a_.query_heads, head, first);
    if (seen > 0)
      blas_->multiply(
          BlasProduct<float>{false, true, rows, seen, a_.depth, q.data, q.pitch, k.data, k.pitch, 0, scores, seen});
    std::vector<float> sums(static_cast<size_t>(rows));
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t visible = a_.visible(first + i);
      float* row = scores + i * seen;
      sums[static_cast<size_t>(i)] = visible > 0 ? exponentiate(row, visible, a_.scale * 1.44269504F) : 0;
      std::fill(row + visible, row + seen, 0.0F);
    }
    if (seen > 0)
      blas_->multiply(BlasProduct<float>{false, false, rows, a_.value_depth, seen, scores, seen, v.data, v.pitch, 0,
                                         o.data, o.pitch});
    for (int64_t i = 0; i < rows; ++i) {
      const float sum = sums[static_cast<size_t>(i)], factor = sum > 0 ? 1 / sum : 0;
      for (int64_t d = 0; d < a_.value_depth; ++d) {
        float& value = o.data[i * o.pitch + d];
        value = sum > 0 ? value * factor : 0;
      }
    }
  }

  BlasAttentionOptions options_;
  int threads_ = 1;
  std::shared_ptr<const Blas> blas_;
  Attention a_;
  int64_t rows_ = 1;
};

}  // namespace

float exponentiate(float* s, int64_t count, float scale) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return exponentiate_512(s, count, scale);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return exponentiate_256(s, count, scale);
#endif
  return exponentiate_here(s, count, scale);
}

candidate::CandidatePtr make_blas_attention(BlasAttentionOptions options) {
  return std::make_unique<BlasAttention>(std::move(options));
}

}  // namespace tilewright::adapters
