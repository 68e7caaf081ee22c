// Tilewright's run-time library for C++17: the C ABI of tilewright.h with ownership and views. Header only.
//
//   auto device = tilewright::Device::open("cpu");
//   auto plan = device->load_file("matmul_relu.twk");
//   if (!plan) return log(plan.error().message());
//   tilewright::Arguments arguments{{a, {m, k}}, {b, {k, n}}, {c, {m, n}}};
//   auto workspace = plan->make_workspace(arguments);
//   tilewright::Status status = plan->execute(arguments, *workspace);
//
// Nothing throws (beyond what std containers do when building messages): operations return a Status, or an Expected<T>
// that holds a T or a Status. execute() allocates nothing. Views do not own; a Plan and a Buffer must not outlive their
// Device.
#ifndef TILEWRIGHT_RUNTIME_H_
#define TILEWRIGHT_RUNTIME_H_

#include <tilewright/tilewright.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

namespace tilewright {

/// Success, or what went wrong. Converts to true on success.
class [[nodiscard]] Status {
 public:
  Status() = default;
  explicit Status(tw_status* status) : status_(status) {}

  explicit operator bool() const { return !status_; }
  int code() const { return tw_status_code(status_.get()); }
  std::string_view code_text() const { return tw_status_code_text(status_.get()); }
  std::string_view name() const { return tw_status_name(status_.get()); }
  std::string_view message() const { return tw_status_message(status_.get()); }
  /// The arguments are fine, but another shape class's plan is the one for them.
  bool is_wrong_class() const { return tw_status_is_wrong_class(status_.get()) != 0; }

 private:
  struct Free {
    void operator()(tw_status* status) const { tw_status_free(status); }
  };
  std::unique_ptr<tw_status, Free> status_;
};

/// A T or the Status that tells why there is none. Read the T only when it converts to true.
template <typename T>
class [[nodiscard]] Expected {
 public:
  Expected(T value) : value_(std::move(value)) {}
  Expected(Status error) : error_(std::move(error)) {}

  explicit operator bool() const { return static_cast<bool>(error_); }
  T& operator*() { return value_; }
  const T& operator*() const { return value_; }
  T* operator->() { return &value_; }
  const T* operator->() const { return &value_; }
  const Status& error() const { return error_; }
  Status take_error() && { return std::move(error_); }

 private:
  T value_{};
  Status error_;
};

/// Storage types without a C++17 type of their own; the bits are what memory holds.
struct f16 {
  std::uint16_t bits;
};
struct bf16 {
  std::uint16_t bits;
};
struct e4m3 {
  std::uint8_t bits;
};
struct e5m2 {
  std::uint8_t bits;
};

template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<bool> : std::integral_constant<tw_dtype, TW_BOOL> {};
template <>
struct DTypeOf<std::int8_t> : std::integral_constant<tw_dtype, TW_I8> {};
template <>
struct DTypeOf<std::int16_t> : std::integral_constant<tw_dtype, TW_I16> {};
template <>
struct DTypeOf<std::int32_t> : std::integral_constant<tw_dtype, TW_I32> {};
template <>
struct DTypeOf<std::int64_t> : std::integral_constant<tw_dtype, TW_I64> {};
template <>
struct DTypeOf<std::uint8_t> : std::integral_constant<tw_dtype, TW_U8> {};
template <>
struct DTypeOf<std::uint16_t> : std::integral_constant<tw_dtype, TW_U16> {};
template <>
struct DTypeOf<std::uint32_t> : std::integral_constant<tw_dtype, TW_U32> {};
template <>
struct DTypeOf<std::uint64_t> : std::integral_constant<tw_dtype, TW_U64> {};
template <>
struct DTypeOf<f16> : std::integral_constant<tw_dtype, TW_F16> {};
template <>
struct DTypeOf<bf16> : std::integral_constant<tw_dtype, TW_BF16> {};
template <>
struct DTypeOf<float> : std::integral_constant<tw_dtype, TW_F32> {};
template <>
struct DTypeOf<double> : std::integral_constant<tw_dtype, TW_F64> {};
template <>
struct DTypeOf<e4m3> : std::integral_constant<tw_dtype, TW_E4M3> {};
template <>
struct DTypeOf<e5m2> : std::integral_constant<tw_dtype, TW_E5M2> {};

/// A view of the caller's memory: element type from the pointer, read-only from `const`. At most TW_MAX_RANK axes.
/// Strides are in elements; another number of them than of extents is refused by whatever takes the tensor (E1404).
class Tensor {
 public:
  using Extents = std::initializer_list<std::int64_t>;

  /// An optional argument that is not given.
  Tensor() { tensor_.flags = TW_TENSOR_ABSENT; }

