/* A candidate whose every cost is planted, to prove that the benchmark finds it. Options, separated by commas
 * (lib:toy.so?spin_us=2000,…): import_ms=N     open sleeps N ms              compile_ms=N  compile sleeps N ms and
 * leaves an artefact in the cache folder first_ms=N      the first launch sleeps N ms  spin_us=N     a launch lasts N
 * µs drift=P         launches grow slower, evenly, by P % over the first `drift_over` (default 100) launches
 *   drift_ms=D      … over the first D ms of this process instead: every toy in it slows alike
 *   alloc_mib=N     the first launch touches N MiB and keeps them
 *   wrong=1         the first output element is off by one
 *   crash=STEP, hang=STEP, refuse=STEP           STEP: open, prepare, compile, launch
 *   mask=KIND       computes that attention mask whatever the contract says; echo=honest admits it
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tilewright/candidate.h"

typedef struct toy {
  char options[512], cache_dir[512], contract[16384];
  double import_ms, compile_ms, first_ms, spin_us, drift, drift_over, drift_ms;
  long alloc_mib, launches;
  int wrong;
  char error[128];
  char* block;
} toy;

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static void sleep_ms(double ms) {
  if (ms > 0) usleep((useconds_t)(ms * 1000));
}

/* The value of `key` in "a=1,b=2", or NULL; copied into `out`. */
static const char* option(const char* options, const char* key, char* out, size_t capacity) {
  const size_t length = strlen(key);
  for (const char* at = options; at != NULL && *at != '\0'; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
    if (strncmp(at, key, length) != 0 || at[length] != '=') continue;
    size_t n = strcspn(at + length + 1, ",");
    if (n >= capacity) n = capacity - 1;
    memcpy(out, at + length + 1, n);
    out[n] = '\0';
    return out;
  }
  return NULL;
}

static double number(const toy* t, const char* key, double usual) {
  char text[64];
  return option(t->options, key, text, sizeof text) != NULL ? atof(text) : usual;
}

static int misbehave(const toy* t, const char* step) {
  char text[64];
  if (option(t->options, "crash", text, sizeof text) != NULL && strcmp(text, step) == 0) abort();
  if (option(t->options, "hang", text, sizeof text) != NULL && strcmp(text, step) == 0) {
    while (1) pause();
  }
  return option(t->options, "refuse", text, sizeof text) != NULL && strcmp(text, step) == 0 ? TW_CANDIDATE_UNSUPPORTED
                                                                                            : 0;
}

static int32_t toy_open(const tw_candidate_host* host, void** self) {
  toy* t = calloc(1, sizeof *t);
  if (t == NULL) return 1;
  *self = t;
  snprintf(t->options, sizeof t->options, "%s", host->options);
  snprintf(t->cache_dir, sizeof t->cache_dir, "%s", host->cache_dir);
  t->compile_ms = number(t, "compile_ms", 0);
  t->first_ms = number(t, "first_ms", 0);
  t->spin_us = number(t, "spin_us", 0);
  t->drift = number(t, "drift", 0);
  t->drift_over = number(t, "drift_over", 100);
  t->drift_ms = number(t, "drift_ms", 0);
  t->alloc_mib = (long)number(t, "alloc_mib", 0);
  t->wrong = (int)number(t, "wrong", 0);
  sleep_ms(number(t, "import_ms", 0));
  return misbehave(t, "open");
}

static int32_t toy_prepare(void* self, const char* contract, const char* digest, char* echo, size_t capacity) {
  toy* t = self;
  char mask[64], honesty[64];
  snprintf(t->contract, sizeof t->contract, "%s", contract);
  if (option(t->options, "mask", mask, sizeof mask) != NULL &&
      option(t->options, "echo", honesty, sizeof honesty) != NULL) {
    snprintf(echo, capacity, "{\"mask.spec\":\"%s\"}", mask);
  } else {
    snprintf(echo, capacity, "%s", digest);
  }
  return misbehave(t, "prepare");
}

static int32_t toy_compile(void* self, const char* config, tw_candidate_compiled* out) {
  toy* t = self;
  char path[600];
  (void)config;
  snprintf(path, sizeof path, "%s/toy.bin", t->cache_dir);
  FILE* artefact = t->cache_dir[0] != '\0' ? fopen(path, "r") : NULL;
  if (artefact != NULL) {
    out->cache_hits = 1;
    fclose(artefact);
  } else {
    sleep_ms(t->compile_ms);
    out->compiles = 1;
    artefact = t->cache_dir[0] != '\0' ? fopen(path, "w") : NULL;
    if (artefact != NULL) {
      fputs("toy", artefact);
      fclose(artefact);
    }
  }
  snprintf(out->digest, sizeof out->digest, "%064d", 7);
  return misbehave(t, "compile");
}

static const tw_candidate_tensor* find(const tw_candidate_tensor* args, int32_t count, const char* name) {
  for (int32_t i = 0; i < count; ++i) {
    if (strcmp(args[i].name, name) == 0) return &args[i];
  }
  return NULL;
}

static int64_t count_of(const tw_candidate_tensor* x) {
  int64_t n = 1;
  for (int32_t d = 0; d < x->rank; ++d) n *= x->shape[d];
  return n;
}

static void gemm(const toy* t, const tw_candidate_tensor* A, const tw_candidate_tensor* B,
                 const tw_candidate_tensor* C) {
  const int ta = strstr(t->contract, "\"variant\":\"t") != NULL, tb = strstr(t->contract, "t\",\"version\"") != NULL;
  const int64_t M = C->shape[0], N = C->shape[1], K = ta ? A->shape[0] : A->shape[1];
  const float *a = A->data, *b = B->data;
  float* c = C->data;
  for (int64_t i = 0; i < M; ++i) {
    for (int64_t j = 0; j < N; ++j) {
      float sum = 0;
      for (int64_t k = 0; k < K; ++k) sum += (ta ? a[k * M + i] : a[i * K + k]) * (tb ? b[j * K + k] : b[k * N + j]);
      c[i * N + j] = sum;
    }
  }
}

