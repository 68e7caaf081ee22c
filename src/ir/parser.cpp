#include "ir/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <unordered_map>

#include "ir/attribute_fields.h"

namespace tilewright::ir {
namespace {

constexpr int kDeepest = 400;

class IrParser {
 public:
  IrParser(std::string_view text, std::string file_name)
      : text_(text), file_(std::make_shared<const std::string>(std::move(file_name))) {}

  Kernel run() {
    expect("kernel");
    kernel_.name = word();
    kernel_.phase = phase();
    expect("{");
    while (header_line()) {
    }
    region(*kernel_.body);
    expect("}");
    skip_space();
    if (at_ < text_.size()) fail("text after the end of the kernel");
    return std::move(kernel_);
  }

  // Fields of attributes, by type; an Index that is absent was empty.
  void operator()(const char* field, bool& v) {
    begin_field(field);
    const std::string text = word();
    if (text != "true" && text != "false") fail("expected true or false");
    v = text == "true";
  }
  void operator()(const char* field, int& v) { begin_field(field), v = static_cast<int>(integer()); }
  void operator()(const char* field, int64_t& v) { begin_field(field), v = integer(); }
  void operator()(const char* field, double& v) { begin_field(field), v = real(); }
  void operator()(const char* field, std::string& v) {
    begin_field(field);
    expect("\"");
    const size_t end = text_.find('"', at_);
    if (end == std::string_view::npos) fail("a text has no end");
    v = std::string(text_.substr(at_, end - at_));
    at_ = end + 1;
  }
  void operator()(const char* field, DType& v) { begin_field(field), v = dtype(); }
  template <typename E>
  requires std::is_enum_v<E>
  void operator()(const char* field, E& v) {
    begin_field(field);
    const std::string text = word();
    for (int i = 0; i < 64; ++i) {
      if (ir::name(static_cast<E>(i)) != text) continue;
      v = static_cast<E>(i);
      return;
    }
    fail(fmt::format("`{}` is not a value of {}", text, field));
  }
  void operator()(const char* field, Index& v) {
    if (try_field(field)) v = index();
  }
  void operator()(const char* field, Value*& v) { begin_field(field), v = value(); }
  void operator()(const char* field, std::vector<Index>& v) {
    begin_field(field);
    expect("[");
    v = indices("]");
  }
  void operator()(const char* field, std::vector<int>& v) {
    begin_field(field);
    expect("[");
    v.clear();
    while (!accept("]")) {
      v.push_back(static_cast<int>(integer()));
      accept(",");
    }
  }
  void operator()(const char* field, View& v) {
    begin_field(field);
    v = {};
    if (accept("none")) return;
    v.buffer = value();
    expect("[");
    while (!accept("]")) {
      Slice slice{index(), kernel_.indices().constant(1), false};
      if (accept(":+")) slice.extent = index(), slice.keep = true;
      v.slices.push_back(slice);
      accept(",");
    }
  }

 private:
  [[noreturn]] void fail(std::string message) const {
    Diagnostic d;
    d.code = DiagnosticCode::E1101;
    d.location = {.file = file_, .line = 1, .column = 1};
    for (size_t i = 0; i < std::min(at_, text_.size()); ++i) {
      ++d.location.column;
      if (text_[i] == '\n') ++d.location.line, d.location.column = 1;
    }
    d.message = std::move(message);
    throw d;
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  static bool is_part(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  }
  bool accept(std::string_view token) {
    skip_space();
    if (!text_.substr(at_).starts_with(token)) return false;
    const size_t end = at_ + token.size();
    if (is_part(token.back()) && end < text_.size() && is_part(text_[end])) return false;
    at_ = end;
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token)) fail(fmt::format("expected `{}`", token));
  }
  std::string word() {
    skip_space();
    size_t end = at_;
    while (end < text_.size() && is_part(text_[end])) ++end;
    if (end == at_) fail("expected a word");
    std::string out(text_.substr(at_, end - at_));
    at_ = end;
    return out;
  }
  int64_t integer() {
    skip_space();
    int64_t v = 0;
    const auto [stop, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), v);
    if (error != std::errc()) fail("expected an integer");
    at_ = static_cast<size_t>(stop - text_.data());
    return v;
  }
  double real() {
    skip_space();
    const size_t end = std::min(text_.find_first_of(" ,}\n", at_), text_.size());
    const std::string spelling(text_.substr(at_, end - at_));
    char* stop = nullptr;
    const double v = std::strtod(spelling.c_str(), &stop);
    if (spelling.empty() || *stop != '\0') fail("expected a number");
    at_ = end;
    return v;
  }

