#include "adapters/tile/kernel_target.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "codegen/backend.h"
#include "driver/call.h"
#include "driver/cuda_call.h"
#include "driver/cuda_compile.h"
#include "driver/toolchain.h"
#include "runtime/cuda/runtime_device.h"

namespace tilewright::adapters {
namespace {

bool is_aligned(const candidate::Tensor& t) {
  for (size_t axis = 0; axis + 1 < t.shape.size(); ++axis) {
    if (t.strides[axis] * bits(t.dtype) % 128 != 0) return false;  // of a single row too: it is stored in pieces of 16
  }
  return true;
}
bool is_large(const candidate::Tensor& t) {
  return std::ranges::any_of(t.shape, [](int64_t n) { return n > plan::gpu::kLargestExtent; });
}

}  // namespace

Result<KernelTarget> KernelTarget::of(const candidate::OpenOptions& options) {
  KernelTarget out;
  out.options_ = options;
  const std::string& text = options.device;
  if (text == "cpu") return out;
  constexpr std::string_view kPrefix = "cuda:";
  const bool is_cuda = text.starts_with(kPrefix);
  const char* begin = text.data() + (is_cuda ? kPrefix.size() : 0);
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), out.ordinal_);
  if (!is_cuda || error != std::errc() || end != text.data() + text.size()) {
    return fail(DiagnosticCode::E3204, fmt::format("tile kernels run on cpu and cuda:0, not on {}", text),
                "use --device cpu or --device cuda:0");
  }
  out.is_cuda_ = true;
  return out;
}

Status KernelTarget::open() {
  cache_ = std::make_unique<cache::KernelCache>(cache::CacheOptions{.folder = options_.cache_dir});
  static_cast<void>(driver::toolchain_identity());  // read off the program's file once, for every key
  std::error_code error;
  const bool will_compile = !options_.cache_dir.empty() && std::filesystem::is_empty(options_.cache_dir, error);
  if (!is_cuda_) {
    device_ = runtime::open_cpu({.threads = options_.threads});
    if (!will_compile || error) return {};
    if (auto opened = codegen::open_backend(); !opened) return std::unexpected(opened.error());
    return {};
  }
  if (will_compile) driver::open_assembler();
  auto opened = cuda::Device::open(ordinal_);
  if (!opened) return std::unexpected(opened.error());
  auto facts = driver::gpu_facts(*opened);
  if (!facts) return std::unexpected(facts.error());
  gpu_ = *opened;
  facts_ = *facts;
  device_ = cuda::make_runtime_device(*opened);
  return {};
}

std::string KernelTarget::name() const {
  if (!is_cuda_) return driver::target_name(target::host_cpu());
  return gpu_ ? "cuda:" + facts_.name : "cuda";
}

Result<driver::Compilation> KernelTarget::compile(const ir::Kernel& kernel,
                                                  std::span<const candidate::Tensor> shapes) const {
  // Line tables name the file's place, and equal sources must give equal bits wherever they lie.
  if (!is_cuda_) return driver::compile(kernel, {.line_tables = false, .cache = cache_.get()});
  return driver::compile_cuda(kernel, {.gpu = facts_,
                                       .plan = {.wide_indices = std::ranges::any_of(shapes, is_large),
                                                .aligned = std::ranges::all_of(shapes, is_aligned)},
                                       .for_device = true,
                                       .cache = cache_.get()});
}

Result<runtime::Plan> KernelTarget::load(const runtime::Artefact& artefact) const {
  auto plan = runtime::Plan::load(*device_, artefact);
  if (!plan) return std::unexpected(driver::to_diagnostic(plan.error()));
  return std::move(*plan);
}

}  // namespace tilewright::adapters
