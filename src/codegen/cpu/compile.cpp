#include "codegen/cpu/compile.h"

#include <fmt/format.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/AssumptionCache.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/DIBuilder.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/PassInstrumentation.h>
#include <llvm/IR/PassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Utils/Local.h>

#include <chrono>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "codegen/cpu/code_pipeline.h"
#include "codegen/cpu/cpu_target.h"
#include "codegen/cpu/join_objects.h"
#include "codegen/cpu/share_out.h"

namespace tilewright::codegen {
namespace {

using Clock = std::chrono::steady_clock;
double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// Line tables: one compile unit, one subprogram per function.
class LineTables {
 public:
  LineTables(llvm::Module& module, const ir::Kernel& kernel) : builder_(module) {
    std::string file = "kernel.tile";
    ir::for_each_op(*kernel.body, [&](ir::Op& op) {
      if (op.location.is_known() && op.location.file) file = *op.location.file;
    });
    file_ = builder_.createFile(file, ".");
    unit_ = builder_.createCompileUnit(llvm::dwarf::DW_LANG_C, file_, "tilewright", true, "", 0, "",
                                       llvm::DICompileUnit::LineTablesOnly);
    module.addModuleFlag(llvm::Module::Warning, "Debug Info Version", llvm::DEBUG_METADATA_VERSION);
  }
  void add(llvm::Function* function, const ir::Op& func) {
    auto* type = builder_.createSubroutineType(builder_.getOrCreateTypeArray({}));
    const auto line = static_cast<unsigned>(std::max(func.location.line, 1));
    function->setSubprogram(builder_.createFunction(
        unit_, function->getName(), function->getName(), file_, line, type, line, llvm::DINode::FlagZero,
        llvm::DISubprogram::SPFlagDefinition | llvm::DISubprogram::SPFlagOptimized));
  }
  void finish() { builder_.finalize(); }