  Phase phase() {
    static constexpr std::string_view kNames[] = {"tile", "planned", "vector", "thread"};
    const std::string text = word();
    for (int i = 0; i < 4; ++i) {
      if (kNames[i] == text) return static_cast<Phase>(i);
    }
    fail(fmt::format("`{}` is not a phase", text));
  }
  DType dtype() {
    const std::string text = word();
    const auto found = parse_dtype(text);
    if (!found) fail(fmt::format("`{}` is not a dtype", text));
    return *found;
  }
  std::optional<MemorySpace> memory_space() {
    for (int i = 0; i <= static_cast<int>(MemorySpace::Scratch); ++i) {
      if (accept(ir::name(static_cast<MemorySpace>(i)))) return static_cast<MemorySpace>(i);
    }
    return std::nullopt;
  }
  Type type() {
    if (accept("token")) return Type::token();
    if (accept("<")) {
      const auto lanes = static_cast<int>(integer());
      expect("x");
      const DType element = dtype();
      expect(">");
      return Type::scalar(element, lanes);
    }
    if (accept("ptr")) {
      const auto space = memory_space();
      if (!space) fail("expected a memory space");
      return Type::pointer(*space);
    }
    if (accept("tile")) {
      Type made{.kind = TypeKind::Tile, .dtype = dtype()};
      expect("[");
      made.shape = indices("]");
      return made;
    }
    if (const auto space = memory_space()) {
      const DType element = dtype();
      expect("[");
      return Type::buffer(*space, element, indices("]"));
    }
    return Type::scalar(dtype());
  }

  std::string value_name() {
    expect("%");
    const std::string name = word();
    return name;
  }
  Value* value() {
    const std::string name = value_name();
    if (name == "none") return nullptr;
    const auto found = values_.find(name);
    if (found == values_.end()) fail(fmt::format("%{} is not defined", name));
    return found->second;
  }
  Value* define(const std::string& name, Type type) {
    const bool numbered = name.find_first_not_of("0123456789") == std::string::npos;
    Value* v = kernel_.new_value(std::move(type), numbered ? std::string() : name);
    if (!values_.emplace(name, v).second) fail(fmt::format("%{} is defined twice", name));
    return v;
  }

  Index index() {
    if (++depth_ > kDeepest) fail("expression nested too deeply");
    const Index out = index_term();
    --depth_;
    return out;
  }
  Index index_term() {
    skip_space();
    if (at_ >= text_.size()) fail("expected an index expression");
    const char c = text_[at_];
    if (c == '%') {
      const Value* v = value();
      if (!v) fail("expected a value");
      return kernel_.indices().symbol(v);
    }
    if (c == '-' || (c >= '0' && c <= '9')) return kernel_.indices().constant(integer());
    if (accept("min(")) return pair([](Index x, Index y) { return min(x, y); });
    if (accept("max(")) return pair([](Index x, Index y) { return max(x, y); });
    if (accept("select(")) {
      const Index condition = index();
      expect(",");
      const Index yes = index();
      expect(",");
      const Index no = index();
      expect(")");
      return select(condition, yes, no);
    }
    expect("(");
    if (accept("not")) {
      const Index x = index();
      expect(")");
      return logical_not(x);
    }
    return infix();
  }
  Index pair(Index (*join)(Index, Index)) {
    const Index x = index();
    expect(",");
    const Index y = index();
    expect(")");
    return join(x, y);
  }
  Index infix() {
    using Join = Index (*)(Index, Index);
    static constexpr std::pair<std::string_view, Join> kOperators[] = {{"+", [](Index x, Index y) { return x + y; }},
                                                                       {"*", [](Index x, Index y) { return x * y; }},
                                                                       {"//", floordiv},
                                                                       {"%", floormod},
                                                                       {"<=", less_equal},
                                                                       {"<", less},
                                                                       {"==", equal},
                                                                       {"!=", not_equal},
                                                                       {"and", logical_and},
                                                                       {"or", logical_or}};
    const Index x = index();
    for (const auto& [token, join] : kOperators) {
      if (!accept(token)) continue;
      const Index y = index();
      expect(")");
      return join(x, y);
    }
    fail("expected an operator");
  }
  std::vector<Index> indices(std::string_view closing) {
    std::vector<Index> out;
    while (!accept(closing)) {
      out.push_back(index());
      accept(",");
    }
    return out;
  }

