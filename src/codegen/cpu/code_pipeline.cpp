#include "codegen/cpu/code_pipeline.h"

#include <llvm/ADT/SmallString.h>
#include <llvm/CodeGen/MachineModuleInfo.h>
#include <llvm/CodeGen/Passes.h>
#include <llvm/CodeGen/TargetPassConfig.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <memory>
#include <string_view>

namespace tilewright::codegen {
namespace {

/// Small kernels are one or two loops where each instruction counts, and compile in a few ms anyway. Large ones
/// (register tiles, fused passes) come from the planner in their final order, and time goes up faster than their
/// length.
enum class Size : uint8_t { Small, Large };

/// Instructions of LLVM IR from which on a kernel is large.
constexpr size_t kLargeKernel = 500;

struct LeftOut {
  std::string_view pass;    ///< the name that LLVM gives it
  Size from = Size::Small;  ///< from which size on
};

/// Passes without which our kernels are as fast, grouped by the reason.
constexpr LeftOut kLeftOut[] = {
    // Addresses and invariants are placed by our own lowering; this one looks at every pair of uses in a loop.
    {"Loop Strength Reduction"},
    {"Canonicalize Freeze Instructions in Loops"},
    // Invariants have left the loops before registers were given.
    {"Machine Loop Invariant Code Motion"},
    // Only lines are described, never variables.
    {"Live DEBUG_VALUE analysis"},
    {"Remove Redundant DEBUG_VALUE analysis"},
    // Masks are compared in vector registers; no tile registers are used.
    {"X86 Domain Reassignment Pass"},
    {"Lower AMX intrinsics"},
    {"Lower AMX type for load/store"},
    {"Tile Register Configure"},
    {"Tile Register Pre-configure"},
    {"X86 Lower Tile Copy"},
    // Forms that our code does not have, or whose gain was not measurable.
    {"Constant Hoisting"},
    {"Machine InstCombiner"},
    {"Machine Late Instructions Cleanup Pass"},
    {"Live Range Shrink"},
    {"X86 Byte/Word Instruction Fixup"},
    {"X86 Fixup Vector Constants"},
    {"X86 LEA Optimize"},
    // The order of instructions is the planner's.
    {"Post RA top-down list latency scheduler"},
    {"PostRA Machine Instruction Scheduler"},
    {"Machine Instruction Scheduler", Size::Large},
    {"X86 Execution Dependency Fix", Size::Large},
    {"BreakFalseDeps", Size::Large},
};

Size size_of(const llvm::Module& module) {
  size_t count = 0;
  for (const llvm::Function& function : module) count += function.getInstructionCount();
  return count < kLargeKernel ? Size::Small : Size::Large;
}

/// Hands passes on to a pass manager, those that are left out excepted.
class SelectivePasses final : public llvm::legacy::PassManagerBase {
 public:
  SelectivePasses(llvm::legacy::PassManager& passes, Size size) : passes_(passes), size_(size) {}

  void add(llvm::Pass* pass) override {
    std::unique_ptr<llvm::Pass> owner(pass);
    if (is_left_out(pass->getPassName())) return;
    if (pass->getPassName() == "Greedy Register Allocator") return add_allocator(std::move(owner));
    passes_.add(owner.release());
  }

 private:
  bool is_left_out(std::string_view name) const {
    return std::any_of(std::begin(kLeftOut), std::end(kLeftOut),
                       [&](const LeftOut& row) { return row.pass == name && row.from <= size_; });
  }

  /// The first allocator is for tile registers alone. Large kernels fit their registers by design: live ranges need no
  /// splitting, which is most of the second one's time.
  void add_allocator(std::unique_ptr<llvm::Pass> greedy) {
    if (++allocators_ == 1) return;
    passes_.add(size_ == Size::Large ? llvm::createBasicRegisterAllocator() : greedy.release());
  }

  llvm::legacy::PassManager& passes_;
  Size size_;
  int allocators_ = 0;
};

}  // namespace

std::string generate_code(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType type) {
  llvm::SmallString<0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  const Size size = size_of(module);
  if (size == Size::Large) machine.setOptLevel(llvm::CodeGenOptLevel::Less);
  SelectivePasses selective(passes, size);
  auto& target = static_cast<llvm::LLVMTargetMachine&>(machine);
  auto* functions = new llvm::MachineModuleInfoWrapperPass(&target);
  llvm::TargetPassConfig* config = target.createPassConfig(selective);
  config->setDisableVerify(true);
  selective.add(config);
  selective.add(functions);
  if (config->addISelPasses()) return {};
  config->addMachinePasses();
  config->setInitialized();
  if (target.addAsmPrinter(selective, stream, nullptr, type, functions->getMMI().getContext())) return {};
  selective.add(llvm::createFreeMachineFunctionPass());
  passes.run(module);
  return std::string(bytes.data(), bytes.size());
}

}  // namespace tilewright::codegen
