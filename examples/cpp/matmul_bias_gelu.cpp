// gelu(A · B + bias) written in C++: compiled here, run on the data of std::vectors, compared with plain loops.
//
//   ./matmul_bias_gelu                                      compiles, runs, compares
//   ./matmul_bias_gelu --text                               prints the kernel as a .tile file
//   ./matmul_bias_gelu --text | tilewright run - --check    … for every command on such a file
#include <tilewright/compiler.h>
#include <tilewright/kernel.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace {

using namespace tilewright::kernel;

/// A `fn` of the language: a C++ function that is inlined where it is called.
Value gelu(const Value& x) { return 0.5 * x * (1.0 + erf(x * 0.70710678118654752)); }

std::string matmul_bias_gelu(int block_M, int block_N, int block_K) {
  KernelBuilder k("matmul_bias_gelu");
  k.doc("C = gelu(A · B + bias)");
  const Index M = k.dim("M"), N = k.dim("N"), K = k.dim("K");
  const Tile A = k.input("A", DType::F32, {M, K}), B = k.input("B", DType::F32, {K, N});
  const Tile bias = k.input("bias", DType::F32, {N});
  const Tile C = k.output("C", DType::F32, {M, N});
  k.example({{M, 300}, {N, 500}, {K, 200}});
  k.reference("epilogue(matmul(A, B), bias, gelu = true)");
  k.grid({ceildiv(N, block_N), ceildiv(M, block_M)}, threads(128), [&](Index bx, Index by) {
    const Tile A_s = shared(DType::F32, {block_M, block_K}), B_s = shared(DType::F32, {block_K, block_N});
    const Tile acc = fragment(DType::F32, {block_M, block_N}), b = fragment(DType::F32, {block_N});
    clear(acc);
    pipelined(ceildiv(K, block_K), 3, [&](Index step) {
      copy(A[{at(by * block_M, block_M), at(step * block_K, block_K)}], A_s);
      copy(B[{at(step * block_K, block_K), at(bx * block_N, block_N)}], B_s);
      gemm(A_s, B_s, acc);
    });
    copy(bias[{at(bx * block_N, block_N)}], b);
    acc.all() += b[{repeat(), whole()}];
    acc.all() = gelu(acc);
    copy(acc, C[{at(by * block_M, block_M), at(bx * block_N, block_N)}]);
  });
  return k.text();
}

/// The largest |difference| from a computation in double.
double largest_error(const std::vector<float>& a, const std::vector<float>& b, const std::vector<float>& bias,
                     const std::vector<float>& c) {
  const std::size_t n = bias.size(), m = c.size() / n, inner = a.size() / m;
  double worst = 0;
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      double sum = bias[j];
      for (std::size_t k = 0; k < inner; ++k) sum += static_cast<double>(a[i * inner + k]) * b[k * n + j];
      const double want = 0.5 * sum * (1 + std::erf(sum / std::sqrt(2.0)));
      const double error = std::abs(c[i * n + j] - want);
      worst = std::isnan(error) ? HUGE_VAL : std::max(worst, error);
    }
  }
  return worst;
}

/// Numbers in [-1, 1), the same in every run.
std::vector<float> numbers(std::size_t count, unsigned seed) {
  std::vector<float> out(count);
  for (float& x : out) x = static_cast<float>((seed = seed * 1664525u + 1013904223u) >> 8) / (1 << 23) - 1;
  return out;
}

int fail(const tilewright::Status& status) {
  std::fprintf(stderr, "%.*s\n", static_cast<int>(status.message().size()), status.message().data());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string text = matmul_bias_gelu(64, 128, 64);
  if (argc > 1 && std::strcmp(argv[1], "--text") == 0) return std::fputs(text.c_str(), stdout) < 0;

  const auto device = tilewright::Device::open("cpu");
  if (!device) return fail(device.error());
  const auto compiler = tilewright::Compiler::open();
  if (!compiler) return fail(compiler.error());
  tilewright::CompiledKernel kernel(*device, *compiler, {text, "matmul_bias_gelu"});

  const std::int64_t m = 301, n = 203, k = 117;  // any sizes: nothing has to divide the tiles
  const std::vector<float> a = numbers(m * k, 1), b = numbers(k * n, 2), bias = numbers(n, 3);
  std::vector<float> c(m * n);
  const tilewright::Status ran =
      kernel.run({{a.data(), {m, k}}, {b.data(), {k, n}}, {bias.data(), {n}}, {c.data(), {m, n}}});
  if (!ran) return fail(ran);
  const double worst = largest_error(a, b, bias, c);
  std::printf("matmul_bias_gelu %d x %d x %d: largest error %.1e\n", static_cast<int>(m), static_cast<int>(n),
              static_cast<int>(k), worst);
  return worst < 1e-4 ? 0 : 1;
}
