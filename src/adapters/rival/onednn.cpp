// oneDNN v3 C API (https://uxlfoundation.github.io/oneDNN), declared here because its headers are no dependency of
// ours.
#include "adapters/rival/onednn.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <optional>

#include "adapters/rival/product_contract.h"
#include "adapters/rival/shared_object.h"

namespace tilewright::adapters {
namespace {

using Handle = void*;
using Dims = std::array<int64_t, 12>;  // dnnl_dims_t

enum DataType : int { kF16 = 1, kBf16 = 2, kF32 = 3, kS32 = 4, kS8 = 5, kU8 = 6 };
enum Argument : int { kSource = 1, kDestination = 17, kWeights = 33, kBias = 41 };
enum Eltwise : int { kRelu = 0x20, kSwish = 0x2c, kGeluErf = 0x31 };
struct ExecArgument {
  int argument;
  Handle memory;
};
struct Version {
  int major, minor, patch;
  const char* hash;
  unsigned cpu_runtime, gpu_runtime;
};

/// The functions used, one member per name.
struct Functions {
  const Version* (*version)();
  int (*engine_create)(Handle*, int kind, size_t index);
  int (*stream_create)(Handle*, Handle engine, unsigned flags);
  int (*stream_wait)(Handle);
  int (*memory_desc_create_with_strides)(Handle*, int rank, const int64_t* dims, int dtype, const int64_t* strides);
  int (*matmul_primitive_desc_create)(Handle*, Handle engine, Handle a, Handle b, Handle bias, Handle c, Handle attr);
  int (*primitive_create)(Handle*, Handle desc);
  int (*primitive_execute)(Handle, Handle stream, int count, const ExecArgument*);
  int (*memory_create)(Handle*, Handle desc, Handle engine, void* data);
  int (*memory_set_data_handle)(Handle, void* data);
  int (*primitive_attr_create)(Handle*);
  int (*primitive_attr_set_post_ops)(Handle, Handle);
  int (*post_ops_create)(Handle*);
  int (*post_ops_append_eltwise)(Handle, int kind, float alpha, float beta);
};

template <typename Function>
bool bind(const SharedObject& library, const char* name, Function*& to) {
  to = library.find<Function>(std::string("dnnl_") + name);
  return to != nullptr;
}

bool bind_all(const SharedObject& l, Functions& f) {
  return bind(l, "version", f.version) && bind(l, "engine_create", f.engine_create) &&
         bind(l, "stream_create", f.stream_create) && bind(l, "stream_wait", f.stream_wait) &&
         bind(l, "memory_desc_create_with_strides", f.memory_desc_create_with_strides) &&
         bind(l, "matmul_primitive_desc_create", f.matmul_primitive_desc_create) &&
         bind(l, "primitive_create", f.primitive_create) && bind(l, "primitive_execute", f.primitive_execute) &&
         bind(l, "memory_create", f.memory_create) && bind(l, "memory_set_data_handle", f.memory_set_data_handle) &&
         bind(l, "primitive_attr_create", f.primitive_attr_create) &&
         bind(l, "primitive_attr_set_post_ops", f.primitive_attr_set_post_ops) &&
         bind(l, "post_ops_create", f.post_ops_create) && bind(l, "post_ops_append_eltwise", f.post_ops_append_eltwise);
}

std::optional<int> data_type(DType dtype) {
  switch (dtype) {
    case DType::F16: return kF16;
    case DType::BF16: return kBf16;
    case DType::F32: return kF32;
    case DType::I32: return kS32;
    case DType::I8: return kS8;
    case DType::U8: return kU8;
    default: return std::nullopt;
  }
}

/// While it lives, new threads of this thread see only `threads` CPUs: TBB sizes its pool by that.
class NarrowAffinity {
 public:
  explicit NarrowAffinity(int threads) {
    ::sched_getaffinity(0, sizeof saved_, &saved_);
    cpu_set_t few;
    CPU_ZERO(&few);
    for (int cpu = 0, left = threads; cpu < CPU_SETSIZE && left > 0; ++cpu) {
      if (CPU_ISSET(cpu, &saved_)) CPU_SET(cpu, &few), --left;
    }
    ::sched_setaffinity(0, sizeof few, &few);
  }
  ~NarrowAffinity() { ::sched_setaffinity(0, sizeof saved_, &saved_); }

