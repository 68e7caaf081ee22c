/* The C interface of a kernel that can be judged (C11). A shared library exports `tw_candidate_entry`; the benchmark
 * opens it with dlopen, checks its results, and measures every stage of its life: import, compile, load, first call,
 * warm calls, memory.
 *
 * The benchmark owns the clock, the stream and every buffer. A candidate never times itself, never keeps a pointer to
 * an argument after `launch` returns (or, on a device, after the stream has passed the launch), and never returns work
 * that is still to be done.
 *
 * Order of calls, each from one thread:
 *   entry → open → prepare → compile → workspace → launch … → close
 * `prepare` may come again with another contract (the check does so for many small shapes): start over for it.
 * Functions return 0 on success, TW_CANDIDATE_UNSUPPORTED when the contract or configuration is not one they can do
 * (the cell says not-run), anything else is a failure; `last_error` then gives one line of text.
 */
#ifndef TILEWRIGHT_CANDIDATE_H_
#define TILEWRIGHT_CANDIDATE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TW_CANDIDATE_ABI_VERSION 1u
#define TW_CANDIDATE_UNSUPPORTED (-2)

/* One argument. Inputs come first, then outputs, in the order of the contract's `args`. Strides are in elements. */
typedef struct tw_candidate_tensor {
  void* data;
  const char* name;  /* as in the contract: "A", "B", "C" */
  const char* dtype; /* "f32", "f16", "bf16", "i8", … */
  int32_t rank;
  int32_t is_output; /* 1: to be written whole; 0: must not be changed */
  const int64_t* shape;
  const int64_t* strides;
} tw_candidate_tensor;

/* What the benchmark gives when it opens a candidate. */
typedef struct tw_candidate_host {
  uint32_t size;         /* sizeof(tw_candidate_host) of the caller; newer fields are appended */
  const char* device;    /* "cpu" or "cuda:0" */
  const char* cache_dir; /* a private folder for compiled artefacts; empty at a cold compile, kept for a load */
  int32_t threads;       /* CPU threads the candidate may use */
  const char* options;   /* what followed '?' on the command line (lib:./gemm.so?algorithm=2); "" when nothing did */
} tw_candidate_host;

/* What `compile` did. */
typedef struct tw_candidate_compiled {
  uint32_t size;
  int64_t compiles;   /* kernels compiled now */
  int64_t cache_hits; /* kernels loaded from cache_dir */
  char digest[65];    /* of the artefact, lower-case hex; "" when there is none */
  double phase_ms[5]; /* front end, passes, code generation, toolchain, load; -1 where unknown */
} tw_candidate_compiled;

typedef struct tw_candidate_api {
  uint32_t abi_version; /* TW_CANDIDATE_ABI_VERSION */
  uint32_t size;        /* sizeof(tw_candidate_api) */
  const char* name;
  const char* version; /* of the library being judged, shown beside its numbers */

  int32_t (*open)(const tw_candidate_host* host, void** self);

  /* `contract` is canonical JSON, `digest` its SHA-256. Writes into `echo` (NUL-terminated, at most `capacity` bytes)
   * the digest when the candidate will compute exactly this contract, or a JSON object of the fields in which it
   * differs, e.g. {"mask":"causal-tl"}: the comparison is then refused as unfair, naming them. */
  int32_t (*prepare)(void* self, const char* contract, const char* digest, char* echo, size_t capacity);

  /* `config` is a JSON object of tuning parameters, "{}" for the defaults. */
  int32_t (*compile)(void* self, const char* config, tw_candidate_compiled* out);

  /* Bytes of scratch memory `launch` needs, 64-byte aligned, from the benchmark. */
  int64_t (*workspace)(void* self);

  /* `stream` is the device's stream (CUstream); NULL on a CPU, where the results are there when launch returns. */
  int32_t (*launch)(void* self, const tw_candidate_tensor* args, int32_t count, void* workspace, void* stream);

  const char* (*last_error)(void* self); /* may be NULL; self may be NULL */
  void (*close)(void* self);
} tw_candidate_api;

/* The one exported function. Returns NULL when the ABI version is not supported. */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const tw_candidate_api*
tw_candidate_entry(uint32_t abi_version);

#ifdef __cplusplus
}
#endif

#endif /* TILEWRIGHT_CANDIDATE_H_ */
