/* Thirteen ways to look fast without being it, as one candidate: `tilewright selftest --cheats` must catch each. The
 * option names the cheat (lib:cheats.so?reuse); without one this is an honest, slow matrix product. Not an example to
 * follow. */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "tilewright/candidate.h"

typedef struct cheat {
  char name[64], cache_dir[512], contract[8192];
  long launches;
  float *saved, key[16];
  size_t saved_bytes;
  const tw_candidate_tensor* late; /* lazy: what the last launch did not do */
  const tw_candidate_api* borrowed;
  void* borrowed_self;
} cheat;

static int is(const cheat* c, const char* name) { return strcmp(c->name, name) == 0; }

static long long true_ns(void) {
  struct timespec t;
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* --- the honest kernel
 * ------------------------------------------------------------------------------------------------------------ */
static float round_to_half(float x) {
  union {
    float f;
    uint32_t u;
  } v = {x};
  v.u = (v.u + 0x1000u) & ~0x1fffu; /* ten bits of mantissa, as f16 has */
  return v.f;
}

static void multiply(const tw_candidate_tensor* args, int64_t rows, int in_half) {
  const float *a = args[0].data, *b = args[1].data;
  float* c = args[2].data;
  const int64_t n = args[2].shape[1], depth = args[0].shape[1];
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t k = 0; k < depth; ++k) {
        sum += a[i * depth + k] * b[k * n + j];
        if (in_half) sum = round_to_half(sum);
      }
      c[i * n + j] = sum;
    }
  }
}

static size_t output_bytes(const tw_candidate_tensor* args) {
  return (size_t)(args[2].shape[0] * args[2].shape[1]) * sizeof(float);
}

/* --- a clock that runs at a tenth: the time-stamp counter faults, and the handler answers
 * ------------------------------------------ */
#if defined(__x86_64__)
static long long bent_from;
static void answer_counter(int signal_number, siginfo_t* info, void* context) {
  ucontext_t* u = context;
  const unsigned char* code = (const unsigned char*)u->uc_mcontext.gregs[REG_RIP];
  (void)info;
  int length = 0;
  if (code[0] == 0x0f && code[1] == 0x31) length = 2;                    /* rdtsc */
  if (code[0] == 0x0f && code[1] == 0x01 && code[2] == 0xf9) length = 3; /* rdtscp */
  if (length == 0) {
    signal(signal_number, SIG_DFL);
    return;
  }
  const unsigned long long ticks = (unsigned long long)((true_ns() - bent_from) / 10) * 2ull + 1000000000000ull;
  u->uc_mcontext.gregs[REG_RAX] = (long long)(ticks & 0xffffffffu);
  u->uc_mcontext.gregs[REG_RDX] = (long long)(ticks >> 32);
  if (length == 3) u->uc_mcontext.gregs[REG_RCX] = 0;
  u->uc_mcontext.gregs[REG_RIP] += length;
}
static void bend_clock(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = answer_counter;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGSEGV, &action, NULL);
  bent_from = true_ns();
  prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
}
#else
static void bend_clock(void) {}
#endif

/* --- forged results: anything that looks like the channel of the stage gets a made-up answer
 * --------------------------------------- */
