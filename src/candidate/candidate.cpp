#include "candidate/candidate.h"

#include <algorithm>

namespace tilewright::candidate {

int64_t Tensor::element_count() const {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

size_t Tensor::byte_count() const {
  if (element_count() == 0) return 0;
  int64_t last = 0;
  for (size_t d = 0; d < shape.size(); ++d) last += (shape[d] - 1) * strides[d];
  return static_cast<size_t>((last + 1) * bits(dtype) + 7) / 8;
}

Result<RemoteTimes> Candidate::launch_batch(std::span<const Tensor>, const RemoteLaunches&) {
  return fail(DiagnosticCode::E9001, "launch_batch called on a candidate that runs in this process");
}

Result<void*> Candidate::allocate_shared(size_t) {
  return fail(DiagnosticCode::E9001, "allocate_shared called on a candidate that runs in this process");
}

void Candidate::release_shared(void*) {}

bool same_tensors(std::span<const Tensor> a, std::span<const Tensor> b) {
  return std::ranges::equal(a, b, [](const Tensor& x, const Tensor& y) {
    return x.data == y.data && x.dtype == y.dtype && x.is_output == y.is_output && x.shape == y.shape &&
           x.strides == y.strides && x.name == y.name;
  });
}

}  // namespace tilewright::candidate
