// One list of fields per struct (`visit`), walked by the writer and by the reader, so that the two cannot drift apart.
#include "runtime/byte_stream.h"
#include "runtime/element.h"
#include "runtime/recipe.h"

namespace tilewright::runtime {
namespace {

template <typename Stream>
void visit(Stream& s, Axis& axis) {
  s(axis.binds, axis.extent, axis.text);
}
template <typename Stream>
void visit(Stream& s, Facts& facts) {
  s(facts.unit_inner_stride, facts.alignment, facts.pitch_alignment, facts.max_bytes);
}
template <typename Stream>
void visit(Stream& s, TensorArgument& tensor) {
  s(tensor.name, tensor.dtype, tensor.access, tensor.is_absent, tensor.axes, tensor.facts, tensor.may_alias);
}
template <typename Stream>
void visit(Stream& s, ScalarArgument& scalar) {
  s(scalar.name, scalar.dtype, scalar.has_default, scalar.default_bits);
}
template <typename Stream>
void visit(Stream& s, Slot& slot) {
  s(slot.kind, slot.argument, slot.axis, slot.value, slot.name);
}
template <typename Stream>
void visit(Stream& s, Requirement& requirement) {
  s(requirement.holds, requirement.is_guard, requirement.text);
}
template <typename Stream>
void visit(Stream& s, Workspace& workspace) {
  s(workspace.name, workspace.bytes, workspace.zeroed_bytes);
}
template <typename Stream>
void visit(Stream& s, TensorMap& map) {
  s(map.pointer, map.data_type, map.extents, map.stride_bytes, map.box, map.element_strides, map.interleave,
    map.swizzle, map.l2_promotion, map.oob_fill);
}
template <typename Stream>
void visit(Stream& s, Launch& launch) {
  s(launch.symbol, launch.target, launch.grid, launch.scratch_bytes, launch.blocks_per_task, launch.cost_ns,
    launch.threads, launch.shared_bytes, launch.cluster, launch.tensor_maps);
}
template <typename Stream>
void visit(Stream& s, Message& message) {
  s(message.id, message.text, message.location);
}
template <typename Stream>
void visit(Stream& s, Recipe& recipe) {
  s(recipe.kernel, recipe.target, recipe.cpu_features, recipe.description, recipe.tensors, recipe.scalars, recipe.slots,
    recipe.requirements, recipe.workspaces, recipe.launches, recipe.messages);
}

bool has_value(ExpressionOp op) { return op == ExpressionOp::Const || op == ExpressionOp::Slot; }

class Writer {
 public:
  template <typename... Fields>
  void operator()(Fields&... fields) {
    (write(fields), ...);
  }
  std::string take() { return out_.take(); }

 private:
  void write(bool value) { out_.put(static_cast<uint8_t>(value)); }
  void write(tw_dtype value) { out_.put(static_cast<uint8_t>(value)); }
  void write(std::string& text) { out_.put(std::string_view(text)); }
  void write(Expression& expression) {
    out_.put(static_cast<uint32_t>(expression.code.size()));
    for (const Instruction& instruction : expression.code) {
      out_.put(instruction.op);
      if (has_value(instruction.op)) out_.put(instruction.value);
    }
  }
  template <typename T>
  void write(std::vector<T>& values) {
    out_.put(static_cast<uint32_t>(values.size()));
    for (T& value : values) write(value);
  }
  void write(std::array<uint32_t, 3>& values) {
    for (const uint32_t value : values) out_.put(value);
  }
  template <typename T>
  void write(T& value) {
    if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
      out_.put(value);
    } else {
      visit(*this, value);
    }
  }

  ByteWriter out_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : in_(bytes) {}

  template <typename... Fields>
  void operator()(Fields&... fields) {
    (read(fields), ...);
  }
  bool consumed_everything() const { return !in_.failed() && in_.left() == 0; }

 private:
  void read(bool& value) {
    const auto byte = in_.get<uint8_t>();
    if (byte > 1) in_.refuse();
    value = byte == 1;
  }
  void read(tw_dtype& value) {
    const auto byte = in_.get<uint8_t>();
    if (!is_dtype(byte)) in_.refuse();
    value = is_dtype(byte) ? static_cast<tw_dtype>(byte) : TW_F32;
  }
  void read(std::string& text) { text = in_.text(); }
  void read(Expression& expression) {
    expression.code.resize(in_.count(1));
    for (Instruction& instruction : expression.code) {
      instruction.op = in_.get<ExpressionOp>();
      if (has_value(instruction.op)) instruction.value = in_.get<int64_t>();
      if (in_.failed()) return;
    }
  }
  template <typename T>
  void read(std::vector<T>& values) {
    values.resize(in_.count(4));
    for (T& value : values) {
      read(value);
      if (in_.failed()) return;
    }
  }
  void read(std::array<uint32_t, 3>& values) {
    for (uint32_t& value : values) value = in_.get<uint32_t>();
  }
  template <typename T>
  void read(T& value) {
    if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
      value = in_.get<T>();
    } else {
      visit(*this, value);
    }
  }

  ByteReader in_;
};

}  // namespace

std::string serialise(const Recipe& recipe) {
  Recipe copy = recipe;  // visit() takes what the reader can fill
  Writer writer;
  visit(writer, copy);
  return writer.take();
}

Result<Recipe> parse_recipe(std::string_view bytes) {
  Recipe recipe;
  Reader reader(bytes);
  visit(reader, recipe);
  if (!reader.consumed_everything())
    return fail(FailureCode::bad_artefact, "the launch recipe is damaged or truncated");
  if (Status status = check(recipe); !status) return std::unexpected(status.error());
  return recipe;
}

}  // namespace tilewright::runtime