 private:
  cpu_set_t saved_;
};

class OneDnnCandidate : public candidate::Candidate {
 public:
  OneDnnCandidate(std::string path, std::string python) : path_(std::move(path)), python_(std::move(python)) {}

  Status open(const candidate::OpenOptions& options) override {
    if (auto cpu = needs_cpu(options, "oneDNN"); !cpu) return cpu;
    threads_ = options.threads;
    std::string tried;
    for (const std::string& place : places()) {
      open_companions(place);
      auto library = SharedObject::open(place);
      if (library && bind_all(*library, f_)) {
        path_ = place;
        return {};
      }
      tried += fmt::format("{}{}", tried.empty() ? "" : ", ", place);
    }
    return fail(DiagnosticCode::E3204, fmt::format("oneDNN 3 is not installed; tried {}", tried),
                "pip install onednn, or onednn-cpu-gomp (older, native threads)");
  }

  Status init_device() override {
    const NarrowAffinity narrow(threads_);
    constexpr int kCpu = 1;
    constexpr unsigned kInOrder = 1;
    if (f_.engine_create(&engine_, kCpu, 0) != 0 || f_.stream_create(&stream_, engine_, kInOrder) != 0) {
      return fail(DiagnosticCode::E3202, "oneDNN gives no CPU engine");
    }
    return {};
  }

  candidate::Identity identity() const override {
    std::string text;
    if (f_.version) text = fmt::format("{}.{}.{}", f_.version()->major, f_.version()->minor, f_.version()->patch);
    constexpr unsigned kSycl = 512;  // DNNL_RUNTIME_DPCPP: launches cost more than with native threads
    if (f_.version && f_.version()->cpu_runtime == kSycl) text += " (SYCL)";
    return {"onednn", text, {{"path", path_}}};
  }

  Result<candidate::Echo> prepare(const candidate::ContractText& contract) override {
    auto product = parse_product(contract, "oneDNN");
    if (!product) return std::unexpected(product.error());
    product_ = *product;
    if (!data_type(product_.in) || !data_type(product_.out)) {
      return fail(DiagnosticCode::E3201, fmt::format("oneDNN's matmul takes f32, bf16, f16 and i8, not {} to {}",
                                                     name(product_.in), name(product_.out)));
    }
    return candidate::Echo{contract.digest, {}};
  }

  /// oneDNN generates its kernel when the primitive is created.
  Result<candidate::Compiled> compile(const std::string&) override {
    const NarrowAffinity narrow(threads_);
    arguments_.clear();  // compiled again for another contract
    Handle a = nullptr, b = nullptr, c = nullptr, bias = nullptr, attr = nullptr, desc = nullptr;
    const Product& p = product_;
    bool ok = describe(a, p.m, p.k, p.transpose_a, p.in) && describe(b, p.k, p.n, p.transpose_b, p.in) &&
              describe(c, p.m, p.n, false, p.out) && (!p.bias || describe_bias(bias)) && make_attributes(attr);
    ok = ok && f_.matmul_primitive_desc_create(&desc, engine_, a, b, bias, c, attr) == 0;
    if (!ok) return fail(DiagnosticCode::E3201, "oneDNN has no matmul for this contract");
    ok = f_.primitive_create(&primitive_, desc) == 0 && make_memory(kSource, a) && make_memory(kWeights, b) &&
         (!p.bias || make_memory(kBias, bias)) && make_memory(kDestination, c);
    if (!ok) return fail(DiagnosticCode::E3202, "oneDNN could not create the matmul");
    candidate::Compiled compiled;
    compiled.compiles = 1;
    return compiled;
  }

