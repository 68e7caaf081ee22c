#include "runtime/cuda/runtime_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "runtime/cuda/launch_values.h"
#include "runtime/report_layout.h"

namespace tilewright::cuda {
namespace {

namespace report = runtime::report;
using runtime::FailureCode;
using runtime::Recipe;

constexpr size_t kMaxMaps = 16;

template <typename T>
runtime::Result<T> convert(Result<T> result) {
  if (!result) return std::unexpected(to_failure(result.error()));
  return std::move(*result);
}
runtime::Status convert(const Status& status) {
  if (!status) return std::unexpected(to_failure(status.error()));
  return {};
}

/// The buffer kernels report into, and the texts of every loaded kernel that can report.
class Reports {
 public:
  Reports(Device device, const ReportOptions& options) : device_(std::move(device)), options_(options) {}

  /// The buffer's address; made (and zeroed) when the first kernel needs it.
  Result<uint64_t> address() {
    const std::lock_guard lock(mutex_);
    if (!buffer_) {
      auto made = DeviceBuffer::allocate(device_, report::kBytes);
      if (!made) return std::unexpected(made.error());
      if (Status s = made->fill_bytes(0); !s) return std::unexpected(s.error());
      if (Status s = device_.synchronize(); !s) return std::unexpected(s.error());
      buffer_ = std::make_unique<DeviceBuffer>(std::move(*made));
    }
    return buffer_->address();
  }
  /// Gives the messages of one kernel ids of their own: the first of them.
  int32_t add(const std::vector<runtime::Message>& messages) {
    const std::lock_guard lock(mutex_);
    const auto first = static_cast<int32_t>(messages_.size());
    messages_.insert(messages_.end(), messages.begin(), messages.end());
    return first;
  }
  /// Prints what was printed; the failed assertion, if there is one. The work has been waited for.
  runtime::Status read() {
    const std::lock_guard lock(mutex_);
    if (!buffer_) return {};
    uint32_t head[2] = {};
    if (Status s = buffer_->download(head, sizeof head); !s) return convert(s);
    if (head[0] == 0 && head[1] == 0) return {};
    std::vector<char> bytes(report::kBytes);
    if (Status s = buffer_->download(bytes.data(), bytes.size()); !s) return convert(s);
    if (Status s = buffer_->fill_bytes(0); !s) return convert(s);
    if (Status s = device_.synchronize(); !s) return convert(s);
    print(bytes, head[1]);
    return head[0] ? failed(bytes) : runtime::Status();
  }

 private:
  const runtime::Message* find(int32_t id) const {
    return id >= 0 && static_cast<size_t>(id) < messages_.size() ? &messages_[static_cast<size_t>(id)] : nullptr;
  }
  void print(const std::vector<char>& bytes, uint32_t wanted) const {
    if (!options_.print) return;
    const auto word = [&](size_t i) {
      int64_t v = 0;
      std::memcpy(&v, bytes.data() + report::kPrints + 8 * i, 8);
      return v;
    };
    const size_t used = std::min<size_t>(wanted, report::kPrintCapacity);
    for (size_t at = 0; at < used;) {
      const int64_t header = word(at);
      if (header == 0) break;  // an entry that did not fit
      std::vector<int64_t> values;
      for (int64_t i = 0; i < header >> 32; ++i) values.push_back(word(at + 1 + static_cast<size_t>(i)));
      at += 1 + values.size();
      const runtime::Message* m = find(static_cast<int32_t>(header & 0xffffffff) - 1);
      options_.print(options_.print_context, m ? m->text.c_str() : "", m ? m->location.c_str() : "", values.data(),
                     static_cast<int32_t>(values.size()));
    }
    if (wanted > report::kPrintCapacity) {
      const std::string lost = fmt::format("({} words of printing did not fit the buffer of {})",
                                           wanted - report::kPrintCapacity, report::kPrintCapacity);
      options_.print(options_.print_context, lost.c_str(), "", nullptr, 0);
    }
  }
  runtime::Status failed(const std::vector<char>& bytes) const {
    tw_record record;
    std::memcpy(&record, bytes.data() + report::kRecord, sizeof record);
    const runtime::Message* m = find(record.id);
    std::string text = m ? m->location + ": assertion failed: " + m->text
                         : fmt::format("assertion {} failed", record.id);
    text += fmt::format(" (block {}", record.block);
    for (int32_t i = 0; i < std::clamp(record.index_count, 0, report::kMostIndices); ++i)
      text += fmt::format("{}{}", i == 0 ? ", index " : ", ", record.indices[i]);
    return runtime::fail(FailureCode::assertion_failed, text + ")");
  }

