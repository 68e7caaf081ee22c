// assert and print: what a kernel leaves in the device's report buffer (runtime/report_layout.h).
#include <fmt/format.h>

#include "plan/gpu/lowering.h"
#include "runtime/report_layout.h"

namespace tilewright::plan::gpu {

namespace report = runtime::report;
using ir::OpKind;
using ir::thread::AtomicKind;
using ir::thread::Op;
using ir::thread::SpecialRegister;

namespace {

bool has_assert(const ir::Region& region) {
  bool found = false;
  ir::for_each_op(region, [&](ir::Op& op) { found |= op.kind == OpKind::Assert; });
  return found;
}

}  // namespace

bool reports_something(const ir::Kernel& kernel) {
  bool found = false;
  ir::for_each_op(*kernel.body, [&](ir::Op& op) { found |= op.kind == OpKind::Assert || op.kind == OpKind::Print; });
  return found;
}

/// A flag in shared memory that any thread raises: iterations fail one by one, a block ends as a whole.
void Lowering::prepare_reports() {
  bool needed = false;
  for (const ir::Op* op : ops_) needed |= op->kind == OpKind::Parallel && has_assert(*op->regions[0]);
  if (!needed) return;
  failed_flag_ = reserve_shared(16, 16, grid_.location);
}
void Lowering::clear_failed_flag() {
  if (failed_flag_ < 0) return;
  b_.if_then(b_.compare(Compare::Eq, Scalar::U32, thread_, 0), [&] {
    b_.store(Scalar::B32, b_.add(Scalar::U32, shared_base_, failed_flag_), std::vector<Operand>{b_.in_register(0)},
             {Space::Shared});
  });
  b_.emit(Op::Barrier, {}, {barrier_, threads_});
}

/// After a `parallel` with assertions: every thread leaves when one iteration failed.
void Lowering::end_if_failed(const ir::Op& parallel) {
  if (failed_flag_ < 0 || !has_assert(*parallel.regions[0])) return;
  barrier();
  const Operand address = b_.add(Scalar::U32, shared_base_, failed_flag_);
  const Reg flag = b_.load(Scalar::B32, address, 1, {Space::Shared})[0];
  b_.if_then(b_.compare(Compare::Ne, Scalar::S32, flag, 0), [&] { b_.emit(Op::Return); });
}

Operand Lowering::report_address() { return b_.load_param(first_slot_param_ - 2); }

/// The id the device knows this kernel's message by.
Operand Lowering::message_id(int id) {
  return b_.add(Scalar::S32, b_.convert(Scalar::S32, Scalar::S64, b_.load_param(first_slot_param_ - 1)), id);
}

Operand Lowering::block_number() {
  const auto wide = [&](SpecialRegister r) { return b_.convert(Scalar::S64, Scalar::U32, b_.special(r)); };
  const Operand rows =
      b_.mad(Scalar::S64, wide(SpecialRegister::BlockZ), wide(SpecialRegister::GridY), wide(SpecialRegister::BlockY));
  return b_.mad(Scalar::S64, rows, wide(SpecialRegister::GridX), wide(SpecialRegister::BlockX));
}

/// The record belongs to the first that claims it.
void Lowering::write_record(int id) {
  const Operand base = report_address();
  const Reg old = b_.reg(Width::W32);
  b_.emit(Op::Atomic, {old}, {base, b_.in_register(1)},
          {report::kClaimed, static_cast<int>(Space::Global), static_cast<int>(AtomicKind::Exchange)})
      .type = Scalar::U32;
  b_.if_then(b_.compare(Compare::Eq, Scalar::S32, old, 0), [&] {
    std::vector<Operand> indices;
    if (parallel_)
      for (const ir::Value* v : parallel_->regions[0]->arguments)
        indices.push_back(index_.in_64_bits(index_.value(tile_.indices().symbol(v))));
    if (indices.size() > report::kMostIndices) indices.resize(report::kMostIndices);
    const auto put = [&](Scalar type, int at, Operand x) {
      b_.store(type, base, std::vector<Operand>{b_.in_register(x, type)}, {Space::Global, report::kRecord + at});
    };
    put(Scalar::B32, 0, message_id(id));
    put(Scalar::B32, 4, static_cast<int64_t>(indices.size()));
    put(Scalar::B64, 8, block_number());
    for (size_t i = 0; i < indices.size(); ++i) put(Scalar::B64, 16 + 8 * static_cast<int>(i), indices[i]);
  });
}

void Lowering::assertion(const ir::Op& o) {
  const int id = o.as<ir::TextAttributes>().id;
  const Operand holds = operand(o.operands[0]);
  if (holds.is(1)) return;
  if (!parallel_) {  // uniform over the block
    b_.if_then(b_.logical_not(holds), [&] {
      b_.if_then(b_.compare(Compare::Eq, Scalar::U32, thread_, 0), [&] { write_record(id); });
      b_.emit(Op::Return);
    });
    return;
  }
  b_.if_then(b_.logical_and(iteration_guard_, b_.logical_not(holds)), [&] {
    index_.push();
    write_record(id);
    b_.store(Scalar::B32, b_.add(Scalar::U32, shared_base_, failed_flag_), std::vector<Operand>{b_.in_register(1)},
             {Space::Shared});
    index_.pop();
  });
}

void Lowering::print(const ir::Op& o) {
  const int64_t words = 1 + static_cast<int64_t>(o.operands.size());
  const Operand here = parallel_ ? iteration_guard_ : b_.compare(Compare::Eq, Scalar::U32, thread_, 0);
  b_.if_then(here, [&] {
    index_.push();
    const Operand base = report_address();
    const Reg first = b_.reg(Width::W32);
    b_.emit(Op::Atomic, {first}, {base, b_.in_register(words)},
            {report::kPrintedWords, static_cast<int>(Space::Global), static_cast<int>(AtomicKind::Add)})
        .type = Scalar::U32;
    b_.if_then(b_.compare(Compare::Le, Scalar::U32, first, report::kPrintCapacity - words), [&] {
      const Operand at = b_.mad(Scalar::S64, b_.convert(Scalar::S64, Scalar::U32, first), 8, base);
      const auto put = [&](Scalar type, int offset, Operand x) {
        b_.store(type, at, std::vector<Operand>{b_.in_register(x, type)}, {Space::Global, report::kPrints + offset});
      };
      for (size_t i = 0; i < o.operands.size(); ++i) {
        const DType dtype = o.operands[i]->type.dtype;
        const Operand x = operand(o.operands[i]);
        const DType wide = is_float(dtype) ? DType::F64 : DType::I64;
        put(Scalar::B64, 8 * static_cast<int>(i + 1),
            is_float(dtype) ? cast(compute_type(dtype), wide, x) : cast(dtype, wide, x));
      }
      put(Scalar::B32, 4, words - 1);
      put(Scalar::B32, 0, b_.add(Scalar::S32, message_id(o.as<ir::TextAttributes>().id), 1));
    });
    index_.pop();
  });
}

}  // namespace tilewright::plan::gpu
