#include "interp/thread_machine.h"

#include "interp/thread_block.h"

namespace tilewright::interp {

Status run_threads(const ir::thread::Program& program, std::array<unsigned, 3> grid,
                   std::span<const ThreadArgument> arguments, std::span<const ThreadBuffer> buffers,
                   const ThreadOptions& options) {
  const std::vector<threads::Step> code = threads::flatten(program.body);
  int64_t steps = 0;
  try {
    for (unsigned z = 0; z < grid[2]; ++z)
      for (unsigned y = 0; y < grid[1]; ++y)
        for (unsigned x = 0; x < grid[0]; ++x)
          threads::Block(program, code, grid, {x, y, z}, arguments, buffers, options, steps).run();
  } catch (const threads::Failure& failure) {
    return std::unexpected(failure.diagnostic);
  }
  return {};
}

}  // namespace tilewright::interp
