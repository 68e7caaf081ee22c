// The C ABI as a C program uses it: compiled as strict C11 with warnings as errors, run by abi_test.
#include <tilewright/tilewright.h>

_Static_assert(TW_E5M2 == 14, "element type numbers are part of the ABI");

int tw_test_c11_add(const char* kernel_file, const float* a, const float* b, float* c, int64_t n, char* message);

int tw_test_c11_add(const char* kernel_file, const float* a, const float* b, float* c, int64_t n, char* message) {
  tw_device* device = NULL;
  tw_plan* plan = NULL;
  tw_buffer* workspace = NULL;
  size_t bytes = 0;
  tw_tensor tensors[3] = {
      {(void*)(uintptr_t)a, &n, NULL, TW_F32, 1, TW_TENSOR_READ_ONLY, TW_CPU},
      {(void*)(uintptr_t)b, &n, NULL, TW_F32, 1, TW_TENSOR_READ_ONLY, TW_CPU},
      {c, &n, NULL, TW_F32, 1, 0, TW_CPU},
  };
  const tw_arguments arguments = {tensors, 3, NULL, 0};
  tw_status* status = tw_device_open("cpu", NULL, &device);
  if (!status) status = tw_plan_load_file(device, kernel_file, &plan);
  if (!status) status = tw_plan_workspace_bytes(plan, &arguments, &bytes);
  if (!status) status = tw_buffer_allocate(device, bytes, &workspace);
  if (!status) status = tw_execute(plan, &arguments, tw_buffer_data(workspace), bytes, NULL);
  const int code = tw_status_code(status);
  const char* text = tw_status_message(status);
  size_t i = 0;
  for (; text[i] && i < 255; ++i) message[i] = text[i];
  message[i] = 0;
  tw_status_free(status);
  tw_buffer_free(workspace);
  tw_plan_free(plan);
  tw_device_close(device);
  return code;
}
