#include "bench/stage_setup.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "measure/clock.h"

namespace tilewright::bench {
namespace {

constexpr size_t kMargin = 4096;
constexpr auto kMarginByte = std::byte{0xc5};
constexpr auto kPoisonByte = std::byte{0xff};  // a NaN in every float type

size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

std::shared_ptr<std::byte> allocate_aligned(size_t bytes) {
  constexpr std::align_val_t kAlign{64};
  auto* memory = static_cast<std::byte*>(::operator new(bytes == 0 ? 64 : bytes, kAlign, std::nothrow));
  return {memory, [](std::byte* p) { ::operator delete (p, std::align_val_t{64}); }};
}

/// A new value for one element of f32 and f64, two elements swapped for narrower floats; integers and packed data are
/// left alone. Returns the other element it touched, or the same.
size_t perturb_element(const candidate::Tensor& tensor, size_t index, measure::Random& random) {
  auto* bytes = static_cast<std::byte*>(tensor.data);
  if (tensor.dtype == DType::F32) {
    const auto value = static_cast<float>(random.normal());
    std::memcpy(bytes + 4 * index, &value, 4);
  } else if (tensor.dtype == DType::F64) {
    const double value = random.normal();
    std::memcpy(bytes + 8 * index, &value, 8);
  } else if (is_storage_float(tensor.dtype) && tensor.element_count() > 1) {
    const size_t other = (index + 1 + random.below(static_cast<uint64_t>(tensor.element_count() - 1))) %
                         static_cast<size_t>(tensor.element_count());
    const auto width = static_cast<size_t>(tilewright::bytes(tensor.dtype));
    std::swap_ranges(bytes + width * index, bytes + width * (index + 1), bytes + width * other);
    return other;
  }
  return index;
}

}  // namespace

Result<ArgumentMemory> ArgumentMemory::allocate(candidate::Candidate* remote, const Workload& workload,
                                                std::shared_ptr<DeviceSession> session) {
  ArgumentMemory out;
  const std::vector<Argument> args = arguments(workload);
  size_t at = kMargin;
  std::vector<size_t> offsets;
  for (const Argument& arg : args) {
    offsets.push_back(at);
    out.ends_.push_back(at + static_cast<size_t>(arg.byte_count()));
    at = aligned(out.ends_.back()) + kMargin;
  }
  out.total_ = at;
  if (remote != nullptr) {
    auto shared = remote->allocate_shared(at);
    if (!shared) return std::unexpected(shared.error());
    out.base_ = static_cast<std::byte*>(*shared);
  } else {
    out.own_ = allocate_aligned(at);
    if (!out.own_)
      return fail(DiagnosticCode::E3301, fmt::format("cannot allocate {} bytes for the tensors of the workload", at));
    out.base_ = out.own_.get();
  }
  std::memset(out.base_, static_cast<int>(kMarginByte), at);
  for (size_t i = 0; i < args.size(); ++i) {
    out.tensors_.push_back(
        {args[i].name, args[i].dtype, args[i].shape, args[i].strides(), args[i].is_output(), out.base_ + offsets[i]});
  }
  if (session) {
    if (auto moved = out.move_to_device(std::move(session)); !moved) return std::unexpected(moved.error());
  }
  return out;
}

Status ArgumentMemory::move_to_device(std::shared_ptr<DeviceSession> session) {
  auto block = allocate_workspace(session, static_cast<int64_t>(total_));
  if (!block) return std::unexpected(block.error());
  on_device_ = std::move(*block);
  session_ = std::move(session);
  device_tensors_ = tensors_;
  for (size_t i = 0; i < tensors_.size(); ++i)
    device_tensors_[i].data = on_device_.get() + (static_cast<std::byte*>(tensors_[i].data) - base_);
  return session_->upload(on_device_.get(), base_, total_);
}

void ArgumentMemory::upload(const candidate::Tensor& tensor, size_t offset, size_t bytes) const {
  if (!session_) return;
  const std::byte* from = static_cast<std::byte*>(tensor.data) + offset;
  (void)session_->upload(on_device_.get() + (from - base_), from, bytes);
}

Status ArgumentMemory::fetch() {
  if (!session_) return {};
  return session_->download(base_, on_device_.get(), total_);
}

void ArgumentMemory::release(candidate::Candidate& remote) {
  if (!own_ && base_ != nullptr) remote.release_shared(base_);
  *this = ArgumentMemory();
}

void ArgumentMemory::fill(const std::vector<HostTensor>& inputs) {
  size_t next = 0;
  for (candidate::Tensor& tensor : tensors_) {
    if (tensor.is_output) continue;
    const HostTensor& input = inputs[next++];
    if (!input.data.empty()) std::memcpy(tensor.data, input.data.data(), input.data.size());
    upload(tensor);
  }
  poison_outputs();
}

void ArgumentMemory::poison_outputs() {
  for (candidate::Tensor& tensor : tensors_) {
    if (!tensor.is_output) continue;
    std::memset(tensor.data, static_cast<int>(kPoisonByte), tensor.byte_count());
    upload(tensor);
  }
}

void ArgumentMemory::perturb_inputs(measure::Random& random) {
  constexpr int kElements = 4;
  for (candidate::Tensor& tensor : tensors_) {
    const auto count = static_cast<uint64_t>(tensor.element_count());
    if (tensor.is_output || count == 0 || !is_float(tensor.dtype)) continue;
    for (int i = 0; i < kElements; ++i) {
      const size_t first = random.below(count);
      const size_t second = perturb_element(tensor, first, random);
      const auto width = static_cast<size_t>(tilewright::bytes(tensor.dtype));
      for (size_t index : {first, second}) upload(tensor, width * index, width);
    }
  }
}

bool ArgumentMemory::margins_intact() const {
  size_t begin = 0;
  for (size_t i = 0; i <= tensors_.size(); ++i) {
    const size_t end =
        i < tensors_.size() ? static_cast<size_t>(static_cast<std::byte*>(tensors_[i].data) - base_) : total_;
    for (size_t at = begin; at < end; ++at) {
      if (base_[at] != kMarginByte) return false;
    }
    if (i < tensors_.size()) begin = ends_[i];
  }
  return true;
}

std::vector<HostTensor> ArgumentMemory::copy_inputs() const {
  std::vector<HostTensor> out;
  for (const candidate::Tensor& tensor : tensors_) {
    if (tensor.is_output) continue;
    HostTensor& copy = out.emplace_back(zeros(tensor.dtype, tensor.shape));
    if (!copy.data.empty()) std::memcpy(copy.data.data(), tensor.data, copy.data.size());
  }
  return out;
}

std::vector<HostTensor> ArgumentMemory::copy_outputs() const {
  std::vector<HostTensor> out;
  for (const candidate::Tensor& tensor : tensors_) {
    if (!tensor.is_output) continue;
    HostTensor& copy = out.emplace_back(zeros(tensor.dtype, tensor.shape));
    if (!copy.data.empty()) std::memcpy(copy.data.data(), tensor.data, copy.data.size());
  }
  return out;
}

std::vector<std::span<const std::byte>> ArgumentMemory::spans() const {
  std::vector<std::span<const std::byte>> out;
  for (const candidate::Tensor& tensor : tensors_)
    out.emplace_back(static_cast<const std::byte*>(tensor.data), tensor.byte_count());
  return out;
}

Status Ready::launch() {
  return candidate->launch(memory.tensors(), workspace.get(), session ? session->stream() : nullptr);
}

Result<std::shared_ptr<std::byte>> allocate_workspace(const std::shared_ptr<DeviceSession>& session, int64_t bytes) {
  if (session) {
    auto block = session->allocate(static_cast<size_t>(bytes));
    if (!block) return std::unexpected(block.error());
    return std::shared_ptr<std::byte>(static_cast<std::byte*>(*block),
                                      [session](std::byte* p) { session->release(p); });
  }
  auto memory = allocate_aligned(static_cast<size_t>(bytes));
  if (!memory) return fail(DiagnosticCode::E3301, fmt::format("cannot allocate a workspace of {} bytes", bytes));
  return memory;
}

Result<std::shared_ptr<DeviceSession>> session_of(const StageRequest& request, const candidate::Candidate& candidate) {
  if (!is_cuda(request.device) || candidate.is_remote()) return std::shared_ptr<DeviceSession>();
  return DeviceSession::open(request.device);
}

Result<Workload> requested_workload(const StageRequest& request) {
  auto dtypes = parse_dtypes(request.dtypes);
  if (!dtypes) return std::unexpected(dtypes.error());
  return parse_workload(request.workload, *dtypes, request.lengths, request.question);
}

ContractOptions contract_options(const StageRequest& request) {
  ContractOptions options;
  options.device = request.device;
  options.data.seed = request.seed;
  return options;
}

Result<candidate::CandidatePtr> open_candidate(const StageRequest& request, const std::string& spelling,
                                               const candidate::Kinds& kinds, StageChannel& channel) {
  auto made = kinds.make(spelling);
  if (!made) return made;
  channel.step("open");
  const Status opened = (*made)->open({.device = request.device,
                                       .cache_dir = request.cache_dir,
                                       .threads = request.threads,
                                       .timeout = std::chrono::milliseconds(request.timeout_ms)});
  if (!opened) return std::unexpected(opened.error());
  return made;
}

namespace {

template <typename Step>
auto timed(Step step, double& ms) {
  const int64_t start = measure::kernel_ns();
  auto result = step();
  ms = static_cast<double>(measure::kernel_ns() - start) * 1e-6;
  return result;
}

Status make_workspace(Ready& ready) {
  auto bytes = ready.candidate->workspace_bytes();
  if (!bytes) return std::unexpected(bytes.error());
  ready.workspace_bytes = *bytes;
  auto workspace = allocate_workspace(ready.session, *bytes);
  if (!workspace) return std::unexpected(workspace.error());
  ready.workspace = std::move(*workspace);
  if (ready.session) return ready.session->fill(ready.workspace.get(), 0xff, static_cast<size_t>(*bytes));
  std::memset(ready.workspace.get(), 0xff, static_cast<size_t>(*bytes));
  return {};
}

}  // namespace

Result<Ready> open_ready(const StageRequest& request, const std::string& spelling, const candidate::Kinds& kinds,
                         StageChannel& channel) {
  Ready out;
  auto opened = open_candidate(request, spelling, kinds, channel);
  if (!opened) return std::unexpected(opened.error());
  out.candidate = std::move(*opened);
  channel.step("init_device");
  if (auto ok = timed([&] { return out.candidate->init_device(); }, out.device_init_ms); !ok)
    return std::unexpected(ok.error());
  out.is_on_device = is_cuda(request.device);
  auto session = session_of(request, *out.candidate);
  if (!session) return std::unexpected(session.error());
  out.session = std::move(*session);
  return out;
}

void release_tensors(Ready& ready) {
  ready.memory.release(*ready.candidate);
  ready.workspace.reset();
}

Status renew(Ready& out, const StageRequest& request, StageChannel& channel, const std::vector<HostTensor>* inputs) {
  auto workload = requested_workload(request);
  if (!workload) return std::unexpected(workload.error());
  release_tensors(out);
  out.workload = std::move(*workload);
  out.contract = contract_text(out.workload, contract_options(request));
  channel.step("prepare");
  auto echo = out.candidate->prepare(out.contract);
  if (!echo) return std::unexpected(echo.error());
  if (auto fair = check_fair(out.contract, *echo, out.candidate->identity().name); !fair) return fair;
  auto memory =
      ArgumentMemory::allocate(out.candidate->is_remote() ? out.candidate.get() : nullptr, out.workload, out.session);
  if (!memory) return std::unexpected(memory.error());
  out.memory = std::move(*memory);
  out.memory.fill(inputs ? *inputs : make_inputs(out.workload, contract_options(request).data));
  channel.step("compile");
  auto compiled = timed([&] { return out.candidate->compile(request.config); }, out.compile_call_ms);
  if (!compiled) return std::unexpected(compiled.error());
  out.compiled = std::move(*compiled);
  if (auto made = make_workspace(out); !made) return made;
  channel.step("ready");
  return {};
}

Result<Ready> make_ready(const StageRequest& request, const std::string& spelling, const candidate::Kinds& kinds,
                         StageChannel& channel) {
  // A request nobody can read is refused before anything is opened.
  if (auto workload = requested_workload(request); !workload) return std::unexpected(workload.error());
  auto out = open_ready(request, spelling, kinds, channel);
  if (!out) return out;
  if (auto done = renew(*out, request, channel); !done) return std::unexpected(done.error());
  return out;
}

}  // namespace tilewright::bench
