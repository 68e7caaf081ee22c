#include "fuzz/tables.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <set>

#include "interp/compare.h"
#include "interp/scalar.h"
#include "ir/builder.h"

namespace tilewright::fuzz {
namespace {

using ir::BinaryOp;
using ir::CompareOp;
using ir::Index;
using ir::UnaryOp;
using ir::Value;

constexpr int64_t kBlock = 512;
constexpr std::array kAll = {DType::Bool, DType::I8,   DType::I16,  DType::I32, DType::I64,
                             DType::U8,   DType::U16,  DType::U32,  DType::U64, DType::F16,
                             DType::BF16, DType::E4M3, DType::E5M2, DType::F32, DType::F64};

/// A one-dimensional kernel over N elements: inputs, and one output per column of the table.
class Table {
 public:
  explicit Table(std::string name) : name_(std::move(name)) {
    kernel_.name = "table";
    Value* n = kernel_.new_value(ir::Type::scalar(DType::I64), "N");
    kernel_.dimensions.push_back({"N", n, std::nullopt});
    n_ = b_.symbol(n);
  }

  void input(DType dtype, const std::vector<uint64_t>& codes) {
    add(dtype, ir::Direction::In);
    std::vector<std::byte> data(codes.size() * static_cast<size_t>(bytes(dtype)));
    for (size_t i = 0; i < codes.size(); ++i) {
      std::memcpy(data.data() + i * static_cast<size_t>(bytes(dtype)), &codes[i], static_cast<size_t>(bytes(dtype)));
    }
    inputs_.push_back(std::move(data));
    count_ = static_cast<int64_t>(codes.size());
  }

  /// `columns(values of the inputs at one place)` gives the named results of one row.
  using Columns =
      std::function<void(const std::vector<Value*>&, const std::function<void(std::string, DType, Value*)>&)>;
  void compute(const Columns& columns) {
    b_.grid({.extents = {ceildiv(n_, kBlock)}}, [&](const std::vector<Value*>& block) {
      b_.parallel({b_.constant_index(kBlock)}, [&](const std::vector<Value*>& i) {
        const Index at = b_.symbol(block[0]) * kBlock + b_.symbol(i[0]);
        std::vector<Value*> values;
        for (size_t k = 0; k < inputs_.size(); ++k) values.push_back(b_.load(kernel_.tensors[k].buffer, {at}));
        columns(values, [&](std::string column, DType dtype, Value* v) {
          Value* out = add(dtype, ir::Direction::Out);
          out->name = std::move(column);
          b_.store(out, {at}, b_.cast(v, compute_type(dtype)));
        });
      });
    });
  }

  TableResult check(Subject& subject, const Plant& plant, interp::Mode mode) {
    TableResult result = {.name = name_};
    Buffers reference = buffers(), actual = buffers();
    const auto expected = interp::run(kernel_, reference.call, {.mode = mode});
    if (!expected) return failed(std::move(result), expected.error());
    if (const Status done = subject.run(kernel_, actual.call, plant); !done)
      return failed(std::move(result), done.error());
    for (size_t t = inputs_.size(); t < kernel_.tensors.size(); ++t) {
      const interp::Difference d = interp::compare(actual.call.tensors[t], expected->expected[t]);
      result.checked += d.compared - d.tainted;
      result.wrong += d.mismatched;
      if (d.mismatched && result.first.empty())
        result.first = kernel_.tensors[t].buffer->name + d.first + operands(d.first);
    }
    return result;
  }

 private:
  struct Buffers {
    std::vector<std::vector<std::byte>> data;
    interp::Call call;
  };

  Value* add(DType dtype, ir::Direction direction) {
    Value* v = kernel_.new_value(ir::Type::buffer(ir::MemorySpace::Global, dtype, {n_}),
                                 fmt::format("X{}", kernel_.tensors.size()));
    kernel_.tensors.push_back({.buffer = v, .direction = direction, .guarded = true});
    return v;
  }

  Buffers buffers() const {
    Buffers out;
    for (size_t t = 0; t < kernel_.tensors.size(); ++t) {
      const DType dtype = kernel_.tensors[t].buffer->type.dtype;
      out.data.push_back(t < inputs_.size()
                             ? inputs_[t]
                             : std::vector<std::byte>(static_cast<size_t>(count_ * bytes(dtype)), std::byte{0x5A}));
      out.call.tensors.push_back({.dtype = dtype, .data = nullptr, .shape = {count_}});
    }
    for (size_t t = 0; t < out.data.size(); ++t) out.call.tensors[t].data = out.data[t].data();
    return out;
  }

  /// ", of 1.5 and inf": the inputs of the row named in a difference.
  std::string operands(const std::string& place) const {
    const auto row = static_cast<size_t>(std::strtoll(place.c_str() + 1, nullptr, 10));
    std::string out;
    for (size_t t = 0; t < inputs_.size(); ++t) {
      const DType dtype = kernel_.tensors[t].buffer->type.dtype;
      uint64_t bits = 0;
      std::memcpy(&bits, inputs_[t].data() + row * static_cast<size_t>(bytes(dtype)),
                  static_cast<size_t>(bytes(dtype)));
      double real = 0;
      int64_t integer = 0;
      interp::value_of_bits(dtype, bits, real, integer);
      out += (t ? " and " : ", of ") + (is_float(dtype) ? fmt::format("{:a}", real) : fmt::format("{}", integer));
    }
    return out;
  }

