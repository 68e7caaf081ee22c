#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "codegen/cuda/assemble.h"
#include "codegen/cuda/emit_ptx.h"
#include "fuzz/recipe_call.h"
#include "fuzz/subject.h"
#include "interp/thread_machine.h"
#include "plan/gpu/plan.h"
#include "runtime/binding.h"
#include "runtime/cuda/launch_values.h"
#include "runtime/report_layout.h"

namespace tilewright::fuzz {
namespace {

/// Memory that a call may write, as it was before the call.
class Snapshot {
 public:
  Snapshot(const runtime::Binding& binding, size_t tensors) {
    for (size_t i = 0; i < tensors; ++i) {
      const auto [low, high] = binding.ranges[i];
      const auto* begin = reinterpret_cast<const std::byte*>(low);
      saved_.push_back({low, std::vector<std::byte>(begin, begin + (high - low))});
    }
  }
  void restore() const {
    for (const auto& [at, bytes] : saved_)
      if (!bytes.empty()) std::memcpy(reinterpret_cast<void*>(at), bytes.data(), bytes.size());
  }

 private:
  std::vector<std::pair<uintptr_t, std::vector<std::byte>>> saved_;
};

class ThreadSubject : public Subject {
 public:
  ThreadSubject(target::Gpu gpu, const ThreadSubjectOptions& options) : gpu_(std::move(gpu)), options_(options) {
    gpu_.multiprocessors = 3;  // persistent blocks take several tiles each
  }
  std::string form() const override { return form_; }
  std::string name() const override { return "thread programs for " + gpu_.name + ", interpreted"; }

  Status run(const ir::Kernel& kernel, const interp::Call& call, const Plant& plant) override {
    const RuntimeArguments arguments(kernel, call);
    const uint64_t key = ir::content_key(kernel).low;
    for (const bool aligned : {true, false}) {
      auto plan = plan::gpu::plan(kernel, gpu_,
                                  {.plant = plant,
                                   .cluster = key % 2 == 0 ? 2 : 0,
                                   .row_walkers = key % 3 == 0 ? 2 : -1,
                                   .wide_indices = key % 8 == 5,
                                   .aligned = aligned});
      if (!plan) return std::unexpected(plan.error());
      runtime::Binding binding;
      const auto bound = runtime::bind(plan->recipe, arguments.get(), TW_CPU, binding);
      if (!bound && bound.error().is_class_fact && aligned) continue;
      if (!bound) return std::unexpected(to_diagnostic(runtime::code_text(bound.error().code), bound.error().message));
      form_ = form_of(*plan);
      if (options_.assembles)
        if (Status s = assemble(*plan); !s) return s;
      return run_all_moments(*plan, binding, key);
    }
    return {};
  }

 private:
  using Op = ir::thread::Op;

  /// What the interpreter runs and the assembler refuses is a failure, too.
  Status assemble(const plan::gpu::GpuPlan& plan) {
    if (!assembler_) {
      auto opened = codegen::Assembler::open();
      if (!opened) return std::unexpected(opened.error());
      assembler_ = std::move(*opened);
    }
    const auto ptx = codegen::emit_ptx(plan.programs, {.architecture = gpu_.architecture});
    if (!ptx) return std::unexpected(ptx.error());
    const auto cubin = assembler_->assemble(*ptx, gpu_.name);
    if (cubin) return {};
    return fail(DiagnosticCode::E9001, "the assembler refuses the program: " + cubin.error().message);
  }

  // Every moment must be free of hazards; the results of one of them, another for every kernel, are what is judged.
  Status run_all_moments(const plan::gpu::GpuPlan& plan, runtime::Binding& binding, uint64_t key) {
    using interp::Moment;
    constexpr Moment kMoments[] = {Moment::Earliest, Moment::Latest, Moment::Random};
    const Snapshot before(binding, plan.recipe.tensors.size());
    for (uint64_t i = 0; i < std::size(kMoments); ++i) {
      const Moment moment = kMoments[(key + i) % std::size(kMoments)];
      if (i > 0) before.restore();
      if (Status s = run_once(plan, binding, {.moment = moment, .seed = key + i}); !s) return s;
      if (!has_async(plan)) break;
    }
    return {};
  }

