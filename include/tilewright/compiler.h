// Compile and run kernels from C++17, on the CPU or a CUDA device: a text (or what kernel.h recorded) in, results out.
// Header only over the C ABI of tilewright.h; link libtilewright (tilewright::compiler in CMake), not the run-time
// library, which answers E3007.
//
//   auto device = tilewright::Device::open("cpu");
//   auto compiler = tilewright::Compiler::open();
//   tilewright::CompiledKernel softmax(*device, *compiler, {k.text(), k.name()});
//   tilewright::Status status = softmax.run({{x.data(), {rows, columns}}, {y.data(), {rows, columns}}});
//   if (!status) std::cerr << status.message();
//
// Nothing throws (beyond what std containers do). run() compiles when no plan that it has is for these arguments
// (dtypes, constant sizes, absent tensors); compiled code is also kept on disk, by content, over processes. In a loop
// where neither a compilation nor an allocation may happen, take `plan_for` once and execute it.
#ifndef TILEWRIGHT_COMPILER_H_
#define TILEWRIGHT_COMPILER_H_

#include <tilewright/runtime.h>

#include <list>
#include <mutex>
#include <string>
#include <vector>

namespace tilewright {

/// What to compile.
struct KernelSource {
  std::string text;                      ///< of a `.tile` file; empty: read from `file`
  std::string kernel = {};               ///< which one of the text; empty: the only one
  std::string file = {};                 ///< the name in diagnostics; empty: "<kernel>.tile"
  std::vector<std::string> params = {};  ///< "block_M=64"; dtype parameters follow the arguments
  std::string target = {};               ///< "cpu:x86-64-v3", "cuda:sm_90a"; empty: the device that will run it
};

class Compiler {
 public:
  Compiler() = default;

  static Expected<Compiler> open() {
    tw_compiler* compiler = nullptr;
    Status status(tw_compiler_open(&compiler));
    if (!status) return status;
    return Compiler(compiler);
  }

  /// The kernel for arguments like these, loaded; their data is not touched. From `cache_folder` when it was compiled
  /// before (nullptr: the user's; "": no cache).
  Expected<Plan> compile(const Device& device, const KernelSource& source, const Arguments& arguments,
                         const char* cache_folder = nullptr) const {
    const std::string file = !source.file.empty() ? source.file : source.kernel + ".tile";
    const std::string target = !source.target.empty() ? source.target : device.name();
    std::vector<const char*> params;
    for (const std::string& param : source.params) params.push_back(param.c_str());
    tw_compiled* compiled = nullptr;
    Status status = arguments.visit([&](const tw_arguments& view) {
      tw_compile_request request = {};
      request.struct_size = sizeof request;
      request.path = file.c_str();
      request.source = source.text.empty() ? nullptr : source.text.c_str();
      request.kernel = source.kernel.empty() ? nullptr : source.kernel.c_str();
      request.target = target.c_str();
      request.parameters = params.data();
      request.parameter_count = params.size();
      request.arguments = &view;
      request.cache_folder = cache_folder;
      return Status(tw_compiler_compile(compiler_.get(), &request, &compiled));
    });
    if (!status) return status;
    auto plan = device.load(tw_compiled_data(compiled), tw_compiled_size(compiled));
    tw_compiled_free(compiled);
    return plan;
  }

  tw_compiler* get() const { return compiler_.get(); }

 private:
  explicit Compiler(tw_compiler* compiler) : compiler_(compiler) {}
  struct Close {
    void operator()(tw_compiler* compiler) const { tw_compiler_close(compiler); }
  };
  std::unique_ptr<tw_compiler, Close> compiler_;
};

/// A kernel of a text with the plans compiled for it so far. Device and compiler must outlive it. run() may be called
/// from several threads; calls take turns at finding their plan, not at executing it.
class CompiledKernel {
 public:
  CompiledKernel(const Device& device, const Compiler& compiler, KernelSource source)
      : device_(device), compiler_(compiler), source_(std::move(source)) {}
  CompiledKernel(const CompiledKernel&) = delete;
  CompiledKernel& operator=(const CompiledKernel&) = delete;

  /// The plan that takes these arguments, compiled if there is none. It lives as long as this kernel.
  Expected<const Plan*> plan_for(const Arguments& arguments) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const Plan& plan : plans_) {
      Status status = plan.check(arguments);
      if (status) return &plan;
      if (!may_be_another(status)) return status;
    }
    auto compiled = compiler_.compile(device_, source_, arguments);
    if (!compiled) return std::move(compiled).take_error();
    Status status = compiled->check(arguments);
    if (!status) return status;
    plans_.push_front(std::move(*compiled));
    return &plans_.front();
  }

  /// Compiles when needed, makes the workspace, executes, and waits for `stream`.
  Status run(const Arguments& arguments, void* stream = nullptr) {
    auto plan = plan_for(arguments);
    if (!plan) return std::move(plan).take_error();
    auto workspace = (*plan)->make_workspace(arguments);
    if (!workspace) return std::move(workspace).take_error();
    Status status = (*plan)->execute(arguments, *workspace, stream);
    // The workspace must not go before the work is done.
    return status ? device_.synchronise(stream) : std::move(status);
  }

 private:
  /// Another dtype, constant size, set of tensors or class may be another plan's.
  static bool may_be_another(const Status& status) {
    const int code = status.code();
    return status.is_wrong_class() || code == 1402 || code == 1403 || code == 1405 || code == 1410;
  }

  const Device& device_;
  const Compiler& compiler_;
  KernelSource source_;
  std::mutex mutex_;
  std::list<Plan> plans_;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_COMPILER_H_
