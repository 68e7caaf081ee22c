// Tensors on disk: NumPy's .npy (format versions 1–3) and Hugging Face's .safetensors, read and written.
// Guarantees: every length, offset and product of a file is checked before use, so a damaged or hostile file gives a
// Diagnostic that names the file and what is wrong, never a crash, and never an allocation larger than the file; files
// are written under a temporary name and renamed, so a reader sees the old file or the whole new one. Does not: pickled
// objects, big-endian data, structured dtypes. fp8 has no .npy spelling (use safetensors); bf16 is read from and
// written as the two-byte void type `<V2`, as the ml_dtypes package does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/diagnostic.h"
#include "base/dtype.h"

namespace tilewright {

/// A dense row-major tensor that owns its bytes. Scalars have an empty shape.
struct HostTensor {
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  std::vector<std::byte> data;

  int64_t numel() const;
  template <typename T>
  T* as() {
    return reinterpret_cast<T*>(data.data());
  }
  template <typename T>
  const T* as() const {
    return reinterpret_cast<const T*>(data.data());
  }
};

/// All zeros, of the given type and shape.
HostTensor zeros(DType dtype, std::vector<int64_t> shape);
/// "f32[3, 4]"
std::string to_string(DType dtype, std::span<const int64_t> shape);

Result<HostTensor> parse_npy(std::span<const std::byte> bytes, std::string_view name);
Result<HostTensor> read_npy(const std::string& path);
Status write_npy(const std::string& path, const HostTensor& tensor);

/// A safetensors file mapped into memory; tensors are views into the map and live as long as the object or a copy of
/// it.
class SafetensorsFile {
 public:
  struct Entry {
    DType dtype;
    std::vector<int64_t> shape;
    std::span<const std::byte> data;
  };

  static Result<SafetensorsFile> open(const std::string& path);
  /// `owner` keeps `bytes` alive.
  static Result<SafetensorsFile> parse(std::span<const std::byte> bytes, std::string_view name,
                                       std::shared_ptr<const void> owner);

  const std::map<std::string, Entry, std::less<>>& entries() const { return entries_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  /// Error E3312 lists the nearest names there are.
  Result<Entry> find(std::string_view tensor) const;
  Result<HostTensor> read(std::string_view tensor) const;

 private:
  std::string name_;
  std::shared_ptr<const void> owner_;
  std::map<std::string, Entry, std::less<>> entries_;
  std::map<std::string, std::string> metadata_;
};

/// Tensors are laid out in the given order; names must be unique.
Status write_safetensors(const std::string& path, const std::vector<std::pair<std::string, HostTensor>>& tensors,
                         const std::map<std::string, std::string>& metadata = {});

/// "x.npy", or "w.safetensors:name" (the name may be left out when the file holds one tensor).
Result<HostTensor> read_tensor(std::string_view spec);

}  // namespace tilewright