  std::mutex mutex_;
  Device device_;
  ReportOptions options_;
  std::unique_ptr<DeviceBuffer> buffer_;
  std::vector<runtime::Message> messages_;
};

class CudaCode final : public runtime::Code {
 public:
  static runtime::Result<std::unique_ptr<runtime::Code>> load(const Device& device, Reports& reports,
                                                              const runtime::Artefact& artefact) {
    const Recipe& recipe = artefact.recipe;
    if (artefact.kind == runtime::CodeKind::ElfObject)
      return runtime::fail(FailureCode::wrong_device, recipe.kernel + " was built for a CPU, not for " +
                                                          device.facts().name);
    auto module = convert(Module::load(device, artefact.code));
    if (!module) return std::unexpected(module.error());
    std::unique_ptr<CudaCode> out(new CudaCode(device));
    for (const runtime::Launch& launch : recipe.launches) {
      if (launch.tensor_maps.size() > kMaxMaps)
        return runtime::fail(FailureCode::bad_artefact, launch.symbol + " has too many tensor maps");
      auto kernel = convert(module->kernel(launch.symbol, static_cast<int>(evaluate(launch.shared_bytes, {}))));
      if (!kernel) return std::unexpected(kernel.error());
      out->kernels_.push_back(std::move(*kernel));
    }
    if (!recipe.messages.empty()) {
      auto address = convert(reports.address());
      if (!address) return std::unexpected(address.error());
      out->report_address_ = *address;
      out->first_message_ = reports.add(recipe.messages);
    }
    return std::unique_ptr<runtime::Code>(std::move(out));
  }

  runtime::Status run(const runtime::Execution& execution) const override {
    if (Status s = device_.make_current(); !s) return convert(s);
    if (auto s = check_pointers(execution); !s) return s;
    for (size_t i = 0; i < kernels_.size(); ++i) {
      if (auto s = launch(i, execution); !s) return s;
    }
    return {};
  }

 private:
  explicit CudaCode(Device device) : device_(std::move(device)) {}

  /// Host memory the device cannot reach would fault much later, with nobody to blame.
  runtime::Status check_pointers(const runtime::Execution& e) const {
    constexpr int kMemoryType = 2;
    for (size_t i = 0; i < e.pointers.size(); ++i) {
      unsigned type = 0;
      const auto address = reinterpret_cast<uint64_t>(e.pointers[i]);
      if (!address || device_.driver().pointer_attribute(&type, kMemoryType, address) == 0) continue;
      const std::string name = i < e.recipe.tensors.size() ? "argument " + e.recipe.tensors[i].name
                                                           : std::string("the workspace");
      return runtime::fail(FailureCode::wrong_device,
                           fmt::format("{}: {} ({:#x}) is memory of the host; {} cannot read it: use a buffer of the "
                                       "device or pinned memory",
                                       e.recipe.kernel, name, address, device_.facts().name));
    }
    return {};
  }

  runtime::Status launch(size_t index, const runtime::Execution& e) const {
    const runtime::Launch& launch = e.recipe.launches[index];
    const auto grid = grid_of(launch, e.slots);
    if (std::ranges::count(grid, 0)) return {};
    if (std::ranges::count(grid, -1)) {
      return runtime::fail(FailureCode::too_large,
                           fmt::format("{}: the grid is larger than a device takes (2147483647 blocks along x, 65535 "
                                       "along y and z)",
                                       launch.symbol));
    }
    LaunchShape shape;
    for (size_t i = 0; i < 3; ++i) shape.grid[i] = static_cast<unsigned>(grid[i]);
    shape.threads = static_cast<unsigned>(evaluate(launch.threads, e.slots));
    shape.shared_bytes = static_cast<unsigned>(evaluate(launch.shared_bytes, e.slots));
    EncodedTensorMap maps[kMaxMaps];
    void* arguments[runtime::kMaxTensors + runtime::kMaxWorkspaces + runtime::kMaxSlots + kMaxMaps + 2];
    size_t n = 0;
    for (void* const& p : e.pointers) arguments[n++] = const_cast<void**>(&p);
    if (report_address_) {
      arguments[n++] = const_cast<uint64_t*>(&report_address_);
      arguments[n++] = const_cast<int64_t*>(&first_message_);
    }
    for (const int64_t& s : e.slots) arguments[n++] = const_cast<int64_t*>(&s);
    for (size_t i = 0; i < launch.tensor_maps.size(); ++i) {
      auto map = encode(device_.driver(), tensor_map_of(launch.tensor_maps[i], e.pointers, e.slots));
      if (!map) {
        auto failure = to_failure(map.error());
        const uint32_t p = launch.tensor_maps[i].pointer;
        failure.message = fmt::format("{}: argument {}: {}", e.recipe.kernel,
                                      p < e.recipe.tensors.size() ? e.recipe.tensors[p].name : "workspace",
                                      failure.message);
        return std::unexpected(std::move(failure));
      }
      maps[i] = *map;
      arguments[n++] = &maps[i];
    }
    return convert(kernels_[index].launch(shape, {arguments, n}, e.stream));
  }

