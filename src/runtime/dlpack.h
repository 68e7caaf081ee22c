// DLPack tensors as arguments, without a copy and without its header: the layouts below are DLPack's ABI.
#pragma once

#include "runtime/failure.h"
#include "tilewright/tilewright.h"

namespace tilewright::runtime {

struct DlpackDevice {
  int32_t type;  ///< 1 CPU, 2 CUDA, 3 CUDA host, 13 CUDA managed
  int32_t id;
};
struct DlpackType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};
struct DlpackTensor {
  void* data;
  DlpackDevice device;
  int32_t rank;
  DlpackType type;
  int64_t* shape;
  int64_t* strides;  ///< null: row-major
  uint64_t byte_offset;
};
struct DlpackManaged {  // 0.x
  DlpackTensor tensor;
  void* manager_context;
  void (*deleter)(DlpackManaged*);
};
struct DlpackManagedVersioned {  // 1.x
  uint32_t major;
  uint32_t minor;
  void* manager_context;
  void (*deleter)(DlpackManagedVersioned*);
  uint64_t flags;  ///< bit 0: read-only
  DlpackTensor tensor;
};

Result<tw_tensor> view_dlpack(const DlpackManaged& managed);
Result<tw_tensor> view_dlpack(const DlpackManagedVersioned& managed);

}  // namespace tilewright::runtime