  bool header_line() {
    if (accept("dim")) {
      const std::string name = value_name();
      Dimension made{name, define(name, Type::scalar(DType::I64)), std::nullopt};
      if (accept("=")) made.constant = integer();
      kernel_.dimensions.push_back(std::move(made));
      return true;
    }
    if (accept("scalar")) {
      const std::string name = value_name();
      expect(":");
      ScalarArgument made{define(name, type()), std::nullopt, {}};
      if (accept("=")) {
        ConstantAttributes bits;
        bits.real = real();
        bits.integer = integer();
        made.default_value = bits;
      }
      kernel_.scalars.push_back(std::move(made));
      return true;
    }
    if (accept("alias")) {
      const auto x = static_cast<int>(integer());
      expect(",");
      kernel_.aliases.emplace_back(x, static_cast<int>(integer()));
      return true;
    }
    if (accept("where")) {
      const Index condition = index();
      kernel_.requirements.push_back({condition, to_string(condition, [](const Value* v) { return v->name; }), {}});
      return true;
    }
    static constexpr std::string_view kDirections[] = {"in", "out", "inout", "workspace"};
    for (int i = 0; i < 4; ++i) {
      if (!accept(kDirections[i])) continue;
      tensor(static_cast<Direction>(i));
      return true;
    }
    return false;
  }
  void tensor(Direction direction) {
    TensorArgument made{.direction = direction};
    const std::string name = value_name();
    expect(":");
    made.buffer = define(name, type());
    made.optional = accept("optional");
    made.guarded = accept("guarded");
    kernel_.tensors.push_back(std::move(made));
  }

  void begin_field(const char* field) {
    if (!try_field(field)) fail(fmt::format("expected `{} = …`", field));
  }
  bool try_field(const char* field) {
    const size_t before = at_;
    if (!first_field_) accept(",");
    if (accept(field) && accept("=")) {
      first_field_ = false;
      return true;
    }
    at_ = before;
    return false;
  }

  void region(Region& region) {
    if (++depth_ > kDeepest) fail("regions nested too deeply");
    skip_space();
    while (at_ < text_.size() && text_[at_] != '}') {
      operation(region);
      skip_space();
    }
    --depth_;
  }

  int line_here() {
    line_ += static_cast<int>(std::count(text_.begin() + static_cast<ptrdiff_t>(counted_),
                                         text_.begin() + static_cast<ptrdiff_t>(at_), '\n'));
    counted_ = at_;
    return line_;
  }

  void operation(Region& region) {
    std::vector<std::string> results;
    skip_space();
    const Location location{.file = file_, .line = line_here(), .column = 1};
    while (at_ < text_.size() && text_[at_] == '%') {
      results.push_back(value_name());
      accept(",");
      skip_space();
    }
    if (!results.empty()) expect("=");
    const std::string mnemonic = word();
    const auto kind = parse_op_kind(mnemonic);
    if (!kind) fail(fmt::format("`{}` is not an operation", mnemonic));
    Op* op = kernel_.new_op(*kind, location);
    region.ops.push_back(op);
    skip_space();
    while (at_ < text_.size() && text_[at_] == '%') {
      op->operands.push_back(value());
      accept(",");
      skip_space();
    }
    attributes(*op);
    if (!results.empty()) {
      expect(":");
      for (const std::string& name : results) {
        Value* v = define(name, type());
        v->def = op;
        op->results.push_back(v);
        accept(",");
      }
    }
    while (accept("(")) inner_region(*op);
  }

  void attributes(Op& op) {
    if (!std::holds_alternative<NoAttributes>(op.attributes) && accept("{")) {
      first_field_ = true;
      visit_fields(op.attributes, *this);
      expect("}");
    }
    if (accept("hints")) {
      expect("{");
      first_field_ = true;
      visit_fields(op.hints, *this);
      expect("}");
    }
    if (const auto* text = std::get_if<TextAttributes>(&op.attributes)) {
      if (text->id < 0 || text->id > 100000) fail("text number out of range");
      if (kernel_.texts.size() <= static_cast<size_t>(text->id))
        kernel_.texts.resize(static_cast<size_t>(text->id) + 1);
    }
  }

  void inner_region(Op& op) {
    Region* made = kernel_.new_region(&op);
    while (!accept(")")) {
      const std::string name = value_name();
      expect(":");
      Value* v = define(name, type());
      v->owner = made;
      made->arguments.push_back(v);
      accept(",");
    }
    expect("{");
    region(*made);
    expect("}");
  }

  std::string_view text_;
  std::shared_ptr<const std::string> file_;
  Kernel kernel_;
  std::unordered_map<std::string, Value*> values_;
  size_t at_ = 0;
  size_t counted_ = 0;
  int line_ = 1;
  int depth_ = 0;
  bool first_field_ = true;
};

}  // namespace

Result<Kernel> parse_ir(std::string_view text, std::string file_name) {
  try {
    return IrParser(text, std::move(file_name)).run();
  } catch (Diagnostic& d) {
    return std::unexpected(std::move(d));
  }
}

}  // namespace tilewright::ir
