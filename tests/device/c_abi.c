/* The C interface on a CUDA device: streams, capture in a graph, print, assert, more than 2^31 elements.
 *
 *   c_abi FOLDER       with add.twk, say.twk, large.twk of `tilewright build tests/device/c_abi.tile --target cuda:sm_90a`
 *
 * Prints one line a check; exit code 0 when all hold. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tilewright/tilewright.h"

typedef int (*Driver)();
static Driver driver(const char* name) {
  static void* library;
  if (!library) library = dlopen("libcuda.so.1", RTLD_NOW);
  Driver f = library ? (Driver)dlsym(library, name) : NULL;
  if (!f) printf("no %s\n", name), exit(2);
  return f;
}

static int failures;
static void expect(int holds, const char* what) {
  printf("%s %s\n", holds ? "ok  " : "FAIL", what);
  failures += !holds;
}
static void must(tw_status* status, const char* what) {
  if (!status) return;
  printf("FAIL %s: %s %s\n", what, tw_status_code_text(status), tw_status_message(status));
  exit(1);
}

static tw_plan* load(tw_device* device, const char* folder, const char* name) {
  char path[1024];
  snprintf(path, sizeof path, "%s/%s.twk", folder, name);
  tw_plan* plan = NULL;
  must(tw_plan_load_file(device, path, &plan), path);
  return plan;
}
static tw_buffer* buffer(tw_device* device, size_t bytes) {
  tw_buffer* out = NULL;
  must(tw_buffer_allocate(device, bytes, &out), "allocating");
  return out;
}
static tw_tensor vector(tw_buffer* b, const int64_t* extent, int dtype) {
  tw_tensor t = {tw_buffer_data(b), extent, NULL, dtype, 1, 0, TW_CUDA};
  return t;
}

static int printed;
static void on_print(void* context, const char* text, const char* location, const int64_t* values, int32_t count) {
  (void)context, (void)location;
  ++printed;
  if (printed == 1) printf("     printed: %s (%d values, first %lld)\n", text, count, count ? (long long)values[0] : 0);
}

/* Y = X + 1 on two streams, then captured once and replayed with other contents. */
static void check_streams(tw_device* device, const char* folder) {
  enum { N = 100003 };
  const int64_t n = N;
  tw_plan* plan = load(device, folder, "add");
  float *x = malloc(N * sizeof *x), *y = malloc(N * sizeof *y);
  void *streams[2], *graph, *executable;
  tw_buffer *in[2], *out[2];
  for (int s = 0; s < 2; ++s) {
    in[s] = buffer(device, N * sizeof *x), out[s] = buffer(device, N * sizeof *y);
    for (int i = 0; i < N; ++i) x[i] = (float)(i % 1000 + s);
    must(tw_buffer_write(in[s], 0, x, N * sizeof *x), "writing");
    expect(driver("cuStreamCreate")(&streams[s], 1) == 0, "a stream is created");
  }
  for (int s = 0; s < 2; ++s) {
    tw_tensor tensors[2] = {vector(in[s], &n, TW_F32), vector(out[s], &n, TW_F32)};
    tw_arguments arguments = {tensors, 2, NULL, 0};
    must(tw_execute(plan, &arguments, NULL, 0, streams[s]), "executing on a stream");
  }
  for (int s = 0; s < 2; ++s) {
    must(tw_device_synchronise(device, streams[s]), "waiting for a stream");
    must(tw_buffer_read(out[s], 0, y, N * sizeof *y), "reading");
    int wrong = 0;
    for (int i = 0; i < N; ++i) wrong += y[i] != (float)(i % 1000 + s + 1);
    expect(wrong == 0, s ? "the second stream's result" : "the first stream's result");
  }
  tw_tensor tensors[2] = {vector(in[0], &n, TW_F32), vector(out[0], &n, TW_F32)};
  tw_arguments arguments = {tensors, 2, NULL, 0};
  expect(driver("cuStreamBeginCapture_v2")(streams[0], 0) == 0, "a capture begins");
  must(tw_execute(plan, &arguments, NULL, 0, streams[0]), "executing under capture");
  expect(driver("cuStreamEndCapture")(streams[0], &graph) == 0, "the capture ends");
  expect(driver("cuGraphInstantiateWithFlags")(&executable, graph, 0ull) == 0, "the graph is instantiated");
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < N; ++i) x[i] = (float)(i % 777 + round);
    must(tw_buffer_write(in[0], 0, x, N * sizeof *x), "writing");
    expect(driver("cuGraphLaunch")(executable, streams[0]) == 0, "the graph is launched");
    must(tw_device_synchronise(device, streams[0]), "waiting for the graph");
    must(tw_buffer_read(out[0], 0, y, N * sizeof *y), "reading");
    int wrong = 0;
    for (int i = 0; i < N; ++i) wrong += y[i] != x[i] + 1;
    expect(wrong == 0, "the graph's result");
  }
  for (int s = 0; s < 2; ++s) tw_buffer_free(in[s]), tw_buffer_free(out[s]);
  tw_plan_free(plan), free(x), free(y);
}

