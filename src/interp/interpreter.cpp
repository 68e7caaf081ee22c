#include "interp/interpreter.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

#include "interp/bounded.h"
#include "interp/scalar.h"
#include "interp/tile_machine.h"

namespace tilewright::interp {
namespace {

std::unexpected<Diagnostic> misfit(std::string message) { return fail(DiagnosticCode::E1212, std::move(message)); }

std::vector<int64_t> dense_strides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

/// Calls f(dense element, byte offset) for every element.
void for_elements(const TensorRef& t, const std::function<void(int64_t, int64_t)>& f) {
  const std::vector<int64_t> strides = t.strides.empty() ? dense_strides(t.shape) : t.strides;
  int64_t total = 1;
  for (const int64_t n : t.shape) total *= n;
  std::vector<int64_t> at(t.shape.size(), 0);
  int64_t offset = 0;
  for (int64_t element = 0; element < total; ++element) {
    f(element, offset * bytes(t.dtype));
    for (size_t d = t.shape.size(); d-- > 0;) {
      offset += strides[d];
      if (++at[d] < t.shape[d]) break;
      offset -= strides[d] * t.shape[d];
      at[d] = 0;
    }
  }
}

uint64_t read_bits(const void* data, int64_t offset, int width) {
  uint64_t v = 0;
  __builtin_memcpy(&v, static_cast<const char*>(data) + offset, static_cast<size_t>(width));
  return v;
}

void load_tensor(const TensorRef& t, Storage& s) {
  for_elements(t, [&](int64_t element, int64_t offset) {
    const auto k = static_cast<size_t>(element);
    double real = 0;
    int64_t integer = 0;
    value_of_bits(t.dtype, read_bits(t.data, offset, bytes(t.dtype)), real, integer);
    (s.elements.is_real() ? s.elements.real[k] = real : static_cast<double>(s.elements.integer[k] = integer));
  });
  std::fill(s.elements.bound.begin(), s.elements.bound.end(), 0.0);
  std::fill(s.elements.taint.begin(), s.elements.taint.end(), uint8_t{0});
}

void store_tensor(const TensorRef& t, const Storage& s) {
  for_elements(t, [&](int64_t element, int64_t offset) {
    const auto k = static_cast<size_t>(element);
    if (!s.written[k]) return;
    const uint64_t bits = bits_of(t.dtype, s.elements.is_real() ? s.elements.real[k] : 0,
                                  s.elements.is_real() ? 0 : s.elements.integer[k]);
    __builtin_memcpy(static_cast<char*>(t.data) + offset, &bits, static_cast<size_t>(bytes(t.dtype)));
  });
}

/// Binds arguments, runs, and takes results back.
class Session {
 public:
  Session(const ir::Kernel& kernel, const Call& call, const Options& options)
      : kernel_(kernel), call_(call), options_(options), machine_(kernel, options) {}

  Result<Outcome> run() {
    const auto dimensions = bind_dimensions(kernel_, call_);
    if (!dimensions) return std::unexpected(dimensions.error());
    for (size_t i = 0; i < dimensions->size(); ++i) {
      machine_.values()[kernel_.dimensions[i].value] = Column::of_integer(DType::I64, (*dimensions)[i]);
    }
    if (const Status s = bind_scalars(); !s) return std::unexpected(s.error());
    for (size_t i = 0; i < kernel_.tensors.size(); ++i) {
      if (const Status s = bind_tensor(i); !s) return std::unexpected(s.error());
    }
    if (const Status s = check_requirements(); !s) return std::unexpected(s.error());
    if (const Status s = machine_.run(); !s) return std::unexpected(s.error());
    return finish();
  }

 private:
  Status bind_scalars() {
    for (size_t i = 0; i < kernel_.scalars.size(); ++i) {
      const ir::ScalarArgument& s = kernel_.scalars[i];
      const DType type = s.value->type.dtype;
      if (i >= call_.scalars.size() && !s.default_value) return misfit(fmt::format("no value for {}", s.value->name));
      const ir::ConstantAttributes v = i < call_.scalars.size() ? call_.scalars[i] : *s.default_value;
      machine_.values()[s.value] = is_float(type) ? Column::of_real(type, round_to(type, v.real))
                                                  : Column::of_integer(type, wrap(type, v.integer));
    }
    return {};
  }

  /// An earlier argument whose memory is the same, so that both names reach one storage.
  int same_memory(size_t i) const {
    const TensorRef& t = call_.tensors[i];
    for (size_t j = 0; j < i && t.data; ++j) {
      const TensorRef& u = call_.tensors[j];
      if (u.data == t.data && u.dtype == t.dtype && u.shape == t.shape && u.strides == t.strides)
        return static_cast<int>(j);
    }
    return -1;
  }

  Status bind_tensor(size_t i) {
    const ir::TensorArgument& argument = kernel_.tensors[i];
    const TensorRef& t = call_.tensors[i];
    const bool absent = !t.data && argument.optional;
    if (!t.data && !absent && argument.direction != ir::Direction::Workspace && element_count(t.shape) > 0) {
      return misfit(fmt::format("no data for {}", argument.buffer->name));
    }
    if (const int j = same_memory(i); j >= 0) {
      const auto position = static_cast<size_t>(j);
      machine_.bind(argument.buffer, storages_[position]);
      storages_.push_back(storages_[position]);
      return {};
    }
    auto storage = std::make_shared<Storage>();
    storage->buffer = argument.buffer;
    storage->guarded = argument.guarded || absent;
    std::vector<int64_t> shape;
    for (const ir::Index e : argument.buffer->type.shape) shape.push_back(absent ? 0 : machine_.values().uniform(e));
    storage->allocate(argument.buffer->type.dtype, std::move(shape), 1, options_.mode);
    if (t.data) load_tensor(t, *storage);
    const bool starts_written = argument.direction == ir::Direction::In || argument.direction == ir::Direction::InOut;
    std::fill(storage->written.begin(), storage->written.end(), starts_written ? 1 : 0);
    if (options_.check) storage->by_block.enable(storage->size);
    storages_.push_back(storage);
    machine_.bind(argument.buffer, std::move(storage));
    return {};
  }

