#include "ir/thread_program.h"

#include <fmt/format.h>

namespace tilewright::ir::thread {
namespace {

struct OpRow {
  std::string_view mnemonic;
  OpClass kind;
};
constexpr OpRow kOps[] = {
#define TW_THREAD_OP(name, mnemonic, kind, sentence) {mnemonic, OpClass::kind},
#include "ir/thread.def"
#undef TW_THREAD_OP
};

struct ScalarRow {
  std::string_view suffix;
  int bytes;
  Width width;
};
constexpr ScalarRow kScalars[] = {
    {"pred", 0, Width::Pred}, {"b8", 1, Width::W16},     {"b16", 2, Width::W16},    {"b32", 4, Width::W32},
    {"b64", 8, Width::W64},   {"u8", 1, Width::W16},     {"u16", 2, Width::W16},    {"u32", 4, Width::W32},
    {"u64", 8, Width::W64},   {"s8", 1, Width::W16},     {"s16", 2, Width::W16},    {"s32", 4, Width::W32},
    {"s64", 8, Width::W64},   {"f16", 2, Width::W16},    {"bf16", 2, Width::W16},   {"f32", 4, Width::W32},
    {"f64", 8, Width::W64},   {"e4m3", 1, Width::W16},   {"e5m2", 1, Width::W16},   {"tf32", 4, Width::W32},
    {"f16x2", 4, Width::W32}, {"bf16x2", 4, Width::W32}, {"e4m3x2", 2, Width::W16}, {"e5m2x2", 2, Width::W16}};

std::string value_text(const Value& v) {
  if (!v.is_constant) return fmt::format("{}{}", v.reg.width == Width::Pred ? "%p" : "%r", v.reg.id);
  return fmt::format("{}", v.constant);
}

void print(std::string& out, const std::vector<Inst>& body, int depth) {
  for (const Inst& inst : body) {
    out.append(static_cast<size_t>(depth) * 2, ' ');
    if (inst.guard) out += fmt::format("@{}{} ", inst.guard_not ? "!" : "", value_text(inst.guard));
    for (size_t i = 0; i < inst.out.size(); ++i) out += (i ? ", " : "") + value_text(inst.out[i]);
    if (!inst.out.empty()) out += " = ";
    out += fmt::format("{}.{}", mnemonic(inst.op), suffix(inst.type));
    if (inst.op == Op::Convert) out += fmt::format(".{}", suffix(inst.from));
    if (inst.op == Op::SetP)
      out += fmt::format(".{}", std::array{"eq", "ne", "lt", "le", "gt", "ge"}[int(inst.compare)]);
    for (size_t i = 0; i < inst.in.size(); ++i) out += (i ? ", " : " ") + value_text(inst.in[i]);
    size_t used = inst.attr.size();
    while (used > 0 && inst.attr[used - 1] == 0) --used;
    if (used) {
      out += " {";
      for (size_t i = 0; i < used; ++i) out += fmt::format("{}{}", i ? ", " : "", inst.attr[i]);
      out += "}";
    }
    out += "\n";
    print(out, inst.body, depth + 1);
    if (!inst.orelse.empty()) {
      out.append(static_cast<size_t>(depth) * 2, ' ');
      out += "else\n";
      print(out, inst.orelse, depth + 1);
    }
  }
}

}  // namespace

std::string_view mnemonic(Op op) { return kOps[static_cast<int>(op)].mnemonic; }
OpClass op_class(Op op) { return kOps[static_cast<int>(op)].kind; }
std::string_view suffix(Scalar type) { return kScalars[static_cast<int>(type)].suffix; }
int bytes(Scalar type) { return kScalars[static_cast<int>(type)].bytes; }
Width width(Scalar type) { return kScalars[static_cast<int>(type)].width; }
bool is_float(Scalar type) { return type >= Scalar::F16; }
bool is_signed(Scalar type) { return type >= Scalar::S8 && type <= Scalar::S64; }

std::string to_text(const Program& program) {
  std::string out =
      fmt::format("thread kernel {} threads {} shared {}", program.name, program.threads, program.shared_bytes);
  if (program.cluster > 1) out += fmt::format(" cluster {}", program.cluster);
  out += " (";
  for (size_t i = 0; i < program.params.size(); ++i) {
    constexpr std::string_view kinds[] = {"pointer", "i32", "i64", "f32", "f64", "tensor_map"};
    out +=
        fmt::format("{}{}: {}", i ? ", " : "", program.params[i].name, kinds[static_cast<int>(program.params[i].kind)]);
  }
  out += ")\n";
  print(out, program.body, 1);
  return out;
}

}  // namespace tilewright::ir::thread
