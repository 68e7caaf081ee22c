/* A small f32 product whose configuration decides how it behaves, to prove that the tuner copes:
 *   {"mode": "ok" | "crash" | "hang" | "wrong", "spin_us": N}
 * The arithmetic is plain loops; `spin_us` is waited for on top, so that planned times order the configurations.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tilewright/candidate.h"

typedef struct tunable {
  char mode[16];
  double spin_us;
} tunable;

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int32_t tunable_open(const tw_candidate_host* host, void** self) {
  (void)host;
  *self = calloc(1, sizeof(tunable));
  return *self == NULL;
}

static int32_t tunable_prepare(void* self, const char* contract, const char* digest, char* echo, size_t capacity) {
  (void)self;
  if (strstr(contract, "\"op\":\"gemm\"") == NULL || strstr(contract, "\"variant\":\"nn\"") == NULL) return TW_CANDIDATE_UNSUPPORTED;
  snprintf(echo, capacity, "%s", digest);
  return 0;
}

static int32_t tunable_compile(void* self, const char* config, tw_candidate_compiled* out) {
  tunable* t = self;
  const char* mode = strstr(config, "\"mode\":\"");
  const char* spin = strstr(config, "\"spin_us\":");
  snprintf(t->mode, sizeof t->mode, "%.*s", mode ? (int)strcspn(mode + 8, "\"") : 2, mode ? mode + 8 : "ok");
  t->spin_us = spin ? atof(spin + 10) : 0;
  if (strcmp(t->mode, "refuse") == 0) return TW_CANDIDATE_UNSUPPORTED;
  out->compiles = 1;
  snprintf(out->digest, sizeof out->digest, "%08x", (unsigned)strlen(config));
  return 0;
}

static int64_t tunable_workspace(void* self) {
  (void)self;
  return 0;
}

static int32_t tunable_launch(void* self, const tw_candidate_tensor* args, int32_t count, void* workspace, void* stream) {
  (void)count, (void)workspace, (void)stream;
  tunable* t = self;
  const double end = now_us() + t->spin_us;
  if (strcmp(t->mode, "crash") == 0) abort();
  while (strcmp(t->mode, "hang") == 0) pause();
  const float *a = args[0].data, *b = args[1].data;
  float* c = args[2].data;
  const int64_t m = args[0].shape[0], k = args[0].shape[1], n = args[1].shape[1];
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t p = 0; p < k; ++p) sum += a[i * k + p] * b[p * n + j];
      c[i * n + j] = sum;
    }
  }
  if (strcmp(t->mode, "wrong") == 0) c[m * n - 1] += 1;
  while (now_us() < end) {
  }
  return 0;
}

static void tunable_close(void* self) { free(self); }

const tw_candidate_api* tw_candidate_entry(uint32_t abi_version) {
  static const tw_candidate_api api = {.abi_version = TW_CANDIDATE_ABI_VERSION,
                                       .size = sizeof(tw_candidate_api),
                                       .name = "tunable",
                                       .version = "1",
                                       .open = tunable_open,
                                       .prepare = tunable_prepare,
                                       .compile = tunable_compile,
                                       .workspace = tunable_workspace,
                                       .launch = tunable_launch,
                                       .close = tunable_close};
  return abi_version == TW_CANDIDATE_ABI_VERSION ? &api : NULL;
}
