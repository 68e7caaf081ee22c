#include "ir/thread_verify.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace tilewright::ir::thread {
namespace {

/// The registers written so far; past an `exit` nothing is read, as if all were.
class Written {
 public:
  explicit Written(size_t registers, bool all = false) : words_((registers + 63) / 64, all ? ~uint64_t{0} : 0) {}
  bool contains(Reg r) const { return words_[r.id / 64] >> (r.id % 64) & 1; }
  void insert(Reg r) { words_[r.id / 64] |= uint64_t{1} << (r.id % 64); }
  void fill() { words_.assign(words_.size(), ~uint64_t{0}); }
  void intersect(const Written& other) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] &= other.words_[i];
  }

 private:
  std::vector<uint64_t> words_;
};

struct Undefined {
  Reg reg;
  const Inst* inst;
};

class Walk {
 public:
  explicit Walk(const Program& program) : registers_(program.register_count), written_(registers_) {}

  void body(const std::vector<Inst>& insts) {
    for (const Inst& inst : insts) one(inst);
  }

 private:
  void read(Reg r, const Inst& inst) const {
    if (r && !written_.contains(r)) throw Undefined{r, &inst};
  }

  void one(const Inst& inst) {
    if (inst.guard) read(inst.guard, inst);
    for (const Value& v : inst.in)
      if (!v.is_constant) read(v.reg, inst);
    if (inst.op == Op::If) return branch(inst);
    if (inst.op == Op::Loop) return loop(inst);
    if (inst.op == Op::BreakIf) at_break_->intersect(written_);
    if ((inst.op == Op::Return || inst.op == Op::Trap) && !inst.guard) written_.fill();
    for (const Reg r : inst.out) written_.insert(r);
  }

  void branch(const Inst& inst) {
    const Written before = written_;
    body(inst.body);
    Written after = before;
    std::swap(after, written_);
    body(inst.orelse);
    written_.intersect(after);
  }

  void loop(const Inst& inst) {
    Written at_break(registers_, true);
    Written* const outer = std::exchange(at_break_, &at_break);
    body(inst.body);
    at_break_ = outer;
    written_ = std::move(at_break);
  }

  size_t registers_;
  Written written_;
  Written* at_break_ = nullptr;  ///< of the innermost loop
};

}  // namespace

Status verify(const Program& program) {
  try {
    Walk(program).body(program.body);
  } catch (const Undefined& u) {
    return fail(DiagnosticCode::E9309,
                fmt::format("{}, line {}: {} reads register r{}, which is not written on every path to it",
                            program.name, u.inst->line, mnemonic(u.inst->op), u.reg.id));
  }
  return {};
}

}  // namespace tilewright::ir::thread
