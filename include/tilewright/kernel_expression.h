// Expressions of a kernel written in C++ (kernel.h): numbers, indices, tiles and elements, and what is computed of
// them.
//
// A Value is the `.tile` text of an expression and how tightly it binds, so that printing one inside another puts
// parentheses where the grammar needs them. Numbers print so that they read back exactly. A C++ variable that holds an
// expression repeats it at every use; `let` (kernel.h) computes it once. Index has no `/`: say floordiv.
#ifndef TILEWRIGHT_KERNEL_EXPRESSION_H_
#define TILEWRIGHT_KERNEL_EXPRESSION_H_

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <locale>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace tilewright::kernel {

enum class DType { Bool, I8, I16, I32, I64, U8, U16, U32, U64, F16, BF16, F32, F64, E4M3, E5M2 };

inline std::string to_string(DType dtype) {
  static constexpr const char* kNames[] = {"bool", "i8",  "i16",  "i32", "i64", "u8",   "u16", "u32",
                                           "u64",  "f16", "bf16", "f32", "f64", "e4m3", "e5m2"};
  return kNames[static_cast<int>(dtype)];
}

/// A line of the C++ program. As a default argument, `here()` is where the call is written.
struct Place {
  const char* file;
  int line;
  static constexpr Place here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) { return {file, line}; }
};
/// "softmax.cpp:12": the file without its folders.
inline std::string to_string(Place place) {
  const std::string path = place.file;
  return path.substr(path.rfind('/') + 1) + ":" + std::to_string(place.line);
}

/// Thrown when the recording itself is misused. What is wrong with the kernel is told by the compiler of its text.
class Refused : public std::runtime_error {
 public:
  Refused(Place place, const std::string& what) : std::runtime_error(to_string(place) + ": error: " + what) {}
  explicit Refused(const std::string& what) : std::runtime_error("error: " + what) {}
};

/// How tightly an expression binds, loosest first: the levels of docs/grammar.md.
enum class Binds { Or, And, Not, Comparison, BitOr, BitXor, BitAnd, Shift, Sum, Product, Unary, Primary };

namespace detail {

/// As the language reads it back: exact, with a point or an exponent.
inline std::string real_text(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v > 0 ? "inf" : "-inf";
  std::string out;
  for (const int digits : {6, 9, 15, 16, 17}) {
    std::ostringstream text;
    text.imbue(std::locale::classic());
    text.precision(digits);
    text << v;
    out = text.str();
    std::istringstream again(out);
    again.imbue(std::locale::classic());
    double read = 0;
    if (again >> read && read == v) break;
  }
  return out.find_first_of(".e") == std::string::npos ? out + ".0" : out;
}

template <typename T>
std::string integer_text(T v) {
  if constexpr (std::is_signed_v<T>) {
    if (static_cast<std::int64_t>(v) == INT64_MIN) return "(-9223372036854775807 - 1)";
  } else if (static_cast<std::uint64_t>(v) > static_cast<std::uint64_t>(INT64_MAX)) {
    std::ostringstream text;
    text.imbue(std::locale::classic());
    text << "0x" << std::hex << static_cast<std::uint64_t>(v);
    return text.str();
  }
  return std::to_string(v);
}

inline std::string quoted(const std::string& words) {
  std::string out = "\"";
  for (const char c : words) {
    if (c == '\n' || c == '\t') {
      out += c == '\n' ? "\\n" : "\\t";
    } else {
      out += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    }
  }
  return out + "\"";
}

inline Binds binds_of(const std::string& number) { return number[0] == '-' ? Binds::Unary : Binds::Primary; }

template <typename T>
using IfInteger = std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, int>;

}  // namespace detail

class Value {
 public:
  Value(double v) : text_(detail::real_text(v)), binds_(detail::binds_of(text_)) {}
  Value(float v) : Value(static_cast<double>(v)) {}
  template <typename T, detail::IfInteger<T> = 0>
  Value(T v) : text_(detail::integer_text(v)), binds_(detail::binds_of(text_)) {}
  Value(bool v) : text_(v ? "true" : "false") {}
  Value(DType v) : text_(to_string(v)) {}
  Value(const char* words) : text_(detail::quoted(words)) {}  ///< for print and assert
  Value(const std::string& words) : text_(detail::quoted(words)) {}
  /// An expression as the language writes it.
  Value(std::string expression, Binds binds) : text_(std::move(expression)), binds_(binds) {
    if (text_.size() > kLongest) throw Refused("this expression is very long: name parts of it with let(…)");
  }

