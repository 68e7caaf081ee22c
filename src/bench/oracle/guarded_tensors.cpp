#include "bench/oracle/guarded_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

namespace tilewright::bench {
namespace {

constexpr std::byte kCanary{0xC5};
/// 0xFFFF… is a NaN in every float type; 0x7F7F… is large and finite in f32 and bf16, NaN in f16 and e4m3.
constexpr std::array kPoison = {std::byte{0xFF}, std::byte{0x7F}};

size_t padded(size_t bytes) { return (bytes + 63) / 64 * 64; }

void fill_poison(std::span<std::byte> data, int which) { std::ranges::fill(data, kPoison[static_cast<size_t>(which)]); }

}  // namespace

Result<void*> Memory::allocate(size_t bytes) {
  void* block = std::aligned_alloc(64, padded(std::max<size_t>(bytes, 64)));
  if (!block)
    return fail(DiagnosticCode::E1607, fmt::format("cannot allocate {} bytes", bytes), "choose a smaller shape");
  return block;
}
void Memory::release(void* block) { std::free(block); }
Status Memory::upload(void* to, const std::byte* from, size_t bytes) {
  std::memcpy(to, from, bytes);
  return {};
}
Status Memory::download(std::byte* to, const void* from, size_t bytes) {
  std::memcpy(to, from, bytes);
  return {};
}

Result<GuardedTensors> GuardedTensors::make(const Workload& workload, const std::vector<HostTensor>& inputs,
                                            Memory& memory) {
  GuardedTensors out(memory);
  size_t next_input = 0;
  for (const Argument& arg : arguments(workload)) {
    Block block{arg, nullptr, {}, {}};
    const auto size = static_cast<size_t>(arg.byte_count());
    block.clean.assign(kCanaryBytes + size + kCanaryBytes, kCanary);
    if (!arg.is_output()) std::ranges::copy(inputs[next_input++].data, block.clean.begin() + kCanaryBytes);
    auto allocated = memory.allocate(block.clean.size());
    if (!allocated) return std::unexpected(allocated.error());
    block.memory = *allocated;
    out.tensors_.push_back({arg.name, arg.dtype, arg.shape, arg.strides(), arg.is_output(),
                            static_cast<std::byte*>(block.memory) + kCanaryBytes});
    out.blocks_.push_back(std::move(block));
  }
  return out;
}

GuardedTensors::GuardedTensors(GuardedTensors&& other) noexcept
    : memory_(other.memory_), blocks_(std::move(other.blocks_)), tensors_(std::move(other.tensors_)) {
  other.blocks_.clear();
}

GuardedTensors::~GuardedTensors() {
  for (Block& block : blocks_) {
    if (block.memory) memory_->release(block.memory);
  }
}

Status GuardedTensors::arm(int which) {
  for (Block& block : blocks_) {
    if (block.argument.is_output()) {
      fill_poison(std::span(block.clean).subspan(kCanaryBytes, block.clean.size() - 2 * kCanaryBytes), which);
    }
    if (auto ok = memory_->upload(block.memory, block.clean.data(), block.clean.size()); !ok) return ok;
  }
  return {};
}

Result<std::optional<std::string>> GuardedTensors::collect() {
  std::optional<std::string> damage;
  for (Block& block : blocks_) {
    block.host.resize(block.clean.size());
    if (auto ok = memory_->download(block.host.data(), block.memory, block.host.size()); !ok) {
      return std::unexpected(ok.error());
    }
    const auto differs = [&](size_t begin, size_t end) {
      return std::memcmp(block.host.data() + begin, block.clean.data() + begin, end - begin) != 0;
    };
    const size_t data_end = block.host.size() - kCanaryBytes;
    if (differs(0, kCanaryBytes)) damage = fmt::format("canary: bytes before {} were written", block.argument.name);
    if (differs(data_end, block.host.size()))
      damage = fmt::format("canary: bytes after {} were written", block.argument.name);
    if (!block.argument.is_output() && differs(kCanaryBytes, data_end)) {
      damage = fmt::format("input: {} was changed", block.argument.name);
    }
  }
  return damage;
}

std::vector<HostTensor> GuardedTensors::outputs() const {
  std::vector<HostTensor> outputs;
  for (const Block& block : blocks_) {
    if (!block.argument.is_output()) continue;
    outputs.push_back(
        {block.argument.dtype,
         block.argument.shape,
         {block.host.begin() + kCanaryBytes, block.host.end() - static_cast<std::ptrdiff_t>(kCanaryBytes)}});
  }
  return outputs;
}

int64_t count_unwritten(const HostTensor& first, const HostTensor& second, int64_t& where) {
  const auto width = static_cast<size_t>(bytes(first.dtype));
  int64_t count = 0;
  for (int64_t i = 0; i < first.numel(); ++i) {
    bool unwritten = true;
    for (size_t b = 0; b < width && unwritten; ++b) {
      const size_t at = static_cast<size_t>(i) * width + b;
      unwritten = first.data[at] == kPoison[0] && second.data[at] == kPoison[1];
    }
    if (unwritten && count++ == 0) where = i;
  }
  return count;
}

}  // namespace tilewright::bench
