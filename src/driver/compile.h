// One tile kernel to an artefact: plan, generate code, keep in the cache. The one orchestrator.
//
// Guarantees: a pure function of kernel, target, options and toolchain; a cached artefact is the bytes that compiling
// again would give; the LLVM module is opened only when something has to be compiled. Does not: read `.tile` text
// (program.h) or run anything (call.h).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/hash.h"
#include "ir/ir.h"
#include "plan/cpu/plan.h"
#include "runtime/artefact.h"
#include "target/cpu.h"

namespace tilewright::cache {
class KernelCache;
}

namespace tilewright::driver {

struct CompileOptions {
  target::Cpu cpu = target::host_cpu();
  plan::cpu::Options plan;
  bool want_stages = false;             ///< keep the text of every stage (never from the cache)
  bool line_tables = true;              ///< `.tile` lines for perf and gdb
  cache::KernelCache* cache = nullptr;  ///< none: compile always
};

/// The text (or bytes) of one stage: tile, planned, vector, llvm, asm, object.
struct Stage {
  std::string name;
  std::string content;
};

/// Where compile time went, in ms. `open_module_ms` is loading LLVM: paid once per process.
struct CompileTimes {
  double plan_ms = 0;
  double open_module_ms = 0;
  double lower_ms = 0;
  double optimise_ms = 0;
  double emit_ms = 0;
  double cache_ms = 0;
  double total_ms() const { return plan_ms + lower_ms + optimise_ms + emit_ms + cache_ms; }
};

struct Compilation {
  runtime::Artefact artefact;
  Key128 key;
  bool is_from_cache = false;
  std::vector<plan::cpu::Fact> facts;  ///< empty when the artefact came from the cache
  std::vector<Stage> stages;
  CompileTimes times;
};

Result<Compilation> compile(const ir::Kernel& tile, const CompileOptions& options);

/// The key of the artefact that compile() would give: content, names a user reads, target, options, toolchain.
Key128 compilation_key(const ir::Kernel& tile, const CompileOptions& options);

/// What of a kernel enters every key, whatever the target: content, toolchain, the names and texts in its recipe.
std::string kernel_identity(const ir::Kernel& tile);

/// The cached artefact of `key`, or what `make` gives (kept then); `make` does not look at the cache.
Result<Compilation> compile_through(cache::KernelCache& cache, const Key128& key,
                                    const std::function<Result<Compilation>()>& make);

/// "cpu:x86-64-v4": the target as users name it.
std::string target_name(const target::Cpu& cpu);

}  // namespace tilewright::driver
