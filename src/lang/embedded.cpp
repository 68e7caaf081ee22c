#include "lang/embedded.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::lang::embedded {

/// The syntax tree under construction and the block statements go to.
class Recorder {
 public:
  explicit Recorder(const std::string& name, Place place) : file_(std::make_shared<File>()) {
    file_->name = std::make_shared<const std::string>(place.file_name());
    KernelSyntax& k = file_->kernels.emplace_back();
    k.name = name;
    k.location = location(place);
    blocks_.push_back(&k.body);
  }

  std::shared_ptr<const File> file() const { return file_; }
  KernelSyntax& kernel() { return file_->kernels.front(); }

  Location location(Place place) {
    if (!names_.contains(place.file_name()))
      names_[place.file_name()] = std::make_shared<const std::string>(place.file_name());
    return {.file = names_[place.file_name()],
            .line = static_cast<int>(place.line()),
            .column = static_cast<int>(place.column())};
  }

  Expr& expr(ExprKind kind, std::vector<const Expr*> items = {}) {
    int depth = 0;
    for (const Expr* item : items) depth = std::max(depth, item->depth);
    if (depth >= kDeepest) {
      Diagnostic d;
      d.code = DiagnosticCode::E1006;
      d.message = fmt::format("this expression is more than {} operations deep", kDeepest);
      d.help = "name parts of it with let(…)";
      throw Refused(std::move(d));
    }
    return file_->exprs.emplace_back(Expr{.kind = kind, .depth = depth + 1, .items = std::move(items)});
  }
  const Expr* name(const std::string& text) {
    Expr& e = expr(ExprKind::Name);
    e.text = text;
    return &e;
  }
  const Expr* call(const std::string& name, std::vector<const Expr*> items, std::vector<std::string> labels = {}) {
    Expr& e = expr(ExprKind::Call, std::move(items));
    e.text = name;
    labels.resize(e.items.size());
    e.labels = std::move(labels);
    return &e;
  }

  /// A new statement; expressions made since the last one get its place.
  Stmt& stmt(StmtKind kind, Place place) {
    Stmt& made = file_->stmts.emplace_back(Stmt{.kind = kind, .location = location(place)});
    locate(place);
    blocks_.back()->push_back(&made);
    return made;
  }
  Stmt& last() { return file_->stmts.back(); }
  void locate(Place place) {
    for (; located_ < file_->exprs.size(); ++located_) file_->exprs[located_].location = location(place);
  }
  void inside(Block& block, const std::function<void()>& body) {
    blocks_.push_back(&block);
    body();
    blocks_.pop_back();
  }
  std::string fresh(std::string_view prefix) { return fmt::format("{}{}", prefix, ++fresh_); }

  /// The variables of a loop or grid, and its body.
  void variables(Stmt& stmt, const Body& body, Place place) {
    std::vector<Index> values;
    for (int i = 0; i < body.arity; ++i) {
      stmt.names.push_back(fresh("i"));
      stmt.places.push_back(location(place));
      values.push_back(Index(Value(name(stmt.names.back()))));
    }
    inside(stmt.body, [&] { body.call(values); });
  }

  static Recorder& current() {
    if (current_) return *current_;
    Diagnostic d;
    d.code = DiagnosticCode::E1050;
    d.message = "tiles, operations and arithmetic belong into a KernelBuilder";
    d.help = "make a KernelBuilder first, and use one at a time on a thread";
    throw Refused(std::move(d));
  }
  static Recorder* exchange_current(Recorder* next) { return std::exchange(current_, next); }

 private:
  static thread_local Recorder* current_;
  std::shared_ptr<File> file_;
  std::vector<Block*> blocks_;
  std::map<std::string, std::shared_ptr<const std::string>> names_;
  size_t located_ = 0;
  int fresh_ = 0;
};
thread_local Recorder* Recorder::current_ = nullptr;

