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

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TILEWRIGHT_TILEWRIGHT_H_ */
