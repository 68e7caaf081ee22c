#include "adapters/rival/product_contract.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace tilewright::adapters {
namespace {

using Json = nlohmann::json;

bool read_epilogue(std::string text, Product& product) {
  if (text.starts_with("bias")) {
    product.bias = true;
    text.erase(0, text.size() > 4 ? 5 : 4);
  }
  if (text == "relu") product.activation = Activation::Relu;
  if (text == "gelu") product.activation = Activation::Gelu;
  if (text == "silu") product.activation = Activation::Silu;
  return text.empty() || product.activation != Activation::None;
}

template <typename Real>
void activate(Activation activation, const Real* bias, Real* c, int64_t rows, int64_t n) {
  if (!bias && activation == Activation::None) return;
  for (int64_t i = 0; i < rows; ++i, c += n) {
    for (int64_t j = 0; j < n; ++j) {
      const Real x = bias ? c[j] + bias[j] : c[j];
      switch (activation) {
        case Activation::None: c[j] = x; break;
        case Activation::Relu: c[j] = x < 0 ? Real(0) : x; break;
        case Activation::Gelu: c[j] = Real(0.5) * x * std::erfc(-x * Real(0.70710678118654752440)); break;
        case Activation::Silu: c[j] = x / (1 + std::exp(-x)); break;
      }
    }
  }
}

}  // namespace

Status needs_cpu(const candidate::OpenOptions& options, const std::string& who) {
  if (options.device == "cpu") return {};
  return fail(DiagnosticCode::E3204, fmt::format("{} computes on the CPU, not on {}", who, options.device),
              "use --device cpu");
}

Result<Product> parse_product(const candidate::ContractText& contract, const std::string& who) {
  const Json json = Json::parse(contract.json, nullptr, /*allow_exceptions=*/false);
  const std::string op = json.is_object() ? json.value("op", "") : "";
  const std::string variant = json.is_object() ? json.value("variant", "") : "";
  const auto refused = [&] {
    return fail(DiagnosticCode::E3201, fmt::format("{} does gemm and gemv, the contract asks for '{}'", who, op));
  };
  if ((op != "gemm" && op != "gemv") || !json["dims"].is_object() || !json["dtypes"].is_object()) return refused();
  const Json& dims = json["dims"];
  Product product;
  product.batch = dims.value("B", int64_t{1});
  product.m = dims.value("M", int64_t{0});
  product.n = op == "gemv" ? 1 : dims.value("N", int64_t{0});
  product.k = dims.value("K", int64_t{0});
  product.transpose_a = variant.starts_with('t');
  product.transpose_b = op == "gemm" && variant.ends_with('t');
  const auto dtype = [&](const char* which) { return parse_dtype(json["dtypes"].value(which, "")); };
  const auto in = dtype("in"), acc = dtype("acc"), out = dtype("out");
  if (!in || !acc || !out || !read_epilogue(json.value("epilogue", ""), product)) return refused();
  product.in = *in;
  product.acc = *acc;
  product.out = *out;
  return product;
}

void apply_epilogue(Activation activation, const float* bias, float* c, int64_t rows, int64_t n) {
  activate(activation, bias, c, rows, n);
}
void apply_epilogue(Activation activation, const double* bias, double* c, int64_t rows, int64_t n) {
  activate(activation, bias, c, rows, n);
}

}  // namespace tilewright::adapters