  Status launch(std::span<const candidate::Tensor> args, void*, void*) override {
    for (size_t i = 0; i < arguments_.size(); ++i) f_.memory_set_data_handle(arguments_[i].memory, args[i].data);
    const int status =
        f_.primitive_execute(primitive_, stream_, static_cast<int>(arguments_.size()), arguments_.data());
    if (status != 0 || f_.stream_wait(stream_) != 0) {
      return fail(DiagnosticCode::E3202, fmt::format("oneDNN's matmul failed with status {}", status));
    }
    return {};
  }

  std::vector<std::string> installed_paths() const override { return {path_}; }

 private:
  std::vector<std::string> places() const {
    if (!path_.empty()) return {path_};
    std::vector<std::string> paths;
    for (const std::string& folder : python_folders(python_)) paths.push_back(folder + "/libdnnl.so.3");
    paths.emplace_back("libdnnl.so.3");
    return paths;
  }

  /// The PyPI build runs on SYCL: it finds its companions only through the loader's list of open libraries, its CPU
  /// device through the OpenCL loader's list of drivers, and its number of threads in the environment.
  void open_companions(const std::string& place) const {
    const size_t slash = place.rfind('/');
    if (slash == std::string::npos) return;
    const std::string folder = place.substr(0, slash + 1);
    if (::access((folder + "libintelocl.so").c_str(), R_OK) == 0) {
      ::setenv("OCL_ICD_FILENAMES", (folder + "libintelocl.so").c_str(), /*overwrite=*/0);
      ::setenv("DPCPP_CPU_NUM_CUS", std::to_string(threads_).c_str(), /*overwrite=*/0);
    }
    for (const char* name : {"libtbb.so.12", "libimf.so", "libintlc.so.5", "libsvml.so", "libsycl.so.9"}) {
      (void)SharedObject::open(folder + name);
    }
  }

  bool describe(Handle& desc, int64_t rows, int64_t columns, bool transposed, DType dtype) const {
    const int64_t down = transposed ? 1 : columns, right = transposed ? rows : 1;
    if (product_.batch == 1) {
      const Dims dims = {rows, columns}, strides = {down, right};
      return f_.memory_desc_create_with_strides(&desc, 2, dims.data(), *data_type(dtype), strides.data()) == 0;
    }
    const Dims dims = {product_.batch, rows, columns}, strides = {rows * columns, down, right};
    return f_.memory_desc_create_with_strides(&desc, 3, dims.data(), *data_type(dtype), strides.data()) == 0;
  }
  bool describe_bias(Handle& desc) const {
    const bool flat = product_.batch == 1;
    const Dims dims = flat ? Dims{1, product_.n} : Dims{1, 1, product_.n};
    const Dims strides = flat ? Dims{product_.n, 1} : Dims{product_.n, product_.n, 1};
    return f_.memory_desc_create_with_strides(&desc, flat ? 2 : 3, dims.data(), *data_type(product_.out),
                                              strides.data()) == 0;
  }
  bool make_attributes(Handle& attr) const {
    if (product_.activation == Activation::None) return true;
    const int kind = product_.activation == Activation::Relu   ? kRelu
                     : product_.activation == Activation::Gelu ? kGeluErf
                                                               : kSwish;
    Handle post = nullptr;
    return f_.primitive_attr_create(&attr) == 0 && f_.post_ops_create(&post) == 0 &&
           f_.post_ops_append_eltwise(post, kind, kind == kSwish ? 1.0f : 0.0f, 0.0f) == 0 &&
           f_.primitive_attr_set_post_ops(attr, post) == 0;
  }
  bool make_memory(int argument, Handle desc) {
    Handle memory = nullptr;
    if (f_.memory_create(&memory, desc, engine_, nullptr) != 0) return false;
    arguments_.push_back({argument, memory});
    return true;
  }

  std::string path_, python_;
  int threads_ = 1;
  Functions f_{};
  Handle engine_ = nullptr, stream_ = nullptr, primitive_ = nullptr;
  std::vector<ExecArgument> arguments_;  // in the order of the contract's tensors
  Product product_;
};

}  // namespace

Result<candidate::CandidatePtr> make_onednn(const std::string& path, const std::string& python) {
  return std::make_unique<OneDnnCandidate>(path, python);
}

}  // namespace tilewright::adapters