  const std::string& text() const { return text_; }
  /// In parentheses when it binds looser than `least`.
  std::string text(Binds least) const { return binds_ < least ? "(" + text_ + ")" : text_; }

 private:
  static constexpr std::size_t kLongest = std::size_t{1} << 16;
  std::string text_;
  Binds binds_ = Binds::Primary;
};

/// A 64-bit index: dimension, loop or block variable, arithmetic on them.
class Index : public Value {
 public:
  template <typename T, detail::IfInteger<T> = 0>
  Index(T v) : Value(v) {}
  explicit Index(const Value& v) : Value(v) {}
};

inline Value binary(const Value& x, const char* symbol, const Value& y, Binds binds) {
  const auto tighter = static_cast<Binds>(static_cast<int>(binds) + 1);
  const Binds left = binds == Binds::Comparison ? tighter : binds;  // comparisons do not chain
  return Value(x.text(left) + " " + symbol + " " + y.text(tighter), binds);
}
/// A function of the language by its name.
inline Value call(const std::string& name, std::initializer_list<Value> arguments) {
  std::string out = name + "(";
  for (const Value& v : arguments) out += (out.back() == '(' ? "" : ", ") + v.text();
  return Value(out + ")", Binds::Primary);
}

#define TW_INDEX_OPERATOR(symbol, binds) \
  inline Index operator symbol(const Index& x, const Index& y) { return Index(binary(x, #symbol, y, Binds::binds)); }
#define TW_VALUE_OPERATOR(symbol, written, binds) \
  inline Value operator symbol(const Value& x, const Value& y) { return binary(x, written, y, Binds::binds); }
TW_INDEX_OPERATOR(+, Sum)
TW_INDEX_OPERATOR(-, Sum)
TW_INDEX_OPERATOR(*, Product)
TW_INDEX_OPERATOR(%, Product)
TW_VALUE_OPERATOR(+, "+", Sum)
TW_VALUE_OPERATOR(-, "-", Sum)
TW_VALUE_OPERATOR(*, "*", Product)
TW_VALUE_OPERATOR(/, "/", Product)
TW_VALUE_OPERATOR(%, "%", Product)
TW_VALUE_OPERATOR(<, "<", Comparison)
TW_VALUE_OPERATOR(<=, "<=", Comparison)
TW_VALUE_OPERATOR(>, ">", Comparison)
TW_VALUE_OPERATOR(>=, ">=", Comparison)
TW_VALUE_OPERATOR(==, "==", Comparison)
TW_VALUE_OPERATOR(!=, "!=", Comparison)
TW_VALUE_OPERATOR(&&, "and", And)
TW_VALUE_OPERATOR(||, "or", Or)
TW_VALUE_OPERATOR(&, "&", BitAnd)
TW_VALUE_OPERATOR(|, "|", BitOr)
TW_VALUE_OPERATOR(^, "^", BitXor)
TW_VALUE_OPERATOR(<<, "<<", Shift)
TW_VALUE_OPERATOR(>>, ">>", Shift)
#undef TW_INDEX_OPERATOR
#undef TW_VALUE_OPERATOR
Index operator/(const Index&, const Index&) = delete;  // say floordiv
inline Value operator-(const Value& x) { return Value("-" + x.text(Binds::Unary), Binds::Unary); }
inline Value operator~(const Value& x) { return Value("~" + x.text(Binds::Unary), Binds::Unary); }
inline Value operator!(const Value& x) { return Value("not " + x.text(Binds::Not), Binds::Not); }

inline Index floordiv(const Index& x, const Index& y) { return Index(binary(x, "//", y, Binds::Product)); }
inline Index floormod(const Index& x, const Index& y) { return Index(binary(x, "%", y, Binds::Product)); }
inline Value floordiv(const Value& x, const Value& y) { return binary(x, "//", y, Binds::Product); }
inline Value floormod(const Value& x, const Value& y) { return binary(x, "%", y, Binds::Product); }
inline Index ceildiv(const Index& x, const Index& y) { return Index(call("ceildiv", {x, y})); }
inline Index min(const Index& x, const Index& y) { return Index(call("min", {x, y})); }
inline Index max(const Index& x, const Index& y) { return Index(call("max", {x, y})); }
inline Value min(const Value& x, const Value& y) { return call("min", {x, y}); }
inline Value max(const Value& x, const Value& y) { return call("max", {x, y}); }
inline Value select(const Value& c, const Value& x, const Value& y) { return call("select", {c, x, y}); }
inline Value cast(const Value& x, DType dtype) { return call("cast", {x, dtype}); }
inline Value bitcast(const Value& x, DType dtype) { return call("bitcast", {x, dtype}); }
inline Value pow(const Value& x, const Value& y) { return call("pow", {x, y}); }
inline Value lowest(DType dtype) { return call("lowest", {dtype}); }
inline Value highest(DType dtype) { return call("highest", {dtype}); }
#define TW_MATH(name) \
  inline Value name(const Value& x) { return call(#name, {x}); }
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
inline Value inf() { return Value("inf", Binds::Primary); }
inline Value nan() { return Value("nan", Binds::Primary); }

/// One entry of a subscript.
class Subscript {
 public:
  Subscript(const Index& index) : text_(index.text()) {}  ///< drops the dimension
  template <typename T, detail::IfInteger<T> = 0>
  Subscript(T index) : text_(Index(index).text()) {}
  static Subscript written(std::string text) { return Subscript(std::move(text), 0); }
  const std::string& text() const { return text_; }

 private:
  Subscript(std::string text, int) : text_(std::move(text)) {}
  std::string text_;
};
inline Subscript at(const Index& start, const Index& extent) {  ///< start :+ extent
  return Subscript::written(start.text() + " :+ " + extent.text());
}
inline Subscript whole() { return Subscript::written(":"); }   ///< the whole dimension
inline Subscript repeat() { return Subscript::written("*"); }  ///< a broadcast axis

/// An index of an element access, with the C++ line it is written on.
struct ElementIndex {
  template <typename T, detail::IfInteger<T> = 0>
  ElementIndex(T v, Place at = Place::here()) : index(v), place(at) {}
  ElementIndex(const Index& v, Place at = Place::here()) : index(v), place(at) {}
  ElementIndex(const Value& v, Place at = Place::here()) : index(v), place(at) {}
  Index index;
  Place place;
};

/// Something assigned to: `tile(i, j) = e` stores an element, `tile.all() = e` the whole tile, `x.all() = e` a var.
class Target : public Value {
 public:
  Target(const Value& v, Place place) : Value(v), place_(place) {}
  Target(const Target&) = default;
  const Target& operator=(const Value& v) const { return assign("=", v); }
  const Target& operator=(const Target& v) const { return assign("=", v); }
  const Target& operator+=(const Value& v) const { return assign("+=", v); }
  const Target& operator-=(const Value& v) const { return assign("-=", v); }
  const Target& operator*=(const Value& v) const { return assign("*=", v); }
  const Target& operator/=(const Value& v) const { return assign("/=", v); }

 private:
  const Target& assign(const char* symbol, const Value& v) const;  // kernel.h
  Place place_;
};

/// A tensor argument, a tile, a region of one, or a var.
class Tile : public Value {
 public:
  explicit Tile(const Value& v) : Value(v) {}
  Tile operator[](std::initializer_list<Subscript> items) const {
    std::string out = text(Binds::Primary) + "[";
    for (const Subscript& s : items) out += (&s == items.begin() ? "" : ", ") + s.text();
    return Tile(Value(out + "]", Binds::Primary));
  }
  Target operator()(const ElementIndex& i) const { return element({i}); }
  Target operator()(const ElementIndex& i, const ElementIndex& j) const { return element({i, j}); }
  Target operator()(const ElementIndex& i, const ElementIndex& j, const ElementIndex& k) const {
    return element({i, j, k});
  }
  template <typename... More>
  Target operator()(const ElementIndex& i, const ElementIndex& j, const ElementIndex& k, const ElementIndex& l,
                    const More&... more) const {
    return element({i, j, k, l, ElementIndex(more)...});
  }
  Target all(Place place = Place::here()) const { return Target(*this, place); }

 private:
  Target element(std::initializer_list<ElementIndex> items) const {
    std::string out = text(Binds::Primary) + "[";
    for (const ElementIndex& item : items) out += (&item == items.begin() ? "" : ", ") + item.index.text();
    return Target(Value(out + "]", Binds::Primary), items.begin()->place);
  }
};

/// True when the caller passes the optional tensor; known at compile time.
inline Value present(const Tile& tensor) { return call("present", {tensor}); }
/// One element, with its own value out of bounds.
inline Value load(const Value& element, const Value& oob) { return call("load", {element, oob}); }
/// Counts this block in; true in the block that arrives last of `n`.
inline Value arrive_last(const Value& counter, const Index& n) { return call("arrive_last", {counter, n}); }

}  // namespace tilewright::kernel

#endif  // TILEWRIGHT_KERNEL_EXPRESSION_H_
