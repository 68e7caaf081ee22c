// Kernels in C++: the words of the `.tile` language, recorded as its text. Header only, C++17, the standard library
// alone; needs exceptions.
//
//   using namespace tilewright::kernel;
//   KernelBuilder k("scale");
//   Index N = k.dim("N");
//   Tile X = k.input("X", DType::F32, {N}), Y = k.output("Y", DType::F32, {N});
//   Value by = k.scalar("by", DType::F32);
//   k.grid({ceildiv(N, 256)}, threads(128), [&](Index b) {
//     parallel({256}, [&](Index i) {
//       Index n = b * 256 + i;
//       if_(n < N, [&] { Y(n) = X(n) * by; });
//     });
//   });
//   std::string text = k.text();
//
// The text is a kernel like any other: for compiler.h, for `tilewright run -`, or a file. Every statement is a line
// that ends in the C++ file and line it was written on, so that a diagnostic shows both. C++ does the metaprogramming:
// a variable is a parameter, a function an inlined `fn`, `if` a compile-time one. Outputs come last in a call, whatever
// the order they are declared in. Options are set by name: GemmOptions{.transpose_b = true} in C++20,
// GemmOptions().with_transpose_b() in C++17. Does not check the kernel: the compiler of the text does.
#ifndef TILEWRIGHT_KERNEL_H_
#define TILEWRIGHT_KERNEL_H_

#include <tilewright/kernel_expression.h>
#include <tilewright/kernel_statement.h>

#include <memory>

namespace tilewright::kernel {

struct GridOptions {
  Index threads = 128;
  bool persistent = false;
  Index group = 0;  ///< of a persistent grid: rows of blocks that run together; 0: as it comes
  GridOptions with_persistent(const Index& rows = 0) const { return {threads, true, rows}; }
};
inline GridOptions threads(const Index& n) { return GridOptions{n}; }

struct ArgumentOptions {
  bool optional = false;  ///< the caller may leave it out: present(tensor)
  bool guarded = false;   ///< `run --check` does not report accesses outside of it
  ArgumentOptions with_optional() const { return {true, guarded}; }
  ArgumentOptions with_guarded() const { return {optional, true}; }
};

class KernelBuilder {
 public:
  /// A size of `example`.
  struct Size {
    Index dim;
    std::int64_t size;
  };

  explicit KernelBuilder(const std::string& name, Place place = Place::here())
      : recorder_(std::make_unique<detail::Recorder>(name)), place_(place) {
    recorder_->make_current();
  }
  ~KernelBuilder() { recorder_->retire(); }
  KernelBuilder(const KernelBuilder&) = delete;
  KernelBuilder& operator=(const KernelBuilder&) = delete;

  Index dim(const std::string& name) { return Index(Value(recorder_->take(name), Binds::Primary)); }
  Tile input(const std::string& name, DType dtype, const std::vector<Index>& shape, Place place = Place::here()) {
    return tensor("", name, dtype, shape, {}, place);
  }
  Tile input(const std::string& name, DType dtype, const std::vector<Index>& shape, const ArgumentOptions& options,
             Place place = Place::here()) {
    return tensor("", name, dtype, shape, options, place);
  }
  Tile output(const std::string& name, DType dtype, const std::vector<Index>& shape, Place place = Place::here()) {
    return tensor("output", name, dtype, shape, {}, place);
  }
  Tile output(const std::string& name, DType dtype, const std::vector<Index>& shape, const ArgumentOptions& options,
              Place place = Place::here()) {
    return tensor("output", name, dtype, shape, options, place);
  }
  Tile inout(const std::string& name, DType dtype, const std::vector<Index>& shape, Place place = Place::here()) {
    return tensor("inout ", name, dtype, shape, {}, place);
  }
  Tile workspace(const std::string& name, DType dtype, const std::vector<Index>& shape, Place place = Place::here()) {
    return tensor("workspace ", name, dtype, shape, {}, place);
  }
  Value scalar(const std::string& name, DType dtype, Place place = Place::here()) {
    return argument(inputs_, name, name + ": " + to_string(dtype), place);
  }
  Value scalar(const std::string& name, DType dtype, const Value& otherwise, Place place = Place::here()) {
    return argument(inputs_, name, name + ": " + to_string(dtype) + " = " + otherwise.text(), place);
  }
  Index index_scalar(const std::string& name, Place place = Place::here()) {  ///< an i64
    return Index(scalar(name, DType::I64, place));
  }
  /// A parameter that stays open in the text, for `--param` and `tilewright tune`.
  Index param(const std::string& name, std::int64_t otherwise, std::initializer_list<std::int64_t> values = {},
              Place place = Place::here()) {
    const std::vector<Index> domain(values.begin(), values.end());
    const std::string in = domain.empty() ? "" : " in {" + detail::join(domain) + "}";
    clause("param " + recorder_->take(name) + " = " + std::to_string(otherwise) + in, place);
    return Index(Value(name, Binds::Primary));
  }

