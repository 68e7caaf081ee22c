// The .npy half of tensor_file.h. Format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>

#include "base/file_bytes.h"
#include "base/tensor_file.h"

namespace tilewright {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);

struct Spelling {
  DType dtype;
  std::string_view descr;
};
constexpr std::array kSpellings = {
    Spelling{DType::Bool, "|b1"}, Spelling{DType::I8, "|i1"},  Spelling{DType::I16, "<i2"}, Spelling{DType::I32, "<i4"},
    Spelling{DType::I64, "<i8"},  Spelling{DType::U8, "|u1"},  Spelling{DType::U16, "<u2"}, Spelling{DType::U32, "<u4"},
    Spelling{DType::U64, "<u8"},  Spelling{DType::F16, "<f2"}, Spelling{DType::F32, "<f4"}, Spelling{DType::F64, "<f8"},
    Spelling{DType::BF16, "<V2"}, Spelling{DType::BF16, "|V2"}};

std::unexpected<Diagnostic> malformed(std::string_view name, std::string_view what) {
  return fail(DiagnosticCode::E3312, fmt::format("'{}' is not a valid .npy file: {}", name, what),
              "write it with numpy.save(path, array, allow_pickle=False)");
}

/// A cursor over the header: a Python dict literal with the keys descr, fortran_order and shape.
class HeaderReader {
 public:
  explicit HeaderReader(std::string_view text) : text_(text) {}