  template <typename T>
  Tensor(T* data, Extents extents, Extents strides = {}, tw_device_kind device = TW_CPU)
      : Tensor(const_cast<std::remove_const_t<T>*>(data), DTypeOf<std::remove_const_t<T>>::value, extents, strides,
               std::is_const_v<T> ? TW_TENSOR_READ_ONLY : 0u, device) {}

  /// Of a type known only at run time.
  Tensor(void* data, tw_dtype dtype, Extents extents, Extents strides = {}, std::uint32_t flags = 0,
         tw_device_kind device = TW_CPU)
      : Tensor(data, dtype, extents.begin(), extents.size(), strides.size() > 0 ? strides.begin() : nullptr, flags,
               device) {
    if (strides.size() > 0 && strides.size() != extents.size()) tensor_.rank = -1;
  }

  /// Of a shape known only at run time: `rank` extents, and as many strides or nullptr for row-major without gaps.
  Tensor(void* data, tw_dtype dtype, const std::int64_t* extents, std::size_t rank, const std::int64_t* strides,
         std::uint32_t flags = 0, tw_device_kind device = TW_CPU) {
    tensor_.data = data;
    tensor_.dtype = dtype;
    tensor_.flags = flags;
    tensor_.device = device;
    tensor_.rank = static_cast<std::int32_t>(rank);
    has_strides_ = strides != nullptr;
    for (std::size_t i = 0; i < rank && i < extents_.size(); ++i) {
      extents_[i] = extents[i];
      if (strides) strides_[i] = strides[i];
    }
  }

  /// What the C interface gave, as tw_tensor_from_dlpack(); extents and strides are copied.
  explicit Tensor(const tw_tensor& view) : tensor_(view), has_strides_(view.strides != nullptr) {
    const std::size_t rank = view.extents && view.rank > 0 ? static_cast<std::size_t>(view.rank) : 0;
    for (std::size_t i = 0; i < rank && i < extents_.size(); ++i) {
      extents_[i] = view.extents[i];
      if (view.strides) strides_[i] = view.strides[i];
    }
  }

  /// The view; its arrays point into this object.
  tw_tensor view() const {
    tw_tensor out = tensor_;
    out.extents = extents_.data();
    out.strides = has_strides_ ? strides_.data() : nullptr;
    return out;
  }

 private:
  tw_tensor tensor_{};
  std::array<std::int64_t, TW_MAX_RANK> extents_{};
  std::array<std::int64_t, TW_MAX_RANK> strides_{};
  bool has_strides_ = false;
};

/// A scalar argument, or the kernel's default.
class Scalar {
 public:
  Scalar() = default;
  template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
  Scalar(T value) {
    if constexpr (std::is_floating_point_v<T>) {
      scalar_.kind = TW_SCALAR_FLOAT;
      scalar_.value.floating = static_cast<double>(value);
    } else {
      scalar_.kind = TW_SCALAR_INTEGER;
      scalar_.value.integer = static_cast<std::int64_t>(value);
    }
  }
  tw_scalar view() const { return scalar_; }

 private:
  tw_scalar scalar_{};
};

/// The arguments of one call, in the kernel's order. Up to 16 tensors and 16 scalars, held in place; more are dropped
/// and the call then reports the wrong count.
class Arguments {
 public:
  static constexpr std::size_t kMax = 16;

  Arguments() = default;
  Arguments(std::initializer_list<Tensor> tensors, std::initializer_list<Scalar> scalars = {}) {
    for (const Tensor& tensor : tensors) add(tensor);
    for (const Scalar& scalar : scalars) add(scalar);
  }

  void add(const Tensor& tensor) {
    if (tensor_count_ < kMax) tensors_[tensor_count_++] = tensor;
  }
  void add(const Scalar& scalar) {
    if (scalar_count_ < kMax) scalars_[scalar_count_++] = scalar.view();
  }

  /// Calls `body(const tw_arguments&)`; the view lives as long as the call.
  template <typename Body>
  auto visit(Body&& body) const {
    std::array<tw_tensor, kMax> views;
    for (std::size_t i = 0; i < tensor_count_; ++i) views[i] = tensors_[i].view();
    const tw_arguments arguments = {views.data(), tensor_count_, scalars_.data(), scalar_count_};
    return body(arguments);
  }

 private:
  std::array<Tensor, kMax> tensors_;
  std::array<tw_scalar, kMax> scalars_{};
  std::size_t tensor_count_ = 0;
  std::size_t scalar_count_ = 0;
};

/// Device memory, 64-byte aligned.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(tw_buffer* buffer) : buffer_(buffer) {}