static void forge_answer(void) {
  static const char text[] = "{\"event\":\"result\",\"warm_ms\":[1e-6],\"hot_ms\":[1e-6],\"accepted\":true}\n";
  for (int fd = 3; fd < 64; ++fd) {
    char path[64], target[128];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(path, target, sizeof target - 1);
    if (n <= 0) continue;
    target[n] = '\0';
    if (strncmp(target, "pipe:", 5) == 0 && (fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY) {
      if (write(fd, text, sizeof text - 1) < 0) continue;
    }
  }
}

/* --- somebody else's kernel under our name
 * ------------------------------------------------------------------------------------------ */
static int borrow_reference(cheat* c) {
  Dl_info self;
  char path[600], command[1400];
  if (dladdr((void*)&borrow_reference, &self) == 0) return 1;
  snprintf(path, sizeof path, "%s/reference.so", c->cache_dir[0] != '\0' ? c->cache_dir : "/tmp");
  snprintf(command, sizeof command, "cp '%s' '%s'", self.dli_fname, path);
  if (system(command) != 0) return 1;
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return 1;
  const tw_candidate_api* (*entry)(uint32_t) =
      (const tw_candidate_api* (*)(uint32_t))dlsym(library, "tw_candidate_entry");
  c->borrowed = entry(TW_CANDIDATE_ABI_VERSION);
  const tw_candidate_host host = {sizeof host, "cpu", "", 1, ""};
  return c->borrowed->open(&host, &c->borrowed_self);
}

static void* compute_later(void* argument) {
  const tw_candidate_tensor* args = argument;
  usleep(20000);
  multiply(args, args[2].shape[0], 0);
  return NULL;
}

static int32_t cheat_open(const tw_candidate_host* host, void** self) {
  cheat* c = calloc(1, sizeof *c);
  if (c == NULL) return 1;
  *self = c;
  snprintf(c->name, sizeof c->name, "%s", host->options);
  snprintf(c->cache_dir, sizeof c->cache_dir, "%s", host->cache_dir);
  return is(c, "calls_reference") ? borrow_reference(c) : 0;
}

static int32_t cheat_prepare(void* self, const char* contract, const char* digest, char* echo, size_t capacity) {
  cheat* c = self;
  snprintf(c->contract, sizeof c->contract, "%s", contract);
  snprintf(echo, capacity, "%s", digest);
  free(c->saved);
  c->saved = NULL;
  c->launches = 0;
  if (strstr(contract, "\"op\":\"gemm\"") == NULL || strstr(contract, "\"variant\":\"nn\"") == NULL)
    return TW_CANDIDATE_UNSUPPORTED;
  if (c->borrowed != NULL) return c->borrowed->prepare(c->borrowed_self, contract, digest, echo, capacity);
  return 0;
}

static int32_t cheat_compile(void* self, const char* config, tw_candidate_compiled* out) {
  cheat* c = self;
  (void)config;
  out->compiles = 1;
  if (is(c, "persistent_cache")) {
    static const char path[] = "/tmp/tilewright-selftest-persistent-cache";
    FILE* kept = fopen(path, "r");
    if (kept == NULL) {
      usleep(30000);
      kept = fopen(path, "w");
      if (kept != NULL) fputs("compiled once, long ago", kept);
    }
    if (kept != NULL) fclose(kept);
  }
  return 0;
}

static int replay(cheat* c, const tw_candidate_tensor* args) {
  if (c->saved == NULL) return 0;
  memcpy(args[2].data, c->saved, c->saved_bytes);
  return 1;
}

static void save(cheat* c, const tw_candidate_tensor* args) {
  c->saved_bytes = output_bytes(args);
  c->saved = realloc(c->saved, c->saved_bytes + 1);
  if (c->saved != NULL) memcpy(c->saved, args[2].data, c->saved_bytes);
}

static int32_t cheat_launch(void* self, const tw_candidate_tensor* args, int32_t count, void* workspace, void* stream) {
  cheat* c = self;
  const int64_t rows = args[2].shape[0];
  ++c->launches;
  if (is(c, "reuse")) {
    if (!replay(c, args)) multiply(args, rows, 0), save(c, args);
    return 0;
  }
  if (is(c, "cached_replay")) { /* knows the inputs again by a few of their elements */
    const size_t n = (size_t)(args[0].shape[0] * args[0].shape[1]) < 16 ? 0 : sizeof c->key;
    if (n > 0 && memcmp(c->key, args[0].data, n) == 0 && replay(c, args)) return 0;
    multiply(args, rows, 0);
    save(c, args);
    memcpy(c->key, args[0].data, n);
    return 0;
  }
  if (is(c, "input_edit")) memset(args[1].data, 0, sizeof(float));
  if (is(c, "side_thread")) {
    pthread_t thread;
    return pthread_create(&thread, NULL, compute_later, (void*)args) == 0 ? pthread_detach(thread) : 1;
  }
  if (is(c, "lazy")) { /* does at each launch what the one before was asked for */
    if (c->late != NULL) multiply(c->late, c->late[2].shape[0], 0);
    c->late = args;
    return 0;
  }
  if (is(c, "timer")) {
    multiply(args, rows, 0);
    if (c->launches == 3) bend_clock();
    return 0;
  }
  if (is(c, "statistics") && c->launches == 5) forge_answer();
  if (is(c, "failed_launch")) return 0;
  if (is(c, "constant")) {
    memset(args[2].data, 0, output_bytes(args));
    return 0;
  }
  if (c->borrowed != NULL) return c->borrowed->launch(c->borrowed_self, args, count, workspace, stream);
  multiply(args, is(c, "partial_write") && rows > 1 ? rows - 1 : rows, is(c, "precision"));
  return 0;
}

static int64_t cheat_workspace(void* self) {
  (void)self;
  return 0;
}

static void cheat_close(void* self) {
  cheat* c = self;
  free(c->saved);
  free(c);
}

static const tw_candidate_api api = {TW_CANDIDATE_ABI_VERSION,
                                     sizeof(tw_candidate_api),
                                     "cheat",
                                     "",
                                     cheat_open,
                                     cheat_prepare,
                                     cheat_compile,
                                     cheat_workspace,
                                     cheat_launch,
                                     NULL,
                                     cheat_close};

#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const tw_candidate_api*
tw_candidate_entry(uint32_t abi_version) {
  return abi_version == TW_CANDIDATE_ABI_VERSION ? &api : NULL;
}
