#include "ir/real_math.h"

#include <cmath>

namespace tilewright::ir {

double evaluate(UnaryOp op, double x) {
  switch (op) {
    case UnaryOp::Neg: return -x;
    case UnaryOp::Abs: return std::fabs(x);
    case UnaryOp::Exp: return std::exp(x);
    case UnaryOp::Exp2: return std::exp2(x);
    case UnaryOp::Log: return std::log(x);
    case UnaryOp::Log2: return std::log2(x);
    case UnaryOp::Tanh: return std::tanh(x);
    case UnaryOp::Erf: return std::erf(x);
    case UnaryOp::Sigmoid: return 1 / (1 + std::exp(-x));
    case UnaryOp::Rsqrt: return 1 / std::sqrt(x);
    case UnaryOp::Sqrt: return std::sqrt(x);
    case UnaryOp::Sin: return std::sin(x);
    case UnaryOp::Cos: return std::cos(x);
    case UnaryOp::Floor: return std::floor(x);
    case UnaryOp::Ceil: return std::ceil(x);
    case UnaryOp::Round: return std::nearbyint(x);
    case UnaryOp::IsNan: return std::isnan(x);
    case UnaryOp::Not:
    case UnaryOp::Bitcast: return x;
  }
  return x;
}

double evaluate(BinaryOp op, double x, double y) {
  switch (op) {
    case BinaryOp::Add: return x + y;
    case BinaryOp::Sub: return x - y;
    case BinaryOp::Mul: return x * y;
    case BinaryOp::Div: return x / y;
    case BinaryOp::FloorDiv: return std::floor(x / y);
    case BinaryOp::FloorMod: return x - std::floor(x / y) * y;
    case BinaryOp::Min: return min_or_nan(x, y);
    case BinaryOp::Max: return max_or_nan(x, y);
    case BinaryOp::Pow: return std::pow(x, y);
    case BinaryOp::And:
    case BinaryOp::Or:
    case BinaryOp::Xor:
    case BinaryOp::Shl:
    case BinaryOp::Shr: return std::nan("");
  }
  return x;
}

bool evaluate(CompareOp op, double x, double y) {
  switch (op) {
    case CompareOp::Eq: return x == y;
    case CompareOp::Ne: return x != y;
    case CompareOp::Lt: return x < y;
    case CompareOp::Le: return x <= y;
    case CompareOp::Gt: return x > y;
    case CompareOp::Ge: return x >= y;
  }
  return false;
}

}  // namespace tilewright::ir
