#include "runtime/cuda/loaded_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "runtime/cuda/launch_values.h"

namespace tilewright::cuda {
namespace {

using runtime::Execution;
using runtime::FailureCode;
using runtime::Recipe;

constexpr size_t kMaxMaps = 16;
constexpr size_t kMaxArguments = runtime::kMaxTensors + runtime::kMaxWorkspaces + runtime::kMaxSlots + kMaxMaps + 2;
/// Calls that are remembered: the buffers that a loop over a few layers passes.
constexpr size_t kRemembered = 4;

/// What one launch passes to its kernel. `arguments` point into the execution (or what was kept of it) and `maps`.
struct LaunchValues {
  LaunchShape shape;
  bool is_empty = false;  ///< a grid of no blocks
  EncodedTensorMap* maps = nullptr;
  void** arguments = nullptr;
  size_t count = 0;
};

/// A recent call: the pointers and slots it had, and all that follows from them. One caller at a time.
struct RememberedCall {
  std::atomic<bool> is_busy = false;
  bool is_valid = false;
  std::vector<void*> pointers;
  std::vector<int64_t> slots;
  std::vector<LaunchValues> launches;
  std::vector<EncodedTensorMap> maps;
  std::vector<void*> arguments;

  bool try_acquire() { return !is_busy.exchange(true, std::memory_order_acquire); }
  void release() { is_busy.store(false, std::memory_order_release); }
  bool has(const Execution& e) const {
    return is_valid && std::ranges::equal(pointers, e.pointers) && std::ranges::equal(slots, e.slots);
  }
};

class CudaCode final : public runtime::Code {
 public:
  explicit CudaCode(Device device) : device_(std::move(device)) {}

  runtime::Status load(Reports& reports, const runtime::Artefact& artefact) {
    auto module = Module::load(device_, artefact.code);
    if (!module) return std::unexpected(to_failure(module.error()));
    for (const runtime::Launch& launch : artefact.recipe.launches) {
      if (launch.tensor_maps.size() > kMaxMaps)
        return runtime::fail(FailureCode::bad_artefact, launch.symbol + " has too many tensor maps");
      auto kernel = module->kernel(launch.symbol, static_cast<int>(evaluate(launch.shared_bytes, {})));
      if (!kernel) return std::unexpected(to_failure(kernel.error()));
      kernels_.push_back(std::move(*kernel));
    }
    if (!artefact.recipe.messages.empty()) {
      auto address = reports.address();
      if (!address) return std::unexpected(to_failure(address.error()));
      report_address_ = *address;
      first_message_ = reports.add(artefact.recipe.messages);
    }
    for (RememberedCall& call : calls_) make_room(call, artefact.recipe);
    return {};
  }

  runtime::Status run(const Execution& e) const override {
    if (Status s = device_.make_current(); !s) return std::unexpected(to_failure(s.error()));
    for (RememberedCall& call : calls_) {
      if (!call.try_acquire()) continue;
      if (call.has(e)) return launch_and_release(call, e.stream);
      call.release();
    }
    if (auto s = check_pointers(e); !s) return s;
    RememberedCall& call = calls_[next_.fetch_add(1, std::memory_order_relaxed) % kRemembered];
    if (!call.try_acquire()) return run_unremembered(e);
    if (auto s = remember(call, e); !s) {
      call.release();
      return s;
    }
    return launch_and_release(call, e.stream);
  }

 private:
  static void make_room(RememberedCall& call, const Recipe& recipe) {
    call.pointers.resize(recipe.tensors.size() + recipe.workspaces.size());
    call.slots.resize(recipe.slots.size());
    call.launches.resize(recipe.launches.size());
    size_t maps = 0;
    for (const runtime::Launch& launch : recipe.launches) maps += launch.tensor_maps.size();
    const size_t plain = call.pointers.size() + call.slots.size() + 2;
    call.maps.resize(maps);
    call.arguments.resize(plain * recipe.launches.size() + maps);
    EncodedTensorMap* map = call.maps.data();
    void** arguments = call.arguments.data();
    for (size_t i = 0; i < recipe.launches.size(); ++i) {
      call.launches[i].maps = map;
      call.launches[i].arguments = arguments;
      map += recipe.launches[i].tensor_maps.size();
      arguments += plain + recipe.launches[i].tensor_maps.size();
    }
  }

  /// Fills `call` for this execution; nothing in it refers to the execution afterwards.
  runtime::Status remember(RememberedCall& call, const Execution& e) const {
    call.is_valid = false;
    std::ranges::copy(e.pointers, call.pointers.begin());
    std::ranges::copy(e.slots, call.slots.begin());
    const Execution own = {e.recipe, call.slots, call.pointers, e.scratch, e.scratch_stride, e.stream};
    for (size_t i = 0; i < kernels_.size(); ++i) {
      if (auto s = prepare(i, own, call.launches[i]); !s) return s;
    }
    call.is_valid = true;
    return {};
  }

