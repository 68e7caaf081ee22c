// Statements of a kernel written in C++ (kernel.h): declarations, operations, control flow. Each is a line of text that
// ends in the C++ file and line it was written on, and goes to the builder made or used last on this thread; without
// one it throws Refused.
#ifndef TILEWRIGHT_KERNEL_STATEMENT_H_
#define TILEWRIGHT_KERNEL_STATEMENT_H_

#include <tilewright/kernel_expression.h>

#include <functional>
#include <set>

namespace tilewright::kernel {

namespace detail {

/// Lines of text under construction.
class Recorder {
 public:
  explicit Recorder(std::string kernel) : kernel_(std::move(kernel)) {}

  void line(const std::string& text, Place place) {
    lines_ += std::string(depth_ * 2, ' ') + text + "  # " + to_string(place) + "\n";
  }
  void open(const std::string& text, Place place) { line(text + " {", place), ++depth_; }
  void otherwise() { lines_ += std::string(depth_ * 2 - 2, ' ') + "} else {\n"; }
  void close() { lines_ += std::string(--depth_ * 2, ' ') + "}\n"; }

  /// A name that no argument has.
  std::string fresh(const std::string& prefix) {
    std::string out;
    do out = prefix + std::to_string(++fresh_);
    while (taken_.count(out));
    return out;
  }
  const std::string& take(const std::string& name) { return *taken_.insert(name).first; }
  const std::string& kernel() const { return kernel_; }
  const std::string& lines() const { return lines_; }
  bool is_inside_grid() const { return depth_ > 1; }

  static Recorder& current() {
    if (current_) return *current_;
    throw Refused("tiles, operations and assignments belong into a KernelBuilder: make one first");
  }
  void make_current() {
    if (current_ && current_ != this && current_->is_inside_grid()) {
      throw Refused("kernel `" + kernel_ + "` is built inside the grid of `" + current_->kernel_ +
                    "`: finish one before the next");
    }
    current_ = this;
  }
  void retire() {
    if (current_ == this) current_ = nullptr;
  }

