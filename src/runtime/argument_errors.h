// The sentences a caller reads when an argument is refused, apart from the checks so that those stay short and fast.
// `tensor` is what the kernel expects, `axis` one of its axes.
#pragma once

#include "runtime/binding.h"

namespace tilewright::runtime::argument_errors {

[[gnu::cold]] Failure tensor_count(const Recipe& recipe, size_t got);
[[gnu::cold]] Failure scalar_count(const Recipe& recipe, size_t got);
[[gnu::cold]] Failure null_array(const Recipe& recipe);
[[gnu::cold]] Failure missing(const TensorArgument& tensor);
[[gnu::cold]] Failure compiled_without(const TensorArgument& tensor);
[[gnu::cold]] Failure unknown_dimension(const TensorArgument& tensor, size_t axis);
/// dtype, rank, device or a read-only output: whichever `got` has wrong.
[[gnu::cold]] Failure identity(const TensorArgument& tensor, const tw_tensor& got, tw_device_kind device);
[[gnu::cold]] Failure rank(const TensorArgument& tensor, const tw_tensor& got);
[[gnu::cold]] Failure null_extents(const TensorArgument& tensor);
[[gnu::cold]] Failure negative_extent(const TensorArgument& tensor, size_t axis, int64_t got);
[[gnu::cold]] Failure too_many_elements(const TensorArgument& tensor);
[[gnu::cold]] Failure far_stride(const TensorArgument& tensor, size_t axis);
[[gnu::cold]] Failure outside_address_space(const TensorArgument& tensor);
[[gnu::cold]] Failure null_data(const TensorArgument& tensor);
[[gnu::cold]] Failure element_alignment(const TensorArgument& tensor);
[[gnu::cold]] Failure class_alignment(const TensorArgument& tensor);
[[gnu::cold]] Failure class_bytes(const TensorArgument& tensor, uint64_t got);
[[gnu::cold]] Failure zero_stride(const TensorArgument& tensor, size_t axis);
[[gnu::cold]] Failure class_inner_stride(const TensorArgument& tensor, size_t axis, int64_t got);
[[gnu::cold]] Failure class_pitch(const TensorArgument& tensor, size_t axis, int64_t got);
[[gnu::cold]] Failure extent(const Recipe& recipe, size_t tensor, size_t axis, int64_t got, int64_t wanted);
[[gnu::cold]] Failure requirement(const Recipe& recipe, const Requirement& broken, const Binding& binding);
[[gnu::cold]] Failure alias(const TensorArgument& written, const TensorArgument& other);
[[gnu::cold]] Failure no_default(const ScalarArgument& scalar);
[[gnu::cold]] Failure not_a_float(const ScalarArgument& scalar);
[[gnu::cold]] Failure does_not_fit(const ScalarArgument& scalar, int64_t got);
[[gnu::cold]] Failure unknown_kind(const ScalarArgument& scalar);

}  // namespace tilewright::runtime::argument_errors