namespace {

Recorder& recorder() { return Recorder::current(); }

std::vector<const Expr*> nodes(const auto& values) {
  std::vector<const Expr*> out;
  for (const auto& v : values) out.push_back(v.node());
  return out;
}

Tile declare(TileSpace space, DType dtype, const std::vector<Index>& shape, Place place) {
  Recorder& r = recorder();
  Stmt& made = r.stmt(StmtKind::Declare, place);
  made.name = r.fresh("tile");
  made.space = space;
  made.type = {.location = made.location,
               .dtype = std::string(name(dtype)),
               .is_tensor = space != TileSpace::Var,
               .shape = nodes(shape)};
  return Tile(Value(r.name(made.name)));
}

void call(const std::string& name, std::vector<const Expr*> items, std::vector<std::string> labels, Place place) {
  Recorder& r = recorder();
  const Expr* made = r.call(name, std::move(items), std::move(labels));
  r.stmt(StmtKind::Call, place).value = made;
}

void loop(const std::string& kind, std::vector<const Expr*> bounds, const Body& body, Place place) {
  Recorder& r = recorder();
  const Expr* range = r.call(kind, std::move(bounds));
  Stmt& made = r.stmt(StmtKind::For, place);
  made.value = range;
  r.variables(made, body, place);
}

}  // namespace

Value Value::of_integer(int64_t v) {
  Expr& e = recorder().expr(ExprKind::Integer);
  e.integer = v;
  e.text = std::to_string(v);
  return Value(&e);
}
Value::Value(double v) {
  Expr& e = recorder().expr(ExprKind::Real);
  e.real = v;
  e.text = fmt::format("{}", v);
  node_ = &e;
}
Value::Value(bool v) {
  Expr& e = recorder().expr(ExprKind::Flag);
  e.integer = v;
  e.text = v ? "true" : "false";
  node_ = &e;
}
Value::Value(DType v) : node_(recorder().name(std::string(name(v)))) {}

void Target::assign(const Value& v) const {
  Stmt& made = recorder().stmt(StmtKind::Assign, place_);
  made.target = node();
  made.value = v.node();
}

Subscript::Subscript(const Index& index) : item(index.node()) {}
Subscript at(const Index& start, const Index& extent) {
  return Subscript(&recorder().expr(ExprKind::Slice, {start.node(), extent.node()}));
}
Subscript whole() { return Subscript(&recorder().expr(ExprKind::All)); }
Subscript repeat() { return Subscript(&recorder().expr(ExprKind::NewAxis)); }

Tile Tile::operator[](std::initializer_list<Subscript> items) const {
  std::vector<const Expr*> all{node()};
  for (const Subscript& s : items) all.push_back(s.item);
  return Tile(Value(&recorder().expr(ExprKind::Subscript, std::move(all))));
}

Value make_binary(Operator op, const Value& x, const Value& y) {
  Expr& e = recorder().expr(ExprKind::Binary, {x.node(), y.node()});
  e.op = op;
  return Value(&e);
}
Value make_unary(Operator op, const Value& x) {
  Expr& e = recorder().expr(ExprKind::Unary, {x.node()});
  e.op = op;
  return Value(&e);
}
Value make_call(const std::string& name, const std::vector<Value>& arguments) {
  return Value(recorder().call(name, nodes(arguments)));
}
Value inf() { return Value(recorder().name("inf")); }
Value nan() { return Value(recorder().name("nan")); }
Value text(const std::string& words) {
  Expr& e = recorder().expr(ExprKind::Text);
  e.text = words;
  return Value(&e);
}
Value load(const Value& element, const Value& oob) { return make_call("load", {element, oob}); }
Value arrive_last(const Value& counter, const Index& n) { return make_call("arrive_last", {counter, n}); }

Value let(const Value& v, Place place) {
  Recorder& r = recorder();
  Stmt& made = r.stmt(StmtKind::Let, place);
  made.name = r.fresh("v");
  made.value = v.node();
  return Value(r.name(made.name));
}
Index let(const Index& v, Place place) { return Index(let(static_cast<const Value&>(v), place)); }