  bool accept(char c) {
    skip_blanks();
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool accept_word(std::string_view word) {
    skip_blanks();
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  std::optional<std::string_view> quoted() {
    skip_blanks();
    if (text_.empty() || (text_.front() != '\'' && text_.front() != '"')) return std::nullopt;
    const size_t end = text_.find(text_.front(), 1);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view word = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return word;
  }
  std::optional<int64_t> number() {
    skip_blanks();
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (error != std::errc{} || value < 0) return std::nullopt;
    text_.remove_prefix(static_cast<size_t>(end - text_.data()));
    return value;
  }
  bool at_end() {
    skip_blanks();
    return text_.empty();
  }

 private:
  void skip_blanks() {
    const size_t start = text_.find_first_not_of(" \t\n");
    text_.remove_prefix(start == std::string_view::npos ? text_.size() : start);
  }
  std::string_view text_;
};

struct Header {
  std::string descr;
  bool fortran_order = false;
  std::vector<int64_t> shape;
};

bool read_shape(HeaderReader& in, std::vector<int64_t>& shape) {
  if (!in.accept('(')) return false;
  while (!in.accept(')')) {
    const auto extent = in.number();
    if (!extent) return false;
    shape.push_back(*extent);
    if (!in.accept(',')) return in.accept(')');
  }
  return true;
}

bool read_value(HeaderReader& in, std::string_view key, Header& header) {
  if (key == "descr") {
    const auto descr = in.quoted();
    if (descr) header.descr = *descr;
    return descr.has_value();
  }
  if (key == "fortran_order") {
    header.fortran_order = in.accept_word("True");
    return header.fortran_order || in.accept_word("False");
  }
  return key == "shape" && header.shape.empty() && read_shape(in, header.shape);
}

std::optional<Header> read_header(std::string_view text) {
  HeaderReader in(text);
  Header header;
  if (!in.accept('{')) return std::nullopt;
  while (!in.accept('}')) {
    const auto key = in.quoted();
    if (!key || !in.accept(':') || !read_value(in, *key, header)) return std::nullopt;
    if (!in.accept(',')) {
      if (!in.accept('}')) return std::nullopt;
      break;
    }
  }
  if (!in.at_end() || header.descr.empty()) return std::nullopt;
  return header;
}

/// Bytes of the data of `tensor`, or nothing when an extent or their product does not fit 63 bits.
std::optional<size_t> byte_size(const HostTensor& tensor) {
  int64_t size = bytes(tensor.dtype);
  bool empty = false;
  for (int64_t extent : tensor.shape) {
    empty = empty || extent == 0;
    if (__builtin_mul_overflow(size, std::max<int64_t>(extent, 1), &size)) return std::nullopt;
  }
  return empty ? 0 : static_cast<size_t>(size);
}

/// Column-major bytes to row-major.
void copy_fortran(const std::byte* source, HostTensor& out) {
  const size_t width = static_cast<size_t>(bytes(out.dtype));
  const size_t rank = out.shape.size();
  std::vector<int64_t> index(rank, 0);
  for (int64_t n = 0; n < out.numel(); ++n) {
    int64_t from = 0;
    for (size_t d = rank; d-- > 0;) from = from * out.shape[d] + index[d];
    std::memcpy(out.data.data() + static_cast<size_t>(n) * width, source + static_cast<size_t>(from) * width, width);
    for (size_t d = rank; d-- > 0;) {
      if (++index[d] < out.shape[d]) break;
      index[d] = 0;
    }
  }
}

}  // namespace

Result<HostTensor> parse_npy(std::span<const std::byte> bytes_in, std::string_view file) {
  const std::string_view all(reinterpret_cast<const char*>(bytes_in.data()), bytes_in.size());
  if (!all.starts_with(kMagic)) return malformed(file, "the magic bytes \\x93NUMPY are missing");
  if (all.size() < 10) return malformed(file, "it ends inside the preamble");
  const int version = static_cast<unsigned char>(all[6]);
  if (version < 1 || version > 3) return malformed(file, fmt::format("format version {} is unknown", version));
  const size_t length_bytes = version == 1 ? 2 : 4;
  if (all.size() < 8 + length_bytes) return malformed(file, "it ends inside the preamble");
  size_t header_size = 0;
  for (size_t i = 0; i < length_bytes; ++i)
    header_size |= static_cast<size_t>(static_cast<uint8_t>(all[8 + i])) << (8 * i);
  const size_t start = 8 + length_bytes;
  if (header_size > all.size() - start) return malformed(file, "its header is longer than the file");
  const auto header = read_header(all.substr(start, header_size));
  if (!header) return malformed(file, "its header is not a dict of descr, fortran_order and shape");

  HostTensor tensor;
  bool known = false;
  for (const Spelling& row : kSpellings) {
    if (row.descr == header->descr) tensor.dtype = row.dtype, known = true;
  }
  if (!known) {
    return fail(DiagnosticCode::E3314, fmt::format("'{}' holds dtype '{}'", file, header->descr),
                "little-endian bool, integers, f16, f32, f64 and bf16 (as '<V2') are read; fp8 travels as safetensors");
  }
  tensor.shape = header->shape;
  const size_t present = all.size() - start - header_size;
  const auto expected = byte_size(tensor);
  if (!expected || *expected != present) {
    return malformed(file,
                     fmt::format("{} needs {} bytes of data, the file has {}", to_string(tensor.dtype, tensor.shape),
                                 expected ? std::to_string(*expected) : "too many", present));
  }
  const std::byte* data = bytes_in.data() + start + header_size;
  tensor.data.resize(*expected);
  if (header->fortran_order && tensor.shape.size() > 1) {
    copy_fortran(data, tensor);
  } else if (*expected) {
    std::memcpy(tensor.data.data(), data, *expected);
  }
  return tensor;
}

Result<HostTensor> read_npy(const std::string& path) {
  auto file = map_file(path);
  if (!file) return std::unexpected(file.error());
  return parse_npy(file->bytes, path);
}

Status write_npy(const std::string& path, const HostTensor& tensor) {
  std::string_view descr;
  for (const Spelling& row : kSpellings) {
    if (row.dtype == tensor.dtype && descr.empty()) descr = row.descr;
  }
  if (descr.empty()) {
    return fail(DiagnosticCode::E3314, fmt::format("{} has no .npy spelling ('{}')", name(tensor.dtype), path),
                "write a .safetensors file");
  }
  std::string shape;
  for (int64_t extent : tensor.shape) shape += fmt::format("{}, ", extent);
  if (tensor.shape.size() > 1) shape.resize(shape.size() - 2);
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr,
                                   tensor.shape.size() == 1 ? shape.substr(0, shape.size() - 1) : shape);
  constexpr size_t kPreamble = 10, kAlign = 64;
  header.append(kAlign - 1 - (kPreamble + header.size()) % kAlign, ' ');
  header += '\n';
  std::string preamble(kMagic);
  preamble += {'\x01', '\x00', static_cast<char>(header.size() & 0xFF), static_cast<char>(header.size() >> 8)};
  header.insert(0, preamble);
  const std::array<std::span<const std::byte>, 2> pieces = {std::as_bytes(std::span(header)), std::span(tensor.data)};
  return publish_file(path, pieces);
}

}  // namespace tilewright