/* bshd; mask: none, causal-br, causal-tl */
static void attention(const toy* t, const tw_candidate_tensor* Q, const tw_candidate_tensor* K,
                      const tw_candidate_tensor* V, const tw_candidate_tensor* O) {
  char mask[64] = "none";
  if (option(t->options, "mask", mask, sizeof mask) == NULL) {
    if (strstr(t->contract, "\"causal-br\"") != NULL) strcpy(mask, "causal-br");
    if (strstr(t->contract, "\"causal-tl\"") != NULL) strcpy(mask, "causal-tl");
  }
  const int64_t sq = Q->shape[1], hq = Q->shape[2], d = Q->shape[3], sk = K->shape[1], hk = K->shape[2];
  float* p = malloc((size_t)sk * sizeof *p);
  for (int64_t b = 0; b < Q->shape[0]; ++b) {
    for (int64_t h = 0; h < hq; ++h) {
      for (int64_t i = 0; i < sq; ++i) {
        const float* q = (const float*)Q->data + ((b * sq + i) * hq + h) * d;
        float* o = (float*)O->data + ((b * sq + i) * hq + h) * d;
        int64_t end = strcmp(mask, "none") == 0 ? sk : strcmp(mask, "causal-tl") == 0 ? i + 1 : i + 1 + sk - sq;
        if (end > sk) end = sk;
        float top = -INFINITY, sum = 0;
        for (int64_t j = 0; j < end; ++j) {
          const float* k = (const float*)K->data + ((b * sk + j) * hk + h / (hq / hk)) * d;
          float s = 0;
          for (int64_t x = 0; x < d; ++x) s += q[x] * k[x];
          p[j] = s / sqrtf((float)d);
          if (p[j] > top) top = p[j];
        }
        for (int64_t x = 0; x < d; ++x) o[x] = 0;
        for (int64_t j = 0; j < end; ++j) {
          const float* v = (const float*)V->data + ((b * sk + j) * hk + h / (hq / hk)) * d;
          const float w = expf(p[j] - top);
          sum += w;
          for (int64_t x = 0; x < d; ++x) o[x] += w * v[x];
        }
        for (int64_t x = 0; x < d && sum > 0; ++x) o[x] /= sum;
      }
    }
  }
  free(p);
}

static int compute(toy* t, const tw_candidate_tensor* args, int32_t count) {
  const tw_candidate_tensor *A = find(args, count, "A"), *B = find(args, count, "B"), *Q = find(args, count, "Q");
  const tw_candidate_tensor* out = &args[count - 1];
  if (strcmp(args[0].dtype, "f32") != 0) return TW_CANDIDATE_UNSUPPORTED;
  if (strstr(t->contract, "\"op\":\"gemm\"") != NULL) {
    gemm(t, A, B, out);
  } else if (strstr(t->contract, "\"op\":\"attn\"") != NULL) {
    attention(t, Q, find(args, count, "K"), find(args, count, "V"), out);
  } else if (strstr(t->contract, "\"op\":\"add\"") != NULL) {
    for (int64_t i = 0; i < count_of(out); ++i)
      ((float*)out->data)[i] = ((const float*)args[0].data)[i] + ((const float*)args[1].data)[i];
  } else {
    return TW_CANDIDATE_UNSUPPORTED;
  }
  if (t->wrong) ((float*)out->data)[0] += 1;
  return 0;
}

static int32_t toy_launch(void* self, const tw_candidate_tensor* args, int32_t count, void* workspace, void* stream) {
  toy* t = self;
  const double start = now_us();
  (void)workspace;
  (void)stream;
  const int refused = misbehave(t, "launch");
  if (refused != 0) return refused;
  if (t->launches == 0) {
    sleep_ms(t->first_ms);
    if (t->alloc_mib > 0) {
      t->block = malloc((size_t)t->alloc_mib << 20);
      if (t->block != NULL) memset(t->block, 1, (size_t)t->alloc_mib << 20);
    }
  }
  static double first_launch_us;
  if (first_launch_us == 0) first_launch_us = start;
  const double part =
      t->drift_ms > 0 ? (start - first_launch_us) / 1000 / t->drift_ms : (double)t->launches / t->drift_over;
  const double slow = 1 + t->drift / 100 * (part < 1 ? part : 1);
  const int result = compute(t, args, count);
  ++t->launches;
  while (t->spin_us > 0 && t->launches > 0 && now_us() - start < t->spin_us * slow) {
  }
  return result;
}

static int64_t toy_workspace(void* self) {
  (void)self;
  return 4096;
}

static const char* toy_last_error(void* self) { return self != NULL ? "the toy was told to refuse" : ""; }

static void toy_close(void* self) {
  toy* t = self;
  free(t->block);
  free(t);
}

static const tw_candidate_api api = {TW_CANDIDATE_ABI_VERSION,
                                     sizeof(tw_candidate_api),
                                     "toy",
                                     "1.0",
                                     toy_open,
                                     toy_prepare,
                                     toy_compile,
                                     toy_workspace,
                                     toy_launch,
                                     toy_last_error,
                                     toy_close};

const tw_candidate_api* tw_candidate_entry(uint32_t abi_version) {
  return abi_version == TW_CANDIDATE_ABI_VERSION ? &api : NULL;
}
