#include "interp/thread_machine.h"

#include "interp/thread_block.h"

#include <memory>
#include <random>

namespace tilewright::interp {

namespace {

/// The blocks of one cluster take turns until all are done.
void run_cluster(std::vector<std::unique_ptr<threads::Block>>& blocks, uint64_t seed) {
  std::mt19937_64 random(seed);
  threads::Cluster cluster;
  for (size_t rank = 0; rank < blocks.size(); ++rank) {
    cluster.blocks.push_back(blocks[rank].get());
    blocks[rank]->join(cluster, static_cast<int>(rank));
  }
  for (;;) {
    threads::Block* stuck = nullptr;
    bool has_run = false;
    const size_t first = random() % blocks.size();
    for (size_t i = 0; i < blocks.size(); ++i) {
      threads::Block& block = *blocks[(first + i) % blocks.size()];
      const auto turn = block.turn();
      has_run |= turn == threads::Block::Turn::Ran;
      if (turn == threads::Block::Turn::Stuck) stuck = &block;
    }
    if (has_run) continue;
    if (stuck) stuck->deadlock();
    break;
  }
  for (auto& block : blocks) block->finish();
}

}  // namespace

Status run_threads(const ir::thread::Program& program, std::array<unsigned, 3> grid,
                   std::span<const ThreadArgument> arguments, std::span<const ThreadBuffer> buffers,
                   const ThreadOptions& options) {
  const std::vector<threads::Step> code = threads::flatten(program.body);
  int64_t steps = 0;
  try {
    for (unsigned z = 0; z < grid[2]; ++z)
      for (unsigned y = 0; y < grid[1]; ++y)
        for (unsigned x = 0; x < grid[0]; x += static_cast<unsigned>(program.cluster)) {
          std::vector<std::unique_ptr<threads::Block>> blocks;
          for (unsigned r = 0; r < static_cast<unsigned>(program.cluster); ++r)
            blocks.push_back(std::make_unique<threads::Block>(program, code, grid, std::array{x + r, y, z}, arguments,
                                                              buffers, options, steps));
          run_cluster(blocks, options.seed * 7919 + x);
        }
  } catch (const threads::Failure& failure) {
    return std::unexpected(failure.diagnostic);
  }
  return {};
}

}  // namespace tilewright::interp
