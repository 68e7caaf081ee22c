#include "plan/gpu/buffer_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace tilewright::plan::gpu {
namespace {

constexpr int64_t kTextRows = 16, kTextColumns = 16, kDrawn = 64;

struct Holder {
  int thread = -1, reg = -1;
  int replicas = 0;
};

/// Who holds every element of the first `rows` × `columns` of a tile in registers.
std::vector<Holder> holders(const Distribution& d, int64_t rows, int64_t columns) {
  std::vector<Holder> out(static_cast<size_t>(rows * columns));
  const int rank = d.rank();
  for (int t = 0; t < d.threads(); ++t)
    for (size_t r = 0; r < d.registers.size(); ++r) {
      int64_t row = 0;
      for (int k = 0; k + 1 < rank; ++k)
        row = row * d.shape[static_cast<size_t>(k)] + d.registers[r][static_cast<size_t>(k)] + d.thread_offset(t, k);
      const int64_t column = rank == 0 ? 0 : d.registers[r].back() + d.thread_offset(t, rank - 1);
      if (row >= rows || column >= columns) continue;
      Holder& h = out[static_cast<size_t>(row * columns + column)];
      if (h.replicas++ == 0) h.thread = t, h.reg = static_cast<int>(r);
    }
  return out;
}

std::string describe(const BufferLayout& b) {
  std::string shape;
  for (size_t i = 0; i < b.shape.size(); ++i) shape += fmt::format("{}{}", i ? ", " : "", b.shape[i]);
  const std::string head = fmt::format("{}: {}[{}] ", b.name, name(b.dtype), shape);
  if (b.registers) return head + "in registers: " + to_text(*b.registers);
  std::string where = b.shared.panel == 0 ? fmt::format("in shared memory, rows {} elements apart", b.shared.pitch)
                                          : fmt::format("in shared memory, panels of {} columns, {}-byte swizzle",
                                                        b.shared.panel, swizzle_bytes(b.shared.swizzle));
  if (b.shared.stages > 1) where += fmt::format(", {} stages", b.shared.stages);
  return head + where + fmt::format("; {} bank conflicts when matrix instructions read it", bank_conflicts(b));
}

constexpr std::array<const char*, 8> kColours = {"#8dd3c7", "#ffffb3", "#bebada", "#fb8072",
                                                 "#80b1d3", "#fdb462", "#b3de69", "#fccde5"};

}  // namespace

int64_t BufferLayout::rows() const {
  int64_t n = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i) n *= shape[i];
  return n;
}

int64_t BufferLayout::byte_of(int64_t row, int64_t column) const {
  const int64_t element = bytes(dtype);
  if (shared.panel == 0) return (row * shared.pitch + column) * element;
  const int64_t span = shared.panel * element;
  const auto within = static_cast<uint32_t>(row * span + column % shared.panel * element);
  return column / shared.panel * rows() * span + swizzled(shared.swizzle, within);
}

int bank_conflicts(const BufferLayout& b) {
  if (b.registers) return 0;
  const int64_t element = bytes(b.dtype), step = std::max<int64_t>(1, 16 / element);
  int most = 1;
  for (int64_t row = 0; row + 8 <= b.rows(); row += 8)
    for (int64_t column = 0; column + step <= b.columns(); column += step) {
      std::array<int, 8> groups{};
      for (int64_t r = row; r < row + 8; ++r)
        most = std::max(most, ++groups[static_cast<size_t>(b.byte_of(r, column) / 16 % 8)]);
    }
  return most - 1;
}

std::string to_text(const BufferLayout& b) {
  std::string out = describe(b) + "\n";
  const int64_t rows = std::min(b.rows(), kTextRows), columns = std::min(b.columns(), kTextColumns);
  const auto held = b.registers ? holders(*b.registers, rows, columns) : std::vector<Holder>();
  out += fmt::format("{:>6}", "");
  for (int64_t c = 0; c < columns; ++c) out += fmt::format("{:>9}", c);
  for (int64_t r = 0; r < rows; ++r) {
    out += fmt::format("\n{:>6}", r);
    for (int64_t c = 0; c < columns; ++c) {
      if (b.registers) {
        const Holder& h = held[static_cast<size_t>(r * columns + c)];
        out += fmt::format("{:>9}", fmt::format("t{}.r{}{}", h.thread, h.reg, h.replicas > 1 ? "*" : ""));
      } else {
        out += fmt::format("{:>9}", b.byte_of(r, c));
      }
    }
    if (columns < b.columns()) out += " …";
  }
  if (rows < b.rows()) out += "\n     …";
  out += b.registers ? "\n(thread.register; * held by several threads)\n" : "\n(byte offsets)\n";
  return out;
}

std::string to_svg(const BufferLayout& b) {
  constexpr int kCell = 22, kLeft = 34, kTop = 44;
  const int64_t rows = std::min(b.rows(), kDrawn), columns = std::min(b.columns(), kDrawn);
  const auto held = b.registers ? holders(*b.registers, rows, columns) : std::vector<Holder>();
  const int64_t width = kLeft + columns * kCell + 10, height = kTop + rows * kCell + 30;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"monospace\" font-size=\"7\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n"
      "<text x=\"6\" y=\"14\" font-size=\"11\">{2}</text>\n",
      std::max<int64_t>(width, 760), height, describe(b));
  for (int64_t c = 0; c < columns; ++c)
    out += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", kLeft + c * kCell + kCell / 2,
                       kTop - 4, c);
  for (int64_t r = 0; r < rows; ++r) {
    out += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", kLeft - 4,
                       kTop + r * kCell + kCell / 2 + 3, r);
    for (int64_t c = 0; c < columns; ++c) {
      const int64_t x = kLeft + c * kCell, y = kTop + r * kCell;
      int64_t group = 0;
      std::string first, second;
      if (b.registers) {
        const Holder& h = held[static_cast<size_t>(r * columns + c)];
        group = h.thread / 32;
        first = fmt::format("t{}", h.thread), second = fmt::format("r{}{}", h.reg, h.replicas > 1 ? "*" : "");
      } else {
        const int64_t at = b.byte_of(r, c);
        group = at / 16;
        first = fmt::format("{}", at), second = fmt::format("b{}", at / 4 % 32);
      }
      out += fmt::format(
          "<rect x=\"{0}\" y=\"{1}\" width=\"{2}\" height=\"{2}\" fill=\"{3}\" stroke=\"#999\" stroke-width=\"0.5\"/>"
          "<text x=\"{4}\" y=\"{5}\" text-anchor=\"middle\">{6}</text>"
          "<text x=\"{4}\" y=\"{7}\" text-anchor=\"middle\" fill=\"#555\">{8}</text>\n",
          x, y, kCell, kColours[static_cast<size_t>(group) % kColours.size()], x + kCell / 2, y + 9, first, y + 18,
          second);
    }
  }
  const char* legend = b.registers ? "colour: warp; t thread, r register, * held by several threads"
                                   : "colour: group of four banks; byte offset, b bank";
  out += fmt::format("<text x=\"6\" y=\"{}\" font-size=\"10\">{}{}</text>\n</svg>\n", kTop + rows * kCell + 18, legend,
                     rows < b.rows() || columns < b.columns() ? fmt::format("; the first {} × {}", rows, columns) : "");
  return out;
}

}  // namespace tilewright::plan::gpu
