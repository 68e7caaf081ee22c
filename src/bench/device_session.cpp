#include "bench/device_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "measure/clock.h"

namespace tilewright::bench {
namespace {

uint64_t address(const void* memory) { return reinterpret_cast<uint64_t>(memory); }

Result<int> ordinal_of(const std::string& device) {
  int ordinal = 0;
  const char* begin = device.data() + std::min<size_t>(device.size(), 5);
  const auto [end, error] = std::from_chars(begin, device.data() + device.size(), ordinal);
  if (!is_cuda(device) || error != std::errc() || end != device.data() + device.size() || ordinal < 0)
    return fail(DiagnosticCode::E1600, fmt::format("--device {}: there is no such device", device), "cpu, or cuda:0");
  return ordinal;
}

}  // namespace

bool is_cuda(const std::string& device) { return device.starts_with("cuda:"); }

Result<std::shared_ptr<DeviceSession>> DeviceSession::open(const std::string& device) {
  auto ordinal = ordinal_of(device);
  if (!ordinal) return std::unexpected(ordinal.error());
  auto opened = cuda::Device::open(*ordinal);
  if (!opened) return std::unexpected(opened.error());
  std::shared_ptr<DeviceSession> out(new DeviceSession(std::move(*opened)));
  auto stream = cuda::Stream::create(out->device_);
  if (!stream) return std::unexpected(stream.error());
  auto from = cuda::Event::create(out->device_), to = cuda::Event::create(out->device_);
  if (!from) return std::unexpected(from.error());
  if (!to) return std::unexpected(to.error());
  out->stream_ = std::move(*stream);
  out->from_ = std::move(*from);
  out->to_ = std::move(*to);
  out->clock_reader_ = cuda::ClockReader::open(out->device_.facts().pci_bus_id);
  return out;
}

std::string DeviceSession::name() const {
  std::string model = device_.facts().name;
  for (char& c : model) {
    if (c == ' ' || c == ',' || c == '"') c = '-';
  }
  return fmt::format("cuda:{}:sm_{}", model, device_.facts().architecture);
}

Result<void*> DeviceSession::allocate(size_t bytes) {
  auto buffer = cuda::DeviceBuffer::allocate(device_, std::max<size_t>(bytes, 256));
  if (!buffer) return std::unexpected(buffer.error());
  buffers_.push_back(std::move(*buffer));
  return buffers_.back().handle();
}

void DeviceSession::release(void* memory) {
  std::erase_if(buffers_, [&](const cuda::DeviceBuffer& buffer) { return buffer.handle() == memory; });
}

Status DeviceSession::upload(void* to, const void* from, size_t bytes) const {
  if (bytes == 0) return {};
  if (auto current = device_.make_current(); !current) return current;
  const cuda::Driver& d = device_.driver();
  return d.check(d.copy_to_device(address(to), from, bytes), "copying to the device");
}

Status DeviceSession::download(void* to, const void* from, size_t bytes) const {
  if (bytes == 0) return {};
  if (auto current = device_.make_current(); !current) return current;
  if (auto done = stream_.synchronize(); !done) return done;
  const cuda::Driver& d = device_.driver();
  return d.check(d.copy_to_host(to, address(from), bytes), "copying from the device");
}

Status DeviceSession::fill(void* memory, uint8_t value, size_t bytes) const {
  if (bytes == 0) return {};
  if (auto current = device_.make_current(); !current) return current;
  const cuda::Driver& d = device_.driver();
  return d.check(d.set_bytes(address(memory), value, bytes, stream()), "filling device memory");
}

Result<double> DeviceSession::timed(const std::function<Status()>& enqueue) {
  if (auto ok = from_.record(stream()); !ok) return std::unexpected(ok.error());
  if (auto ok = enqueue(); !ok) return std::unexpected(ok.error());
  if (auto ok = to_.record(stream()); !ok) return std::unexpected(ok.error());
  if (auto ok = to_.synchronize(); !ok) return std::unexpected(ok.error());
  auto ms = cuda::elapsed_ms(from_, to_);
  if (!ms) return std::unexpected(ms.error());
  return static_cast<double>(*ms);
}

Result<double> DeviceSession::timed_in_graphs(const std::function<Status()>& enqueue, int count) {
  constexpr int kInOne = 20;
  auto graph = cuda::Graph::capture(stream_, [&]() -> Status {
    for (int i = 0; i < kInOne; ++i) {
      if (auto ok = enqueue(); !ok) return ok;
    }
    return {};
  });
  if (!graph) return std::unexpected(graph.error());
  const int replays = std::max(count / kInOne, 1);
  if (auto first = graph->launch(stream()); !first) return std::unexpected(first.error());
  auto ms = timed([&]() -> Status {
    for (int i = 0; i < replays; ++i) {
      if (auto ok = graph->launch(stream()); !ok) return ok;
    }
    return {};
  });
  if (!ms) return ms;
  return *ms / (replays * kInOne);
}

Result<double> DeviceSession::host_timed(const std::function<Status()>& enqueue) {
  if (auto idle = synchronize(); !idle) return std::unexpected(idle.error());
  const int64_t start = measure::kernel_ns();
  const Status enqueued = enqueue();
  const int64_t end = measure::kernel_ns();
  if (!enqueued) return std::unexpected(enqueued.error());
  if (auto idle = synchronize(); !idle) return std::unexpected(idle.error());
  return static_cast<double>(end - start) * 1e-6;
}

Status DeviceSession::launch_empty(int count) {
  if (!empty_) {
    auto module = cuda::Module::load(device_,
                                     ".version 8.0\n.target sm_80\n.address_size 64\n"
                                     ".visible .entry empty(.param .align 64 .b8 values[512]) { ret; }\n");
    if (!module) return std::unexpected(module.error());
    auto kernel = module->kernel("empty", 0);
    if (!kernel) return std::unexpected(kernel.error());
    empty_ = std::move(*kernel);
  }
  if (auto current = device_.make_current(); !current) return current;
  alignas(64) std::array<std::byte, 512> values = {};
  void* arguments[] = {values.data()};
  for (int i = 0; i < count; ++i) {
    if (auto launched = empty_->launch({.threads = 32}, arguments, stream()); !launched) return launched;
  }
  return {};
}

Status DeviceSession::flush_l2() {
  if (!sweep_) {
    auto sweep = cuda::DeviceBuffer::allocate(device_, 2 * static_cast<size_t>(device_.facts().l2_bytes));
    if (!sweep) return std::unexpected(sweep.error());
    sweep_ = std::move(*sweep);
  }
  return sweep_->fill_bytes(0, stream());
}

nlohmann::json DeviceSession::clocks() const {
  const auto now = clock_reader_ ? clock_reader_->read() : std::nullopt;
  if (!now) return nullptr;
  return {
      {"sm_mhz", now->sm_mhz}, {"memory_mhz", now->memory_mhz}, {"power_w", now->power_w}, {"celsius", now->celsius}};
}

Result<int64_t> DeviceSession::used_bytes() const {
  auto free = device_.free_bytes();
  if (!free) return std::unexpected(free.error());
  return static_cast<int64_t>(device_.facts().memory_bytes - *free);
}

Result<double> DeviceSession::copy_gb_per_s() {
  constexpr size_t kBytes = size_t{256} << 20;
  auto a = cuda::DeviceBuffer::allocate(device_, kBytes), b = cuda::DeviceBuffer::allocate(device_, kBytes);
  if (!a) return std::unexpected(a.error());
  if (!b) return std::unexpected(b.error());
  const cuda::Driver& d = device_.driver();
  double best = 0;
  for (int i = 0; i < 10; ++i) {
    auto ms = timed([&] {
      return d.check(d.copy_on_device(b->address(), a->address(), kBytes, stream()), "copying on the device");
    });
    if (!ms) return ms;
    best = std::max(best, 2.0 * kBytes / (*ms * 1e6));
  }
  return best;
}

}  // namespace tilewright::bench
