#include "driver/cuda_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <optional>

#include "plan/gpu/plan.h"
#include "runtime/cuda/runtime_device.h"

namespace tilewright::driver {
namespace {

int64_t stride_of(const HostTensor& t, size_t axis) {
  int64_t s = 1;
  for (size_t d = t.shape.size(); d-- > axis + 1;) s *= t.shape[d];
  return s;
}

/// What lines to print look like: the dtypes of the values of every `print`, by its place in the text.
struct Printer {
  std::map<std::string, std::vector<DType>> dtypes;

  void learn(const ir::Kernel& kernel) {
    dtypes.clear();
    ir::for_each_op(*kernel.body, [&](ir::Op& op) {
      if (op.kind != ir::OpKind::Print) return;
      auto& row = dtypes[to_string(kernel.texts[static_cast<size_t>(op.as<ir::TextAttributes>().id)].location)];
      row.clear();
      for (const ir::Value* v : op.operands) row.push_back(v->type.dtype);
    });
  }
  static void line(void* self, const char* text, const char* location, const int64_t* values, int32_t count) {
    const auto& known = static_cast<const Printer*>(self)->dtypes;
    const auto row = known.find(location);
    std::string out = text;
    for (int32_t i = 0; i < count; ++i) {
      const bool real = row != known.end() && static_cast<size_t>(i) < row->second.size() &&
                        is_float(row->second[static_cast<size_t>(i)]);
      out += real ? fmt::format(" {}", std::bit_cast<double>(values[i])) : fmt::format(" {}", values[i]);
    }
    fmt::print("{}\n", out);
  }
};

/// Device memory of one call; freed with it.
class Memory {
 public:
  explicit Memory(runtime::Device& device) : device_(device) {}
  ~Memory() {
    for (const auto& [at, size] : blocks_) device_.free(at, size);
  }
  Result<void*> copy_of(const void* data, size_t size) {
    auto made = device_.allocate(size);
    if (!made) return std::unexpected(to_diagnostic(made.error()));
    blocks_.emplace_back(*made, size);
    if (data && size) {
      if (auto s = device_.copy_in(*made, data, size); !s) return std::unexpected(to_diagnostic(s.error()));
    }
    return *made;
  }

 private:
  runtime::Device& device_;
  std::vector<std::pair<void*, size_t>> blocks_;
};

tw_scalar to_abi(const ir::ConstantAttributes& value, DType dtype) {
  tw_scalar out = {};
  out.kind = is_float(dtype) ? TW_SCALAR_FLOAT : TW_SCALAR_INTEGER;
  if (is_float(dtype))
    out.value.floating = value.real;
  else
    out.value.integer = value.integer;
  return out;
}

}  // namespace

struct CudaKernel::State {
  Printer printer;
  std::unique_ptr<runtime::Device> device;
  std::optional<runtime::Plan> plan;
};

CudaKernel::CudaKernel() : state_(std::make_unique<State>()) {}
CudaKernel::CudaKernel(CudaKernel&&) noexcept = default;
CudaKernel::~CudaKernel() = default;

Result<target::Gpu> gpu_facts(const cuda::Device& device) {
  const auto& f = device.facts();
  const auto gpu = target::gpu_of(f.architecture, f.multiprocessors, f.shared_bytes_per_block);
  if (!gpu) {
    return fail(DiagnosticCode::E2551, fmt::format("{} is sm_{}; sm_80 or newer is needed", f.name, f.architecture),
                "use --target cpu");
  }
  return *gpu;
}

bool is_aligned_class(const Arrays& arrays) {
  return std::all_of(arrays.tensors.begin(), arrays.tensors.end(), [](const HostTensor& t) {
    for (size_t axis = 0; axis + 1 < t.shape.size(); ++axis) {
      if (stride_of(t, axis) * bytes(t.dtype) % 16 != 0) return false;  // of a single row too: see plan/gpu/plan.cpp
    }
    return true;
  });
}

bool is_large_class(const Arrays& arrays) {
  for (const ir::ConstantAttributes& scalar : arrays.scalars)
    if (scalar.integer > plan::gpu::kLargestExtent || scalar.integer < -plan::gpu::kLargestExtent) return true;
  return std::ranges::any_of(arrays.tensors, [](const HostTensor& t) {
    return std::ranges::any_of(t.shape, [](int64_t n) { return n > plan::gpu::kLargestExtent; });
  });
}

Result<CudaKernel> CudaKernel::load(const cuda::Device& device, const runtime::Artefact& artefact) {
  CudaKernel out;
  out.state_->device =
      cuda::make_runtime_device(device, {.print = Printer::line, .print_context = &out.state_->printer});
  auto plan = runtime::Plan::load(*out.state_->device, artefact);
  if (!plan) return std::unexpected(to_diagnostic(plan.error()));
  out.state_->plan.emplace(std::move(*plan));
  return out;
}

Status CudaKernel::run(const ir::Kernel& kernel, Arrays& arrays) {
  runtime::Device& device = *state_->device;
  state_->printer.learn(kernel);
  Memory memory(device);
  std::vector<tw_tensor> tensors;
  for (size_t i = 0; i < arrays.tensors.size(); ++i) {
    HostTensor& t = arrays.tensors[i];
    const auto at = memory.copy_of(t.data.data(), t.data.size());
    if (!at) return std::unexpected(at.error());
    tensors.push_back({.data = *at,
                       .extents = t.shape.data(),
                       .strides = nullptr,
                       .dtype = static_cast<int32_t>(t.dtype),
                       .rank = static_cast<int32_t>(t.shape.size()),
                       .flags = arrays.present[i] ? 0u : TW_TENSOR_ABSENT,
                       .device = TW_CUDA});
  }
  std::vector<tw_scalar> scalars;
  for (size_t i = 0; i < arrays.scalars.size(); ++i)
    scalars.push_back(to_abi(arrays.scalars[i], kernel.scalars[i].value->type.dtype));
  const tw_arguments arguments = {tensors.data(), tensors.size(), scalars.data(), scalars.size()};
  const auto bytes = state_->plan->workspace_bytes(arguments);
  if (!bytes) return std::unexpected(to_diagnostic(bytes.error()));
  const auto workspace = memory.copy_of(nullptr, *bytes);
  if (!workspace) return std::unexpected(workspace.error());
  if (auto s = state_->plan->execute(arguments, *workspace, *bytes, nullptr); !s)
    return std::unexpected(to_diagnostic(s.error()));
  if (auto s = device.synchronise(nullptr); !s) return std::unexpected(to_diagnostic(s.error()));
  for (size_t i = 0; i < arrays.tensors.size(); ++i) {
    auto& data = arrays.tensors[i].data;
    if (data.empty()) continue;
    if (auto s = device.copy_out(data.data(), tensors[i].data, data.size()); !s)
      return std::unexpected(to_diagnostic(s.error()));
  }
  return {};
}

}  // namespace tilewright::driver