  void where(const Value& condition, Place place = Place::here()) { clause("where " + condition.text(), place); }
  void alias(const std::string& x, const std::string& y, Place place = Place::here()) {
    clause("alias(" + x + ", " + y + ")", place);
  }
  void alias(const Tile& x, const Tile& y, Place place = Place::here()) { alias(x.text(), y.text(), place); }
  /// Sizes for when none are given: k.example({{M, 1000}, {N, 77}}).
  void example(std::initializer_list<Size> sizes, Place place = Place::here()) {
    std::string out;
    for (const Size& s : sizes) out += (out.empty() ? "" : ", ") + s.dim.text() + " = " + std::to_string(s.size);
    clause("example " + out, place);
  }
  /// What the outputs should be, in the words of docs/grammar.md: k.reference("softmax(X)").
  void reference(const std::string& expressions, Place place = Place::here()) {
    clause("reference " + expressions, place);
  }
  /// Any other line of the kernel's header, as the language writes it: k.clause("config cpu when M <= 4 { … }").
  void clause(const std::string& text, Place place = Place::here()) {
    clauses_ += "  " + text + "  # " + to_string(place) + "\n";
  }
  /// What the kernel is for; it stands above it.
  void doc(const std::string& words) { doc_ = words; }

  void grid(const std::vector<Index>& extents, const GridOptions& options, const Body& body,
            Place place = Place::here()) {
    if (body.arity != extents.size()) {
      throw Refused(place, "the grid has " + std::to_string(extents.size()) + " extents and its body takes " +
                               std::to_string(body.arity) + " variables");
    }
    recorder_->make_current();
    std::vector<std::string> names;
    std::string written;
    for (const Index& extent : extents) {
      names.push_back(recorder_->fresh("b"));
      written += (names.size() > 1 ? ", " : "") + names.back() + ": " + extent.text();
    }
    const bool grouped = options.group.text() != "0";
    const std::string persistent = options.persistent || grouped ? " persistent" : "";
    const std::string group = grouped ? "(group = " + options.group.text() + ")" : "";
    recorder_->open("grid (" + written + ") threads(" + options.threads.text() + ")" + persistent + group, place);
    detail::run(*recorder_, body, names);
  }

  const std::string& name() const { return recorder_->kernel(); }
  /// The kernel as a `.tile` file.
  std::string text() const {
    std::string out;
    std::istringstream words(doc_);
    for (std::string line; std::getline(words, line);) out += "# " + line + "\n";
    out += "kernel " + name() + "(  # " + to_string(place_) + "\n" + listed(inputs_);
    if (!outputs_.empty()) out += " -> (\n" + listed(outputs_);
    return out + "\n" + clauses_ + "{\n" + recorder_->lines() + "}\n";
  }

 private:
  struct Argument {
    std::string text;
    Place place;
  };

  Value argument(std::vector<Argument>& list, const std::string& name, const std::string& text, Place place) {
    list.push_back({text, place});
    return Value(recorder_->take(name), Binds::Primary);
  }
  Tile tensor(const std::string& kind, const std::string& name, DType dtype, const std::vector<Index>& shape,
              const ArgumentOptions& options, Place place) {
    const bool is_output = kind == "output";
    const std::string words = std::string(options.optional ? "optional " : "") + (options.guarded ? "guarded " : "");
    return Tile(argument(
        is_output ? outputs_ : inputs_, name,
        (is_output ? "" : kind) + words + name + ": " + to_string(dtype) + "[" + detail::join(shape) + "]", place));
  }
  /// One argument a line, with its place; the closing parenthesis on a line of its own.
  static std::string listed(const std::vector<Argument>& arguments) {
    std::string out;
    for (const Argument& a : arguments) {
      const bool is_last = &a == &arguments.back();
      out += "    " + a.text + (is_last ? "" : ",") + "  # " + to_string(a.place) + "\n";
    }
    return out + ")";
  }

  std::unique_ptr<detail::Recorder> recorder_;
  Place place_;
  std::vector<Argument> inputs_;
  std::vector<Argument> outputs_;
  std::string clauses_;
  std::string doc_;
};

}  // namespace tilewright::kernel

#endif  // TILEWRIGHT_KERNEL_H_
