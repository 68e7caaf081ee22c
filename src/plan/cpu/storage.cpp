// Where buffers lie: arguments behind their pointers, tiles in the task's scratch memory with padded row pitches.
#include <fmt/format.h>

#include "plan/cpu/lowering.h"

namespace tilewright::plan::cpu {
namespace {

using ir::Index;

constexpr int64_t kLine = 64;
constexpr int64_t kLargestScratch = int64_t{256} << 20;
constexpr int64_t kGemmSlackRows = 16;

int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

/// Rows of a line or more start on a line, and never a power of two of lines apart (they would share cache sets).
int64_t padded_pitch(int64_t bytes) {
  if (bytes < kLine) return bytes;
  const int64_t pitch = round_up(bytes, kLine);
  return pitch % 512 == 0 ? pitch + kLine : pitch;
}

}  // namespace

int64_t Lowering::reserve(int64_t bytes, int64_t align) {
  const int64_t at = round_up(scratch_bytes_, align);
  scratch_bytes_ = round_up(at + bytes, kLine);
  return at;
}

void Lowering::place_argument(int tensor) {
  const ir::Value* buffer = tile_.tensors[static_cast<size_t>(tensor)].buffer;
  Placement place{.pointer = b_.argument(arguments_.pointer_of(tensor)), .storage = buffer->type.dtype};
  place.pointer->name = buffer->name;
  for (Index extent : buffer->type.shape) place.extents.push_back(arguments_.map(extent));
  for (Index stride : arguments_.strides(tensor)) place.strides.push_back(stride * bytes(place.storage));
  placements_[buffer] = std::move(place);
}

/// A tile declared inside `parallel` over lanes is private to each lane.
Status Lowering::place(const ir::Op& alloc) {
  const ir::Value* buffer = alloc.result();
  const ir::Type& type = buffer->type;
  const int group = lanes_.count > 1 ? lanes_.count : 1;
  const int64_t element = bytes(type.dtype) * group;
  Placement place{.storage = type.dtype, .lanes = lanes_.count > 1 ? lanes_.count : 0};
  place.strides.resize(type.shape.size());
  int64_t pitch = element;
  for (size_t d = type.shape.size(); d-- > 0;) {
    const auto extent = type.shape[d].constant();
    if (!extent) return fail_at(DiagnosticCode::E9001, alloc.location, "a tile's extent is not constant");
    if (*extent <= 0)
      return fail_at(DiagnosticCode::E2021, alloc.location,
                     fmt::format("extent {} of tile `{}` is not positive", *extent, buffer->name));
    place.strides[d] = number(pitch);
    place.extents.push_back(number(*extent));
    if (*extent > kLargestScratch / pitch) {
      return fail_at(DiagnosticCode::E2022, alloc.location,
                     fmt::format("tile `{}` needs more than the {} MiB of scratch memory a task may use", buffer->name,
                                 kLargestScratch >> 20),
                     "make the tile smaller");
    }
    int64_t count = *extent;
    if (d + 1 == type.shape.size() && column_multiple_.contains(buffer))
      count = round_up(count, column_multiple_.at(buffer));
    pitch *= count;
    if (d + 1 == type.shape.size() && d > 0) pitch = padded_pitch(pitch);
  }
  std::reverse(place.extents.begin(), place.extents.end());
  int64_t size = pitch;
  if (gemm_buffers_.contains(buffer) && type.shape.size() >= 2) {
    size += kGemmSlackRows * *place.strides[type.shape.size() - 2].constant();
  }
  const int64_t at = reserve(size);
  if (scratch_bytes_ > kLargestScratch) {
    return fail_at(DiagnosticCode::E2022, alloc.location,
                   fmt::format("the tiles up to `{}` need {} KiB of scratch memory; a task may use {} KiB",
                               buffer->name, scratch_bytes_ >> 10, kLargestScratch >> 10),
                   "make the tiles smaller");
  }
  place.pointer = b_.scratch(number(at));
  place.pointer->name = buffer->name;
  placements_[buffer] = std::move(place);
  return {};
}

}  // namespace tilewright::plan::cpu
