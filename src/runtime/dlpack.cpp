#include "runtime/dlpack.h"

#include "runtime/element.h"

namespace tilewright::runtime {
namespace {

constexpr int32_t kCpu = 1, kCuda = 2, kCudaHost = 3, kCudaManaged = 13;
constexpr uint64_t kReadOnly = 1;

std::unexpected<Failure> unsupported(std::string message) {
  return fail(FailureCode::unsupported_tensor_source, "DLPack: " + std::move(message));
}

Result<tw_dtype> find_dtype(const DlpackType& type) {
  for (int32_t i = 0; type.lanes == 1 && i < kDTypeCount; ++i) {
    const auto dtype = static_cast<tw_dtype>(i);
    if (element(dtype).dlpack_code == type.code && element(dtype).bits == type.bits) return dtype;
  }
  return unsupported("no element type has code " + std::to_string(type.code) + ", " + std::to_string(type.bits) +
                     " bits, " + std::to_string(type.lanes) + " lanes");
}

Result<tw_tensor> view(const DlpackTensor& tensor, bool is_read_only) {
  const Result<tw_dtype> dtype = find_dtype(tensor.type);
  if (!dtype) return std::unexpected(dtype.error());
  const int32_t type = tensor.device.type;
  if (type != kCpu && type != kCuda && type != kCudaHost && type != kCudaManaged) {
    return unsupported("device type " + std::to_string(type) + " is neither CPU nor CUDA");
  }
  if (tensor.rank < 0 || tensor.rank > TW_MAX_RANK) return unsupported("has " + std::to_string(tensor.rank) + " axes");
  tw_tensor out = {};
  out.data = tensor.data ? static_cast<char*>(tensor.data) + tensor.byte_offset : nullptr;
  out.extents = tensor.shape;
  out.strides = tensor.strides;
  out.dtype = *dtype;
  out.rank = tensor.rank;
  out.flags = is_read_only ? TW_TENSOR_READ_ONLY : 0u;
  out.device = type == kCpu || type == kCudaHost ? TW_CPU : TW_CUDA;
  return out;
}

}  // namespace

Result<tw_tensor> view_dlpack(const DlpackManaged& managed) { return view(managed.tensor, false); }

Result<tw_tensor> view_dlpack(const DlpackManagedVersioned& managed) {
  if (managed.major != 1) return unsupported("version " + std::to_string(managed.major) + " is not understood");
  return view(managed.tensor, (managed.flags & kReadOnly) != 0);
}

}  // namespace tilewright::runtime
