// Counts what a thread allocates with new, to show that execute() allocates nothing.
#include <cstdint>
#include <cstdlib>
#include <new>

thread_local int64_t tw_test_allocations = 0;

void* operator new(size_t size) {
  ++tw_test_allocations;
  if (void* const memory = std::malloc(size ? size : 1)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
