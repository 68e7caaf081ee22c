#include "adapters/rival/blas.h"

#include <fmt/format.h>

#include <cstdlib>
#include <vector>

namespace tilewright::adapters {
namespace {

// CBLAS's enumerators.
constexpr int kRowMajor = 101, kNoTranspose = 111, kTranspose = 112;

std::vector<std::string> places(BlasKind kind, const std::string& python) {
  if (kind == BlasKind::Blis) return {"libblis.so.4", "libblis.so"};
  std::vector<std::string> paths;
  for (const std::string& folder : python_folders(python)) {
    paths.push_back(folder + "/scipy_openblas32/lib/libscipy_openblas.so");
  }
  paths.insert(paths.end(), {"libopenblas.so.0", "libopenblas.so"});
  return paths;
}

const char* how_to_install(BlasKind kind) {
  return kind == BlasKind::OpenBlas ? "pip install scipy-openblas32, or apt-get install libopenblas0-pthread"
                                    : "apt-get install libblis4-pthread";
}

int transpose(bool yes) { return yes ? kTranspose : kNoTranspose; }

}  // namespace

bool Blas::resolve(const std::string& prefix) {
  sgemm_ = library_.find<Gemm>(prefix + "cblas_sgemm");
  dgemm_ = library_.find<DGemm>(prefix + "cblas_dgemm");
  sgemv_ = library_.find<Gemv>(prefix + "cblas_sgemv");
  prefix_ = prefix;
  return sgemm_ && dgemm_ && sgemv_;
}

Result<std::shared_ptr<const Blas>> Blas::open(BlasKind kind, const std::string& path, const std::string& python) {
  // Set in some environments for old builds: it would pin a slow kernel and make every comparison flattering.
  if (kind == BlasKind::OpenBlas) ::unsetenv("OPENBLAS_CORETYPE");
  std::string tried;
  for (const std::string& place : path.empty() ? places(kind, python) : std::vector<std::string>{path}) {
    auto library = SharedObject::open(place);
    if (!library) {
      tried += (tried.empty() ? "" : ", ") + place;
      continue;
    }
    const std::shared_ptr<Blas> blas(new Blas(kind, *std::move(library)));
    if (blas->resolve("") || blas->resolve("scipy_")) return blas;
    tried += (tried.empty() ? "" : ", ") + place + " (no cblas_sgemm)";
  }
  const char* name = kind == BlasKind::OpenBlas ? "OpenBLAS" : "BLIS";
  return fail(DiagnosticCode::E3204, fmt::format("{} is not installed; tried {}", name, tried), how_to_install(kind));
}

void Blas::multiply(const BlasProduct<float>& p) const {
  if (p.m == 0 || p.n == 0) return;
  sgemm_(kRowMajor, transpose(p.transpose_a), transpose(p.transpose_b), static_cast<int>(p.m), static_cast<int>(p.n),
         static_cast<int>(p.k), 1.0f, p.a, static_cast<int>(p.lda), p.b, static_cast<int>(p.ldb), p.beta, p.c,
         static_cast<int>(p.ldc));
}

void Blas::multiply(const BlasProduct<double>& p) const {
  if (p.m == 0 || p.n == 0) return;
  dgemm_(kRowMajor, transpose(p.transpose_a), transpose(p.transpose_b), static_cast<int>(p.m), static_cast<int>(p.n),
         static_cast<int>(p.k), 1.0, p.a, static_cast<int>(p.lda), p.b, static_cast<int>(p.ldb), p.beta, p.c,
         static_cast<int>(p.ldc));
}

void Blas::multiply_vector(bool transposed, int64_t m, int64_t k, const float* a, const float* x, float* y) const {
  const int64_t rows = transposed ? k : m, columns = transposed ? m : k;
  sgemv_(kRowMajor, transpose(transposed), static_cast<int>(rows), static_cast<int>(columns), 1.0f, a,
         static_cast<int>(columns), x, 1, 0.0f, y, 1);
}

void Blas::set_threads(int threads) const {
  const std::string name =
      kind_ == BlasKind::OpenBlas ? prefix_ + "openblas_set_num_threads" : "bli_thread_set_num_threads";
  // BLIS takes a dim_t, which is 64 bits wide; on x86-64 an int argument is widened by the callee's register either
  // way.
  if (kind_ == BlasKind::OpenBlas) {
    if (auto* set = library_.find<void(int)>(name)) set(threads);
  } else if (auto* set = library_.find<void(int64_t)>(name)) {
    set(threads);
  }
}

std::string Blas::version() const {
  if (kind_ == BlasKind::Blis) {
    auto* const text = library_.find<const char*()>("bli_info_get_version_str");
    auto* const query = library_.find<int()>("bli_arch_query_id");
    auto* const kernel = library_.find<const char*(int)>("bli_arch_string");
    return fmt::format("{} {}", text ? text() : "?", query && kernel ? kernel(query()) : "?");
  }
  auto* const config = library_.find<const char*()>(prefix_ + "openblas_get_config");
  auto* const core = library_.find<const char*()>(prefix_ + "openblas_get_corename");
  std::string text = config ? config() : "?";  // "OpenBLAS 0.3.34 … DYNAMIC_ARCH …"
  const size_t start = text.find("OpenBLAS ");
  if (start != std::string::npos) text = text.substr(start + 9, text.find(' ', start + 9) - start - 9);
  return fmt::format("{} {}", text, core ? core() : "?");
}

}  // namespace tilewright::adapters