 private:
  llvm::DIBuilder builder_;
  llvm::DIFile* file_ = nullptr;
  llvm::DICompileUnit* unit_ = nullptr;
};

void set_attributes(llvm::Function* function, const CpuOptions& options) {
  function->addFnAttr(llvm::Attribute::NoUnwind);
  function->addFnAttr("prefer-vector-width", std::to_string(options.vector_bits));
  function->addFnAttr("min-legal-vector-width", std::to_string(options.vector_bits));
  for (const unsigned pointer : {0u, 3u}) function->addParamAttr(pointer, llvm::Attribute::NoAlias);
  function->addParamAttr(3, llvm::Attribute::getWithAlignment(function->getContext(), llvm::Align(64)));
}

/// Block number to block indices, the first axis varying fastest.
void bind_block_indices(Lowering& lowering, llvm::IRBuilder<>& b, const ir::Region& region, llvm::Value* block,
                        const std::vector<llvm::Value*>& extents) {
  llvm::Value* rest = block;
  for (size_t i = 0; i < region.arguments.size(); ++i) {
    const bool is_last = i + 1 == region.arguments.size();
    lowering.bind(region.arguments[i], is_last ? rest : b.CreateURem(rest, extents[i]));
    if (!is_last) rest = b.CreateUDiv(rest, extents[i]);
  }
}

bool has_streaming_store(const ir::Region& region) {
  bool found = false;
  for_each_op(region, [&](ir::Op& op) {
    found |= op.kind == ir::OpKind::VectorStore && op.as<ir::MemoryAttributes>().streaming;
  });
  return found;
}

/// for (block = first; block < last; ++block) body
Status lower_func(const ir::Kernel& kernel, const ir::Op& func, llvm::Function* function, const Plant& plant) {
  llvm::LLVMContext& context = function->getContext();
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(context, "entry", function));
  if (llvm::DISubprogram* subprogram = function->getSubprogram()) {
    b.SetCurrentDebugLocation(llvm::DILocation::get(context, subprogram->getLine(), 1, subprogram));
  }
  CpuTarget target(function);
  target.begin(b);
  Lowering lowering(kernel, b, target, plant);
  for (const ir::Value* index : func.regions[0]->arguments) lowering.assume_not_negative(index);
  std::vector<llvm::Value*> extents;
  for (ir::Index extent : func.as<ir::FuncAttributes>().blocks) extents.push_back(lowering.index(extent));
  llvm::Value* first = function->getArg(1);
  llvm::Value* last = function->getArg(2);
  llvm::BasicBlock* entry = b.GetInsertBlock();
  auto* body = llvm::BasicBlock::Create(context, "block", function);
  auto* next = llvm::BasicBlock::Create(context, "next", function);
  auto* exit = llvm::BasicBlock::Create(context, "exit", function);
  b.CreateCondBr(b.CreateICmpSLT(first, last), body, exit);
  b.SetInsertPoint(body);
  llvm::PHINode* block = b.CreatePHI(b.getInt64Ty(), 2, "block");
  block->addIncoming(first, entry);
  target.set_block(block, next);
  lowering.open_scope();
  const ir::Region& region = *func.regions[0];
  bind_block_indices(lowering, b, region, block, extents);
  lowering.restart_scope();
  if (Status done = lowering.lower_region(region); !done) return done;
  lowering.close_scope();
  b.CreateBr(next);
  b.SetInsertPoint(next);
  llvm::Value* advanced = b.CreateAdd(block, b.getInt64(1));
  block->addIncoming(advanced, next);
  b.CreateCondBr(b.CreateICmpSLT(advanced, last), body, exit);
  b.SetInsertPoint(exit);
  // Streaming stores are ordered before whatever tells other threads that the blocks are done.
  if (has_streaming_store(region)) b.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
  b.CreateRet(b.getInt32(0));
  lowering.close_scope();
  return {};
}

/// Blocks begun after an assertion or return that nothing reaches still need an end.
void finish_dangling_blocks(llvm::Function& function) {
  for (llvm::BasicBlock& block : function) {
    if (!block.getTerminator()) new llvm::UnreachableInst(function.getContext(), &block);
  }
}

/// Builds for tests look at every module; the command does not pay for it (3 % of the time of a compilation).
Status verify([[maybe_unused]] const ir::Kernel& kernel, [[maybe_unused]] const llvm::Module& module) {
#ifndef NDEBUG
  std::string complaint;
  llvm::raw_string_ostream stream(complaint);
  if (llvm::verifyModule(module, &stream)) {
    return fail(DiagnosticCode::E9001,
                fmt::format("the LLVM IR of kernel '{}' is malformed: {}", kernel.name, complaint),
                "this is a defect of the compiler; please report the kernel");
  }
#endif
  return {};
}

Status lower_module(const ir::Kernel& kernel, const Funcs& funcs, const CpuOptions& options, llvm::Module& module) {
  std::optional<LineTables> lines;
  if (options.line_tables) lines.emplace(module, kernel);
  llvm::LLVMContext& context = module.getContext();
  auto* pointer = llvm::PointerType::get(context, 0);
  auto* i64 = llvm::Type::getInt64Ty(context);
  auto* type = llvm::FunctionType::get(llvm::Type::getInt32Ty(context), {pointer, i64, i64, pointer}, false);
  for (const ir::Op* func : funcs) {
    auto* function =
        llvm::Function::Create(type, llvm::Function::ExternalLinkage, func->as<ir::FuncAttributes>().symbol, module);
    set_attributes(function, options);
    if (lines) lines->add(function, *func);
    if (Status done = lower_func(kernel, *func, function, options.plant); !done) return done;
    finish_dangling_blocks(*function);
  }
  if (lines) lines->finish();
  return verify(kernel, module);
}

/// What a walk from top to bottom leaves behind: operands of instructions that went away.
void remove_unused(llvm::Function& function) {
  for (llvm::BasicBlock& block : llvm::reverse(function)) {
    for (llvm::Instruction& instruction : llvm::make_early_inc_range(llvm::reverse(block))) {
      if (llvm::isInstructionTriviallyDead(&instruction)) instruction.eraseFromParent();
    }
  }
}

/// Only the analyses that the two passes ask for: registering all of them takes longer than running these.
void optimise(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::FunctionAnalysisManager analyses;
  analyses.registerPass([] { return llvm::PassInstrumentationAnalysis(); });
  analyses.registerPass([] { return llvm::DominatorTreeAnalysis(); });
  analyses.registerPass([] { return llvm::AssumptionAnalysis(); });
  analyses.registerPass([] { return llvm::TargetLibraryAnalysis(); });
  analyses.registerPass([&] { return machine.getTargetIRAnalysis(); });
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::EarlyCSEPass(false));
  passes.addPass(llvm::SimplifyCFGPass());
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    passes.run(function, analyses);
    remove_unused(function);
  }
}