 private:
  inline static thread_local Recorder* current_ = nullptr;
  std::string kernel_;
  std::string lines_;
  std::set<std::string> taken_;
  std::size_t depth_ = 1;
  int fresh_ = 0;
};

template <typename List>
std::string join(const List& values) {
  std::string out;
  for (const Value& v : values) out += (out.empty() ? "" : ", ") + v.text();
  return out;
}

inline std::string declare(const std::string& space, const std::string& type, const std::string& rest, Place place) {
  Recorder& r = Recorder::current();
  const std::string name = r.fresh(space);
  r.line(name + " = " + space + " " + type + rest, place);
  return name;
}

}  // namespace detail

inline const Target& Target::assign(const char* symbol, const Value& v) const {
  detail::Recorder::current().line(text() + " " + symbol + " " + v.text(), place_);
  return *this;
}

/// Computed here, once.
inline Value let(const Value& v, Place place = Place::here()) {
  detail::Recorder& r = detail::Recorder::current();
  const std::string name = r.fresh("v");
  r.line("let " + name + " = " + v.text(), place);
  return Value(name, Binds::Primary);
}
inline Index let(const Index& v, Place place = Place::here()) {
  return Index(let(static_cast<const Value&>(v), place));
}

// ---- declarations ----

struct SharedOptions {
  std::string layout = {};  ///< hint: "rows", "padded", "swizzled"
  SharedOptions with_layout(const std::string& word) const { return SharedOptions{word}; }
};

#define TW_TILE_SPACE(space)                                                                     \
  inline Tile space(DType dtype, const std::vector<Index>& shape, Place place = Place::here()) { \
    const std::string type = to_string(dtype) + "[" + detail::join(shape) + "]";                 \
    return Tile(Value(detail::declare(#space, type, "", place), Binds::Primary));                \
  }
TW_TILE_SPACE(shared)
TW_TILE_SPACE(fragment)
TW_TILE_SPACE(local)
#undef TW_TILE_SPACE
inline Tile shared(DType dtype, const std::vector<Index>& shape, const SharedOptions& options,
                   Place place = Place::here()) {
  const std::string type = to_string(dtype) + "[" + detail::join(shape) + "]";
  const std::string layout = options.layout.empty() ? "" : " layout(" + detail::quoted(options.layout) + ")";
  return Tile(Value(detail::declare("shared", type, layout, place), Binds::Primary));
}
/// A scalar that changes: `x.all() = e`.
inline Tile var(DType dtype, Place place = Place::here()) {
  return Tile(Value(detail::declare("var", to_string(dtype), "", place), Binds::Primary));
}
inline Tile var(DType dtype, const Value& initial, Place place = Place::here()) {
  return Tile(Value(detail::declare("var", to_string(dtype), " = " + initial.text(), place), Binds::Primary));
}

// ---- operations ----

struct GemmOptions {
  bool transpose_a = false;
  bool transpose_b = false;
  bool accumulate = true;
  std::string instruction = {};  ///< hints: "fma", "dot", "mma", "wgmma"; empty: the compiler chooses
  std::string avoid = {};

  GemmOptions with_transpose_a() const { return {true, transpose_b, accumulate, instruction, avoid}; }
  GemmOptions with_transpose_b() const { return {transpose_a, true, accumulate, instruction, avoid}; }
  GemmOptions without_accumulate() const { return {transpose_a, transpose_b, false, instruction, avoid}; }
  GemmOptions with_instruction(const std::string& word) const {
    return {transpose_a, transpose_b, accumulate, word, avoid};
  }
  GemmOptions with_avoid(const std::string& word) const {
    return {transpose_a, transpose_b, accumulate, instruction, word};
  }
};
struct CopyOptions {
  int vector = 0;          ///< hint: at most this many elements an access; 0: the compiler chooses
  std::string cache = {};  ///< hint: "stream", "keep"
  CopyOptions with_vector(int n) const { return {n, cache}; }
  CopyOptions with_cache(const std::string& word) const { return {vector, word}; }
};
struct ReduceOptions {
  int dim = -1;  ///< the last
  bool accumulate = false;
  ReduceOptions along(int d) const { return {d, accumulate}; }
  ReduceOptions with_accumulate() const { return {dim, true}; }
};

/// An operation of the language by its name: operation("fill", {x, 0}). `named` is written after the arguments.
inline void operation(const std::string& name, std::initializer_list<Value> arguments, const std::string& named,
                      Place place = Place::here()) {
  const std::string positional = detail::join(arguments);
  const char* comma = positional.empty() || named.empty() ? "" : ", ";
  detail::Recorder::current().line(name + "(" + positional + comma + named + ")", place);
}
inline void operation(const std::string& name, std::initializer_list<Value> arguments, Place place = Place::here()) {
  operation(name, arguments, "", place);
}

inline void copy(const Tile& src, const Tile& dst, Place place = Place::here()) {
  operation("copy", {src, dst}, place);
}
/// What is read outside of the source is `oob`.
inline void copy(const Tile& src, const Tile& dst, const Value& oob, Place place = Place::here()) {
  operation("copy", {src, dst, oob}, place);
}
inline void copy(const Tile& src, const Tile& dst, const CopyOptions& options, Place place = Place::here()) {
  std::string named = options.vector ? "vector = " + std::to_string(options.vector) : "";
  if (!options.cache.empty()) named += (named.empty() ? "" : ", ") + ("cache = " + detail::quoted(options.cache));
  operation("copy", {src, dst}, named, place);
}
inline void fill(const Tile& dst, const Value& value, Place place = Place::here()) {
  operation("fill", {dst, value}, place);
}
inline void clear(const Tile& dst, Place place = Place::here()) { operation("clear", {dst}, place); }
inline void gemm(const Tile& a, const Tile& b, const Tile& c, const GemmOptions& options = {},
                 Place place = Place::here()) {
  std::string named;
  const auto add = [&](bool given, const std::string& text) {
    if (given) named += (named.empty() ? "" : ", ") + text;
  };
  add(options.transpose_a, "transpose_a = true");
  add(options.transpose_b, "transpose_b = true");
  add(!options.accumulate, "accumulate = false");
  add(!options.instruction.empty(), "instruction = " + detail::quoted(options.instruction));
  add(!options.avoid.empty(), "avoid = " + detail::quoted(options.avoid));
  operation("gemm", {a, b, c}, named, place);
}

/// kind: "sum", "max", …
inline void reduce(const std::string& kind, const Tile& src, const Tile& dst, const ReduceOptions& options = {},
                   Place place = Place::here()) {
  operation("reduce_" + kind, {src, dst},
            "dim = " + std::to_string(options.dim) + (options.accumulate ? ", accumulate = true" : ""), place);
}
#define TW_REDUCE(kind)                                                                          \
  inline void reduce_##kind(const Tile& src, const Tile& dst, const ReduceOptions& options = {}, \
                            Place place = Place::here()) {                                       \
    reduce(#kind, src, dst, options, place);                                                     \
  }
TW_REDUCE(sum)
TW_REDUCE(max)
TW_REDUCE(min)
TW_REDUCE(prod)
TW_REDUCE(abssum)
TW_REDUCE(absmax)
TW_REDUCE(and)
TW_REDUCE(or)
TW_REDUCE(xor)
TW_REDUCE(any)
TW_REDUCE(all)
#undef TW_REDUCE
inline void reduce_argmax(const Tile& src, const Tile& value, const Tile& index, int dim = -1,
                          Place place = Place::here()) {
  operation("reduce_argmax", {src, value, index, dim}, place);
}
inline void reduce_argmin(const Tile& src, const Tile& value, const Tile& index, int dim = -1,
                          Place place = Place::here()) {
  operation("reduce_argmin", {src, value, index, dim}, place);
}
#define TW_SCAN(name)                                                                             \
  inline void name(const Tile& src, const Tile& dst, int dim = -1, Place place = Place::here()) { \
    operation(#name, {src, dst, dim}, place);                                                     \
  }
TW_SCAN(cumsum)
TW_SCAN(cumprod)
TW_SCAN(cummax)
#undef TW_SCAN
#define TW_ATOMIC(name)                                                                \
  inline void name(const Tile& dst, const Value& src, Place place = Place::here()) {   \
    operation(#name, {dst, src}, place);                                               \
  }                                                                                    \
  inline void name(const Target& dst, const Value& src, Place place = Place::here()) { \
    operation(#name, {dst, src}, place);                                               \
  }
TW_ATOMIC(atomic_add)
TW_ATOMIC(atomic_max)
TW_ATOMIC(atomic_min)
TW_ATOMIC(atomic_or)
#undef TW_ATOMIC
inline void print(std::initializer_list<Value> items, Place place = Place::here()) { operation("print", items, place); }
/// A failing one ends the run with this text.
inline void assert_(const Value& condition, const std::string& words, Place place = Place::here()) {
  operation("assert", {condition, words}, place);
}
inline void assume(const Value& condition, Place place = Place::here()) { operation("assume", {condition}, place); }

// ---- control flow ----

/// Called with as many loop variables as it takes: 1 to 4.
class Body {
 public:
  template <typename F>
  Body(F f) {
    if constexpr (std::is_invocable_v<F, Index>) {
      arity = 1, call = [f](const std::vector<Index>& v) { f(v[0]); };
    } else if constexpr (std::is_invocable_v<F, Index, Index>) {
      arity = 2, call = [f](const std::vector<Index>& v) { f(v[0], v[1]); };
    } else if constexpr (std::is_invocable_v<F, Index, Index, Index>) {
      arity = 3, call = [f](const std::vector<Index>& v) { f(v[0], v[1], v[2]); };
    } else {
      static_assert(std::is_invocable_v<F, Index, Index, Index, Index>, "a loop body takes 1 to 4 Index variables");
      arity = 4, call = [f](const std::vector<Index>& v) { f(v[0], v[1], v[2], v[3]); };
    }
  }
  std::size_t arity = 0;
  std::function<void(const std::vector<Index>&)> call;
};

namespace detail {

inline void run(Recorder& r, const Body& body, const std::vector<std::string>& names) {
  std::vector<Index> variables;
  for (const std::string& name : names) variables.push_back(Index(Value(name, Binds::Primary)));
  body.call(variables);
  r.close();
}

inline void loop(const std::string& kind, const std::vector<Index>& bounds, const Body& body, Place place) {
  Recorder& r = Recorder::current();
  std::vector<std::string> names;
  std::string written;
  for (std::size_t i = 0; i < body.arity; ++i) {
    names.push_back(r.fresh("i"));
    written += (i ? ", " : "") + names.back();
  }
  r.open("for " + written + " in " + kind + "(" + join(bounds) + ")", place);
  run(r, body, names);
}

}  // namespace detail

inline void serial(const Index& n, const Body& body, Place place = Place::here()) {
  detail::loop("serial", {n}, body, place);
}
inline void serial(const Index& lo, const Index& hi, const Body& body, Place place = Place::here()) {
  detail::loop("serial", {lo, hi}, body, place);
}
inline void serial(const Index& lo, const Index& hi, int step, const Body& body, Place place = Place::here()) {
  detail::loop("serial", {lo, hi, step}, body, place);
}
inline void unroll(const Index& n, const Body& body, Place place = Place::here()) {
  detail::loop("unroll", {n}, body, place);
}
inline void pipelined(const Index& n, const Index& stages, const Body& body, Place place = Place::here()) {
  detail::loop("pipelined", {n, stages}, body, place);
}
inline void parallel(std::initializer_list<Index> extents, const Body& body, Place place = Place::here()) {
  detail::loop("parallel", extents, body, place);
}
inline void if_(const Value& condition, const std::function<void()>& yes, const std::function<void()>& no = {},
                Place place = Place::here()) {
  detail::Recorder& r = detail::Recorder::current();
  r.open("if " + condition.text(), place);
  yes();
  if (no) r.otherwise(), no();
  r.close();
}
inline void while_(const std::function<Value()>& condition, const std::function<void()>& body,
                   Place place = Place::here()) {
  detail::Recorder& r = detail::Recorder::current();
  r.open("while " + condition().text(), place);
  body();
  r.close();
}

}  // namespace tilewright::kernel

#endif  // TILEWRIGHT_KERNEL_STATEMENT_H_
