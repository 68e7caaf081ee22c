#include "adapters/rival/rivals.h"

#include <fmt/format.h>

#include "adapters/rival/blas.h"
#include "adapters/rival/blas_attention.h"
#include "adapters/rival/cublaslt.h"
#include "adapters/rival/onednn.h"
#include "adapters/rival/product_contract.h"
#include "adapters/rival/shared_object.h"

namespace tilewright::adapters {
namespace {

using candidate::Candidate;

/// A product by a BLAS library; nothing to compile, nothing cached.
class BlasCandidate : public Candidate {
 public:
  BlasCandidate(BlasKind kind, std::string path, std::string python)
      : kind_(kind), path_(std::move(path)), python_(std::move(python)) {}

  Status open(const candidate::OpenOptions& options) override {
    if (auto cpu = needs_cpu(options, identity().name); !cpu) return cpu;
    auto blas = Blas::open(kind_, path_, python_);
    if (!blas) return std::unexpected(blas.error());
    blas_ = *std::move(blas);
    blas_->set_threads(options.threads);
    return {};
  }

  candidate::Identity identity() const override {
    const char* name = kind_ == BlasKind::OpenBlas ? "openblas" : "blis";
    return {name, blas_ ? blas_->version() : "", {{"path", blas_ ? blas_->path() : path_}}};
  }

  Result<candidate::Echo> prepare(const candidate::ContractText& contract) override {
    auto product = parse_product(contract, identity().name);
    if (!product) return std::unexpected(product.error());
    product_ = *product;
    const bool one_type = product_.in == product_.out && product_.acc == product_.out;
    if (!one_type || (product_.in != DType::F32 && product_.in != DType::F64)) {
      return fail(DiagnosticCode::E3201,
                  fmt::format("{} multiplies f32 and f64, the contract asks for {}/{}/{}", identity().name,
                              name(product_.in), name(product_.acc), name(product_.out)));
    }
    return candidate::Echo{contract.digest, {}};
  }

  Result<candidate::Compiled> compile(const std::string&) override { return candidate::Compiled{}; }

  Status launch(std::span<const candidate::Tensor> args, void*, void*) override {
    product_.in == DType::F32 ? run<float>(args) : run<double>(args);
    return {};
  }

  std::vector<std::string> installed_paths() const override { return {blas_ ? blas_->path() : path_}; }

 private:
  template <typename Real>
  void run(std::span<const candidate::Tensor> args) const {
    const Product& p = product_;
    const auto* a = static_cast<const Real*>(args[0].data);
    const auto* b = static_cast<const Real*>(args[1].data);
    auto* c = static_cast<Real*>(args.back().data);
    for (int64_t i = 0; i < p.batch; ++i) {
      if constexpr (std::is_same_v<Real, float>) {
        if (p.n == 1 && p.batch == 1) {
          blas_->multiply_vector(p.transpose_a, p.m, p.k, a, b, c);
          break;
        }
      }
      blas_->multiply(BlasProduct<Real>{p.transpose_a, p.transpose_b, p.m, p.n, p.k, a + i * p.m * p.k,
                                        p.transpose_a ? p.m : p.k, b + i * p.k * p.n, p.transpose_b ? p.k : p.n,
                                        Real(0), c + i * p.m * p.n, p.n});
    }
    apply_epilogue(p.activation, p.bias ? static_cast<const Real*>(args[2].data) : nullptr, c, p.batch * p.m, p.n);
  }

  BlasKind kind_;
  std::string path_, python_;
  std::shared_ptr<const Blas> blas_;
  Product product_;
};

}  // namespace

Result<candidate::CandidatePtr> make_rival(const std::string& target, const RivalOptions& options) {
  const size_t at = target.find('@');
  const std::string name = target.substr(0, at);
  const std::string path = at == std::string::npos ? "" : target.substr(at + 1);
  if (path.empty()) python_folders(options.python);  // here, so that the processes that open it need not search
  if (name == "openblas") return std::make_unique<BlasCandidate>(BlasKind::OpenBlas, path, options.python);
  if (name == "blis") return std::make_unique<BlasCandidate>(BlasKind::Blis, path, options.python);
  if (name == "onednn") return make_onednn(path, options.python);
  if (name == "cublaslt") return make_cublaslt(path, options.python);
  if (name == "attention") return make_blas_attention({"blas-attention", 0, path, options.python});
  if (name == "attention-blocked") return make_blas_attention({"blas-attention-blocked", 256, path, options.python});
  return fail(DiagnosticCode::E3200, fmt::format("there is no rival '{}'", name),
              "rival:openblas, rival:blis, rival:onednn, rival:attention, rival:attention-blocked or rival:cublaslt, "
              "each with an optional @/path/to/library.so");
}

void add_rivals(candidate::Kinds& kinds, const RivalOptions& options) {
  kinds.add("rival", "OpenBLAS, BLIS, oneDNN or cuBLASLt in this process",
            [options](const std::string& target) { return make_rival(target, options); });
}

}  // namespace tilewright::adapters
