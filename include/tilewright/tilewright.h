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
/* 1 when the arguments are valid but belong to another shape class, so that a plan of that class would take them. */
TW_API int32_t tw_status_is_wrong_class(const tw_status* status);
TW_API void tw_status_free(tw_status* status); /* NULL is allowed */

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

/* Flags of a tensor. Read-only is refused for an argument that the kernel writes; absent is an optional argument that
 * is not given, and every other member is ignored. */
#define TW_TENSOR_READ_ONLY 1u
#define TW_TENSOR_ABSENT 2u

/* A view of memory that the caller owns. Nothing is copied; the arrays must live as long as the call. A tensor that the
 * kernel writes must not overlap itself: no two positions may name one element (a stride of 0 is refused, others are
 * the caller's care). */
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

/* A scalar argument. An integer is accepted for any dtype that can hold it (of u64 it is the bits), a float for float
 * dtypes (rounded once). */
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
 * once, and returns when all are done (a range that it leaves out is output that is not written; nothing may be
 * thrown). `worker` is in [0, size()) and no two calls with one number overlap in time. Ranges hold `grain` indices or
 * fewer. run() may be entered from several threads at once; `idle` says that no work will come for a while. */
typedef void (*tw_task)(void* context, int64_t begin, int64_t end, int32_t worker);
typedef struct tw_pool {
  void* self;
  void (*run)(void* self, tw_task task, void* context, int64_t count, int64_t grain);
  int32_t (*size)(void* self);
  void (*idle)(void* self);
} tw_pool;

/* Called for a `print` of a kernel, possibly from several threads at once. `text` has one place a value: `{f}` a float
 * (the bits of a double), `{i}` a signed integer, `{u}` an unsigned one, `{b}` a bool; `{{` is a brace. */
typedef void (*tw_print)(void* context, const char* text, const char* location, const int64_t* values, int32_t count);

typedef struct tw_device tw_device;

typedef struct tw_device_options {
  size_t struct_size;
  int32_t threads;  /* of the device's own pool, the caller included; 0: all that the process may use */
  int32_t debugger; /* 1: gdb sees the symbols and lines of loaded kernels */
  int32_t perf_map; /* 1: /tmp/perf-<pid>.map for perf */
  /* How long an idle worker of the device's own pool looks for the next call before it blocks, in microseconds; 0: 40;
   * negative: it blocks at once. While workers look, a parallel call starts in half a microsecond, from a blocked one
   * in tens; but they take processor time from whatever else runs between calls. */
  int32_t spin_us;
  const tw_pool* pool; /* the caller's threads instead; copied; what it points to must outlive the device */
  tw_print print;      /* NULL: `print` of kernels does nothing */
  void* print_context;
} tw_device_options;

/* `name` is "cpu" or "cuda:0". `options` may be NULL. A device outlives its plans and buffers. */
TW_API tw_status* tw_device_open(const char* name, const tw_device_options* options, tw_device** device);
TW_API void tw_device_close(tw_device* device); /* NULL is allowed */
/* "cpu" or "cuda:0": also the target to compile for. Lives as long as the device. */
TW_API const char* tw_device_name(const tw_device* device);
TW_API int32_t tw_device_workers(const tw_device* device);
/* Waits for `stream` and returns what a launch left behind, as a failed assertion. On the CPU nothing is ever pending.
 */
TW_API tw_status* tw_device_synchronise(tw_device* device, void* stream);

/* Device memory, 64-byte aligned or better. Zero bytes are valid. */
typedef struct tw_buffer tw_buffer;
TW_API tw_status* tw_buffer_allocate(tw_device* device, size_t bytes, tw_buffer** buffer);
TW_API void tw_buffer_free(tw_buffer* buffer); /* NULL is allowed */
TW_API void* tw_buffer_data(const tw_buffer* buffer);
TW_API size_t tw_buffer_bytes(const tw_buffer* buffer);
TW_API tw_status* tw_buffer_write(tw_buffer* buffer, size_t offset, const void* from, size_t bytes);
TW_API tw_status* tw_buffer_read(const tw_buffer* buffer, size_t offset, void* to, size_t bytes);

/* ---- plans ----------------------------------------------------------------------------------------------------- */

/* A compiled kernel of one shape class, loaded and immutable. */
typedef struct tw_plan tw_plan;

/* Loads a kernel file (`.twk`), from memory (which may be freed afterwards) or from disk. */
TW_API tw_status* tw_plan_load(tw_device* device, const void* bytes, size_t size, tw_plan** plan);
TW_API tw_status* tw_plan_load_file(tw_device* device, const char* path, tw_plan** plan);
/* A plan over code that is linked into the program; what the headers of `tilewright build` call. `entries` are the CPU
 * entries of the recipe's launches, in order. */
TW_API tw_status* tw_plan_link(tw_device* device, const void* recipe, size_t size, const tw_cpu_entry* entries,
                               size_t entry_count, tw_plan** plan);
/* NULL is allowed. Not while the plan is executing. */
TW_API void tw_plan_free(tw_plan* plan);

