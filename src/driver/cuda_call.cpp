#include "driver/cuda_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "runtime/expression.h"

namespace tilewright::driver {
namespace {

int64_t stride_of(const HostTensor& t, size_t axis) {
  int64_t s = 1;
  for (size_t d = t.shape.size(); d-- > axis + 1;) s *= t.shape[d];
  return s;
}

int64_t scalar_bits(const ir::ConstantAttributes& value, DType dtype) {
  if (dtype == DType::F64) return std::bit_cast<int64_t>(value.real);
  if (is_float(dtype)) return static_cast<int64_t>(std::bit_cast<uint32_t>(static_cast<float>(value.real)));
  return value.integer;
}

Result<std::vector<int64_t>> evaluate_slots(const runtime::Recipe& recipe, const ir::Kernel& kernel,
                                            const Arrays& arrays) {
  std::vector<int64_t> slots;
  for (const runtime::Slot& slot : recipe.slots) {
    switch (slot.kind) {
      case runtime::SlotKind::Dim: slots.push_back(arrays.tensors.at(slot.argument).shape.at(slot.axis)); break;
      case runtime::SlotKind::Stride: slots.push_back(stride_of(arrays.tensors.at(slot.argument), slot.axis)); break;
      case runtime::SlotKind::Scalar:
        slots.push_back(
            scalar_bits(arrays.scalars.at(slot.argument), kernel.scalars.at(slot.argument).value->type.dtype));
        break;
      case runtime::SlotKind::Present: slots.push_back(arrays.present.at(slot.argument)); break;
      case runtime::SlotKind::Misalignment: slots.push_back(0); break;  // of CPU plans only
      case runtime::SlotKind::Computed: slots.push_back(evaluate(slot.value, slots)); break;
    }
  }
  for (const runtime::Requirement& r : recipe.requirements) {
    if (evaluate(r.holds, slots) == 0)
      return fail(r.is_guard ? DiagnosticCode::E1414 : DiagnosticCode::E1410, fmt::format("{} does not hold", r.text));
  }
  return slots;
}

TensorMap tensor_map(const runtime::TensorMap& spec, const std::vector<uint64_t>& pointers,
                     const std::vector<int64_t>& slots) {
  constexpr TensorMapType types[] = {TensorMapType::U8,  TensorMapType::U16, TensorMapType::U16, TensorMapType::I32,
                                     TensorMapType::I32, TensorMapType::I32, TensorMapType::F16, TensorMapType::F32,
                                     TensorMapType::F64, TensorMapType::BF16};
  constexpr int sizes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2};
  TensorMap map;
  map.address = pointers.at(spec.pointer);
  map.type = types[spec.data_type];
  map.element_bytes = sizes[spec.data_type];
  map.rank = static_cast<int>(spec.extents.size());
  map.stride[0] = static_cast<uint64_t>(map.element_bytes);
  for (size_t i = 0; i < spec.extents.size(); ++i) {
    map.extent[i] = static_cast<uint64_t>(evaluate(spec.extents[i], slots));
    map.box[i] = spec.box[i];
    if (i > 0) map.stride[i] = static_cast<uint64_t>(evaluate(spec.stride_bytes[i - 1], slots));
  }
  map.swizzle = static_cast<Swizzle>(spec.swizzle);
  return map;
}

unsigned extent(const runtime::Expression& e, const std::vector<int64_t>& slots) {
  return static_cast<unsigned>(std::max<int64_t>(0, evaluate(e, slots)));
}

}  // namespace

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
      if (t.shape[axis] > 1 && stride_of(t, axis) * bytes(t.dtype) % 16 != 0) return false;
    }
    return true;
  });
}

Result<CudaKernel> CudaKernel::load(const cuda::Device& device, const runtime::Artefact& artefact) {
  CudaKernel out(device);
  out.recipe_ = artefact.recipe;
  auto module = cuda::Module::load(device, artefact.code);
  if (!module) return std::unexpected(module.error());
  for (const runtime::Launch& launch : artefact.recipe.launches) {
    auto kernel = module->kernel(launch.symbol, static_cast<int>(evaluate(launch.shared_bytes, {})));
    if (!kernel) return std::unexpected(kernel.error());
    out.kernels_.push_back(std::move(*kernel));
  }
  return out;
}

Status CudaKernel::run(const ir::Kernel& kernel, Arrays& arrays) const {
  auto slots = evaluate_slots(recipe_, kernel, arrays);
  if (!slots) return std::unexpected(slots.error());
  if (!recipe_.tensors.empty() && recipe_.tensors[0].facts.pitch_alignment > 1 && !is_aligned_class(arrays)) {
    return fail(DiagnosticCode::E1414,
                "a row pitch is not a multiple of 16 bytes; this code is for the class where all are");
  }
  std::vector<cuda::DeviceBuffer> buffers;
  std::vector<uint64_t> pointers;
  const auto allocate = [&](size_t size) -> Status {
    auto buffer = cuda::DeviceBuffer::allocate(device_, size);
    if (!buffer) return std::unexpected(buffer.error());
    pointers.push_back(buffer->address());
    buffers.push_back(std::move(*buffer));
    return {};
  };
  for (size_t i = 0; i < arrays.tensors.size(); ++i) {
    const auto& data = arrays.tensors[i].data;
    if (Status s = allocate(data.size()); !s) return s;
    if (Status s = buffers.back().upload(data.data(), data.size()); !s) return s;
    if (!arrays.present[i]) pointers.back() = 0;
  }
  for (const runtime::Workspace& w : recipe_.workspaces) {
    if (Status s = allocate(static_cast<size_t>(evaluate(w.bytes, *slots))); !s) return s;
    if (Status s = buffers.back().fill_bytes(0); !s) return s;
  }
  for (size_t l = 0; l < kernels_.size(); ++l) {
    const runtime::Launch& launch = recipe_.launches[l];
    cuda::LaunchShape shape;
    for (size_t i = 0; i < launch.grid.size(); ++i) shape.grid[i] = extent(launch.grid[i], *slots);
    if (shape.grid[0] == 0 || shape.grid[1] == 0 || shape.grid[2] == 0) continue;
    shape.threads = extent(launch.threads, *slots);
    shape.shared_bytes = extent(launch.shared_bytes, *slots);
    std::vector<cuda::EncodedTensorMap> maps;
    for (const auto& spec : launch.tensor_maps) {
      auto map = cuda::encode(device_.driver(), tensor_map(spec, pointers, *slots));
      if (!map) return std::unexpected(map.error());
      maps.push_back(*map);
    }
    std::vector<void*> arguments;
    for (uint64_t& p : pointers) arguments.push_back(&p);
    for (int64_t& s : *slots) arguments.push_back(&s);
    for (auto& m : maps) arguments.push_back(&m);
    if (Status s = kernels_[l].launch(shape, arguments, nullptr); !s) return s;
  }
  if (Status s = device_.synchronize(); !s) return s;
  for (size_t i = 0; i < arrays.tensors.size(); ++i) {
    auto& data = arrays.tensors[i].data;
    if (Status s = buffers[i].download(data.data(), data.size()); !s) return s;
  }
  return {};
}

}  // namespace tilewright::driver
