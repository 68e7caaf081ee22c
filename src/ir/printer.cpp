#include "ir/printer.h"

#include <fmt/format.h>

#include <set>
#include <unordered_map>

#include "ir/attribute_fields.h"

namespace tilewright::ir {
namespace {

class Printer {
 public:
  Printer(const Kernel& kernel, PrintOptions options) : kernel_(kernel), options_(options) {}

  std::string run() {
    static constexpr std::string_view kPhaseNames[] = {"tile", "planned", "vector", "thread"};
    out_ += fmt::format("kernel {} {} {{\n", options_.names ? kernel_.name : "k",
                        kPhaseNames[static_cast<int>(kernel_.phase)]);
    for (const Dimension& d : kernel_.dimensions) {
      out_ += fmt::format("  dim {}{}\n", name(d.value), d.constant ? fmt::format(" = {}", *d.constant) : "");
    }
    for (const Value* v : kernel_.slots) out_ += fmt::format("  slot {}\n", name(v));
    for (const ScalarArgument& s : kernel_.scalars) print_scalar(s);
    for (const TensorArgument& t : kernel_.tensors) print_tensor(t);
    for (const auto& [x, y] : kernel_.aliases) out_ += fmt::format("  alias {}, {}\n", x, y);
    for (const Requirement& r : kernel_.requirements) out_ += fmt::format("  where {}\n", text(r.condition));
    print_region(*kernel_.body, 1);
    out_ += "}\n";
    return std::move(out_);
  }

  std::string type_text(const Type& type) {
    switch (type.kind) {
      case TypeKind::Scalar:
        return type.lanes == 1 ? std::string(tilewright::name(type.dtype))
                               : fmt::format("<{} x {}>", type.lanes, tilewright::name(type.dtype));
      case TypeKind::Buffer:
        return fmt::format("{} {}[{}]", ir::name(type.space), tilewright::name(type.dtype), list(type.shape));
      case TypeKind::Tile: return fmt::format("tile {}[{}]", tilewright::name(type.dtype), list(type.shape));
      case TypeKind::Pointer: return fmt::format("ptr {}", ir::name(type.space));
      case TypeKind::Token: return "token";
    }
    return {};
  }

  void operator()(const char* field, const bool& v) { add(field, v ? "true" : "false"); }
  void operator()(const char* field, const int& v) { add(field, std::to_string(v)); }
  void operator()(const char* field, const int64_t& v) { add(field, std::to_string(v)); }
  void operator()(const char* field, const double& v) { add(field, fmt::format("{:a}", v)); }
  void operator()(const char* field, const std::string& v) { add(field, fmt::format("\"{}\"", v)); }
  void operator()(const char* field, const DType& v) { add(field, std::string(tilewright::name(v))); }
  template <typename E>
  requires std::is_enum_v<E>
  void operator()(const char* field, const E& v) { add(field, std::string(ir::name(v))); }
  void operator()(const char* field, Index& v) {
    if (v) add(field, text(v));
  }
  void operator()(const char* field, Value*& v) { add(field, name(v)); }
  void operator()(const char* field, std::vector<Index>& v) { add(field, fmt::format("[{}]", list(v))); }
  void operator()(const char* field, std::vector<int>& v) { add(field, fmt::format("[{}]", fmt::join(v, ", "))); }
  void operator()(const char* field, View& v) {
    std::string slices;
    for (const Slice& s : v.slices) {
      if (!slices.empty()) slices += ", ";
      slices += s.keep ? fmt::format("{} :+ {}", text(s.start), text(s.extent)) : text(s.start);
    }
    add(field, v.buffer ? fmt::format("{}[{}]", name(v.buffer), slices) : "none");
  }

 private:
  void print_scalar(const ScalarArgument& s) {
    out_ += fmt::format("  scalar {}: {}", name(s.value), type_text(s.value->type));
    if (s.default_value) out_ += fmt::format(" = {:a} {}", s.default_value->real, s.default_value->integer);
    out_ += '\n';
  }

  void print_tensor(const TensorArgument& t) {
    static constexpr std::string_view kDirections[] = {"in", "out", "inout", "workspace"};
    out_ += fmt::format("  {} {}: {}{}{}\n", kDirections[static_cast<int>(t.direction)], name(t.buffer),
                        type_text(t.buffer->type), t.optional ? " optional" : "", t.guarded ? " guarded" : "");
  }

  void print_region(const Region& region, int depth) {
    for (const Op* op : region.ops) print_op(*op, depth);
  }

  void print_op(const Op& op, int depth) {
    out_.append(static_cast<size_t>(2 * depth), ' ');
    for (size_t i = 0; i < op.results.size(); ++i) out_ += (i ? ", " : "") + name(op.results[i]);
    if (!op.results.empty()) out_ += " = ";
    out_ += info(op.kind).mnemonic;
    for (size_t i = 0; i < op.operands.size(); ++i) out_ += (i ? ", " : " ") + name(op.operands[i]);
    fields_.clear();
    Attributes copy = op.attributes;
    visit_fields(copy, *this);
    if (!fields_.empty()) out_ += fmt::format(" {{{}}}", fields_);
    if (op.hints != Hints{}) {
      fields_.clear();
      Hints hints = op.hints;
      visit_fields(hints, *this);
      out_ += fmt::format(" hints {{{}}}", fields_);
    }
    for (size_t i = 0; i < op.results.size(); ++i) out_ += (i ? ", " : " : ") + type_text(op.results[i]->type);
    for (const Region* region : op.regions) {
      out_ += " (";
      for (size_t i = 0; i < region->arguments.size(); ++i) {
        const Value* v = region->arguments[i];
        out_ += fmt::format("{}{}: {}", i ? ", " : "", name(v), type_text(v->type));
      }
      out_ += ") {\n";
      print_region(*region, depth + 1);
      out_.append(static_cast<size_t>(2 * depth), ' ');
      out_ += '}';
    }
    out_ += '\n';
  }

  std::string text(Index x) {
    return to_string(x, [this](const Value* v) { return name(v); });
  }

  std::string list(const std::vector<Index>& values) {
    std::string out;
    for (const Index& v : values) out += (out.empty() ? "" : ", ") + text(v);
    return out;
  }

  void add(const char* field, const std::string& value) {
    if (!fields_.empty()) fields_ += ", ";
    fields_ += fmt::format("{} = {}", field, value);
  }

  std::string name(const Value* v) {
    if (!v) return "%none";
    if (const auto found = names_.find(v); found != names_.end()) return found->second;
    std::string base = options_.names ? v->name : std::string();
    std::string chosen = base.empty() ? fmt::format("%{}", names_.size()) : "%" + base;
    for (int n = 1; !used_.insert(chosen).second; ++n) chosen = fmt::format("%{}_{}", base.empty() ? "v" : base, n);
    return names_.emplace(v, chosen).first->second;
  }

  const Kernel& kernel_;
  PrintOptions options_;
  std::string out_;
  std::string fields_;
  std::unordered_map<const Value*, std::string> names_;
  std::set<std::string> used_;
};

}  // namespace

std::string to_text(const Kernel& kernel, PrintOptions options) { return Printer(kernel, options).run(); }
std::string to_text(const Type& type) {
  const Kernel none;
  return Printer(none, {}).type_text(type);
}

}  // namespace tilewright::ir
