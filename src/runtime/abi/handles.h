// What the opaque handles of the C ABI are, and how failures become statuses.
#pragma once

#include <exception>
#include <memory>
#include <string>

#include "runtime/plan.h"

struct tw_status {
  int32_t code;
  std::string code_text;
  std::string name;
  std::string message;
  bool is_wrong_class = false;
};

struct tw_device {
  std::string name;
  std::unique_ptr<tilewright::runtime::Device> device;
};

struct tw_buffer {
  tilewright::runtime::Device* device;
  void* data;
  size_t bytes;
};

struct tw_plan {
  tilewright::runtime::Plan plan;
};

struct tw_compiled {
  std::string bytes;
  bool is_from_cache;
};

namespace tilewright::runtime {

tw_status* make_status(const Failure& failure);
tw_status* make_status(int32_t code, std::string name, std::string message);
inline tw_status* make_status(const Status& status) { return status ? nullptr : make_status(status.error()); }
tw_status* null_handle(const char* what);
/// NULL when the caller's struct reaches at least to its `least` bytes: one that was never filled is refused.
tw_status* refuse_struct_size(const char* what, size_t given, size_t least, size_t own);

/// Runs `body`, which returns a tw_status*; nothing thrown leaves the library.
template <typename Body>
tw_status* guarded(Body&& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return make_status(Failure{FailureCode::out_of_memory, "out of memory"});
  } catch (const std::exception& error) {
    return make_status(9001, "internal", error.what());
  }
}

}  // namespace tilewright::runtime
