#include "runtime/debug_registration.h"

#include <fcntl.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <memory>
#include <mutex>

// gdb's JIT compilation interface: gdb sets a breakpoint in the function and reads the list when it is hit. The names
// and layouts are gdb's.
extern "C" {

struct jit_code_entry {
  jit_code_entry* next_entry;
  jit_code_entry* prev_entry;
  const char* symfile_addr;
  uint64_t symfile_size;
};

struct jit_descriptor {
  uint32_t version;
  uint32_t action_flag;
  jit_code_entry* relevant_entry;
  jit_code_entry* first_entry;
};

__attribute__((visibility("default"))) __attribute__((noinline)) void __jit_debug_register_code() {
  asm volatile("" ::: "memory");
}
__attribute__((visibility("default"))) jit_descriptor __jit_debug_descriptor = {1, 0, nullptr, nullptr};
}

namespace tilewright::runtime {
namespace {

enum : uint32_t { kNoAction = 0, kRegister = 1, kUnregister = 2 };

struct DebugEntry {
  jit_code_entry entry = {};
  std::string object;
};

/// The list belongs to the process by gdb's interface, so its lock does too.
std::mutex& list_mutex() {
  static std::mutex mutex;
  return mutex;
}

void tell_debugger(uint32_t action, jit_code_entry* entry) {
  __jit_debug_descriptor.action_flag = action;
  __jit_debug_descriptor.relevant_entry = entry;
  __jit_debug_register_code();
  __jit_debug_descriptor.action_flag = kNoAction;
}

}  // namespace

void* register_object(std::string object) {
  auto added = std::make_unique<DebugEntry>();
  added->object = std::move(object);
  added->entry.symfile_addr = added->object.data();
  added->entry.symfile_size = added->object.size();
  const std::lock_guard lock(list_mutex());
  added->entry.next_entry = __jit_debug_descriptor.first_entry;
  if (added->entry.next_entry) added->entry.next_entry->prev_entry = &added->entry;
  __jit_debug_descriptor.first_entry = &added->entry;
  tell_debugger(kRegister, &added->entry);
  return added.release();
}

void unregister_object(void* handle) {
  const std::unique_ptr<DebugEntry> removed(static_cast<DebugEntry*>(handle));
  if (!removed) return;
  const std::lock_guard lock(list_mutex());
  jit_code_entry& entry = removed->entry;
  if (entry.prev_entry) entry.prev_entry->next_entry = entry.next_entry;
  if (entry.next_entry) entry.next_entry->prev_entry = entry.prev_entry;
  if (__jit_debug_descriptor.first_entry == &entry) __jit_debug_descriptor.first_entry = entry.next_entry;
  tell_debugger(kUnregister, &entry);
}

void append_perf_map(const std::vector<PerfSymbol>& symbols) {
  const std::string path = "/tmp/perf-" + std::to_string(getpid()) + ".map";
  const int file = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return;
  std::string lines;
  for (const PerfSymbol& symbol : symbols) {
    char line[64];
    std::snprintf(line, sizeof line, "%" PRIxPTR " %zx ", reinterpret_cast<uintptr_t>(symbol.address), symbol.size);
    lines += line + symbol.name + "\n";
  }
  [[maybe_unused]] const ssize_t written = write(file, lines.data(), lines.size());  // one write: lines stay whole
  close(file);
}

}  // namespace tilewright::runtime