  static bool uses(const std::vector<ir::thread::Inst>& body, bool (*wanted)(ir::thread::Op)) {
    return std::ranges::any_of(body, [&](const ir::thread::Inst& i) {
      return wanted(i.op) || uses(i.body, wanted) || uses(i.orelse, wanted);
    });
  }
  static bool uses(const plan::gpu::GpuPlan& plan, bool (*wanted)(ir::thread::Op)) {
    return std::ranges::any_of(plan.programs, [&](const auto& p) { return uses(p.body, wanted); });
  }
  static bool has_async(const plan::gpu::GpuPlan& plan) {
    return uses(plan, [](Op op) { return op == Op::Wgmma || op_class(op) == ir::thread::OpClass::Copy; });
  }
  static std::string form_of(const plan::gpu::GpuPlan& plan) {
    const auto has = [&](bool (*wanted)(Op)) { return uses(plan, wanted); };
    std::string out = has([](Op op) { return op == Op::Wgmma; }) ? "wgmma"
                      : has([](Op op) { return op == Op::Mma; }) ? "mma.sync"
                                                                 : "no matrix instruction";
    if (has([](Op op) { return op == Op::TmaLoad; })) out += ", copy engine";
    if (has([](Op op) { return op == Op::TmaStore; })) out += ", stored by it";
    if (has([](Op op) { return op == Op::CpAsync; })) out += ", cp.async";
    if (plan.wide_indices) out += ", 64-bit indices";
    return out;
  }

  static Status run_once(const plan::gpu::GpuPlan& plan, runtime::Binding& binding,
                         const interp::ThreadOptions& options) {
    const runtime::Recipe& recipe = plan.recipe;
    const auto slots = binding.slot_span(recipe);
    std::vector<interp::ThreadBuffer> buffers;
    for (size_t i = 0; i < recipe.tensors.size(); ++i) {
      const auto [low, high] = binding.ranges[i];
      buffers.push_back({reinterpret_cast<void*>(low), high - low});
    }
    std::vector<std::vector<uint64_t>> workspaces;
    for (size_t i = 0; i < recipe.workspaces.size(); ++i) {
      const auto bytes = static_cast<size_t>(std::max<int64_t>(0, evaluate(recipe.workspaces[i].bytes, slots)));
      const auto zeroed = static_cast<size_t>(std::max<int64_t>(0, evaluate(recipe.workspaces[i].zeroed_bytes, slots)));
      auto& memory = workspaces.emplace_back(bytes / 8 + 4, ~uint64_t{0});  // 16-byte aligned by the allocator
      std::memset(memory.data(), 0, std::min(zeroed, bytes));
      binding.pointers[recipe.tensors.size() + i] = memory.data();
      buffers.push_back({memory.data(), bytes});
    }
    std::vector<uint64_t> reports(runtime::report::kBytes / 8, 0);
    buffers.push_back({reports.data(), runtime::report::kBytes});
    const std::span<void* const> pointers(binding.pointers, recipe.tensors.size() + recipe.workspaces.size());
    for (size_t l = 0; l < plan.programs.size(); ++l) {
      const runtime::Launch& launch = recipe.launches[l];
      std::vector<interp::ThreadArgument> given;
      for (void* p : pointers) given.push_back({reinterpret_cast<uint64_t>(p), {}});
      if (!recipe.messages.empty()) {
        given.push_back({reinterpret_cast<uint64_t>(reports.data()), {}});
        given.push_back({0, {}});
      }
      for (const int64_t s : slots) given.push_back({static_cast<uint64_t>(s), {}});
      for (const auto& map : launch.tensor_maps) given.push_back({0, cuda::tensor_map_of(map, pointers, slots)});
      std::array<unsigned, 3> grid{};
      const auto extents = cuda::grid_of(launch, slots);
      std::ranges::transform(extents, grid.begin(), [](int64_t n) { return static_cast<unsigned>(n); });
      if (Status s = interp::run_threads(plan.programs[l], grid, given, buffers, options); !s) return s;
    }
    return {};
  }

  target::Gpu gpu_;
  ThreadSubjectOptions options_;
  std::optional<codegen::Assembler> assembler_;
  std::string form_;
};

}  // namespace

std::unique_ptr<Subject> make_thread_subject(const target::Gpu& gpu, const ThreadSubjectOptions& options) {
  return std::make_unique<ThreadSubject>(gpu, options);
}

}  // namespace tilewright::fuzz
