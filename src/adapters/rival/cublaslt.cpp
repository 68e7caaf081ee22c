#include "adapters/rival/cublaslt.h"

#include <fmt/format.h>

#include <optional>

#include "adapters/rival/product_contract.h"
#include "adapters/rival/shared_object.h"
#include "runtime/cuda/device.h"

namespace tilewright::adapters {
namespace {

using Handle = void*;

struct Algorithm {
  uint64_t opaque[8];
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

struct Functions {
  size_t (*GetVersion)();
  int (*Create)(Handle*);
  int (*Destroy)(Handle);
  int (*MatmulDescCreate)(Handle*, int compute, int scale);
  int (*MatmulDescSetAttribute)(Handle, int attribute, const void*, size_t);
  int (*MatrixLayoutCreate)(Handle*, int type, uint64_t rows, uint64_t columns, int64_t leading);
  int (*MatmulPreferenceCreate)(Handle*);
  int (*MatmulPreferenceSetAttribute)(Handle, int attribute, const void*, size_t);
  int (*MatmulAlgoGetHeuristic)(Handle, Handle operation, Handle a, Handle b, Handle c, Handle d, Handle preference,
                                int wanted, Algorithm*, int* found);
  int (*Matmul)(Handle, Handle operation, const void* alpha, const void* a, Handle la, const void* b, Handle lb,
                const void* beta, const void* c, Handle lc, void* d, Handle ld, const Algorithm*, void* workspace,
                size_t workspace_size, void* stream);
};

template <typename Function>
bool bind(const SharedObject& library, const char* name, Function*& to) {
  to = library.find<Function>(std::string("cublasLt") + name);
  return to != nullptr;
}
bool bind_all(const SharedObject& l, Functions& f) {
  return bind(l, "GetVersion", f.GetVersion) && bind(l, "Create", f.Create) && bind(l, "Destroy", f.Destroy) &&
         bind(l, "MatmulDescCreate", f.MatmulDescCreate) &&
         bind(l, "MatmulDescSetAttribute", f.MatmulDescSetAttribute) &&
         bind(l, "MatrixLayoutCreate", f.MatrixLayoutCreate) &&
         bind(l, "MatmulPreferenceCreate", f.MatmulPreferenceCreate) &&
         bind(l, "MatmulPreferenceSetAttribute", f.MatmulPreferenceSetAttribute) &&
         bind(l, "MatmulAlgoGetHeuristic", f.MatmulAlgoGetHeuristic) && bind(l, "Matmul", f.Matmul);
}

/// cudaDataType of an operand.
std::optional<int> data_type(DType dtype) {
  switch (dtype) {
    case DType::F16: return 2;
    case DType::BF16: return 14;
    case DType::E4M3: return 28;
    case DType::E5M2: return 29;
    default: return std::nullopt;
  }
}

class CublasLt final : public candidate::Candidate {
 public:
  CublasLt(std::string path, std::string python) : path_(std::move(path)), python_(std::move(python)) {}
  ~CublasLt() override {
    if (handle_) f_.Destroy(handle_);
  }

  Status open(const candidate::OpenOptions& options) override {
    if (!options.device.starts_with("cuda:"))
      return fail(DiagnosticCode::E3204, "cuBLASLt needs a CUDA device", "use --device cuda:0");
    ordinal_ = std::atoi(options.device.c_str() + 5);
    for (const std::string& place : places()) {
      auto library = SharedObject::open(place);
      if (!library || !bind_all(*library, f_)) continue;
      path_ = library->path();
      return {};
    }
    return fail(
        DiagnosticCode::E3204, "libcublasLt was not found",
        "install a CUDA toolkit or `pip install nvidia-cublas`, or spell rival:cublaslt@/path/to/libcublasLt.so");
  }

  Status init_device() override {
    auto device = cuda::Device::open(ordinal_);
    if (!device) return std::unexpected(device.error());
    device_ = *device;
    return done(f_.Create(&handle_), "creating a handle");
  }

  candidate::Identity identity() const override {
    const size_t v = f_.GetVersion ? f_.GetVersion() : 0;
    return {"cublaslt", fmt::format("{}.{}.{}", v / 10000, v / 100 % 100, v % 100), {{"path", path_}}};
  }

  Result<candidate::Echo> prepare(const candidate::ContractText& contract) override {
    auto product = parse_product(contract, "cublaslt");
    if (!product) return std::unexpected(product.error());
    p_ = *product;
    const bool narrow = p_.in == DType::E4M3 || p_.in == DType::E5M2;
    const bool is_known = data_type(p_.in) && data_type(p_.out) && p_.acc == DType::F32 && p_.batch == 1 && !p_.bias &&
                          p_.activation == Activation::None;
    if (!is_known || (narrow && (p_.transpose_a || !p_.transpose_b)))
      return fail(DiagnosticCode::E3201,
                  "cublaslt here does plain products of bf16 and f16, and A·Bᵀ of e4m3 and e5m2");
    return candidate::Echo{contract.digest, {}};
  }

