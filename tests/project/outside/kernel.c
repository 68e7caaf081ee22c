#include <stdio.h>

#include "matmul_relu.h"

enum { kM = 65, kN = 33, kK = 17 };

static tw_tensor view(float* data, const int64_t* extents) {
  tw_tensor tensor = {0};
  tensor.data = data;
  tensor.extents = extents;
  tensor.dtype = TW_F32;
  tensor.rank = 2;
  return tensor;
}

static int count_wrong(const float* a, const float* b, const float* c) {
  int wrong = 0;
  for (int i = 0; i < kM; ++i) {
    for (int j = 0; j < kN; ++j) {
      float sum = 0;
      for (int k = 0; k < kK; ++k) sum += a[i * kK + k] * b[k * kN + j];
      wrong += c[i * kN + j] != (sum > 0 ? sum : 0);
    }
  }
  return wrong;
}

int main(void) {
  static float a[kM * kK], b[kK * kN], c[kM * kN];
  const int64_t a_extents[] = {kM, kK}, b_extents[] = {kK, kN}, c_extents[] = {kM, kN};
  for (int i = 0; i < kM * kK; ++i) a[i] = (float)(i % 7 - 3);
  for (int i = 0; i < kK * kN; ++i) b[i] = (float)(i % 5 - 2);
  const tw_tensor A = view(a, a_extents), B = view(b, b_extents), C = view(c, c_extents);
  tw_device* device = NULL;
  tw_plan* plan = NULL;
  tw_buffer* workspace = NULL;
  size_t bytes = 0;
  tw_status* status = tw_device_open("cpu", NULL, &device);
  if (!status) status = matmul_relu_load(device, &plan);
  if (!status) status = matmul_relu_workspace_bytes(plan, A, B, C, &bytes);
  if (!status) status = tw_buffer_allocate(device, bytes, &workspace);
  if (!status) status = matmul_relu_run(plan, A, B, C, tw_buffer_data(workspace), bytes, NULL);
  const int wrong = status ? -1 : count_wrong(a, b, c);
  printf("%s: %s, %d wrong elements\n", tw_plan_target(plan), tw_status_code_text(status), wrong);
  tw_status_free(status);
  tw_buffer_free(workspace);
  tw_plan_free(plan);
  tw_device_close(device);
  return wrong != 0;
}
