// A stand-in for libcuda.so.1 on machines without a device: memory is the host's, streams run at once, kernels are a
// function of the test. It has every symbol of driver.def.
#include "runtime/cuda/fake_cuda.h"

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

namespace {

FakeCuda state;
std::map<uint64_t, size_t>& blocks() {
  static std::map<uint64_t, size_t> all;
  return all;
}
double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
int busy() {
  if (state.is_capturing) ++state.forbidden;
  return 0;
}

}  // namespace

extern "C" {

FakeCuda* fake_cuda() { return &state; }

int cuInit(unsigned) { return 0; }
int cuDriverGetVersion(int* version) { return *version = state.version, 0; }
int cuDeviceGetCount(int* n) { return *n = state.devices, 0; }
int cuDeviceGet(int* handle, int ordinal) { return *handle = ordinal, 0; }
int cuDeviceGetName(char* text, int size, int) {
  return std::snprintf(text, static_cast<size_t>(size), "Fake H200"), 0;
}
int cuDeviceGetAttribute(int* value, int which, int) {
  static const std::map<int, int> known = {{16, 132}, {38, 50 << 20},  {75, 9},
                                           {76, 0},   {81, 228 << 10}, {97, 227 << 10}};
  const auto at = known.find(which);
  *value = at == known.end() ? 0 : at->second;
  return 0;
}
int cuDeviceGetPCIBusId(char* text, int size, int) {
  return std::snprintf(text, static_cast<size_t>(size), "0000:00:00.0"), 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int) { return *bytes = state.memory, 0; }
int cuDevicePrimaryCtxRetain(void** context, int) { return *context = &state, 0; }
int cuDevicePrimaryCtxRelease_v2(int) { return 0; }
int cuCtxSetCurrent(void*) { return 0; }
int cuCtxSynchronize() { return busy(), state.sync_result; }
int cuMemGetInfo_v2(size_t* free_bytes, size_t* total) { return *free_bytes = *total = state.memory, 0; }
int cuModuleLoadDataEx(void** module, const void*, unsigned, int*, void**) { return busy(), *module = &state, 0; }
int cuModuleUnload(void*) { return 0; }
int cuModuleGetFunction(void** function, void*, const char*) { return *function = &state, 0; }
int cuFuncGetAttribute(int* value, int, void*) { return *value = 32, 0; }
int cuFuncSetAttribute(void*, int, int) { return 0; }
int cuLaunchKernel(void*, unsigned x, unsigned y, unsigned z, unsigned, unsigned, unsigned, unsigned shared,
                   void* stream, void** arguments, void**) {
  ++state.launches;
  state.grid[0] = x, state.grid[1] = y, state.grid[2] = z;
  state.shared_bytes = shared, state.stream = stream;
  if (state.kernel) state.kernel(arguments);
  return 0;
}
int cuLaunchKernelEx(const void*, void*, void**, void**) { return ++state.launches, 0; }
int cuMemAlloc_v2(uint64_t* address, size_t bytes) {
  busy();
  if (bytes > state.memory) return 2;
  state.memory -= bytes;
  void* memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  *address = reinterpret_cast<uint64_t>(memory);
  blocks()[*address] = bytes;
  return 0;
}
int cuMemFree_v2(uint64_t address) {
  busy();
  state.memory += blocks()[address];
  blocks().erase(address);
  std::free(reinterpret_cast<void*>(address));
  return 0;
}
int cuMemHostAlloc(void** address, size_t bytes, unsigned) { return *address = std::malloc(bytes), 0; }
int cuMemFreeHost(void* address) { return std::free(address), 0; }
int cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t bytes) {
  return std::memcpy(reinterpret_cast<void*>(to), from, bytes), busy();
}
int cuMemcpyDtoH_v2(void* to, uint64_t from, size_t bytes) {
  return std::memcpy(to, reinterpret_cast<void*>(from), bytes), busy();
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, void*) {
  return cuMemcpyHtoD_v2(to, from, bytes);
}
int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, void*) { return cuMemcpyDtoH_v2(to, from, bytes); }
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void*) {
  return std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes), 0;
}
int cuMemsetD8Async(uint64_t at, unsigned char value, size_t bytes, void*) {
  return std::memset(reinterpret_cast<void*>(at), value, bytes), 0;
}
int cuPointerGetAttribute(void* value, int, uint64_t address) {
  ++state.pointer_queries;
  auto at = blocks().upper_bound(address);
  if (at == blocks().begin()) return 1;
  --at;
  if (address >= at->first + at->second) return 1;
  *static_cast<unsigned*>(value) = 2;
  return 0;
}
int cuStreamCreate(void** stream, unsigned) { return *stream = std::malloc(1), 0; }
int cuStreamDestroy_v2(void* stream) { return std::free(stream), 0; }
int cuStreamSynchronize(void*) { return busy(), state.sync_result; }
int cuStreamWaitEvent(void*, void*, unsigned) { return 0; }
int cuStreamBeginCapture_v2(void*, int) { return state.is_capturing = true, 0; }
int cuStreamEndCapture(void*, void** graph) { return state.is_capturing = false, *graph = &state, 0; }
int cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long) { return *executable = graph, 0; }
int cuGraphLaunch(void*, void*) { return ++state.launches, 0; }
int cuGraphDestroy(void*) { return 0; }
int cuGraphExecDestroy(void*) { return 0; }
int cuEventCreate(void** event, unsigned) { return *event = new double(0), 0; }
int cuEventDestroy_v2(void* event) { return delete static_cast<double*>(event), 0; }
int cuEventRecord(void* event, void*) { return *static_cast<double*>(event) = now_ms(), 0; }
int cuEventSynchronize(void*) { return 0; }
int cuEventQuery(void*) { return 0; }
int cuEventElapsedTime(float* ms, void* from, void* to) {
  return *ms = static_cast<float>(*static_cast<double*>(to) - *static_cast<double*>(from)), 0;
}
int cuGetErrorName(int error, const char** text) {
  *text = error == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : error == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR";
  return 0;
}
int cuGetErrorString(int error, const char** text) {
  return *text = error == 700 ? "an illegal memory access was encountered" : "an error", 0;
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks_out, void*, int, size_t) { return *blocks_out = 1, 0; }
int cuTensorMapEncodeTiled(void*, int, uint32_t, void*, const uint64_t*, const uint64_t*, const uint32_t*,
                           const uint32_t*, int, int, int, int) {
  return ++state.encoded_maps, 0;
}
}