  /// Column-major libraries see Cᵀ = op(B)ᵀ · op(A)ᵀ.
  Result<candidate::Compiled> compile(const std::string&) override {
    algorithms_.clear();
    const int kSum = 68, kScale = 0, in = *data_type(p_.in), out = *data_type(p_.out);
    if (auto s = done(f_.MatmulDescCreate(&operation_, kSum, kScale), "describing the product"); !s)
      return std::unexpected(s.error());
    const bool b_is_rows = p_.transpose_b || p_.n == 1;  // B as k × n columns of k contiguous values
    const int first = b_is_rows ? 1 : 0, second = p_.transpose_a ? 1 : 0;
    f_.MatmulDescSetAttribute(operation_, 3, &first, sizeof first);
    f_.MatmulDescSetAttribute(operation_, 4, &second, sizeof second);
    const auto layout = [&](Handle& to, int type, int64_t rows, int64_t columns) {
      return done(f_.MatrixLayoutCreate(&to, type, static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), rows),
                  "describing a matrix");
    };
    for (const Status& s :
         {b_is_rows ? layout(lb_, in, p_.k, p_.n) : layout(lb_, in, p_.n, p_.k),
          p_.transpose_a ? layout(la_, in, p_.m, p_.k) : layout(la_, in, p_.k, p_.m), layout(lc_, out, p_.n, p_.m)}) {
      if (!s) return std::unexpected(s.error());
    }
    return propose();
  }

  Result<int64_t> workspace_bytes() override { return kWorkspace; }

  Status launch(std::span<const candidate::Tensor> args, void* workspace, void* stream) override {
    if (!best_) {
      if (auto chosen = choose(args, workspace, stream); !chosen) return chosen;
    }
    return run(*best_, args, workspace, stream);
  }

  std::vector<std::string> installed_paths() const override { return {path_}; }

 private:
  static constexpr int64_t kWorkspace = int64_t{64} << 20;
  static constexpr int kWanted = 8;

  std::vector<std::string> places() const {
    if (!path_.empty()) return {path_};
    std::vector<std::string> out = {"libcublasLt.so.13", "libcublasLt.so.12"};
    for (const char* toolkit : {"/usr/local/cuda/lib64/", "/usr/local/cuda-13.0/lib64/", "/usr/local/cuda-13.0/lib/"})
      for (const char* file : {"libcublasLt.so.13", "libcublasLt.so.12"}) out.push_back(std::string(toolkit) + file);
    for (const std::string& folder : python_folders(python_)) {
      out.push_back(folder + "/nvidia/cu13/lib/libcublasLt.so.13");
      out.push_back(folder + "/nvidia/cublas/lib/libcublasLt.so.13");
      out.push_back(folder + "/nvidia/cublas/lib/libcublasLt.so.12");
    }
    return out;
  }

  static Status done(int status, const char* doing) {
    if (status == 0) return {};
    return fail(DiagnosticCode::E3206, fmt::format("cublaslt, {}: status {}", doing, status));
  }

  Result<candidate::Compiled> propose() {
    Handle preference = nullptr;
    f_.MatmulPreferenceCreate(&preference);
    const size_t limit = kWorkspace;
    f_.MatmulPreferenceSetAttribute(preference, 1, &limit, sizeof limit);
    algorithms_.resize(kWanted);
    int found = 0;
    const int status = f_.MatmulAlgoGetHeuristic(handle_, operation_, lb_, la_, lc_, lc_, preference, kWanted,
                                                 algorithms_.data(), &found);
    algorithms_.resize(static_cast<size_t>(std::max(found, 0)));
    std::erase_if(algorithms_, [](const Algorithm& a) { return a.state != 0; });
    if (status != 0 || algorithms_.empty())
      return fail(DiagnosticCode::E3201, fmt::format("cublaslt proposes no algorithm (status {})", status));
    best_.reset();
    return candidate::Compiled{};
  }

  Status run(size_t which, std::span<const candidate::Tensor> args, void* workspace, void* stream) const {
    const float one = 1, zero = 0;
    void* c = args.back().data;
    return done(f_.Matmul(handle_, operation_, &one, args[1].data, lb_, args[0].data, la_, &zero, c, lc_, c, lc_,
                          &algorithms_[which], workspace, static_cast<size_t>(kWorkspace), stream),
                "multiplying");
  }

  Status choose(std::span<const candidate::Tensor> args, void* workspace, void* stream) {
    auto from = cuda::Event::create(*device_), to = cuda::Event::create(*device_);
    if (!from) return std::unexpected(from.error());
    if (!to) return std::unexpected(to.error());
    float least = 0;
    for (size_t i = 0; i < algorithms_.size(); ++i) {
      constexpr int kRuns = 8;
      Status ran = run(i, args, workspace, stream);
      if (ran) ran = from->record(stream);
      for (int r = 0; r < kRuns && ran; ++r) ran = run(i, args, workspace, stream);
      if (ran) ran = to->record(stream);
      if (ran) ran = to->synchronize();
      if (!ran) continue;
      const auto ms = cuda::elapsed_ms(*from, *to);
      if (ms && (!best_ || *ms < least)) best_ = i, least = *ms;
    }
    if (!best_) return fail(DiagnosticCode::E3206, "cublaslt: none of its algorithms ran");
    return {};
  }

  std::string path_, python_;
  int ordinal_ = 0;
  Functions f_ = {};
  std::optional<cuda::Device> device_;
  Handle handle_ = nullptr, operation_ = nullptr, la_ = nullptr, lb_ = nullptr, lc_ = nullptr;
  Product p_;
  std::vector<Algorithm> algorithms_;
  std::optional<size_t> best_;
};

}  // namespace

candidate::CandidatePtr make_cublaslt(std::string path, std::string python) {
  return std::make_unique<CublasLt>(std::move(path), std::move(python));
}

}  // namespace tilewright::adapters