  Device device_;
  std::vector<Kernel> kernels_;
  uint64_t report_address_ = 0;
  int64_t first_message_ = 0;
};

class CudaDevice final : public runtime::Device {
 public:
  CudaDevice(cuda::Device device, const ReportOptions& options) : device_(device), reports_(device, options) {}

  tw_device_kind kind() const override { return TW_CUDA; }
  std::string description() const override {
    return fmt::format("cuda:{}, {}, sm_{}", device_.ordinal(), device_.facts().name, device_.facts().architecture);
  }
  int32_t workers() const override { return 1; }
  runtime::Result<std::unique_ptr<runtime::Code>> load(const runtime::Artefact& artefact) override {
    return CudaCode::load(device_, reports_, artefact);
  }
  runtime::Result<std::unique_ptr<runtime::Code>> link(const Recipe& recipe, std::span<const tw_cpu_entry>) override {
    return runtime::fail(FailureCode::wrong_device, recipe.kernel + " was built for a CPU");
  }
  runtime::Result<void*> allocate(size_t bytes) override {
    uint64_t address = 0;
    if (Status s = device_.make_current(); !s) return std::unexpected(to_failure(s.error()));
    const int result = device_.driver().memory_allocate(&address, std::max<size_t>(bytes, 16));
    if (Status s = device_.driver().check(result, fmt::format("allocating {} bytes", bytes)); !s)
      return std::unexpected(to_failure(s.error()));
    return reinterpret_cast<void*>(address);
  }
  void free(void* memory, size_t) override {
    if (device_.make_current()) device_.driver().memory_free(reinterpret_cast<uint64_t>(memory));
  }
  runtime::Status copy_in(void* to, const void* host, size_t bytes) override {
    if (Status s = device_.make_current(); !s) return convert(s);
    return convert(device_.driver().check(
        device_.driver().copy_to_device(reinterpret_cast<uint64_t>(to), host, bytes), "copying to the device"));
  }
  runtime::Status copy_out(void* host, const void* from, size_t bytes) override {
    if (Status s = device_.make_current(); !s) return convert(s);
    return convert(device_.driver().check(
        device_.driver().copy_to_host(host, reinterpret_cast<uint64_t>(from), bytes), "copying from the device"));
  }
  runtime::Status zero(void* memory, size_t bytes, void* stream) override {
    if (Status s = device_.make_current(); !s) return convert(s);
    return convert(device_.driver().check(
        device_.driver().set_bytes(reinterpret_cast<uint64_t>(memory), 0, bytes, stream), "clearing a workspace"));
  }
  runtime::Status synchronise(void* stream) override {
    if (Status s = device_.make_current(); !s) return convert(s);
    if (Status s = device_.driver().check(device_.driver().stream_synchronize(stream), "waiting for the kernel"); !s)
      return convert(s);
    return reports_.read();
  }

 private:
  cuda::Device device_;
  Reports reports_;
};

}  // namespace

runtime::Failure to_failure(const Diagnostic& diagnostic) {
  return {static_cast<FailureCode>(static_cast<int32_t>(diagnostic.code)),  // the same numbers
          diagnostic.help.empty() ? diagnostic.message : diagnostic.message + ": " + diagnostic.help};
}

std::unique_ptr<runtime::Device> make_runtime_device(Device device, const ReportOptions& options) {
  return std::make_unique<CudaDevice>(std::move(device), options);
}

}  // namespace tilewright::cuda

namespace tilewright::runtime {

Result<std::unique_ptr<Device>> open_cuda(int ordinal, tw_print print, void* print_context) {
  auto device = cuda::Device::open(ordinal);
  if (!device) return std::unexpected(cuda::to_failure(device.error()));
  return cuda::make_runtime_device(std::move(*device), {print, print_context});
}

}  // namespace tilewright::runtime