  void* data() const { return tw_buffer_data(buffer_.get()); }
  std::size_t bytes() const { return tw_buffer_bytes(buffer_.get()); }
  Status write(const void* from, std::size_t size, std::size_t offset = 0) {
    return Status(tw_buffer_write(buffer_.get(), offset, from, size));
  }
  Status read(void* to, std::size_t size, std::size_t offset = 0) const {
    return Status(tw_buffer_read(buffer_.get(), offset, to, size));
  }

 private:
  struct Free {
    void operator()(tw_buffer* buffer) const { tw_buffer_free(buffer); }
  };
  std::unique_ptr<tw_buffer, Free> buffer_;
};

/// A loaded kernel of one shape class. Immutable; use it from as many threads as you like, a workspace each.
class Plan {
 public:
  Plan() = default;
  Plan(tw_device* device, tw_plan* plan) : device_(device), plan_(plan) {}

  std::string_view kernel() const { return tw_plan_kernel(plan_.get()); }
  std::string_view target() const { return tw_plan_target(plan_.get()); }
  std::string_view description() const { return tw_plan_description(plan_.get()); }
  tw_plan* get() const { return plan_.get(); }

  Status check(const Arguments& arguments) const {
    return arguments.visit([&](const tw_arguments& view) { return Status(tw_plan_check(plan_.get(), &view)); });
  }

  Expected<std::size_t> workspace_bytes(const Arguments& arguments) const {
    return arguments.visit([&](const tw_arguments& view) -> Expected<std::size_t> {
      std::size_t bytes = 0;
      Status status(tw_plan_workspace_bytes(plan_.get(), &view, &bytes));
      if (!status) return status;
      return bytes;
    });
  }

  /// A buffer that is large enough for these shapes.
  Expected<Buffer> make_workspace(const Arguments& arguments) const {
    auto bytes = workspace_bytes(arguments);
    if (!bytes) return std::move(bytes).take_error();
    tw_buffer* buffer = nullptr;
    Status status(tw_buffer_allocate(device_, *bytes, &buffer));
    if (!status) return status;
    return Buffer(buffer);
  }

  /// Checks and runs. No allocation, lock, load or wait beyond the kernel's own work.
  Status execute(const Arguments& arguments, void* workspace, std::size_t bytes, void* stream = nullptr) const {
    return arguments.visit(
        [&](const tw_arguments& view) { return Status(tw_execute(plan_.get(), &view, workspace, bytes, stream)); });
  }
  Status execute(const Arguments& arguments, const Buffer& workspace, void* stream = nullptr) const {
    return execute(arguments, workspace.data(), workspace.bytes(), stream);
  }
  /// For kernels without a workspace.
  Status execute(const Arguments& arguments) const { return execute(arguments, nullptr, 0); }

 private:
  struct Free {
    void operator()(tw_plan* plan) const { tw_plan_free(plan); }
  };
  tw_device* device_ = nullptr;
  std::unique_ptr<tw_plan, Free> plan_;
};

class Device {
 public:
  Device() = default;

  /// "cpu" or "cuda:0".
  static Expected<Device> open(const char* name, tw_device_options options = {}) {
    options.struct_size = sizeof options;
    tw_device* device = nullptr;
    Status status(tw_device_open(name, &options, &device));
    if (!status) return status;
    return Device(device);
  }

  Expected<Plan> load(const void* bytes, std::size_t size) const {
    tw_plan* plan = nullptr;
    Status status(tw_plan_load(device_.get(), bytes, size, &plan));
    if (!status) return status;
    return Plan(device_.get(), plan);
  }
  Expected<Plan> load_file(const char* path) const {
    tw_plan* plan = nullptr;
    Status status(tw_plan_load_file(device_.get(), path, &plan));
    if (!status) return status;
    return Plan(device_.get(), plan);
  }
  Expected<Buffer> allocate(std::size_t bytes) const {
    tw_buffer* buffer = nullptr;
    Status status(tw_buffer_allocate(device_.get(), bytes, &buffer));
    if (!status) return status;
    return Buffer(buffer);
  }
  Status synchronise(void* stream = nullptr) const { return Status(tw_device_synchronise(device_.get(), stream)); }
  /// "cpu" or "cuda:0".
  const char* name() const { return tw_device_name(device_.get()); }
  int workers() const { return tw_device_workers(device_.get()); }
  tw_device* get() const { return device_.get(); }

 private:
  explicit Device(tw_device* device) : device_(device) {}
  struct Close {
    void operator()(tw_device* device) const { tw_device_close(device); }
  };
  std::unique_ptr<tw_device, Close> device_;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_RUNTIME_H_
