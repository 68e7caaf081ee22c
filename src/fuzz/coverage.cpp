#include "fuzz/coverage.h"

#include <fmt/format.h>

#include <array>

namespace tilewright::fuzz {
namespace {

constexpr std::array kColumns = {DType::Bool, DType::I8,  DType::I16, DType::I32,  DType::I64, DType::U8, DType::U16,
                                 DType::U32,  DType::U64, DType::F16, DType::BF16, DType::F32, DType::F64};

std::string text(const char* group, std::string_view name) { return fmt::format("{} {}", group, name); }

/// The row an operation belongs to, and the dtype it works on.
std::pair<std::string, DType> row(const ir::Op& op) {
  const auto dtype_of = [](const ir::View& v) { return v.buffer->type.dtype; };
  const auto operand = [&]() { return op.operands.empty() ? DType::I64 : op.operands[0]->type.dtype; };
  switch (op.kind) {
    case ir::OpKind::Unary: return {text("unary", name(op.as<ir::UnaryAttributes>().op)), operand()};
    case ir::OpKind::Binary: return {text("binary", name(op.as<ir::BinaryAttributes>().op)), operand()};
    case ir::OpKind::Compare: return {text("compare", name(op.as<ir::CompareAttributes>().op)), operand()};
    case ir::OpKind::Cast: return {fmt::format("cast from {}", name(operand())), op.result()->type.dtype};
    case ir::OpKind::Select: return {"select", op.result()->type.dtype};
    case ir::OpKind::Fill: return {"fill", dtype_of(op.as<ir::FillAttributes>().dst)};
    case ir::OpKind::Copy: {
      const auto& a = op.as<ir::CopyAttributes>();
      return {fmt::format("copy from {}", name(dtype_of(a.src))), dtype_of(a.dst)};
    }
    case ir::OpKind::Gemm: {
      const auto& a = op.as<ir::GemmAttributes>();
      return {fmt::format("gemm by {}", name(dtype_of(a.b))), dtype_of(a.a)};
    }
    case ir::OpKind::Reduce: {
      const auto& a = op.as<ir::ReduceAttributes>();
      return {text("reduce", name(a.kind)), dtype_of(a.src)};
    }
    case ir::OpKind::ReduceArg: {
      const auto& a = op.as<ir::ReduceArgAttributes>();
      return {a.is_max ? "reduce argmax" : "reduce argmin", dtype_of(a.src)};
    }
    case ir::OpKind::Scan: {
      const auto& a = op.as<ir::ScanAttributes>();
      return {text("cumulative", name(a.kind)), dtype_of(a.src)};
    }
    case ir::OpKind::Atomic: {
      const auto& a = op.as<ir::AtomicAttributes>();
      return {text("atomic", name(a.kind)), a.buffer->type.dtype};
    }
    case ir::OpKind::Load: return {"load", op.as<ir::AccessAttributes>().buffer->type.dtype};
    case ir::OpKind::Store: return {"store", op.as<ir::AccessAttributes>().buffer->type.dtype};
    default: return {std::string(ir::info(op.kind).mnemonic), op.result() ? op.result()->type.dtype : DType::I64};
  }
}

}  // namespace

void Coverage::add(const ir::Kernel& kernel) {
  std::set<std::pair<std::string, DType>> seen;
  ir::for_each_op(*kernel.body, [&](ir::Op& op) { seen.insert(row(op)); });
  for (const auto& [operation, dtype] : seen) ++counts_[operation][dtype];
}

std::string Coverage::table() const {
  std::string out = fmt::format("{:<20}", "kernels with");
  for (const DType d : kColumns) out += fmt::format("{:>6}", name(d));
  for (const auto& [operation, dtypes] : counts_) {
    out += fmt::format("\n{:<20}", operation);
    for (const DType d : kColumns) {
      const auto found = dtypes.find(d);
      out += found == dtypes.end() ? fmt::format("{:>6}", ".") : fmt::format("{:>6}", found->second);
    }
  }
  return out + "\n";
}

}  // namespace tilewright::fuzz
