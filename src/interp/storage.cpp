#include "interp/storage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "interp/bounded.h"
#include "interp/scalar.h"

namespace tilewright::interp {

std::optional<Conflict> TouchMap::read(int64_t element, uint32_t epoch, int32_t actor) {
  Touch& t = touches_[static_cast<size_t>(element)];
  std::optional<Conflict> conflict;
  if (t.write_epoch == epoch && t.writer != actor) conflict = Conflict{t.writer, false};
  if (t.read_epoch != epoch) {
    t.read_epoch = epoch, t.reader = actor, t.other_reader = -1;
  } else if (t.reader != actor) {
    t.other_reader = actor;
  }
  return conflict;
}

std::optional<Conflict> TouchMap::write(int64_t element, uint32_t epoch, int32_t actor, bool atomic) {
  Touch& t = touches_[static_cast<size_t>(element)];
  std::optional<Conflict> conflict;
  if (t.read_epoch == epoch) {
    if (t.reader != actor) conflict = Conflict{t.reader, false};
    if (t.other_reader >= 0 && t.other_reader != actor) conflict = Conflict{t.other_reader, false};
  }
  if (t.write_epoch == epoch && t.writer != actor && !(atomic && t.atomic)) conflict = Conflict{t.writer, true};
  t.write_epoch = epoch, t.writer = actor, t.atomic = atomic;
  return conflict;
}

void Storage::allocate(DType type, std::vector<int64_t> extents, int64_t copy_count, Mode mode) {
  dtype = type;
  shape = std::move(extents);
  copies = copy_count;
  strides.assign(shape.size(), 1);
  size = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    strides[d] = size;
    size *= std::max<int64_t>(shape[d], 0);
  }
  const int64_t total = size * copies;
  const auto n = static_cast<size_t>(total);
  elements.reset(type, total);
  if (elements.is_real()) {
    std::fill(elements.real.begin(), elements.real.end(), std::nan(""));
    if (mode == Mode::Bounded) elements.bound.assign(n, kUnknown);
  } else {
    std::fill(elements.integer.begin(), elements.integer.end(), wrap(type, 0x5555555555555555));
    if (mode == Mode::Bounded) elements.taint.assign(n, 1);
  }
  written.assign(n, 0);
}

std::string Storage::element_text(int64_t element) const {
  std::vector<int64_t> indices;
  int64_t rest = size ? element % size : 0;
  for (int64_t stride : strides) {
    indices.push_back(rest / stride);
    rest %= stride;
  }
  return fmt::format("{}[{}]", buffer->name.empty() ? "a buffer" : buffer->name, fmt::join(indices, ", "));
}

}  // namespace tilewright::interp