void initialise_llvm_once() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
}

std::unique_ptr<llvm::TargetMachine> make_machine(const CpuOptions& options) {
  initialise_llvm_once();
  std::string error;
  const std::string triple = "x86_64-unknown-linux-gnu";
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target) return nullptr;
  const std::string features = fmt::format("{}", fmt::join(options.features, ","));
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, options.cpu, features, {}, llvm::Reloc::PIC_, llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
}

/// One module: its object, and its texts when wanted.
Result<CpuObject> compile_part(const ir::Kernel& kernel, const Funcs& funcs, const CpuOptions& options) {
  CpuObject out;
  const auto machine = make_machine(options);
  if (!machine) {
    return fail(DiagnosticCode::E2500, "this build of LLVM has no x86-64 code generator",
                "build with LLVM's X86 target");
  }
  llvm::LLVMContext context;
  context.setDiscardValueNames(!options.want_text);
  llvm::Module module(kernel.name, context);
  module.setDataLayout(machine->createDataLayout());
  module.setTargetTriple(machine->getTargetTriple().str());

  auto start = Clock::now();
  if (Status lowered = lower_module(kernel, funcs, options, module); !lowered) return std::unexpected(lowered.error());
  out.lower_ms = ms_since(start);
  start = Clock::now();
  optimise(module, *machine);
  out.optimise_ms = ms_since(start);
  if (options.want_text) {
    llvm::raw_string_ostream stream(out.llvm_ir);
    module.print(stream, nullptr);
    out.assembly = generate_code(module, *machine, llvm::CodeGenFileType::AssemblyFile);
    return out;
  }
  start = Clock::now();
  out.object = generate_code(module, *machine, llvm::CodeGenFileType::ObjectFile);
  out.emit_ms = ms_since(start);
  return out;
}

/// The second of two parts on a thread of its own; on this one where no thread is to be had.
class Beside {
 public:
  template <typename Body>
  explicit Beside(Body body) {
    try {
      thread_ = std::thread(body);
    } catch (const std::system_error&) {
      body();
    }
  }
  ~Beside() {
    if (thread_.joinable()) thread_.join();
  }
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;

 private:
  std::thread thread_;
};

}  // namespace

Result<CpuObject> compile_cpu(const ir::Kernel& kernel, const CpuOptions& options) {
  CpuOptions plain = options;
  plain.want_text = false;
  const std::vector<Funcs> parts = share_out(kernel);
  Result<CpuObject> out, second;
  {
    std::optional<Beside> beside;
    if (parts.size() > 1) beside.emplace([&] { second = compile_part(kernel, parts[1], plain); });
    out = compile_part(kernel, parts[0], plain);
  }
  if (!out) return out;
  if (!second) return second;
  if (parts.size() > 1) out->object = join_objects(std::vector{std::move(out->object), std::move(second->object)});
  if (!options.want_text) return out;
  Result<CpuObject> texts = compile_part(kernel, all_funcs(kernel), options);
  if (!texts) return texts;
  out->llvm_ir = std::move(texts->llvm_ir), out->assembly = std::move(texts->assembly);
  return out;
}

std::string cpu_toolchain() { return "LLVM " LLVM_VERSION_STRING " early-cse,simplifycfg selected passes 3"; }

CpuOptions host_cpu_options() {
  CpuOptions options;
  options.cpu = llvm::sys::getHostCPUName().str();
  const llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  for (const auto& feature : features) options.features.push_back((feature.second ? "+" : "-") + feature.first().str());
  std::sort(options.features.begin(), options.features.end());
  options.vector_bits = features.lookup("avx512f") ? 512 : 256;
  return options;
}

}  // namespace tilewright::codegen
