// Interpreter of thread programs: runs every block of a launch on the CPU and checks what no GPU run shows.
//
// Registers hold bits; shared memory holds bytes plus, per 16-byte granule, who may not be touched: granules being
// written by an asynchronous copy, granules being read by matrix instructions or copies in flight, granules written by
// ordinary stores that no proxy fence has covered. Asynchronous operations take effect at a chosen moment between issue
// and wait: earliest, latest, or seeded random. Warps interleave under a seeded scheduler; the blocks of a cluster take
// turns. Diagnosed (E9301 … with both source lines where there are two): read or overwrite in flight, generic write
// read by an engine without a proxy fence, data races of a block whose only barrier is the whole block's, wrong
// expected bytes, reuse of a phase, divergent barrier or matrix instruction, access outside every buffer, deadlock (who
// waits on what). Does not do: data races between warps that mbarriers or named barriers order; timing; bit-exact
// accumulation of the matrix units (it sums in float64 and rounds once: a bound, exact on small integers).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "base/tensor_map.h"
#include "ir/thread_program.h"

namespace tilewright::interp {

enum class Moment : uint8_t { Earliest, Latest, Random };

struct ThreadOptions {
  Moment moment = Moment::Latest;
  uint64_t seed = 1;
  int64_t step_limit = int64_t{1} << 34;  ///< instructions of all warps; over it the kernel counts as hung
};

/// One kernel argument: raw bits, or a tensor map.
struct ThreadArgument {
  uint64_t bits = 0;
  TensorMap map;
};

/// Global memory is the host's: buffers the kernel may touch. Addresses inside the kernel are host addresses.
struct ThreadBuffer {
  void* data = nullptr;
  size_t bytes = 0;
};

/// Runs blocks 0 … grid-1, one after another.
Status run_threads(const ir::thread::Program& program, std::array<unsigned, 3> grid,
                   std::span<const ThreadArgument> arguments, std::span<const ThreadBuffer> buffers,
                   const ThreadOptions& options);

}  // namespace tilewright::interp
