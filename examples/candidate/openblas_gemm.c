/* OpenBLAS's sgemm as a candidate: how to bring a kernel of your own to the benchmark, in C, with no `.tile` file.
 *
 *   cc -O2 -shared -fPIC -I include examples/candidate/openblas_gemm.c -o openblas_gemm.so -ldl
 *   tilewright bench lib:./openblas_gemm.so --op gemm:512x512x512
 *   tilewright bench lib:./openblas_gemm.so?library=/opt/OpenBLAS/lib/libopenblas.so --op gemm:512x512x512:nt
 *
 * It computes f32 products C = op(A) · op(B), row-major, in any of the layouts nn, nt, tn, tt, and says "unsupported" to
 * everything else. The library is opened at run time, so nothing is needed to build it.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tilewright/candidate.h"

enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111, TRANSPOSE = 112 }; /* CBLAS's enumerators */

typedef void sgemm_function(int order, int ta, int tb, int m, int n, int k, float alpha, const float* a, int lda,
                            const float* b, int ldb, float beta, float* c, int ldc);

typedef struct product {
  void* library;
  sgemm_function* sgemm;
  int transpose_a, transpose_b;
  char error[256];
} product;

static int32_t refuse(product* self, const char* why) {
  snprintf(self->error, sizeof self->error, "%s", why);
  return TW_CANDIDATE_UNSUPPORTED;
}

/* Everything a process needs before it can multiply: what import_ms measures. */
static int32_t product_open(const tw_candidate_host* host, void** out) {
  product* self = calloc(1, sizeof *self);
  *out = self;
  if (self == NULL) return 1;
  if (strcmp(host->device, "cpu") != 0) return refuse(self, "this candidate runs on the CPU");
  const int named = strncmp(host->options, "library=", 8) == 0;
  self->library = dlopen(named ? host->options + 8 : "libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  if (self->library == NULL) {
    const char* why = dlerror();
    return refuse(self, why != NULL ? why : "cannot open libopenblas.so.0");
  }
  *(void**)&self->sgemm = dlsym(self->library, "cblas_sgemm");
  if (self->sgemm == NULL) return refuse(self, "the library has no cblas_sgemm");
  void (*set_threads)(int);
  *(void**)&set_threads = dlsym(self->library, "openblas_set_num_threads");
  if (set_threads != NULL) set_threads(host->threads);
  return 0;
}

/* The contract is canonical JSON: no spaces, keys in alphabetical order, so a few searches read it. Refuse what you do
 * not compute exactly: a bias, an activation, other element types. */
static int32_t product_prepare(void* state, const char* contract, const char* digest, char* echo, size_t capacity) {
  product* self = state;
  if (strstr(contract, "\"op\":\"gemm\"") == NULL) return refuse(self, "only products (gemm)");
  if (strstr(contract, "\"dtypes\":{\"acc\":\"f32\",\"in\":\"f32\",\"out\":\"f32\"}") == NULL)
    return refuse(self, "only f32/f32/f32");
  if (strstr(contract, "\"dims\":{\"B\"") != NULL) return refuse(self, "no batches");
  if (strstr(contract, "\"epilogue\":\"\"") == NULL) return refuse(self, "no epilogue");
  const char* variant = strstr(contract, "\"variant\":\"");
  if (variant == NULL) return refuse(self, "the contract names no layout");
  self->transpose_a = variant[11] == 't';
  self->transpose_b = variant[12] == 't';
  snprintf(echo, capacity, "%s", digest);
  return 0;
}

/* Nothing is compiled and nothing is cached: the row says "precompiled". */
static int32_t product_compile(void* state, const char* config, tw_candidate_compiled* out) {
  (void)state, (void)config;
  out->compiles = out->cache_hits = 0;
  return 0;
}

static int64_t product_workspace(void* state) {
  (void)state;
  return 0;
}

/* Arguments come in the contract's order: A, B, C. Sizes are read from them, so one object serves every shape. */
static int32_t product_launch(void* state, const tw_candidate_tensor* args, int32_t count, void* workspace,
                              void* stream) {
  product* self = state;
  (void)workspace, (void)stream;
  if (count != 3 || args[0].rank != 2) return refuse(self, "takes A, B and C, each of two dimensions");
  const tw_candidate_tensor *a = &args[0], *b = &args[1], *c = &args[2];
  const int m = (int)c->shape[0], n = (int)c->shape[1], k = (int)a->shape[self->transpose_a ? 0 : 1];
  self->sgemm(ROW_MAJOR, self->transpose_a ? TRANSPOSE : NO_TRANSPOSE, self->transpose_b ? TRANSPOSE : NO_TRANSPOSE, m,
              n, k, 1.0f, a->data, (int)a->strides[0], b->data, (int)b->strides[0], 0.0f, c->data, (int)c->strides[0]);
  return 0;
}

static const char* product_last_error(void* state) { return state != NULL ? ((product*)state)->error : ""; }

static void product_close(void* state) { free(state); } /* the library stays: its threads may still be there */

static const tw_candidate_api api = {.abi_version = TW_CANDIDATE_ABI_VERSION,
                                     .size = sizeof(tw_candidate_api),
                                     .name = "openblas-gemm",
                                     .version = "example 1",
                                     .open = product_open,
                                     .prepare = product_prepare,
                                     .compile = product_compile,
                                     .workspace = product_workspace,
                                     .launch = product_launch,
                                     .last_error = product_last_error,
                                     .close = product_close};

const tw_candidate_api* tw_candidate_entry(uint32_t abi_version) {
  return abi_version == TW_CANDIDATE_ABI_VERSION ? &api : NULL;
}