  TableResult failed(TableResult result, const Diagnostic& why) const {
    result.wrong = 1;
    result.first = render(why);
    return result;
  }

  std::string name_;
  ir::Kernel kernel_;
  ir::Builder b_{kernel_};
  Index n_;
  int64_t count_ = 0;
  std::vector<std::vector<std::byte>> inputs_;

 public:
  ir::Builder& builder() { return b_; }
};

std::vector<uint64_t> all_codes(DType dtype) {
  std::vector<uint64_t> out;
  const int width = dtype == DType::Bool ? 1 : bits(dtype);
  for (uint64_t v = 0; v < uint64_t{1} << width; ++v) out.push_back(v);
  return out;
}

/// Reals at which some conversion changes its mind: every narrow value, the midpoints above, and integer limits.
std::set<double> hard_reals() {
  std::set<double> out = {0.0, 0.5, 1.0, 1.5, 2.5, 1e-40, 1e-310, 3.4028234e38, 3.4028236e38, 1e300, 65519, 65520};
  for (const DType narrow : {DType::F16, DType::BF16, DType::E4M3, DType::E5M2}) {
    double before = 0;
    for (const uint64_t code : all_codes(narrow)) {
      double v = 0;
      int64_t none = 0;
      interp::value_of_bits(narrow, code, v, none);
      if ((bits(narrow) == 16 && code % 7 != 0) || std::isnan(v) || std::isinf(v) || v < 0) continue;
      out.insert(v), out.insert((v + before) / 2);
      before = v;
    }
  }
  for (int e = 0; e <= 64; ++e) {
    for (const double d : {-1.0, -0.5, 0.0, 0.5, 1.0}) out.insert(std::ldexp(1.0, e) + d);
  }
  return out;
}

std::vector<uint64_t> hard_codes(DType dtype) {
  if (bits(dtype) <= 16) return all_codes(dtype);
  std::vector<uint64_t> out;
  if (is_float(dtype)) {
    for (const double v : hard_reals()) {
      const uint64_t code = interp::bits_of(dtype, v, 0), sign = uint64_t{1} << (bits(dtype) - 1);
      for (const uint64_t c : {code, code + 1, code - (code != 0)}) out.push_back(c), out.push_back(c | sign);
    }
    for (const double v : {std::nan(""), double{INFINITY}, -double{INFINITY}})
      out.push_back(interp::bits_of(dtype, v, 0));
    return out;
  }
  for (int e = 0; e < bits(dtype); ++e) {
    for (int64_t d = -3; d <= 3; ++d) {
      const auto v = static_cast<int64_t>((uint64_t{1} << e) + static_cast<uint64_t>(d));
      out.push_back(interp::bits_of(dtype, 0, v)), out.push_back(interp::bits_of(dtype, 0, ir::wrapping_mul(v, -1)));
    }
    // Halfway between two bf16 (8 bits), f16 (11), f32 (24) and f64 (53), and one beside it; 3 and 4 are of fp8.
    for (const int kept : {3, 4, 8, 11, 24, 53}) {
      if (e < kept + 1) continue;
      const uint64_t half = (uint64_t{1} << e) + (uint64_t{1} << (e - kept));
      const uint64_t odd = half + (uint64_t{1} << (e - kept + 1));  // a tie that rounds up
      for (const uint64_t v : {half, half + 1, half - 1, odd, odd + 1, odd - 1, uint64_t{0} - half - 1})
        out.push_back(interp::bits_of(dtype, 0, static_cast<int64_t>(v)));
    }
  }
  return out;
}

TableResult conversions_from(DType from, Subject& subject, const Plant& plant) {
  Table table(fmt::format("conversions from {}", name(from)));
  table.input(from, hard_codes(from));
  table.compute([&](const std::vector<Value*>& x, const auto& column) {
    for (const DType to : kAll) {
      column(fmt::format("to_{}", name(to)), to, x[0]);
      // A cast rounds once, from the number itself; a store rounds the f32 it is given.
      if (is_storage_float(to)) column(fmt::format("cast_{}", name(to)), to, table.builder().cast(x[0], to));
    }
  });
  return table.check(subject, plant, interp::Mode::Values);
}

TableResult integer_operations(DType dtype, Subject& subject, const Plant& plant) {
  Table table(fmt::format("operations on pairs of {}", name(dtype)));
  std::vector<uint64_t> x, y;
  for (const uint64_t a : all_codes(dtype)) {
    for (const uint64_t b : all_codes(dtype)) x.push_back(a), y.push_back(b);
  }
  table.input(dtype, x), table.input(dtype, y);
  ir::Builder& b = table.builder();
  table.compute([&](const std::vector<Value*>& v, const auto& column) {
    for (const BinaryOp op :
         {BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::FloorDiv, BinaryOp::FloorMod, BinaryOp::Min,
          BinaryOp::Max, BinaryOp::And, BinaryOp::Or, BinaryOp::Xor, BinaryOp::Shl, BinaryOp::Shr}) {
      column(std::string(ir::name(op)), dtype, b.binary(op, v[0], v[1]));
    }
    for (const CompareOp op : {CompareOp::Lt, CompareOp::Le, CompareOp::Eq}) {
      column(std::string(ir::name(op)), DType::Bool, b.compare(op, v[0], v[1]));
    }
    for (const UnaryOp op : {UnaryOp::Neg, UnaryOp::Abs, UnaryOp::Not})
      column(std::string(ir::name(op)), dtype, b.unary(op, v[0]));
  });
  return table.check(subject, plant, interp::Mode::Values);
}

std::vector<double> special_reals(DType dtype) {
  const double largest = largest_finite(dtype);
  std::vector<double> out = {0.0, -0.0, std::nan(""), INFINITY, -INFINITY, largest, -largest};
  for (const double v :
       {1.0, 0.5, 1.5, 2.5, 3.0, 0.1, 1e-3, 10.0, 88.0, 100.0, 710.0, 1e5, 1e30, 1e-30, 1e-38, 1e-44}) {
    out.push_back(v), out.push_back(-v);
  }
  return out;
}

TableResult float_operations(DType dtype, Subject& subject, const Plant& plant) {
  Table table(fmt::format("operations on special {}", name(dtype)));
  std::vector<uint64_t> x, y;
  for (const double a : special_reals(dtype)) {
    for (const double b : special_reals(dtype)) {
      x.push_back(interp::bits_of(dtype, a, 0)), y.push_back(interp::bits_of(dtype, b, 0));
    }
  }
  table.input(dtype, x), table.input(dtype, y);
  ir::Builder& b = table.builder();
  table.compute([&](const std::vector<Value*>& v, const auto& column) {
    for (const BinaryOp op :
         {BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Div, BinaryOp::Min, BinaryOp::Max}) {
      column(std::string(ir::name(op)), dtype, b.binary(op, v[0], v[1]));
    }
    for (const CompareOp op :
         {CompareOp::Lt, CompareOp::Le, CompareOp::Gt, CompareOp::Ge, CompareOp::Eq, CompareOp::Ne}) {
      column(std::string(ir::name(op)), DType::Bool, b.compare(op, v[0], v[1]));
    }
    for (const UnaryOp op :
         {UnaryOp::Neg, UnaryOp::Abs, UnaryOp::Floor, UnaryOp::Ceil, UnaryOp::Round, UnaryOp::Sqrt}) {
      column(std::string(ir::name(op)), dtype, b.unary(op, v[0]));
    }
    column("isnan", DType::Bool, b.unary(UnaryOp::IsNan, v[0]));
  });
  return table.check(subject, plant, interp::Mode::Values);
}

TableResult functions(DType dtype, Subject& subject, const Plant& plant) {
  Table table(fmt::format("functions of special {}", name(dtype)));
  std::vector<uint64_t> x;
  for (const double a : special_reals(dtype)) x.push_back(interp::bits_of(dtype, a, 0));
  for (int i = -4000; i <= 4000; ++i) x.push_back(interp::bits_of(dtype, i * 0.037, 0));
  table.input(dtype, x);
  ir::Builder& b = table.builder();
  table.compute([&](const std::vector<Value*>& v, const auto& column) {
    for (const UnaryOp op : {UnaryOp::Exp, UnaryOp::Exp2, UnaryOp::Log, UnaryOp::Log2, UnaryOp::Tanh, UnaryOp::Erf,
                             UnaryOp::Sigmoid, UnaryOp::Rsqrt, UnaryOp::Sqrt, UnaryOp::Sin, UnaryOp::Cos}) {
      column(std::string(ir::name(op)), dtype, b.unary(op, v[0]));
    }
    for (const double p : {0.0, 0.5, 2.0, -1.0, 3.0}) {
      column(fmt::format("pow_{}", p), dtype, b.binary(BinaryOp::Pow, v[0], b.real(dtype, p)));
    }
  });
  return table.check(subject, plant, interp::Mode::Bounded);
}

}  // namespace

std::vector<TableResult> run_conversion_tables(Subject& subject, const Plant& plant) {
  std::vector<TableResult> out;
  for (const DType from : kAll) out.push_back(conversions_from(from, subject, plant));
  return out;
}

std::vector<TableResult> run_tables(Subject& subject, const Plant& plant) {
  std::vector<TableResult> out = run_conversion_tables(subject, plant);
  for (const DType d : {DType::I8, DType::U8}) out.push_back(integer_operations(d, subject, plant));
  for (const DType d : {DType::F32, DType::F64}) {
    out.push_back(float_operations(d, subject, plant));
    out.push_back(functions(d, subject, plant));
  }
  return out;
}

}  // namespace tilewright::fuzz