  runtime::Status launch_and_release(RememberedCall& call, void* stream) const {
    runtime::Status status;
    for (size_t i = 0; i < kernels_.size() && status; ++i) status = launch(i, call.launches[i], stream);
    call.release();
    return status;
  }

  /// Somebody else works on the place this call would have.
  runtime::Status run_unremembered(const Execution& e) const {
    EncodedTensorMap maps[kMaxMaps];
    void* arguments[kMaxArguments];
    LaunchValues values;
    values.maps = maps;
    values.arguments = arguments;
    for (size_t i = 0; i < kernels_.size(); ++i) {
      if (auto s = prepare(i, e, values); !s) return s;
      if (auto s = launch(i, values, e.stream); !s) return s;
    }
    return {};
  }

  runtime::Status launch(size_t index, const LaunchValues& values, void* stream) const {
    if (values.is_empty) return {};
    const Status launched = kernels_[index].launch(values.shape, {values.arguments, values.count}, stream);
    if (!launched) return std::unexpected(to_failure(launched.error()));
    return {};
  }

  /// Host memory the device cannot reach would fault much later, with nobody to blame.
  runtime::Status check_pointers(const Execution& e) const {
    constexpr int kMemoryType = 2;
    for (size_t i = 0; i < e.pointers.size(); ++i) {
      unsigned type = 0;
      const auto address = reinterpret_cast<uint64_t>(e.pointers[i]);
      if (!address || device_.driver().pointer_attribute(&type, kMemoryType, address) == 0) continue;
      const std::string name =
          i < e.recipe.tensors.size() ? "argument " + e.recipe.tensors[i].name : std::string("the workspace");
      return runtime::fail(FailureCode::wrong_device,
                           fmt::format("{}: {} ({:#x}) is memory of the host; {} cannot read it: use a buffer of the "
                                       "device or pinned memory",
                                       e.recipe.kernel, name, address, device_.facts().name));
    }
    return {};
  }

  runtime::Status prepare(size_t index, const Execution& e, LaunchValues& out) const {
    const runtime::Launch& launch = e.recipe.launches[index];
    const auto grid = grid_of(launch, e.slots);
    out.is_empty = std::ranges::count(grid, 0) > 0;
    if (out.is_empty) return {};
    if (std::ranges::count(grid, -1)) {
      return runtime::fail(FailureCode::too_large,
                           fmt::format("{}: the grid is larger than a device takes (2147483647 blocks along x, 65535 "
                                       "along y and z)",
                                       launch.symbol));
    }
    for (size_t i = 0; i < 3; ++i) out.shape.grid[i] = static_cast<unsigned>(grid[i]);
    out.shape.threads = static_cast<unsigned>(evaluate(launch.threads, e.slots));
    out.shape.shared_bytes = static_cast<unsigned>(evaluate(launch.shared_bytes, e.slots));
    return fill_arguments(launch, e, out);
  }

  runtime::Status fill_arguments(const runtime::Launch& launch, const Execution& e, LaunchValues& out) const {
    size_t n = 0;
    for (void* const& p : e.pointers) out.arguments[n++] = const_cast<void**>(&p);
    if (report_address_) {
      out.arguments[n++] = const_cast<uint64_t*>(&report_address_);
      out.arguments[n++] = const_cast<int64_t*>(&first_message_);
    }
    for (const int64_t& s : e.slots) out.arguments[n++] = const_cast<int64_t*>(&s);
    for (size_t i = 0; i < launch.tensor_maps.size(); ++i) {
      auto map = encode(device_.driver(), tensor_map_of(launch.tensor_maps[i], e.pointers, e.slots));
      if (!map) {
        auto failure = to_failure(map.error());
        const uint32_t p = launch.tensor_maps[i].pointer;
        failure.message =
            fmt::format("{}: argument {}: {}", e.recipe.kernel,
                        p < e.recipe.tensors.size() ? e.recipe.tensors[p].name : "workspace", failure.message);
        return std::unexpected(std::move(failure));
      }
      out.maps[i] = *map;
      out.arguments[n++] = &out.maps[i];
    }
    out.count = n;
    return {};
  }

  Device device_;
  std::vector<Kernel> kernels_;
  uint64_t report_address_ = 0;
  int64_t first_message_ = 0;
  mutable std::array<RememberedCall, kRemembered> calls_;
  mutable std::atomic<size_t> next_ = 0;
};

}  // namespace

runtime::Result<std::unique_ptr<runtime::Code>> load_code(const Device& device, Reports& reports,
                                                          const runtime::Artefact& artefact) {
  if (artefact.kind == runtime::CodeKind::ElfObject)
    return runtime::fail(FailureCode::wrong_device,
                         artefact.recipe.kernel + " was built for a CPU, not for " + device.facts().name);
  auto code = std::make_unique<CudaCode>(device);
  if (auto loaded = code->load(reports, artefact); !loaded) return std::unexpected(loaded.error());
  return std::unique_ptr<runtime::Code>(std::move(code));
}

}  // namespace tilewright::cuda
