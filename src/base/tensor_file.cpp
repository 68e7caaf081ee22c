#include "base/tensor_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/file_bytes.h"

namespace tilewright {
namespace {

using Json = nlohmann::ordered_json;

struct Spelling {
  DType dtype;
  std::string_view text;
};
constexpr std::array kSpellings = {
    Spelling{DType::Bool, "BOOL"}, Spelling{DType::I8, "I8"},        Spelling{DType::I16, "I16"},
    Spelling{DType::I32, "I32"},   Spelling{DType::I64, "I64"},      Spelling{DType::U8, "U8"},
    Spelling{DType::U16, "U16"},   Spelling{DType::U32, "U32"},      Spelling{DType::U64, "U64"},
    Spelling{DType::F16, "F16"},   Spelling{DType::BF16, "BF16"},    Spelling{DType::F32, "F32"},
    Spelling{DType::F64, "F64"},   Spelling{DType::E4M3, "F8_E4M3"}, Spelling{DType::E5M2, "F8_E5M2"}};

std::unexpected<Diagnostic> malformed(std::string_view name, std::string_view what) {
  return fail(DiagnosticCode::E3312, fmt::format("'{}' is not a valid safetensors file: {}", name, what),
              "the format: 8 bytes header length, a JSON header, the data");
}

/// Number of bytes of a tensor, or nothing when it does not fit 63 bits.
std::optional<size_t> byte_size(DType dtype, std::span<const int64_t> shape) {
  int64_t size = bytes(dtype);
  for (int64_t extent : shape) {
    if (__builtin_mul_overflow(size, extent, &size)) return std::nullopt;
  }
  return static_cast<size_t>(size);
}

/// One header member: {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}; the error says what is wrong.
std::expected<SafetensorsFile::Entry, std::string> read_entry(const Json& row, std::span<const std::byte> data) {
  if (!row.is_object() || !row.contains("dtype") || !row["dtype"].is_string() || !row.contains("shape") ||
      !row["shape"].is_array() || !row.contains("data_offsets") || !row["data_offsets"].is_array() ||
      row["data_offsets"].size() != 2) {
    return std::unexpected("it needs dtype, shape and data_offsets");
  }
  SafetensorsFile::Entry entry;
  const auto& spelling = row["dtype"].get_ref<const std::string&>();
  bool known = false;
  for (const Spelling& s : kSpellings) {
    if (s.text == spelling) entry.dtype = s.dtype, known = true;
  }
  if (!known) return std::unexpected(fmt::format("dtype '{}' is not supported", spelling));
  for (const Json& extent : row["shape"]) {
    if (!extent.is_number_unsigned() || extent.get<uint64_t>() > INT64_MAX) return std::unexpected("a bad shape");
    entry.shape.push_back(extent.get<int64_t>());
  }
  for (const Json& offset : row["data_offsets"]) {
    if (!offset.is_number_unsigned()) return std::unexpected("bad data_offsets");
  }
  const auto begin = row["data_offsets"][0].get<uint64_t>(), end = row["data_offsets"][1].get<uint64_t>();
  if (begin > end || end > data.size()) {
    return std::unexpected(fmt::format("bytes [{}, {}) lie outside the {} bytes of data", begin, end, data.size()));
  }
  const auto expected = byte_size(entry.dtype, entry.shape);
  if (!expected || *expected != end - begin) {
    return std::unexpected(fmt::format("{} does not fill {} bytes", to_string(entry.dtype, entry.shape), end - begin));
  }
  entry.data = data.subspan(begin, end - begin);
  return entry;
}

HostTensor copy_of(const SafetensorsFile::Entry& entry) {
  return {entry.dtype, entry.shape, std::vector<std::byte>(entry.data.begin(), entry.data.end())};
}

}  // namespace

int64_t HostTensor::numel() const {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

HostTensor zeros(DType dtype, std::vector<int64_t> shape) {
  HostTensor tensor{dtype, std::move(shape), {}};
  tensor.data.resize(static_cast<size_t>(tensor.numel()) * static_cast<size_t>(bytes(dtype)));
  return tensor;
}

std::string to_string(DType dtype, std::span<const int64_t> shape) {
  return fmt::format("{}[{}]", name(dtype), fmt::join(shape, ", "));
}

Result<SafetensorsFile> SafetensorsFile::open(const std::string& path) {
  auto file = map_file(path);
  if (!file) return std::unexpected(file.error());
  return parse(file->bytes, path, file->owner);
}

Result<SafetensorsFile> SafetensorsFile::parse(std::span<const std::byte> bytes_in, std::string_view file,
                                               std::shared_ptr<const void> owner) {
  constexpr uint64_t kLargestHeader = 100'000'000;  // the format's own limit
  if (bytes_in.size() < 8) return malformed(file, "it is shorter than 8 bytes");
  uint64_t header_size = 0;
  for (size_t i = 0; i < 8; ++i) header_size |= static_cast<uint64_t>(bytes_in[i]) << (8 * i);
  if (header_size > kLargestHeader || header_size > bytes_in.size() - 8) {
    return malformed(file, fmt::format("its header of {} bytes is longer than the file or 100 MB", header_size));
  }
  const auto* text = reinterpret_cast<const char*>(bytes_in.data()) + 8;
  const Json header = Json::parse(text, text + header_size, nullptr, /*allow_exceptions=*/false);
  if (!header.is_object()) return malformed(file, "its header is not a JSON object");

  SafetensorsFile out;
  out.name_ = file;
  out.owner_ = std::move(owner);
  const auto data = bytes_in.subspan(8 + header_size);
  for (const auto& [key, row] : header.items()) {
    if (key == "__metadata__") {
      for (const auto& [k, v] : row.items()) {
        if (v.is_string()) out.metadata_[k] = v.get<std::string>();
      }
      continue;
    }
    auto entry = read_entry(row, data);
    if (!entry) return malformed(file, fmt::format("tensor '{}': {}", key, entry.error()));
    out.entries_.emplace(key, *std::move(entry));
  }
  return out;
}

Result<SafetensorsFile::Entry> SafetensorsFile::find(std::string_view tensor) const {
  const auto found = entries_.find(tensor);
  if (found != entries_.end()) return found->second;
  constexpr size_t kShown = 8;
  std::vector<std::string_view> names;
  for (const auto& [key, entry] : entries_) {
    if (names.size() < kShown) names.push_back(key);
  }
  return fail(DiagnosticCode::E3313, fmt::format("'{}' has no tensor '{}'", name_, tensor),
              fmt::format("it has {} tensors: {}{}", entries_.size(), fmt::join(names, ", "),
                          entries_.size() > kShown ? ", …" : ""));
}

Result<HostTensor> SafetensorsFile::read(std::string_view tensor) const {
  auto entry = find(tensor);
  if (!entry) return std::unexpected(entry.error());
  return copy_of(*entry);
}

Status write_safetensors(const std::string& path, const std::vector<std::pair<std::string, HostTensor>>& tensors,
                         const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  size_t offset = 0;
  for (const auto& [key, tensor] : tensors) {
    if (key == "__metadata__" || header.contains(key)) {
      return fail(DiagnosticCode::E3311, fmt::format("cannot write '{}': the name '{}' is taken", path, key));
    }
    std::string_view spelling;
    for (const Spelling& s : kSpellings) {
      if (s.dtype == tensor.dtype) spelling = s.text;
    }
    header[key] = {
        {"dtype", spelling}, {"shape", tensor.shape}, {"data_offsets", {offset, offset + tensor.data.size()}}};
    offset += tensor.data.size();
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  std::string length(8, '\0');
  for (size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(text.size() >> (8 * i));
  text.insert(0, length);
  std::vector<std::span<const std::byte>> pieces = {std::as_bytes(std::span(text))};
  for (const auto& [key, tensor] : tensors) pieces.emplace_back(tensor.data);
  return publish_file(path, pieces);
}

Result<HostTensor> read_tensor(std::string_view spec) {
  constexpr std::string_view kSuffix = ".safetensors";
  const size_t at = spec.find(kSuffix);
  if (at == std::string_view::npos) return read_npy(std::string(spec));
  const std::string path(spec.substr(0, at + kSuffix.size()));
  std::string_view tensor = spec.substr(path.size());
  auto file = SafetensorsFile::open(path);
  if (!file) return std::unexpected(file.error());
  if (tensor.empty() && file->entries().size() == 1) return copy_of(file->entries().begin()->second);
  if (!tensor.empty()) tensor.remove_prefix(1);
  return file->read(tensor);
}

}  // namespace tilewright