Tile shared(DType dtype, std::vector<Index> shape, Place place) {
  return declare(TileSpace::Shared, dtype, shape, place);
}
Tile shared(DType dtype, std::vector<Index> shape, SharedOptions options, Place place) {
  const Expr* layout = options.layout.empty() ? nullptr : text(options.layout).node();
  const Tile made = declare(TileSpace::Shared, dtype, shape, place);
  recorder().last().layout = layout;
  return made;
}
Tile fragment(DType dtype, std::vector<Index> shape, Place place) {
  return declare(TileSpace::Fragment, dtype, shape, place);
}
Tile local(DType dtype, std::vector<Index> shape, Place place) {
  return declare(TileSpace::Local, dtype, shape, place);
}
Tile var(DType dtype, Place place) { return declare(TileSpace::Var, dtype, {}, place); }

void copy(const Tile& src, const Tile& dst, Place place) { call("copy", {src.node(), dst.node()}, {}, place); }
void copy(const Tile& src, const Tile& dst, const Value& oob, Place place) {
  call("copy", {src.node(), dst.node(), oob.node()}, {}, place);
}
void copy(const Tile& src, const Tile& dst, CopyOptions options, Place place) {
  std::vector<const Expr*> items = {src.node(), dst.node()};
  std::vector<std::string> labels = {"", ""};
  if (options.vector) items.push_back(Value(options.vector).node()), labels.push_back("vector");
  if (!options.cache.empty()) items.push_back(text(options.cache).node()), labels.push_back("cache");
  call("copy", std::move(items), std::move(labels), place);
}
void fill(const Tile& dst, const Value& value, Place place) { call("fill", {dst.node(), value.node()}, {}, place); }
void clear(const Tile& dst, Place place) { call("clear", {dst.node()}, {}, place); }
void gemm(const Tile& a, const Tile& b, const Tile& c, GemmOptions options, Place place) {
  std::vector<const Expr*> items = {a.node(),
                                    b.node(),
                                    c.node(),
                                    Value(options.transpose_a).node(),
                                    Value(options.transpose_b).node(),
                                    Value(options.accumulate).node()};
  std::vector<std::string> labels(items.size());
  if (!options.instruction.empty()) items.push_back(text(options.instruction).node()), labels.push_back("instruction");
  if (!options.avoid.empty()) items.push_back(text(options.avoid).node()), labels.push_back("avoid");
  call("gemm", std::move(items), std::move(labels), place);
}
void reduce(const std::string& kind, const Tile& src, const Tile& dst, ReduceOptions options, Place place) {
  call("reduce_" + kind, {src.node(), dst.node(), Value(options.dim).node(), Value(options.accumulate).node()}, {},
       place);
}
void operation(const std::string& name, std::initializer_list<Value> arguments, Place place) {
  call(name, nodes(arguments), {}, place);
}

void serial(const Index& n, const Body& body, Place place) { loop("serial", {n.node()}, body, place); }
void serial(const Index& lo, const Index& hi, const Body& body, Place place) {
  loop("serial", {lo.node(), hi.node()}, body, place);
}
void serial(const Index& lo, const Index& hi, int step, const Body& body, Place place) {
  loop("serial", {lo.node(), hi.node(), Value(step).node()}, body, place);
}
void pipelined(const Index& n, int stages, const Body& body, Place place) {
  loop("pipelined", {n.node(), Value(stages).node()}, body, place);
}
void parallel(std::initializer_list<Index> extents, const Body& body, Place place) {
  loop("parallel", nodes(extents), body, place);
}

void if_(const Value& condition, const std::function<void()>& yes, const std::function<void()>& no, Place place) {
  Recorder& r = recorder();
  Stmt& made = r.stmt(StmtKind::If, place);
  made.value = condition.node();
  r.inside(made.body, yes);
  if (no) r.inside(made.otherwise, no);
}
void while_(const std::function<Value()>& condition, const std::function<void()>& body, Place place) {
  Recorder& r = recorder();
  const Value holds = condition();
  Stmt& made = r.stmt(StmtKind::While, place);
  made.value = holds.node();
  r.inside(made.body, body);
}