typedef enum tw_access { TW_IN = 0, TW_OUT = 1, TW_INOUT = 2 } tw_access;
typedef struct tw_tensor_info {
  const char* name;
  int32_t dtype;
  int32_t rank;
  int32_t access;    /* tw_access */
  int32_t is_absent; /* 1: an optional tensor that the plan was compiled without (TW_TENSOR_ABSENT) */
} tw_tensor_info;
typedef struct tw_scalar_info {
  const char* name;
  int32_t dtype;
  int32_t has_default;
} tw_scalar_info;

/* Names live as long as the plan. */
TW_API const char* tw_plan_kernel(const tw_plan* plan);
TW_API const char* tw_plan_target(const tw_plan* plan);
TW_API const char* tw_plan_description(const tw_plan* plan); /* the shape class in words */
TW_API size_t tw_plan_tensor_count(const tw_plan* plan);
TW_API size_t tw_plan_scalar_count(const tw_plan* plan);
TW_API tw_status* tw_plan_tensor_info(const tw_plan* plan, size_t index, tw_tensor_info* info);
TW_API tw_status* tw_plan_scalar_info(const tw_plan* plan, size_t index, tw_scalar_info* info);

/* The checks of tw_execute without running. */
TW_API tw_status* tw_plan_check(const tw_plan* plan, const tw_arguments* arguments);
/* Bytes of workspace for these shapes. Data pointers are not looked at; written tensors may have NULL extents. */
TW_API tw_status* tw_plan_workspace_bytes(const tw_plan* plan, const tw_arguments* arguments, size_t* bytes);
/* The extents that tensor `index` must have, worked out from the others. `extents` has room for TW_MAX_RANK values. */
TW_API tw_status* tw_plan_infer_extents(const tw_plan* plan, const tw_arguments* arguments, size_t index,
                                        int64_t* extents);

/* Checks the arguments and runs. Allocates nothing, takes no lock and waits for nothing but its own blocks (CPU); on
 * CUDA it launches on `stream` and returns. `workspace` is 64-byte aligned, of `bytes` bytes, and not used by anyone
 * else until the work is done; NULL when tw_plan_workspace_bytes() says 0. Plans may be executed from several threads
 * at once. */
TW_API tw_status* tw_execute(const tw_plan* plan, const tw_arguments* arguments, void* workspace, size_t bytes,
                             void* stream);

/* ---- DLPack ---------------------------------------------------------------------------------------------------- */

/* Views a DLManagedTensor (DLPack 0.x) or a DLManagedTensorVersioned (1.x) without copying; the tensor must outlive the
 * view and is not consumed. Refuses element types, lanes and devices that Tilewright does not have. */
TW_API tw_status* tw_tensor_from_dlpack(const void* managed_tensor, tw_tensor* tensor);
TW_API tw_status* tw_tensor_from_dlpack_versioned(const void* managed_tensor, tw_tensor* tensor);

/* ---- compiler -------------------------------------------------------------------------------------------------- */

/* Present in libtilewright; libtilewright_runtime alone answers E3007. */
typedef struct tw_compiler tw_compiler;

typedef struct tw_compile_request {
  size_t struct_size;
  const char* path;   /* of the `.tile` file */
  const char* source; /* its text; NULL: read from `path` */
  const char* kernel; /* NULL: the only one of the file */
  /* "cpu" (this machine; so is NULL), "cpu:x86-64-v3", "cuda:0" (a device of this machine), "cuda:sm_90a" (no device
   * needed) */
  const char* target;
  const char* const* parameters; /* "block_M=64" */
  size_t parameter_count;
  const tw_arguments*
      arguments; /* what it will be called with: dtypes, extents, strides, alignment of `data`. May be NULL */
  const char* cache_folder; /* NULL: the user's; "": none */
} tw_compile_request;

typedef struct tw_compiled tw_compiled;

TW_API tw_status* tw_compiler_open(tw_compiler** compiler);
TW_API void tw_compiler_close(tw_compiler* compiler); /* NULL is allowed */
/* JSON: {"kernels": [{"name", "tensors": [{"name", "dtype", "rank", "access", "optional"}], "scalars": [{"name",
 * "dtype", "default"}], "parameters": [{"name", "default"}]}]}. The text lives until tw_compiled_free(). */
TW_API tw_status* tw_compiler_describe(tw_compiler* compiler, const char* path, tw_compiled** description);
/* A kernel file, for tw_plan_load(). */
TW_API tw_status* tw_compiler_compile(tw_compiler* compiler, const tw_compile_request* request, tw_compiled** compiled);
TW_API const void* tw_compiled_data(const tw_compiled* compiled);
TW_API size_t tw_compiled_size(const tw_compiled* compiled);
TW_API int32_t tw_compiled_is_from_cache(const tw_compiled* compiled);
TW_API void tw_compiled_free(tw_compiled* compiled); /* NULL is allowed */

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TILEWRIGHT_TILEWRIGHT_H_ */
