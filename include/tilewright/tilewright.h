/* Tilewright's C ABI: load a compiled kernel, check its arguments, run it.
 *
 * C11, no dependency. Every function that can fail returns a `tw_status*`: NULL is success, anything else says what
 * was wrong and is freed by the caller with tw_status_free(). Nothing here exits the process or writes to a stream.
 * Handles may be used from several threads at once unless a function says otherwise.
 * A struct with a `struct_size` member is extended at its end only; fill it with sizeof.
 */
#ifndef TILEWRIGHT_TILEWRIGHT_H_
#define TILEWRIGHT_TILEWRIGHT_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define TW_API __attribute__((visibility("default")))
#else
#define TW_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Raised when an existing declaration changes meaning. */
#define TW_ABI_VERSION 1u

/* ---- status ---------------------------------------------------------------------------------------------------- */

typedef struct tw_status tw_status;

TW_API int32_t tw_status_code(const tw_status* status);          /* 1403; 0 for NULL */
TW_API const char* tw_status_code_text(const tw_status* status); /* "E1403"; "ok" for NULL */
TW_API const char* tw_status_name(const tw_status* status);      /* "wrong_dtype"; "ok" for NULL */
TW_API const char* tw_status_message(const tw_status* status);   /* one sentence; "" for NULL */
TW_API void tw_status_free(tw_status* status);                   /* NULL is allowed */

/* The ABI version of the library that is loaded, to compare with TW_ABI_VERSION; and its release, "0.1.0". */
TW_API uint32_t tw_abi_version(void);
TW_API const char* tw_version(void);

/* ---- what generated CPU code sees ------------------------------------------------------------------------------ */

/* Written by a failing `assert` before the entry returns its id. `indices` are block-relative loop values. */
typedef struct tw_record {
  int32_t id;
  int32_t index_count;
  int64_t block;
  int64_t indices[6];
} tw_record;

typedef struct tw_launch {
  const int64_t* slots;  /* dims, strides in elements, scalars as bit patterns, computed values: the recipe's order */
  void* const* pointers; /* tensor arguments in order (NULL when an optional one is absent), then workspaces */
  tw_record* record;     /* this call's own */
  void (*print)(const struct tw_launch* launch, int32_t id, const int64_t* values, int32_t count);
  void* print_context;
} tw_launch;

/* Runs blocks [first_block, last_block); blocks are linearised with the first grid axis fastest. `scratch` is 64-byte
 * aligned and private to the call. Returns 0, or the id of the assertion that failed. */
typedef int32_t (*tw_cpu_entry)(const tw_launch* launch, int64_t first_block, int64_t last_block, void* scratch);

/* ---- values ---------------------------------------------------------------------------------------------------- */

/* Element types; the numbers are part of the ABI. */
typedef enum tw_dtype {
  TW_BOOL = 0,
  TW_I8 = 1,
  TW_I16 = 2,
  TW_I32 = 3,
  TW_I64 = 4,
  TW_U8 = 5,
  TW_U16 = 6,
  TW_U32 = 7,
  TW_U64 = 8,
  TW_F16 = 9,
  TW_BF16 = 10,
  TW_F32 = 11,
  TW_F64 = 12,
  TW_E4M3 = 13,
  TW_E5M2 = 14
} tw_dtype;

#define TW_MAX_RANK 8

typedef enum tw_device_kind { TW_CPU = 0, TW_CUDA = 1 } tw_device_kind;

enum {
  TW_TENSOR_READ_ONLY = 1u, /* refused for an argument that the kernel writes */
  TW_TENSOR_ABSENT = 2u     /* an optional argument that is not given; every other member is ignored */
};

/* A view of memory that the caller owns. Nothing is copied; the arrays must live as long as the call. */
typedef struct tw_tensor {
  void* data;
  const int64_t* extents; /* `rank` values; zero is valid */
  const int64_t* strides; /* `rank` values in elements, or NULL for row-major without gaps */
  int32_t dtype;          /* tw_dtype */
  int32_t rank;
  uint32_t flags;
  int32_t device; /* tw_device_kind */
} tw_tensor;

typedef enum tw_scalar_kind { TW_SCALAR_DEFAULT = 0, TW_SCALAR_INTEGER = 1, TW_SCALAR_FLOAT = 2 } tw_scalar_kind;

/* A scalar argument. An integer is accepted for any dtype that can hold it, a float for float dtypes (rounded once). */
typedef struct tw_scalar {
  int32_t kind; /* tw_scalar_kind; TW_SCALAR_DEFAULT takes the kernel's default */
  int32_t reserved;
  union {
    int64_t integer;
    double floating;
  } value;
} tw_scalar;

/* Tensors and scalars in the kernel's order. Scalars that are missing at the end take their defaults. */
typedef struct tw_arguments {
  const tw_tensor* tensors;
  size_t tensor_count;
  const tw_scalar* scalars;
  size_t scalar_count;
} tw_arguments;

/* ---- devices --------------------------------------------------------------------------------------------------- */

/* Calls task(context, begin, end, worker) for disjoint ranges that cover [0, count), from at most size() threads at
 * once, and returns when all are done. `worker` is in [0, size()) and no two calls with one number overlap in time.
 * Ranges hold `grain` indices or fewer. run() may be entered from several threads at once; `idle` says that no work
 * will come for a while. */
typedef void (*tw_task)(void* context, int64_t begin, int64_t end, int32_t worker);
typedef struct tw_pool {
  void* self;
  void (*run)(void* self, tw_task task, void* context, int64_t count, int64_t grain);
  int32_t (*size)(void* self);
  void (*idle)(void* self);
} tw_pool;

/* Called for a `print` of a kernel, possibly from several threads at once. */
typedef void (*tw_print)(void* context, const char* text, const char* location, const int64_t* values, int32_t count);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TILEWRIGHT_TILEWRIGHT_H_ */