  static int64_t element_count(const std::vector<int64_t>& shape) {
    int64_t n = 1;
    for (const int64_t e : shape) n *= e;
    return n;
  }

  Status check_requirements() {
    for (const ir::Requirement& r : kernel_.requirements) {
      if (!machine_.values().uniform(r.condition)) {
        return fail_at(DiagnosticCode::E1212, r.location,
                       fmt::format("`where {}` does not hold for this call", r.text));
      }
    }
    return {};
  }

  void check_outputs() {
    for (const ir::TensorArgument& t : kernel_.tensors) {
      if (t.direction != ir::Direction::Out) continue;
      const Storage& s = machine_.storage(t.buffer);
      const auto missing = std::ranges::find(s.written, 0);
      if (missing == s.written.end()) continue;
      const int64_t count = std::ranges::count(s.written, 0);
      outcome_.findings.push_back(
          {.code = DiagnosticCode::E1213,
           .location = t.location,
           .message = fmt::format("{} of {} elements of {} were never written, the first is {}", count, s.size,
                                  t.buffer->name, s.element_text(missing - s.written.begin())),
           .help = "the grid or the last store does not cover the output"});
    }
  }

  Outcome finish() {
    outcome_.findings = machine_.findings.take();
    if (options_.check) check_outputs();
    outcome_.printed = std::move(machine_.printed);
    outcome_.element_operations = machine_.element_operations;
    outcome_.inconclusive = machine_.inconclusive;
    outcome_.expected.resize(kernel_.tensors.size());
    for (size_t i = 0; i < kernel_.tensors.size(); ++i) {
      const ir::TensorArgument& t = kernel_.tensors[i];
      if (t.direction == ir::Direction::In || (!call_.tensors[i].data && t.optional)) continue;
      Storage& s = machine_.storage(t.buffer);
      if (call_.tensors[i].data) store_tensor(call_.tensors[i], s);
      outcome_.expected[i] = {s.elements, s.written};
    }
    return std::move(outcome_);
  }

  const ir::Kernel& kernel_;
  const Call& call_;
  const Options& options_;
  TileMachine machine_;
  std::vector<std::shared_ptr<Storage>> storages_;
  Outcome outcome_;
};

}  // namespace

Result<std::vector<int64_t>> bind_dimensions(const ir::Kernel& kernel, const Call& call) {
  if (call.tensors.size() != kernel.tensors.size()) {
    return misfit(fmt::format("{} tensors for a kernel of {}", call.tensors.size(), kernel.tensors.size()));
  }
  std::vector<std::optional<int64_t>> bound(kernel.dimensions.size());
  const auto position = [&](const ir::Value* v) {
    for (size_t i = 0; i < kernel.dimensions.size(); ++i) {
      if (kernel.dimensions[i].value == v) return i;
    }
    return kernel.dimensions.size();
  };
  for (size_t i = 0; i < bound.size(); ++i) {
    if (i < call.dimensions.size()) bound[i] = call.dimensions[i];
    if (!bound[i]) bound[i] = kernel.dimensions[i].constant;
  }
  for (size_t i = 0; i < call.tensors.size(); ++i) {
    const TensorRef& t = call.tensors[i];
    const ir::Type& type = kernel.tensors[i].buffer->type;
    if (!t.data && t.shape.empty()) continue;
    if (t.dtype != type.dtype || t.shape.size() != type.shape.size()) {
      return misfit(fmt::format("{} is {}[{}], expected {} of rank {}", kernel.tensors[i].buffer->name, name(t.dtype),
                                fmt::join(t.shape, ", "), name(type.dtype), type.shape.size()));
    }
    for (size_t d = 0; d < t.shape.size(); ++d) {
      if (const ir::Value* symbol = type.shape[d].symbol()) {
        if (const size_t at = position(symbol); at < bound.size() && !bound[at]) bound[at] = t.shape[d];
      }
    }
  }
  std::vector<int64_t> out;
  for (size_t i = 0; i < bound.size(); ++i) {
    if (!bound[i]) return misfit(fmt::format("nothing gives dimension {}", kernel.dimensions[i].name));
    if (kernel.dimensions[i].constant && *kernel.dimensions[i].constant != *bound[i]) {
      return misfit(fmt::format("dimension {} is {}, this kernel was made for {}", kernel.dimensions[i].name, *bound[i],
                                *kernel.dimensions[i].constant));
    }
    out.push_back(*bound[i]);
  }
  for (size_t i = 0; i < call.tensors.size(); ++i) {
    const TensorRef& t = call.tensors[i];
    for (size_t d = 0; d < t.shape.size(); ++d) {
      const int64_t expected = ir::evaluate(kernel.tensors[i].buffer->type.shape[d], [&](const ir::Value* v) {
        const size_t at = position(v);
        return at < out.size() ? out[at] : 0;
      });
      if (expected != t.shape[d]) {
        return misfit(fmt::format("{} has extent {} in dimension {}, expected {}", kernel.tensors[i].buffer->name,
                                  t.shape[d], d, expected));
      }
    }
  }
  return out;
}

Result<Outcome> run(const ir::Kernel& kernel, const Call& call, const Options& options) {
  return Session(kernel, call, options).run();
}

}  // namespace tilewright::interp
