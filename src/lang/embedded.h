// The language as C++: the same words, recorded as the same syntax tree, so the IR is equal to the text's by
// construction.
//
//   KernelBuilder k("matmul_relu");
//   Index M = k.dim("M"), N = k.dim("N"), K = k.dim("K");
//   Tile A = k.input("A", c.T, {M, K}), B = k.input("B", c.T, {K, N}), C = k.output("C", c.T, {M, N});
//   k.grid({ceildiv(N, c.block_N), ceildiv(M, c.block_M)}, threads(256), [&](Index bx, Index by) {
//     Tile A_s = shared(c.T, {c.block_M, c.block_K}); …
//     pipelined(ceildiv(K, c.block_K), c.num_stages, [&](Index k0) { copy(A[{at(by * c.block_M, c.block_M), …}], A_s);
//     … }); acc.all() = max(acc, 0);
//   });
//   return k.finish();
//
// Parameters are ordinary C++ variables and `fn` an ordinary C++ function. A C++ `auto` keeps an expression and repeats
// it at every use: `let(e)` evaluates once. Index has no `/` (say floordiv). Statements carry their C++ line. Free
// functions record into the builder whose grid is being built on this thread; outside of one they throw.
#pragma once

#include <concepts>
#include <functional>
#include <initializer_list>
#include <memory>
#include <source_location>
#include <stdexcept>
#include <string>
#include <vector>

#include "lang/elaborate.h"

namespace tilewright::lang::embedded {

class Recorder;
using Place = std::source_location;

/// An expression: a number, or a node of the syntax tree being recorded.
class Value {
 public:
  Value(double v);  // NOLINT(google-explicit-constructor): numbers adapt
  Value(std::integral auto v) : Value(of_integer(static_cast<int64_t>(v))) {}  // NOLINT
  Value(bool v);                                                               // NOLINT
  Value(DType v);                                                              // NOLINT
  explicit Value(const Expr* node) : node_(node) {}
  const Expr* node() const { return node_; }

 private:
  static Value of_integer(int64_t v);
  const Expr* node_ = nullptr;
};

/// A 64-bit index: dimension, loop or block variable, arithmetic on them.
class Index : public Value {
 public:
  Index(std::integral auto v) : Value(v) {}  // NOLINT
  explicit Index(const Value& v) : Value(v) {}
};

/// Something assigned to: `tile(i, j) = e` stores an element, `tile.all() = e` the whole tile, `x.all() = e` a var.
class Target : public Value {
 public:
  Target(const Value& v, Place place) : Value(v), place_(place) {}
  Target(const Target&) = default;
  const Target& operator=(const Value& v) const { return assign(v), *this; }
  const Target& operator=(const Target& v) const { return assign(v), *this; }

 private:
  void assign(const Value& v) const;
  Place place_;
};

/// An index of an element access, with the C++ line it is written on.
struct ElementIndex {
  ElementIndex(std::integral auto v, Place at = Place::current()) : index(v), place(at) {}   // NOLINT
  ElementIndex(const Index& v, Place at = Place::current()) : index(v), place(at) {}         // NOLINT
  ElementIndex(const Value& v, Place at = Place::current()) : index(Index(v)), place(at) {}  // NOLINT
  Index index;
  Place place;
};

/// One entry of a subscript.
struct Subscript {
  Subscript(const Index& index);                            // NOLINT: drops the dimension
  Subscript(std::integral auto v) : Subscript(Index(v)) {}  // NOLINT
  explicit Subscript(const Expr* node) : item(node) {}
  const Expr* item;
};
Subscript at(const Index& start, const Index& extent);  ///< start :+ extent
Subscript whole();                                      ///< `:`
Subscript repeat();                                     ///< `*`: a broadcast axis

class Tile : public Value {
 public:
  explicit Tile(const Value& v) : Value(v) {}
  Tile operator[](std::initializer_list<Subscript> items) const;
  Target operator()(const ElementIndex& i) const { return element({i.index}, i.place); }
  Target operator()(const ElementIndex& i, const ElementIndex& j) const { return element({i.index, j.index}, i.place); }
  Target operator()(const ElementIndex& i, const ElementIndex& j, const ElementIndex& k) const {
    return element({i.index, j.index, k.index}, i.place);
  }
  Target operator()(const ElementIndex& i, const ElementIndex& j, const ElementIndex& k, const ElementIndex& l) const {
    return element({i.index, j.index, k.index, l.index}, i.place);
  }
  Target all(Place place = Place::current()) const { return Target(*this, place); }

