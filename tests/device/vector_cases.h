// One case per hardware instruction row: a small kernel, its operands (drawn from the case's name), and how its output
// compares. `device_runner vectors` runs them on a GPU and records the outputs; the replay test runs the same kernels
// through the thread interpreter and compares with the recording, so the reference bodies are held to what the hardware
// does.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/narrow_float.h"
#include "base/tensor_map.h"
#include "ir/thread_builder.h"
#include "target/gpu_matrix.h"

namespace tilewright::device_cases {

using namespace ir::thread;

/// How output words compare: bit for bit, or as numbers of `type` within `tolerance` · max(1, |x|) (relative error of
/// an instruction).
struct Comparison {
  Scalar type = Scalar::B32;
  double tolerance = 0;  ///< 0: exact bits
};

struct VectorCase {
  std::string name;
  int architecture = 80;
  Program program;
  std::vector<uint8_t> input;
  size_t output_bytes = 0;
  Comparison comparison;
  bool has_map = false;
  TensorMap map;  ///< address filled by the runner
  bool map_is_output = false;
};

class Random {
 public:
  explicit Random(const std::string& seed) : state_(hash128(seed).low) {}
  uint64_t next() {
    state_ += 0x9e3779b97f4a7c15ull;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  int below(int n) { return static_cast<int>(next() % static_cast<uint64_t>(n)); }
  float real() { return static_cast<float>(static_cast<double>(next() >> 11) * 0x1p-52 - 1.0); }  ///< [-1, 1)

 private:
  uint64_t state_;
};

inline uint64_t encode_number(Scalar type, double x) {
  switch (type) {
    case Scalar::F16: return f16_from(x);
    case Scalar::BF16: return bf16_from(x);
    case Scalar::F32:
    case Scalar::TF32: return std::bit_cast<uint32_t>(static_cast<float>(x));
    case Scalar::F64: return std::bit_cast<uint64_t>(x);
    case Scalar::E4M3: return e4m3_from(x);
    case Scalar::E5M2: return e5m2_from(x);
    case Scalar::U8: return static_cast<uint8_t>(std::fabs(x));
    case Scalar::S8: return static_cast<uint8_t>(static_cast<int8_t>(x));
    default: return static_cast<uint32_t>(static_cast<int32_t>(x));
  }
}

/// `count` numbers of `type`: small integers (every sum is exact), or reals in [-1, 1) rounded to the type.
inline void append_numbers(std::vector<uint8_t>& out, Random& random, Scalar type, size_t count, bool small_integers) {
  for (size_t i = 0; i < count; ++i) {
    double x = small_integers ? random.below(7) - 3 : random.real();
    if (type == Scalar::S8 && !small_integers) x = random.below(256) - 128;
    if (type == Scalar::U8) x = small_integers ? random.below(4) : random.below(256);
    if (type == Scalar::TF32 && !small_integers)
      x = std::bit_cast<float>(std::bit_cast<uint32_t>(static_cast<float>(x)) & 0xffffe000u);
    const uint64_t bits = encode_number(type, x);
    const auto* p = reinterpret_cast<const uint8_t*>(&bits);
    out.insert(out.end(), p, p + bytes(type));
  }
}

/// Builder with `in` and `out` pointers and this thread's index ready.
struct Frame {
  Builder b;
  Reg in, out, thread;
  explicit Frame(const std::string& name, int threads, int shared = 0) : b("k_" + name) {
    b.program().threads = threads;
    b.program().shared_bytes = shared;
    const int p = b.param("in", Param::Kind::Pointer), q = b.param("out", Param::Kind::Pointer);
    in = b.load_param(p);
    out = b.load_param(q);
    thread = b.special(SpecialRegister::ThreadX);
  }
  /// Word `row` of this thread in an array of rows of `threads` words.
  Value address(Value base, Scalar type, int row) {
    const Value offset = b.convert(Scalar::U64, Scalar::U32,
                                   b.mad(Scalar::U32, thread, bytes(type), row * b.program().threads * bytes(type)));
    return b.add(Scalar::U64, base, offset);
  }
  Reg load(Scalar type, int row) { return b.load(type, address(in, type, row), 1, {})[0]; }
  void store(Scalar type, int row, Value v) { b.store(type, address(out, type, row), std::vector<Value>{v}, {}); }
  /// Shared byte address `bytes` past the base.
  Value shared(Value bytes) { return b.add(Scalar::U32, b.special(SpecialRegister::SharedBase), bytes); }
  void barrier() { b.emit(Op::Barrier, {}, {0, 0}); }
  /// Copies `bytes` (a multiple of 4·threads) from `in` to shared memory or from shared memory to `out`.
  void copy_words(bool to_shared, int total_bytes) {
    const int threads = b.program().threads;
    for (int row = 0; row * threads * 4 < total_bytes; ++row) {
      const Value s = shared(b.mad(Scalar::U32, thread, 4, row * threads * 4));
      if (to_shared)
        b.store(Scalar::B32, s, std::vector<Value>{load(Scalar::B32, row)}, {Space::Shared});
      else
        store(Scalar::B32, row, b.load(Scalar::B32, s, 1, {Space::Shared})[0]);
    }
  }
};

inline VectorCase finish(Frame& f, std::string name, size_t output_bytes, Comparison comparison = {}) {
  VectorCase c;
  c.name = std::move(name);
  c.output_bytes = output_bytes;
  c.comparison = comparison;
  c.program = f.b.finish();
  return c;
}

inline Scalar word_of(Scalar type) { return bytes(type) == 8 ? Scalar::B64 : Scalar::B32; }

inline void add_mma(std::vector<VectorCase>& out) {
  for (int i = 0; i < static_cast<int>(target::Mma::count); ++i) {
    const target::MmaRow& r = target::row(static_cast<target::Mma>(i));
    if (r.name.empty()) continue;
    for (const bool integers : {true, false}) {
      const std::string name = fmt::format("mma_{}_{}", r.name, integers ? "exact" : "random");
      Frame f(name, 32);
      std::vector<Value> in;
      int row = 0;
      const Scalar w = word_of(r.a), wc = word_of(r.accumulator);
      for (int k = 0; k < r.a_registers + r.b_registers; ++k) in.push_back(f.load(w, row++));
      for (int k = 0; k < r.c_registers; ++k) in.push_back(f.load(wc, row++));
      std::vector<Reg> d = f.b.regs(r.c_registers, wc);
      f.b.emit(Op::Mma, d, in, {i});
      for (int k = 0; k < r.c_registers; ++k) f.store(wc, k, d[static_cast<size_t>(k)]);
      const bool exact = integers || r.accumulator == Scalar::S32;
      VectorCase c = finish(f, name, static_cast<size_t>(r.c_registers * 32 * bytes(wc)),
                            {r.accumulator, exact                          ? 0
                                            : r.accumulator == Scalar::F64 ? 1e-14
                                                                           : 2e-6});
      Random random(name);
      append_numbers(c.input, random, r.a, static_cast<size_t>(r.a_registers * 32 * bytes(w) / bytes(r.a)), integers);
      append_numbers(c.input, random, r.b, static_cast<size_t>(r.b_registers * 32 * bytes(w) / bytes(r.b)), integers);
      append_numbers(c.input, random, r.accumulator, static_cast<size_t>(r.c_registers * 32), integers);
      out.push_back(std::move(c));
    }
  }
}

inline void add_matrix_rows(std::vector<VectorCase>& out) {
  for (const bool is_load : {true, false})
    for (const int count : {1, 2, 4})
      for (const int transposed : {0, 1}) {
        const std::string name =
            fmt::format("{}_x{}{}", is_load ? "ldmatrix" : "stmatrix", count, transposed ? "_trans" : "");
        Frame f(name, 32, 512);
        f.copy_words(true, 512);
        f.barrier();
        // Rows in scrambled order: lane l addresses row (l·5 + 3) mod 32.
        const Value row = f.b.bit_and(Scalar::U32, f.b.mad(Scalar::U32, f.thread, 5, 3), 31);
        const Value address = f.shared(f.b.mul(Scalar::U32, row, 16));
        if (is_load) {
          std::vector<Reg> d = f.b.regs(count, Scalar::B32);
          f.b.emit(Op::LdMatrix, d, {address}, {count, transposed});
          for (int k = 0; k < count; ++k) f.store(Scalar::B32, k, d[static_cast<size_t>(k)]);
        } else {
          std::vector<Value> in = {address};
          for (int k = 0; k < count; ++k) in.push_back(f.load(Scalar::B32, 4 + k));
          f.b.emit(Op::StMatrix, {}, in, {count, transposed});
          f.barrier();
          f.copy_words(false, 512);
        }
        VectorCase c = finish(f, name, is_load ? static_cast<size_t>(count) * 128 : 512);
        c.architecture = is_load ? 80 : 90;
        Random random(name);
        append_numbers(c.input, random, Scalar::F16, 2048, false);
        out.push_back(std::move(c));
      }
}

struct UnaryCase {
  std::string name;
  Scalar in, out;
  Comparison comparison;
  std::function<Value(Builder&, Value)> body;
  bool any_bits = false;  ///< operands are arbitrary bit patterns, not reals around 1
  int architecture = 80;
};

inline std::vector<UnaryCase> unary_cases() {
  std::vector<UnaryCase> rows;
  const auto convert = [&](Scalar from, Scalar to) {
    rows.push_back({fmt::format("cvt_{}_{}", suffix(from), suffix(to)),
                    from,
                    to,
                    {},
                    [=](Builder& b, Value v) { return b.convert(to, from, v); },
                    true});
  };
  for (const Scalar to : {Scalar::F16, Scalar::BF16, Scalar::S8, Scalar::U8, Scalar::S16, Scalar::U16, Scalar::S32,
                          Scalar::U32, Scalar::S64, Scalar::U64, Scalar::F64, Scalar::TF32})
    convert(Scalar::F32, to);
  for (const Scalar to : {Scalar::F32, Scalar::S32, Scalar::U32, Scalar::S64, Scalar::U64}) convert(Scalar::F64, to);
  for (const Scalar from : {Scalar::S32, Scalar::U32, Scalar::S64, Scalar::U64})
    for (const Scalar to : {Scalar::F32, Scalar::F64}) convert(from, to);
  convert(Scalar::F16, Scalar::F32);
  convert(Scalar::BF16, Scalar::F32);
  const auto pair = [&](Scalar to, int architecture) {
    rows.push_back({fmt::format("pack_{}", suffix(to)),
                    Scalar::F32,
                    bytes(to) == 4 ? Scalar::B32 : Scalar::B16,
                    {},
                    [=](Builder& b, Value v) { return Value(b.pack_pair(to, v, b.unary(Op::Neg, Scalar::F32, v))); },
                    true,
                    architecture});
  };
  pair(Scalar::F16x2, 80);
  pair(Scalar::BF16x2, 80);
  pair(Scalar::E4M3x2, 90);
  pair(Scalar::E5M2x2, 90);
  for (const Scalar from : {Scalar::E4M3x2, Scalar::E5M2x2})
    rows.push_back({fmt::format("unpack_{}", suffix(from)),
                    Scalar::B16,
                    Scalar::B32,
                    {},
                    [=](Builder& b, Value v) {
                      const Reg r = b.reg(Width::W32);
                      b.emit(Op::UnpackPair, {r}, {v}).type = from;
                      return Value(r);
                    },
                    true,
                    90});
  const auto math = [&](std::string_view name, Op op, double tolerance) {
    rows.push_back(
        {fmt::format("{}_f32", name), Scalar::F32, Scalar::F32, {Scalar::F32, tolerance}, [=](Builder& b, Value v) {
           return Value(b.unary(op, Scalar::F32, v));
         }});
  };
  math("ex2", Op::Exp2, 3e-7);
  math("rcp", Op::Rcp, 2e-7);
  math("sqrt", Op::Sqrt, 0);
  math("sin", Op::Sin, 2e-6);
  math("cos", Op::Cos, 2e-6);
  math("neg", Op::Neg, 0);
  math("abs", Op::Abs, 0);
  rows.push_back({"lg2_f32", Scalar::F32, Scalar::F32, {Scalar::F32, 1e-6}, [](Builder& b, Value v) {
                    return Value(b.unary(Op::Log2, Scalar::F32, b.unary(Op::Abs, Scalar::F32, v)));
                  }});
  rows.push_back({"rsqrt_f32", Scalar::F32, Scalar::F32, {Scalar::F32, 3e-7}, [](Builder& b, Value v) {
                    return Value(b.unary(Op::Rsqrt, Scalar::F32, b.unary(Op::Abs, Scalar::F32, v)));
                  }});
  for (int how = 0; how < 4; ++how)
    rows.push_back({fmt::format("round{}_f32", how), Scalar::F32, Scalar::F32, {}, [=](Builder& b, Value v) {
                      return Value(b.unary(Op::Round, Scalar::F32, b.mul(Scalar::F32, v, Value::f32(8)), how));
                    }});
  return rows;
}

inline void add_unary(std::vector<VectorCase>& out) {
  constexpr int kRows = 8;
  for (const UnaryCase& row : unary_cases()) {
    Frame f(row.name, 32);
    for (int k = 0; k < kRows; ++k) f.store(row.out, k, row.body(f.b, f.load(row.in, k)));
    VectorCase c = finish(f, row.name, static_cast<size_t>(kRows * 32 * bytes(row.out)), row.comparison);
    c.architecture = row.architecture;
    Random random(row.name);
    const uint64_t special_f32[] = {0, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 0x3f800000,
                                    1, 0x7f7fffff, 0x47800000, 0x38ffffff, 0x4f000000, 0xcf000000};
    for (int i = 0; i < kRows * 32; ++i) {
      uint64_t bits = random.next();
      if (!row.any_bits)
        bits = std::bit_cast<uint32_t>(random.real() * 3.0f);
      else if (row.in == Scalar::F32 && i < 12)
        bits = special_f32[i];
      else if (row.in == Scalar::F32 && i % 3) {
        const float x = random.real();  // drawn first: the order of operands is the compiler's choice
        bits = std::bit_cast<uint32_t>(x * static_cast<float>(1 << random.below(18)));
      } else if (row.in == Scalar::F64 && i % 3) {
        const double x = random.real();
        bits = std::bit_cast<uint64_t>(x * std::exp2(random.below(70)));
      } else if (row.in == Scalar::B16)
        bits = static_cast<uint64_t>(i & 255) | static_cast<uint64_t>(255 - (i & 255)) << 8;
      const auto* p = reinterpret_cast<const uint8_t*>(&bits);
      c.input.insert(c.input.end(), p, p + bytes(row.in));
    }
    out.push_back(std::move(c));
  }
}

inline void add_binary(std::vector<VectorCase>& out) {
  struct Row {
    std::string name;
    Op op;
    Scalar type;
    double tolerance;
  };
  std::vector<Row> rows;
  for (const Scalar t : {Scalar::S32, Scalar::U32, Scalar::S64, Scalar::U64}) {
    for (const auto& [name, op] : std::vector<std::pair<std::string, Op>>{{"add", Op::Add},
                                                                          {"sub", Op::Sub},
                                                                          {"mul", Op::Mul},
                                                                          {"mulhi", Op::MulHi},
                                                                          {"div", Op::Div},
                                                                          {"rem", Op::Rem},
                                                                          {"min", Op::Min},
                                                                          {"max", Op::Max}})
      rows.push_back({fmt::format("{}_{}", name, suffix(t)), op, t, 0});
  }
  for (const auto& [name, op] : std::vector<std::pair<std::string, Op>>{{"add", Op::Add},
                                                                        {"sub", Op::Sub},
                                                                        {"mul", Op::Mul},
                                                                        {"min", Op::Min},
                                                                        {"max", Op::Max},
                                                                        {"minn", Op::MinNumber},
                                                                        {"maxn", Op::MaxNumber}})
    rows.push_back({fmt::format("{}_f32", name), op, Scalar::F32, 0});
  rows.push_back({"div_f32", Op::Div, Scalar::F32, 3e-7});
  for (const auto& [name, op] :
       std::vector<std::pair<std::string, Op>>{{"add", Op::Add}, {"mul", Op::Mul}, {"div", Op::Div}})
    rows.push_back({fmt::format("{}_f64", name), op, Scalar::F64, 0});
  for (const Row& row : rows) {
    Frame f(row.name, 32);
    for (int k = 0; k < 4; ++k)
      f.store(row.type, k, f.b.binary(row.op, row.type, f.load(row.type, k), f.load(row.type, 4 + k)));
    VectorCase c = finish(f, row.name, static_cast<size_t>(4 * 32 * bytes(row.type)), {row.type, row.tolerance});
    Random random(row.name);
    for (int i = 0; i < 8 * 32; ++i) {
      uint64_t bits = random.next() >> (random.below(4) * 8);
      if (row.type == Scalar::F32)
        bits = i % 32 == 5 && row.tolerance == 0 && row.op >= Op::Min ? 0x7fffffff
                                                                      : std::bit_cast<uint32_t>(random.real() * 100);
      if (row.type == Scalar::F64) bits = std::bit_cast<uint64_t>(static_cast<double>(random.real()) * 1e3);
      if (row.op == Op::Div || row.op == Op::Rem) bits |= 1;
      const auto* p = reinterpret_cast<const uint8_t*>(&bits);
      c.input.insert(c.input.end(), p, p + bytes(row.type));
    }
    out.push_back(std::move(c));
  }
}

inline void add_warp(std::vector<VectorCase>& out) {
  for (int mode = 0; mode < 4; ++mode) {
    const std::string name = fmt::format("shfl_{}", std::array{"bfly", "idx", "up", "down"}[static_cast<size_t>(mode)]);
    Frame f(name, 32);
    int row = 0;
    for (const int by : {1, 2, 7, 16}) {
      const Reg r = f.b.reg(Width::W32);
      f.b.emit(Op::Shuffle, {r}, {f.load(Scalar::B32, 0), by}, {mode});
      f.store(Scalar::B32, row++, r);
    }
    VectorCase c = finish(f, name, 4 * 128);
    Random random(name);
    append_numbers(c.input, random, Scalar::F32, 32, false);
    out.push_back(std::move(c));
  }
  for (int kind = 0; kind < 6; ++kind)
    for (const Scalar type : {Scalar::S32, Scalar::U32}) {
      const std::string name = fmt::format(
          "redux_{}_{}", std::array{"add", "min", "max", "or", "and", "xor"}[static_cast<size_t>(kind)], suffix(type));
      Frame f(name, 32);
      const Reg r = f.b.reg(Width::W32);
      f.b.emit(Op::Redux, {r}, {f.load(Scalar::B32, 0)}, {kind}).type = type;
      f.store(Scalar::B32, 0, r);
      VectorCase c = finish(f, name, 128);
      Random random(name);
      for (int i = 0; i < 128; ++i) c.input.push_back(static_cast<uint8_t>(random.next()));
      out.push_back(std::move(c));
    }
  Frame f("ballot", 32);
  const Reg r = f.b.reg(Width::W32);
  f.b.emit(Op::Ballot, {r}, {f.b.compare(Compare::Lt, Scalar::S32, f.load(Scalar::B32, 0), 0)});
  f.store(Scalar::B32, 0, r);
  VectorCase c = finish(f, "ballot", 128);
  Random random("ballot");
  append_numbers(c.input, random, Scalar::F32, 32, false);
  out.push_back(std::move(c));
}

inline void add_copies(std::vector<VectorCase>& out) {
  for (const int size : {4, 8, 16}) {
    const std::string name = fmt::format("cp_async_{}", size);
    Frame f(name, 32, 512);
    const Value source =
        f.b.add(Scalar::U64, f.in, f.b.convert(Scalar::U64, Scalar::U32, f.b.mul(Scalar::U32, f.thread, size)));
    // Lane l brings l mod (size + 1) bytes, the rest is zero.
    const Value count = f.b.rem(Scalar::U32, f.thread, size + 1);
    f.b.emit(Op::CpAsync, {}, {f.shared(f.b.mul(Scalar::U32, f.thread, size)), source, count}, {size});
    f.b.emit(Op::CpAsyncCommit);
    f.b.emit(Op::CpAsyncWait);
    f.barrier();
    f.copy_words(false, 32 * size);
    VectorCase c = finish(f, name, static_cast<size_t>(32 * size));
    Random random(name);
    append_numbers(c.input, random, Scalar::F16, 512, false);
    out.push_back(std::move(c));
  }
  struct Box {
    const char* name;
    int rank;
    std::array<uint64_t, 5> extent;
    std::array<uint32_t, 5> box;
    std::array<int, 5> at;
  };
  for (int swizzle = 0; swizzle < 4; ++swizzle) {
    const uint32_t inner = static_cast<uint32_t>(swizzle == 0 ? 64 : 8 << swizzle);  // elements of 16 bits
    const Box boxes[] = {{"inside", 2, {200, 40}, {inner, 16}, {64, 8}},
                         {"before", 2, {200, 40}, {inner, 16}, {-8, -3}},
                         {"behind", 2, {200, 40}, {inner, 16}, {184, 32}},
                         {"rank3", 3, {200, 7, 9}, {inner, 4, 4}, {64, 5, -1}},
                         {"rank4", 4, {128, 3, 5, 4}, {inner, 2, 4, 2}, {56, 1, 2, 3}}};
    for (const Box& box : boxes)
      for (const bool is_load : {true, false}) {
        // A store that begins before the tensor is an illegal instruction on the hardware (seen on an H200).
        if (!is_load && (box.at[0] < 0 || box.at[2] < 0)) continue;
        const std::string name =
            fmt::format("tma_{}_{}_b{}", is_load ? "load" : "store", box.name, swizzle == 0 ? 0 : 16 << swizzle);
        uint32_t bytes_in_box = 2;
        for (int i = 0; i < box.rank; ++i) bytes_in_box *= box.box[static_cast<size_t>(i)];
        TensorMap m;
        m.rank = box.rank;
        m.extent = box.extent;
        m.box = box.box;
        m.swizzle = static_cast<Swizzle>(swizzle);
        uint64_t pitch = 2;
        for (int i = 0; i < box.rank; ++i) {
          m.stride[static_cast<size_t>(i)] = pitch;
          pitch = (pitch * box.extent[static_cast<size_t>(i)] + 15) / 16 * 16;
        }
        Frame f(name, 32, static_cast<int>((bytes_in_box + 127) / 128 * 128 + 128));
        const int map = f.b.param("map", Param::Kind::TensorMap);
        const Value barrier = f.shared(f.b.program().shared_bytes - 8);
        const Value leads = f.b.compare(Compare::Eq, Scalar::U32, f.thread, 0);
        if (is_load) {
          f.b.if_then(leads, [&] {
            f.b.emit(Op::MbarrierInit, {}, {barrier, 1});
            f.b.emit(Op::FenceBarrierInit);
          });
          f.barrier();
          f.b.if_then(leads, [&] {
            f.b.emit(Op::MbarrierExpect, {}, {barrier, static_cast<int>(bytes_in_box)});
            std::vector<Value> in = {f.shared(0), f.b.param_address(map), barrier};
            for (int i = 0; i < box.rank; ++i) in.push_back(f.b.in_register(box.at[static_cast<size_t>(i)]));
            f.b.emit(Op::TmaLoad, {}, in);
          });
          f.b.emit(Op::MbarrierWait, {}, {barrier, 0});
          f.copy_words(false, static_cast<int>(bytes_in_box));
        } else {
          f.copy_words(true, static_cast<int>(bytes_in_box));
          f.b.emit(Op::FenceAsync);
          f.barrier();
          f.b.if_then(leads, [&] {
            std::vector<Value> in = {f.shared(0), f.b.param_address(map)};
            for (int i = 0; i < box.rank; ++i) in.push_back(f.b.in_register(box.at[static_cast<size_t>(i)]));
            f.b.emit(Op::TmaStore, {}, in);
            f.b.emit(Op::BulkCommit);
            f.b.emit(Op::BulkWait);
          });
        }
        VectorCase c = finish(f, name, is_load ? bytes_in_box : pitch);
        c.architecture = 90;
        c.has_map = true;
        c.map = m;
        c.map_is_output = !is_load;
        Random random(name);
        append_numbers(c.input, random, Scalar::F16, std::max<size_t>(pitch, bytes_in_box) / 2 + 64, false);
        out.push_back(std::move(c));
      }
  }
  Frame f("bulk_load", 32, 1024 + 128);
  const Value barrier = f.shared(1024);
  const Value leads = f.b.compare(Compare::Eq, Scalar::U32, f.thread, 0);
  f.b.if_then(leads, [&] {
    f.b.emit(Op::MbarrierInit, {}, {barrier, 1});
    f.b.emit(Op::FenceBarrierInit);
    f.b.emit(Op::MbarrierExpect, {}, {barrier, 1024});
    f.b.emit(Op::BulkLoad, {}, {f.shared(0), f.in, 1024, barrier});
  });
  f.barrier();
  f.b.emit(Op::MbarrierWait, {}, {barrier, 0});
  f.copy_words(false, 1024);
  VectorCase c = finish(f, "bulk_load", 1024);
  c.architecture = 90;
  Random random("bulk_load");
  append_numbers(c.input, random, Scalar::F16, 512, false);
  out.push_back(std::move(c));
}

struct WgmmaVariant {
  target::Wgmma row;
  int n;
  bool a_in_registers, a_m_major, b_n_major;
  Swizzle swizzle;
  bool integers;
};

/// Descriptor of an operand of `rows` × k in the canonical layout of `swizzle`, and its bytes.
inline target::MatrixDescriptor canonical(Swizzle swizzle, bool mn_major, int rows, int k_bytes, int k,
                                          uint32_t& size) {
  target::MatrixDescriptor d;
  d.swizzle = swizzle;
  const auto span = static_cast<uint32_t>(swizzle_bytes(swizzle));
  const auto r = static_cast<uint32_t>(rows), s = static_cast<uint32_t>(k);
  if (!mn_major) {
    if (swizzle == Swizzle::None) {
      d.stride = 128;
      d.leading = (r + 7) / 8 * 128;
      size = d.leading * (static_cast<uint32_t>(k_bytes) / 16);
    } else {
      d.stride = 8 * span;
      d.leading = 16;
      size = (r + 7) / 8 * 8 * span;
    }
    return d;
  }
  const uint32_t row_bytes = r * static_cast<uint32_t>(k_bytes) / s;  // bytes along mn
  const uint32_t blocks = (row_bytes + span - 1) / span;
  const uint32_t along_k = 8 * span, along_mn = along_k * ((s + 7) / 8);
  d.leading = swizzle == Swizzle::None ? along_k : along_mn;
  d.stride = swizzle == Swizzle::None ? along_mn : along_k;
  size = along_mn * blocks;
  return d;
}

inline void add_wgmma(std::vector<VectorCase>& out) {
  std::vector<WgmmaVariant> variants;
  for (int i = static_cast<int>(target::Wgmma::k16_bf16); i < static_cast<int>(target::Wgmma::count); ++i) {
    const auto row = static_cast<target::Wgmma>(i);
    for (const bool registers : {false, true})
      for (const Swizzle swizzle : {Swizzle::None, Swizzle::B32, Swizzle::B64, Swizzle::B128}) {
        variants.push_back({row, 24, registers, false, false, swizzle, true});
        if (swizzle == Swizzle::B128) variants.push_back({row, 16, registers, false, false, swizzle, false});
        if (!target::row(row).transposable) continue;
        variants.push_back({row, 64, registers, false, true, swizzle, true});
        if (!registers) {
          variants.push_back({row, 16, registers, true, false, swizzle, true});
          variants.push_back({row, 128, registers, true, true, swizzle, true});
        }
      }
  }
  variants.push_back({target::Wgmma::k16_bf16, 256, false, false, false, Swizzle::B128, true});
  variants.push_back({target::Wgmma::k16_f16, 256, false, false, true, Swizzle::B128, true});
  for (const WgmmaVariant& v : variants) {
    const target::WgmmaRow& r = target::row(v.row);
    constexpr std::string_view swizzles[] = {"none", "b32", "b64", "b128"};
    const std::string name =
        fmt::format("wgmma_{}_n{}_{}{}{}_{}_{}", r.name, v.n, v.a_in_registers ? "r" : "s", v.a_m_major ? "m" : "k",
                    v.b_n_major ? "n" : "k", swizzles[static_cast<int>(v.swizzle)], v.integers ? "exact" : "random");
    uint32_t a_size = 0, b_size = 0;
    const int k_bytes = r.k * bytes(r.a);
    target::MatrixDescriptor a = canonical(v.swizzle, v.a_m_major, 64, k_bytes, r.k, a_size),
                             b = canonical(v.swizzle, v.b_n_major, v.n, k_bytes, r.k, b_size);
    const auto padded = [](uint32_t x) { return (x + 1023) / 1024 * 1024; };
    const uint32_t b_at = padded(a_size), total = b_at + padded(b_size);
    Frame f(name, 128, static_cast<int>(total));
    f.b.program().needs_sm90a = true;
    f.copy_words(true, static_cast<int>(total));
    std::vector<Value> a_values;
    if (v.a_in_registers)
      for (int k = 0; k < 4; ++k) a_values.push_back(f.load(Scalar::B32, static_cast<int>(total / 512) + k));
    std::vector<Reg> d = f.b.regs(v.n / 2, Scalar::B32);
    for (int i = 0; i < v.n / 2; ++i)
      f.b.assign(d[static_cast<size_t>(i)],
                 f.b.load(Scalar::B32, f.address(f.in, Scalar::B32, static_cast<int>(total / 512) + 4 + i), 1, {})[0]);
    f.b.emit(Op::FenceAsync);
    f.barrier();
    const auto descriptor = [&](target::MatrixDescriptor m, uint32_t at) {
      const Value low = f.b.shr(Scalar::U32, f.b.bit_and(Scalar::B32, f.shared(static_cast<int>(at)), 0x3ffff), 4);
      return f.b.bit_or(Scalar::B64, f.b.convert(Scalar::U64, Scalar::U32, low),
                        static_cast<int64_t>(target::encode(m)));
    };
    std::vector<Value> in = {f.b.compare(Compare::Ge, Scalar::U32, f.b.special(SpecialRegister::BlockThreads), 1)};
    if (v.a_in_registers)
      in.insert(in.end(), a_values.begin(), a_values.end());
    else
      in.push_back(f.b.in_register(descriptor(a, 0), Scalar::B64));
    in.push_back(f.b.in_register(descriptor(b, b_at), Scalar::B64));
    f.b.emit(Op::WgmmaFence);
    f.b.emit(Op::Wgmma, d, in, {static_cast<int>(v.row), v.n, v.a_in_registers, v.a_m_major, v.b_n_major});
    f.b.emit(Op::WgmmaCommit);
    f.b.emit(Op::WgmmaWait);
    for (int i = 0; i < v.n / 2; ++i) f.store(Scalar::B32, i, d[static_cast<size_t>(i)]);
    const bool exact = v.integers || r.accumulator == Scalar::S32;
    // fp8 sums keep about 14 bits below the largest term.
    VectorCase c = finish(f, name, static_cast<size_t>(v.n / 2 * 512),
                          {r.accumulator, exact             ? 0
                                          : bytes(r.a) == 1 ? 2e-3
                                                            : 2e-5});
    c.architecture = 90;
    Random random(name);
    append_numbers(c.input, random, r.a, b_at / static_cast<uint32_t>(bytes(r.a)), v.integers);
    append_numbers(c.input, random, r.b, (total - b_at) / static_cast<uint32_t>(bytes(r.b)), v.integers);
    append_numbers(c.input, random, r.a, static_cast<size_t>(4 * 512 / bytes(r.a)), v.integers);
    append_numbers(c.input, random, r.accumulator, static_cast<size_t>(v.n / 2 * 128), v.integers);
    out.push_back(std::move(c));
  }
}

inline std::vector<VectorCase> vector_cases() {
  std::vector<VectorCase> out;
  add_mma(out);
  add_matrix_rows(out);
  add_unary(out);
  add_binary(out);
  add_warp(out);
  add_copies(out);
  add_wgmma(out);
  return out;
}

/// Empty, or the first difference between two outputs.
inline std::string difference(const VectorCase& c, const std::vector<uint8_t>& expected,
                              const std::vector<uint8_t>& got) {
  const auto size = static_cast<size_t>(c.comparison.tolerance > 0 ? bytes(c.comparison.type) : 1);
  for (size_t i = 0; i + size <= expected.size(); i += size) {
    if (std::memcmp(&expected[i], &got[i], size) == 0) continue;
    if (c.comparison.tolerance == 0)
      return fmt::format("{}: byte {} is {:02x}, expected {:02x}", c.name, i, got[i], expected[i]);
    double x = 0, y = 0;
    if (size == 4) {
      float a, b;
      std::memcpy(&a, &expected[i], 4);
      std::memcpy(&b, &got[i], 4);
      x = a, y = b;
    } else {
      std::memcpy(&x, &expected[i], 8);
      std::memcpy(&y, &got[i], 8);
    }
    if (!(std::fabs(x - y) <= c.comparison.tolerance * std::max(1.0, std::fabs(x))))
      return fmt::format("{}: word {} is {}, expected {}", c.name, i / size, y, x);
  }
  return {};
}

}  // namespace tilewright::device_cases
