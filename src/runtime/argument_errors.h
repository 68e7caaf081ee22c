// The sentences a caller reads when an argument is refused, apart from the checks so that those stay short and fast.
// `tensor` is what the kernel expects, `axis` one of its axes.
#pragma once

#include "runtime/binding.h"

namespace tilewright::runtime::argument_errors {

Failure tensor_count(const Recipe& recipe, size_t got);
Failure scalar_count(const Recipe& recipe, size_t got);
Failure null_array(const Recipe& recipe);
Failure missing(const TensorArgument& tensor);
/// dtype, rank, device or a read-only output: whichever `got` has wrong.
Failure identity(const TensorArgument& tensor, const tw_tensor& got, tw_device_kind device);
Failure rank(const TensorArgument& tensor, const tw_tensor& got);
Failure null_extents(const TensorArgument& tensor);
Failure negative_extent(const TensorArgument& tensor, size_t axis, int64_t got);
Failure too_many_elements(const TensorArgument& tensor);
Failure far_stride(const TensorArgument& tensor, size_t axis);
Failure outside_address_space(const TensorArgument& tensor);
Failure null_data(const TensorArgument& tensor);
Failure element_alignment(const TensorArgument& tensor);
Failure class_alignment(const TensorArgument& tensor);
Failure class_bytes(const TensorArgument& tensor, uint64_t got);
Failure zero_stride(const TensorArgument& tensor, size_t axis);
Failure class_inner_stride(const TensorArgument& tensor, size_t axis, int64_t got);
Failure class_pitch(const TensorArgument& tensor, size_t axis, int64_t got);
Failure extent(const Recipe& recipe, size_t tensor, size_t axis, int64_t got, int64_t wanted);
Failure requirement(const Recipe& recipe, const Requirement& broken, const Binding& binding);
Failure alias(const TensorArgument& written, const TensorArgument& other);
Failure no_default(const ScalarArgument& scalar);
Failure not_a_float(const ScalarArgument& scalar);
Failure does_not_fit(const ScalarArgument& scalar, int64_t got);
Failure unknown_kind(const ScalarArgument& scalar);

}  // namespace tilewright::runtime::argument_errors
