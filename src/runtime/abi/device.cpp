#include <charconv>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "runtime/abi/handles.h"

using namespace tilewright::runtime;

namespace {

/// The caller's struct as far as it reaches, zeros beyond.
tw_device_options read_options(const tw_device_options* given) {
  tw_device_options options = {};
  if (given) std::memcpy(&options, given, std::min(given->struct_size, sizeof options));
  return options;
}

tw_status* open_cuda_device(std::string_view name, const tw_device_options& options, tw_device** device) {
  int ordinal = 0;
  name.remove_prefix(4);
  if (!name.empty()) {
    const auto [end, error] = std::from_chars(name.data() + 1, name.data() + name.size(), ordinal);
    if (name[0] != ':' || error != std::errc() || end != name.data() + name.size() || ordinal < 0) {
      return make_status(Failure{FailureCode::no_such_device, "a CUDA device is called \"cuda:0\""});
    }
  }
  Result<std::unique_ptr<Device>> opened = open_cuda(ordinal, options.print, options.print_context);
  if (!opened) return make_status(opened.error());
  *device = new tw_device{"cuda:" + std::to_string(ordinal), std::move(*opened)};
  return nullptr;
}

constexpr int32_t kMostThreads = 4096;

/// Options that would fail later, or at every call.
tw_status* refuse_options(const tw_device_options& options) {
  const auto refuse = [](std::string message) {
    return make_status(Failure{FailureCode::unknown_argument, std::move(message)});
  };
  if (options.threads < 0 || options.threads > kMostThreads)
    return refuse("threads is " + std::to_string(options.threads) +
                  ": allowed are 0 (all that the process may use) to " + std::to_string(kMostThreads));
  const tw_pool* pool = options.pool;
  if (!pool) return nullptr;
  if (!pool->run) return null_handle("pool->run");
  if (!pool->size) return null_handle("pool->size");
  const int32_t size = pool->size(pool->self);
  return size >= 1 ? nullptr : refuse("pool->size() is " + std::to_string(size) + ": it must be at least 1");
}

bool is_inside(const tw_buffer& buffer, size_t offset, size_t bytes) {
  return offset <= buffer.bytes && bytes <= buffer.bytes - offset;
}

tw_status* outside(const tw_buffer& buffer) {
  return make_status(Failure{FailureCode::wrong_extent,
                             "the range lies outside a buffer of " + std::to_string(buffer.bytes) + " bytes"});
}

}  // namespace

extern "C" {

tw_status* tw_device_open(const char* name, const tw_device_options* given, tw_device** device) {
  return guarded([&]() -> tw_status* {
    if (!device) return null_handle("device");
    *device = nullptr;
    if (!name) return null_handle("device name");
    if (given)
      if (tw_status* refused = refuse_struct_size("tw_device_options", given->struct_size,
                                                  offsetof(tw_device_options, debugger), sizeof(tw_device_options)))
        return refused;
    const tw_device_options options = read_options(given);
    if (tw_status* refused = refuse_options(options)) return refused;
    if (std::string_view(name) == "cpu") {
      *device = new tw_device{
          "cpu", open_cpu({.threads = options.threads,
                           .spin_us = options.spin_us,
                           .pool = options.pool,
                           .visibility = {.debugger = options.debugger != 0, .perf_map = options.perf_map != 0},
                           .print = options.print,
                           .print_context = options.print_context})};
      return nullptr;
    }
    if (std::string_view(name).starts_with("cuda") && &open_cuda) return open_cuda_device(name, options, device);
    return make_status(
        Failure{FailureCode::no_such_device, "no device is called '" + std::string(name) + "': use \"cpu\""});
  });
}

void tw_device_close(tw_device* device) { delete device; }

const char* tw_device_name(const tw_device* device) { return device ? device->name.c_str() : ""; }

int32_t tw_device_workers(const tw_device* device) { return device ? device->device->workers() : 0; }

tw_status* tw_device_synchronise(tw_device* device, void* stream) {
  if (!device) return null_handle("device");
  return guarded([&] { return make_status(device->device->synchronise(stream)); });
}

tw_status* tw_buffer_allocate(tw_device* device, size_t bytes, tw_buffer** buffer) {
  return guarded([&]() -> tw_status* {
    if (!buffer) return null_handle("buffer");
    *buffer = nullptr;
    if (!device) return null_handle("device");
    auto made = std::make_unique<tw_buffer>(tw_buffer{device->device.get(), nullptr, bytes});
    const Result<void*> memory = device->device->allocate(bytes);
    if (!memory) return make_status(memory.error());
    made->data = *memory;
    *buffer = made.release();
    return nullptr;
  });
}

void tw_buffer_free(tw_buffer* buffer) {
  if (!buffer) return;
  buffer->device->free(buffer->data, buffer->bytes);
  delete buffer;
}

void* tw_buffer_data(const tw_buffer* buffer) { return buffer ? buffer->data : nullptr; }
size_t tw_buffer_bytes(const tw_buffer* buffer) { return buffer ? buffer->bytes : 0; }

tw_status* tw_buffer_write(tw_buffer* buffer, size_t offset, const void* from, size_t bytes) {
  if (!buffer || (!from && bytes > 0)) return null_handle("buffer");
  if (!is_inside(*buffer, offset, bytes)) return outside(*buffer);
  if (bytes == 0) return nullptr;
  return guarded(
      [&] { return make_status(buffer->device->copy_in(static_cast<char*>(buffer->data) + offset, from, bytes)); });
}

tw_status* tw_buffer_read(const tw_buffer* buffer, size_t offset, void* to, size_t bytes) {
  if (!buffer || (!to && bytes > 0)) return null_handle("buffer");
  if (!is_inside(*buffer, offset, bytes)) return outside(*buffer);
  if (bytes == 0) return nullptr;
  return guarded(
      [&] { return make_status(buffer->device->copy_out(to, static_cast<char*>(buffer->data) + offset, bytes)); });
}
}
