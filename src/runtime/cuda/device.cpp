#include "runtime/cuda/device.h"

#include <fmt/format.h>

#include <utility>

namespace tilewright::cuda {
namespace {

constexpr int kMultiprocessors = 16, kL2 = 38, kMajor = 75, kMinor = 76, kSharedPerMultiprocessor = 81,
              kSharedOptIn = 97;
constexpr int kFunctionLocal = 3, kFunctionRegisters = 4, kFunctionMaxShared = 8;

#define TW_TRY(expression) \
  if (auto status_ = (expression); !status_) return std::unexpected(status_.error())

}  // namespace

Device::State::~State() {
  if (context) driver->primary_release(handle);
}

Result<int> Device::count() {
  auto driver = Driver::open();
  if (!driver) return std::unexpected(driver.error());
  int n = 0;
  TW_TRY((*driver)->check((*driver)->device_count(&n), "counting devices"));
  return n;
}

Result<Device> Device::open(int ordinal) {
  auto opened = Driver::open();
  if (!opened) return std::unexpected(opened.error());
  const Driver& driver = **opened;
  int n = 0;
  TW_TRY(driver.check(driver.device_count(&n), "counting devices"));
  if (ordinal < 0 || ordinal >= n) {
    return fail(DiagnosticCode::E3051, fmt::format("there is no device cuda:{}: this machine has {} CUDA device{}",
                                                   ordinal, n, n == 1 ? "" : "s"));
  }
  auto state = std::make_shared<State>();
  state->driver = &driver;
  state->ordinal = ordinal;
  TW_TRY(driver.check(driver.device_get(&state->handle, ordinal), "opening the device"));
  DeviceFacts& facts = state->facts;
  char text[128] = {};
  driver.device_name(text, sizeof text, state->handle);
  facts.name = text;
  driver.device_pci_bus_id(text, sizeof text, state->handle);
  facts.pci_bus_id = text;
  const auto attribute = [&](int which) {
    int value = 0;
    driver.device_attribute(&value, which, state->handle);
    return value;
  };
  facts.architecture = attribute(kMajor) * 10 + attribute(kMinor);
  facts.multiprocessors = attribute(kMultiprocessors);
  facts.shared_bytes_per_block = attribute(kSharedOptIn);
  facts.shared_bytes_per_multiprocessor = attribute(kSharedPerMultiprocessor);
  facts.l2_bytes = attribute(kL2);
  facts.driver_version = driver.version;
  driver.device_total_memory(&facts.memory_bytes, state->handle);
  TW_TRY(driver.check(driver.primary_retain(&state->context, state->handle), "creating the device context"));
  Device device;
  device.state_ = std::move(state);
  TW_TRY(device.make_current());
  return device;
}

Status Device::make_current() const {
  return driver().check(driver().context_set(state_->context), "selecting the device");
}

Status Device::synchronize() const {
  TW_TRY(make_current());
  return driver().check(driver().context_synchronize(), "waiting for the device");
}

Result<size_t> Device::free_bytes() const {
  TW_TRY(make_current());
  size_t free = 0, total = 0;
  TW_TRY(driver().check(driver().memory_info(&free, &total), "asking for free memory"));
  return free;
}

Result<DeviceBuffer> DeviceBuffer::allocate(const Device& device, size_t bytes) {
  TW_TRY(device.make_current());
  uint64_t address = 0;
  TW_TRY(device.driver().check(device.driver().memory_allocate(&address, std::max<size_t>(bytes, 16)),
                               fmt::format("allocating {} bytes", bytes)));
  DeviceBuffer out(device, reinterpret_cast<void*>(address));
  out.bytes_ = bytes;
  return out;
}
Status DeviceBuffer::upload(const void* from, size_t bytes, size_t offset) const {
  TW_TRY(device().make_current());
  return device().driver().check(device().driver().copy_to_device(address() + offset, from, bytes),
                                 "copying to the device");
}
Status DeviceBuffer::download(void* to, size_t bytes, size_t offset) const {
  TW_TRY(device().make_current());
  return device().driver().check(device().driver().copy_to_host(to, address() + offset, bytes),
                                 "copying from the device");
}
Status DeviceBuffer::fill_bytes(uint8_t value, void* stream) const {
  TW_TRY(device().make_current());
  return device().driver().check(device().driver().set_bytes(address(), value, bytes_, stream),
                                 "filling device memory");
}

Result<PinnedBuffer> PinnedBuffer::allocate(const Device& device, size_t bytes) {
  TW_TRY(device.make_current());
  void* address = nullptr;
  TW_TRY(device.driver().check(device.driver().host_allocate(&address, bytes, 0),
                               fmt::format("allocating {} pinned bytes", bytes)));
  return PinnedBuffer(device, address);
}

Result<Stream> Stream::create(const Device& device) {
  TW_TRY(device.make_current());
  void* stream = nullptr;
  constexpr unsigned kNonBlocking = 1;
  TW_TRY(device.driver().check(device.driver().stream_create(&stream, kNonBlocking), "creating a stream"));
  return Stream(device, stream);
}
Status Stream::synchronize() const {
  TW_TRY(device().make_current());
  return device().driver().check(device().driver().stream_synchronize(handle()), "waiting for a stream");
}

Result<Event> Event::create(const Device& device) {
  TW_TRY(device.make_current());
  void* event = nullptr;
  TW_TRY(device.driver().check(device.driver().event_create(&event, 0), "creating an event"));
  return Event(device, event);
}
Status Event::record(void* stream) const {
  return device().driver().check(device().driver().event_record(handle(), stream), "recording an event");
}
Status Event::synchronize() const {
  TW_TRY(device().make_current());
  return device().driver().check(device().driver().event_synchronize(handle()), "waiting for an event");
}
Result<float> elapsed_ms(const Event& from, const Event& to) {
  float ms = 0;
  const Driver& driver = from.device().driver();
  TW_TRY(driver.check(driver.event_elapsed(&ms, from.handle(), to.handle()), "reading the time between events"));
  return ms;
}

Status Graph::begin(const Stream& stream) {
  TW_TRY(stream.device().make_current());
  constexpr int kThreadLocal = 1;
  return stream.device().driver().check(stream.device().driver().stream_begin_capture(stream.handle(), kThreadLocal),
                                        "starting a capture");
}
Result<Graph> Graph::end(const Stream& stream) {
  const Driver& driver = stream.device().driver();
  void *graph = nullptr, *executable = nullptr;
  TW_TRY(driver.check(driver.stream_end_capture(stream.handle(), &graph), "ending a capture"));
  const int result = driver.graph_instantiate(&executable, graph, 0);
  driver.graph_destroy(graph);
  TW_TRY(driver.check(result, "instantiating a graph"));
  return Graph(stream.device(), executable);
}
Status Graph::launch(void* stream) const {
  return device().driver().check(device().driver().graph_launch(handle(), stream), "launching a graph");
}

Status Kernel::launch(const LaunchShape& shape, std::span<void*> arguments, void* stream) const {
  const Driver& driver = module_->device().driver();
  int result = 0;
  if (!shape.overlaps_previous) {
    result = driver.launch(function_, shape.grid[0], shape.grid[1], shape.grid[2], shape.threads, 1, 1,
                           shape.shared_bytes, stream, arguments.data(), nullptr);
  } else {
    struct Attribute {
      int id;
      int padding;
      char value[64];
    } overlap{6, 0, {1}};
    struct Config {
      unsigned grid[3], block[3], shared;
      void* stream;
      Attribute* attributes;
      unsigned count;
    };
    const Config config{
        {shape.grid[0], shape.grid[1], shape.grid[2]}, {shape.threads, 1, 1}, shape.shared_bytes, stream, &overlap, 1};
    result = driver.launch_ex(&config, function_, arguments.data(), nullptr);
  }
  if (result == 0) return {};
  return driver.check(
      result, fmt::format("launching kernel {} (grid {}x{}x{}, {} threads, {} shared bytes)", name_, shape.grid[0],
                          shape.grid[1], shape.grid[2], shape.threads, shape.shared_bytes));
}

Result<Module> Module::load(const Device& device, const std::string& image) {
  TW_TRY(device.make_current());
  constexpr int kErrorLog = 5, kErrorLogBytes = 6;
  std::string log(8192, '\0');
  int options[] = {kErrorLog, kErrorLogBytes};
  void* values[] = {log.data(), reinterpret_cast<void*>(log.size())};
  void* handle = nullptr;
  const int result = device.driver().module_load(&handle, image.c_str(), 2, options, values);
  log.resize(std::char_traits<char>::length(log.c_str()));
  TW_TRY(device.driver().check(result, fmt::format("loading a module of {} bytes {}", image.size(), log)));
  Module out;
  out.module_ = std::make_shared<const Owned<ModuleTag>>(device, handle);
  return out;
}

Result<Kernel> Module::kernel(const std::string& name, int shared_bytes) const {
  const Device& device = module_->device();
  const Driver& driver = device.driver();
  TW_TRY(device.make_current());
  if (shared_bytes > device.facts().shared_bytes_per_block) {
    return fail(DiagnosticCode::E2554,
                fmt::format("kernel {} needs {} bytes of shared memory a block; {} allows {}", name, shared_bytes,
                            device.facts().name, device.facts().shared_bytes_per_block),
                "use smaller tiles or fewer stages");
  }
  Kernel out;
  out.module_ = module_;
  out.name_ = name;
  TW_TRY(
      driver.check(driver.module_function(&out.function_, module_->handle(), name.c_str()), "finding kernel " + name));
  TW_TRY(driver.check(driver.function_set_attribute(out.function_, kFunctionMaxShared, shared_bytes),
                      "reserving shared memory for kernel " + name));
  driver.function_attribute(&out.registers_, kFunctionRegisters, out.function_);
  driver.function_attribute(&out.local_bytes_, kFunctionLocal, out.function_);
  return out;
}

}  // namespace tilewright::cuda