KernelBuilder::KernelBuilder(const std::string& name, Place place)
    : recorder_(std::make_unique<Recorder>(name, place)) {
  if (Recorder* other = Recorder::exchange_current(recorder_.get())) {
    Recorder::exchange_current(other);
    Diagnostic d;
    d.code = DiagnosticCode::E1050;
    d.message =
        fmt::format("kernel `{}` is begun while `{}` is being built on this thread", name, other->kernel().name);
    d.help = "finish() one before the next";
    throw Refused(std::move(d));
  }
}
KernelBuilder::~KernelBuilder() { Recorder::exchange_current(nullptr); }

Index KernelBuilder::dim(const std::string& name) { return Index(Value(recorder_->name(name))); }

Tile KernelBuilder::tensor(ArgumentKind kind, const std::string& name, DType dtype, const std::vector<Index>& shape,
                           Place place) {
  ArgumentSyntax made;
  made.kind = kind;
  made.location = recorder_->location(place);
  made.name = name;
  made.type = {.location = made.location,
               .dtype = std::string(tilewright::name(dtype)),
               .is_tensor = true,
               .shape = nodes(shape)};
  recorder_->locate(place);
  recorder_->kernel().arguments.push_back(std::move(made));
  return Tile(Value(recorder_->name(name)));
}
Tile KernelBuilder::input(const std::string& name, DType dtype, std::vector<Index> shape, Place place) {
  return tensor(ArgumentKind::In, name, dtype, shape, place);
}
Tile KernelBuilder::output(const std::string& name, DType dtype, std::vector<Index> shape, Place place) {
  return tensor(ArgumentKind::Out, name, dtype, shape, place);
}
Tile KernelBuilder::inout(const std::string& name, DType dtype, std::vector<Index> shape, Place place) {
  return tensor(ArgumentKind::InOut, name, dtype, shape, place);
}
Tile KernelBuilder::workspace(const std::string& name, DType dtype, std::vector<Index> shape, Place place) {
  return tensor(ArgumentKind::Workspace, name, dtype, shape, place);
}
Value KernelBuilder::scalar(const std::string& name, DType dtype, Place place) {
  ArgumentSyntax made;
  made.location = recorder_->location(place);
  made.name = name;
  made.type = {.location = made.location, .dtype = std::string(tilewright::name(dtype))};
  recorder_->kernel().arguments.push_back(std::move(made));
  return Value(recorder_->name(name));
}
Index KernelBuilder::index_scalar(const std::string& name, Place place) {
  return Index(scalar(name, DType::I64, place));
}

void KernelBuilder::where(const Value& condition, Place place) {
  recorder_->locate(place);
  recorder_->kernel().wheres.push_back(condition.node());
}
void KernelBuilder::alias(const std::string& x, const std::string& y, Place place) {
  const Location location = recorder_->location(place);
  recorder_->kernel().aliases.push_back({{location, x, nullptr}, {location, y, nullptr}});
}

void KernelBuilder::grid(std::initializer_list<Index> extents, GridOptions options, const Body& body, Place place) {
  const Value threads(options.threads), group(options.group);
  Stmt& made = recorder_->stmt(StmtKind::Grid, place);
  made.extents = nodes(extents);
  made.threads = threads.node();
  made.persistent = options.persistent;
  made.group = group.node();
  if (static_cast<size_t>(body.arity) != extents.size()) {
    Diagnostic d;
    d.code = DiagnosticCode::E1040;
    d.location = made.location;
    d.message = fmt::format("the grid has {} extents and its body takes {} variables", extents.size(), body.arity);
    throw Refused(std::move(d));
  }
  recorder_->variables(made, body, place);
}

ir::Kernel KernelBuilder::finish(const Configuration& configuration) {
  Result<ir::Kernel> made = instantiate(Source(recorder_->file()), recorder_->kernel().name, configuration);
  if (!made) throw Refused(std::move(made.error()));
  return std::move(*made);
}

}  // namespace tilewright::lang::embedded