 private:
  Target element(std::initializer_list<Subscript> items, Place place) const { return Target((*this)[items], place); }
};

Value make_binary(Operator op, const Value& x, const Value& y);
Value make_unary(Operator op, const Value& x);
Value make_call(const std::string& name, const std::vector<Value>& arguments);

#define TW_INDEX_OPERATOR(symbol, op) \
  inline Index operator symbol(const Index& x, const Index& y) { return Index(make_binary(Operator::op, x, y)); }
#define TW_VALUE_OPERATOR(symbol, op) \
  inline Value operator symbol(const Value& x, const Value& y) { return make_binary(Operator::op, x, y); }
TW_INDEX_OPERATOR(+, Add)
TW_INDEX_OPERATOR(-, Sub)
TW_INDEX_OPERATOR(*, Mul)
TW_INDEX_OPERATOR(%, FloorMod)
TW_VALUE_OPERATOR(+, Add)
TW_VALUE_OPERATOR(-, Sub)
TW_VALUE_OPERATOR(*, Mul)
TW_VALUE_OPERATOR(/, Div)
TW_VALUE_OPERATOR(%, FloorMod)
TW_VALUE_OPERATOR(<, Lt)
TW_VALUE_OPERATOR(<=, Le)
TW_VALUE_OPERATOR(>, Gt)
TW_VALUE_OPERATOR(>=, Ge)
TW_VALUE_OPERATOR(==, Eq)
TW_VALUE_OPERATOR(!=, Ne)
TW_VALUE_OPERATOR(&&, And)
TW_VALUE_OPERATOR(||, Or)
TW_VALUE_OPERATOR(&, BitAnd)
TW_VALUE_OPERATOR(|, BitOr)
TW_VALUE_OPERATOR(^, BitXor)
TW_VALUE_OPERATOR(<<, Shl)
TW_VALUE_OPERATOR(>>, Shr)
#undef TW_INDEX_OPERATOR
#undef TW_VALUE_OPERATOR
Index operator/(const Index&, const Index&) = delete;  // say floordiv
inline Value operator-(const Value& x) { return make_unary(Operator::Neg, x); }
inline Value operator!(const Value& x) { return make_unary(Operator::Not, x); }
inline Value operator~(const Value& x) { return make_unary(Operator::BitNot, x); }

inline Index floordiv(const Index& x, const Index& y) { return Index(make_binary(Operator::FloorDiv, x, y)); }
inline Index floormod(const Index& x, const Index& y) { return Index(make_binary(Operator::FloorMod, x, y)); }
inline Index ceildiv(const Index& x, const Index& y) { return Index(make_call("ceildiv", {x, y})); }
inline Index min(const Index& x, const Index& y) { return Index(make_call("min", {x, y})); }
inline Index max(const Index& x, const Index& y) { return Index(make_call("max", {x, y})); }
inline Value min(const Value& x, const Value& y) { return make_call("min", {x, y}); }
inline Value max(const Value& x, const Value& y) { return make_call("max", {x, y}); }
inline Value select(const Value& c, const Value& x, const Value& y) { return make_call("select", {c, x, y}); }
inline Value cast(const Value& x, DType dtype) { return make_call("cast", {x, dtype}); }
inline Value bitcast(const Value& x, DType dtype) { return make_call("bitcast", {x, dtype}); }
inline Value pow(const Value& x, const Value& y) { return make_call("pow", {x, y}); }
inline Value lowest(DType dtype) { return make_call("lowest", {dtype}); }
inline Value highest(DType dtype) { return make_call("highest", {dtype}); }
#define TW_MATH(name) \
  inline Value name(const Value& x) { return make_call(#name, {x}); }
TW_MATH(abs)
TW_MATH(exp)
TW_MATH(exp2)
TW_MATH(log)
TW_MATH(log2)
TW_MATH(tanh)
TW_MATH(erf)
TW_MATH(sigmoid)
TW_MATH(rsqrt)
TW_MATH(sqrt)
TW_MATH(sin)
TW_MATH(cos)
TW_MATH(floor)
TW_MATH(ceil)
TW_MATH(round)
TW_MATH(isnan)
#undef TW_MATH
Value inf();
Value nan();
Value text(const std::string& words);                ///< for print and assert
Value load(const Value& element, const Value& oob);  ///< one element, with its own value out of bounds
Value arrive_last(const Value& counter, const Index& n);

/// `let`: evaluated here, once.
Value let(const Value& v, Place place = Place::current());
Index let(const Index& v, Place place = Place::current());

struct SharedOptions {
  std::string layout = {};  ///< hint: "rows", "padded", "swizzled"
};

// Declarations.
Tile shared(DType dtype, std::vector<Index> shape, Place place = Place::current());
Tile shared(DType dtype, std::vector<Index> shape, SharedOptions options, Place place = Place::current());
Tile fragment(DType dtype, std::vector<Index> shape, Place place = Place::current());
Tile local(DType dtype, std::vector<Index> shape, Place place = Place::current());
Tile var(DType dtype, Place place = Place::current());

// Operations. Options by name: gemm(A, B, C, {.transpose_b = true}).
struct GemmOptions {
  bool transpose_a = false;
  bool transpose_b = false;
  bool accumulate = true;
  std::string instruction = {};  ///< hints: "fma", "dot", "mma", "wgmma"; empty: the compiler chooses
  std::string avoid = {};
};
struct CopyOptions {
  int vector = 0;          ///< hint: at most this many elements an access; 0: the compiler chooses
  std::string cache = {};  ///< hint: "stream", "keep"
};
struct ReduceOptions {
  int dim = -1;
  bool accumulate = false;
};
void copy(const Tile& src, const Tile& dst, Place place = Place::current());
void copy(const Tile& src, const Tile& dst, const Value& oob, Place place = Place::current());
void copy(const Tile& src, const Tile& dst, CopyOptions options, Place place = Place::current());
void fill(const Tile& dst, const Value& value, Place place = Place::current());
void clear(const Tile& dst, Place place = Place::current());
void gemm(const Tile& a, const Tile& b, const Tile& c, GemmOptions options = {}, Place place = Place::current());
/// kind: "sum", "max", …
void reduce(const std::string& kind, const Tile& src, const Tile& dst, ReduceOptions options = {},
            Place place = Place::current());
/// Any other operation of the language by its name, positional arguments only: operation("print", {text("x ="), x}).
void operation(const std::string& name, std::initializer_list<Value> arguments, Place place = Place::current());

/// Calls `body` with as many loop variables as it takes.
class Body {
 public:
  template <typename F>
  Body(F f) {  // NOLINT
    if constexpr (std::invocable<F, Index>) {
      arity = 1, call = [f](const std::vector<Index>& v) { f(v[0]); };
    } else if constexpr (std::invocable<F, Index, Index>) {
      arity = 2, call = [f](const std::vector<Index>& v) { f(v[0], v[1]); };
    } else if constexpr (std::invocable<F, Index, Index, Index>) {
      arity = 3, call = [f](const std::vector<Index>& v) { f(v[0], v[1], v[2]); };
    } else {
      static_assert(std::invocable<F, Index, Index, Index, Index>, "a loop body takes 1 to 4 Index variables");
      arity = 4, call = [f](const std::vector<Index>& v) { f(v[0], v[1], v[2], v[3]); };
    }
  }
  int arity = 0;
  std::function<void(const std::vector<Index>&)> call;
};
void serial(const Index& n, const Body& body, Place place = Place::current());
void serial(const Index& lo, const Index& hi, const Body& body, Place place = Place::current());
void serial(const Index& lo, const Index& hi, int step, const Body& body, Place place = Place::current());
void pipelined(const Index& n, int stages, const Body& body, Place place = Place::current());
void parallel(std::initializer_list<Index> extents, const Body& body, Place place = Place::current());
void if_(const Value& condition, const std::function<void()>& yes, const std::function<void()>& no = {},
         Place place = Place::current());
void while_(const std::function<Value()>& condition, const std::function<void()>& body, Place place = Place::current());

struct GridOptions {
  int threads = 128;
  bool persistent = false;
  int group = 0;
};
inline GridOptions threads(int n) { return {.threads = n}; }

/// Thrown by finish() and by misuse; carries what a text would have been told.
class Refused : public std::runtime_error {
 public:
  explicit Refused(Diagnostic d) : std::runtime_error(render(d)), diagnostic(std::move(d)) {}
  Diagnostic diagnostic;
};

class KernelBuilder {
 public:
  explicit KernelBuilder(const std::string& name, Place place = Place::current());
  ~KernelBuilder();
  KernelBuilder(const KernelBuilder&) = delete;
  KernelBuilder& operator=(const KernelBuilder&) = delete;

  Index dim(const std::string& name);
  Tile input(const std::string& name, DType dtype, std::vector<Index> shape, Place place = Place::current());
  Tile output(const std::string& name, DType dtype, std::vector<Index> shape, Place place = Place::current());
  Tile inout(const std::string& name, DType dtype, std::vector<Index> shape, Place place = Place::current());
  Tile workspace(const std::string& name, DType dtype, std::vector<Index> shape, Place place = Place::current());
  Value scalar(const std::string& name, DType dtype, Place place = Place::current());
  Index index_scalar(const std::string& name, Place place = Place::current());  ///< an i64
  void where(const Value& condition, Place place = Place::current());
  void alias(const std::string& x, const std::string& y, Place place = Place::current());
  void grid(std::initializer_list<Index> extents, GridOptions options, const Body& body,
            Place place = Place::current());

  /// The kernel. Sizes of dimensions that shape tiles come from `configuration.dims`. Throws Refused.
  ir::Kernel finish(const Configuration& configuration = {});

 private:
  Tile tensor(ArgumentKind kind, const std::string& name, DType dtype, const std::vector<Index>& shape, Place place);
  std::unique_ptr<Recorder> recorder_;
};

}  // namespace tilewright::lang::embedded