/* Prints the negative elements; asserts that none is above 1000. */
static void check_reports(tw_device* device, const char* folder) {
  const int64_t n = 256;
  tw_plan* plan = load(device, folder, "say");
  int32_t x[256];
  for (int i = 0; i < 256; ++i) x[i] = i % 64 == 5 ? -i : i;
  tw_buffer *in = buffer(device, sizeof x), *out = buffer(device, sizeof x);
  tw_tensor tensors[2] = {vector(in, &n, TW_I32), vector(out, &n, TW_I32)};
  tw_arguments arguments = {tensors, 2, NULL, 0};
  must(tw_buffer_write(in, 0, x, sizeof x), "writing");
  must(tw_execute(plan, &arguments, NULL, 0, NULL), "executing");
  must(tw_device_synchronise(device, NULL), "a run without a failed assertion");
  expect(printed == 4, "every print arrives");
  x[200] = 1001;
  must(tw_buffer_write(in, 0, x, sizeof x), "writing");
  must(tw_execute(plan, &arguments, NULL, 0, NULL), "executing");
  tw_status* failed = tw_device_synchronise(device, NULL);
  expect(failed != NULL, "a failed assertion is reported");
  if (failed) printf("     %s: %s\n", tw_status_code_text(failed), tw_status_message(failed));
  tw_status_free(failed);
  x[200] = 0;
  must(tw_buffer_write(in, 0, x, sizeof x), "writing");
  must(tw_execute(plan, &arguments, NULL, 0, NULL), "executing");
  must(tw_device_synchronise(device, NULL), "the device goes on after a failed assertion");
  expect(1, "the device goes on after a failed assertion");
  tw_buffer_free(in), tw_buffer_free(out), tw_plan_free(plan);
}

/* Y = X + 1 of 2^31 + 77 bytes. */
static void check_large(tw_device* device, const char* folder) {
  const int64_t n = ((int64_t)1 << 31) + 77;
  tw_plan* plan = load(device, folder, "large");
  tw_buffer *in = buffer(device, (size_t)n), *out = buffer(device, (size_t)n);
  unsigned char* x = malloc((size_t)n);
  for (int64_t i = 0; i < n; ++i) x[i] = (unsigned char)(i * 31 + (i >> 20));
  must(tw_buffer_write(in, 0, x, (size_t)n), "writing 2 GiB");
  tw_tensor tensors[2] = {vector(in, &n, TW_I8), vector(out, &n, TW_I8)};
  tw_arguments arguments = {tensors, 2, NULL, 0};
  must(tw_execute(plan, &arguments, NULL, 0, NULL), "executing");
  must(tw_device_synchronise(device, NULL), "waiting");
  unsigned char* y = malloc((size_t)n);
  must(tw_buffer_read(out, 0, y, (size_t)n), "reading 2 GiB");
  int64_t wrong = 0;
  for (int64_t i = 0; i < n; ++i) wrong += y[i] != (unsigned char)(x[i] + 1);
  expect(wrong == 0, "more than 2^31 elements");
  tw_buffer_free(in), tw_buffer_free(out), tw_plan_free(plan), free(x), free(y);
}

int main(int count, char** arguments) {
  if (count != 2) return 2;
  tw_device_options options = {0};
  options.struct_size = sizeof options;
  options.print = on_print;
  tw_device* device = NULL;
  must(tw_device_open("cuda:0", &options, &device), "opening the device");
  check_streams(device, arguments[1]);
  check_reports(device, arguments[1]);
  check_large(device, arguments[1]);
  tw_device_close(device);
  printf("%d failures\n", failures);
  return failures != 0;
}
