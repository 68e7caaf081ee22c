// The portable form of a grid: every thread of the block does its part of everything.
#include <fmt/format.h>

#include <algorithm>

#include "plan/gpu/lowering.h"
#include "plan/gpu/op_views.h"

namespace tilewright::plan::gpu {

using ir::OpKind;
using ir::thread::Op;
using ir::thread::SpecialRegister;

namespace {

/// Regions that `view` names in two turns of the loop never share an element: some dimension moves on by its extent.
bool moves_on(const ir::View& view, const ir::Op& loop) {
  const ir::Value* variable = loop.regions[0]->arguments.empty() ? nullptr : loop.regions[0]->arguments[0];
  return std::ranges::any_of(view.slices, [&](const ir::Slice& s) {
    const auto extent = s.keep ? s.extent.constant() : std::optional<int64_t>(1);
    const ir::LinearForm start = ir::linear_form(s.start);
    return extent && std::ranges::any_of(start.terms, [&](const ir::LinearForm::Term& t) {
             return t.factor.symbol() == variable && std::abs(t.coefficient) >= *extent;
           });
  });
}

}  // namespace

void Lowering::find_global_uses() {
  const auto writes = [&](const ir::Value* buffer) {
    if (!written_globals_.insert(buffer).second) rewritten_globals_.insert(buffer);
  };
  for (const ir::Op* op : ops_) {
    const Views views = views_of(*op);
    for (const ir::View* v : views.reads) read_globals_.insert(v->buffer);
    for (const ir::View* v : views.writes) writes(v->buffer);
    if (op->kind == OpKind::Load) read_globals_.insert(op->as<ir::AccessAttributes>().buffer);
    if (op->kind == OpKind::Atomic) read_globals_.insert(op->as<ir::AtomicAttributes>().buffer);
    if (const ir::Value* buffer = stored_buffer(*op)) writes(buffer);
  }
  for (const ir::Op* loop : ops_) {  // turns of a loop of the block may write the same element by different threads
    if (loop->kind != OpKind::For && loop->kind != OpKind::Pipelined && loop->kind != OpKind::While) continue;
    for (const ir::Op* op : ops_) {
      if (op == loop || !is_below(*loop, *op)) continue;
      for (const ir::View* v : views_of(*op).writes)
        if (loop->kind == OpKind::While || !moves_on(*v, *loop)) rewritten_globals_.insert(v->buffer);
      if (op->kind == OpKind::Parallel)
        for_each_store(*op->regions[0], [&](const ir::Value* v) { rewritten_globals_.insert(v); });
    }
  }
}

// Warps of mma.sync: all along m when a fragment feeds a product (its rows must stay in one warp), else spread over
// both.
void Lowering::choose_matrix_warps() {
  int64_t rows = 1 << 20, columns = 1 << 20;
  bool chained = false;
  for (const ir::Op* op : ops_) {
    if (op->kind != OpKind::Gemm) continue;
    const auto& a = op->as<ir::GemmAttributes>();
    rows = std::min(rows, a.c.buffer->type.shape[0].constant().value_or(16));
    columns = std::min(columns, a.c.buffer->type.rank() > 1 ? a.c.buffer->type.shape[1].constant().value_or(8) : 8);
    chained |= is_fragment(a.a.buffer);
  }
  const int warps = threads_ / 32;
  warps_m_ = 1;
  while (warps_m_ * 2 <= warps && rows % (16 * warps_m_ * 2) == 0 && (chained || warps_m_ * warps_m_ * 2 <= warps * 2))
    warps_m_ *= 2;
  if (chained && rows % (16 * warps) == 0) warps_m_ = warps;
  warps_n_ = warps / warps_m_;
  if (warps % warps_m_ || columns % (8 * warps_n_) || (chained && warps_n_ != 1)) warps_m_ = warps_n_ = 0;
}

std::optional<Distribution> Lowering::portable_seed(const ir::Op& op, const ir::Value* v) const {
  if (op.kind != OpKind::Gemm) return std::nullopt;
  const auto& a = op.as<ir::GemmAttributes>();
  const auto shape = constant_shape(v->type);
  if (v == a.c.buffer) return uses_mma(a) ? matrix_accumulator(a) : row_major(shape, threads_, 4);
  if (v == a.a.buffer && uses_mma(a)) return mma_accumulator(shape[0], shape[1], warps_m_, warps_n_);
  return std::nullopt;
}

void Lowering::bind_blocks() {
  constexpr SpecialRegister blocks[] = {SpecialRegister::BlockX, SpecialRegister::BlockY, SpecialRegister::BlockZ};
  const auto& arguments = block_region().arguments;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Operand number = b_.special(blocks[i]);
    const Operand v = i == 0 ? b_.div(Scalar::U32, number, cluster_) : number;
    index_.bind(arguments[i], {v, 0});
    define(arguments[i], b_.convert(Scalar::S64, Scalar::S32, v));
  }
}

/// The threads asked for, or twice, four times, … as many where the fragments would not fit the registers of so few:
/// code that spills hundreds of registers is slow, and slow to assemble. Products keep threads their instruction takes.
int Lowering::choose_threads(int cluster) {
  // Registers of a thread that fragments may take, of those that so many threads have.
  const auto room = [](int threads) { return std::min(255, 65536 / threads) - 40; };
  const int asked = std::clamp((grid_.as<ir::GridAttributes>().threads + 31) / 32 * 32, 32, 1024);
  int64_t words = 0;
  for (const ir::Op* op : ops_) {
    if (op->kind != OpKind::Alloc || !is_fragment(op->result())) continue;
    int64_t count = std::max(bytes(op->result()->type.dtype) / 4, 1);
    for (const int64_t n : constant_shape(op->result()->type)) count *= n;
    words += count;
  }
  words /= cluster;
  if (words <= int64_t{room(asked)} * asked) return asked;
  int threads = 0;
  for (const double share : {0.6, 1.0})
    for (int n = asked; n <= 512 && threads == 0; n *= 2)
      if (static_cast<double>(words) <= share * room(n) * n) threads = n;
  if (threads == 0) threads = std::max(asked, 256);
  const auto takes_mma = [&](int n) {
    threads_ = n;
    choose_matrix_warps();
    return warps_m_ > 0;
  };
  const bool has_products = std::ranges::any_of(ops_, [](const ir::Op* op) { return op->kind == OpKind::Gemm; });
  if (has_products && takes_mma(asked))
    while (threads > asked && !takes_mma(threads)) threads /= 2;
  if (threads > asked)
    fact("threads",
         fmt::format("{} instead of {}: the fragments are {} registers of a thread then, not {}", threads, asked,
                     (words + threads - 1) / threads, (words + asked - 1) / asked),
         grid_.location);
  return threads;
}

ir::thread::Program Lowering::portable(runtime::Launch& launch, int cluster) {
  const auto& g = grid_.as<ir::GridAttributes>();
  const int threads = choose_threads(cluster);
  b_.program().threads = threads;
  declare_parameters();
  find_global_uses();
  cluster_ = cluster;
  const Reg thread = b_.special(SpecialRegister::ThreadX);
  begin_group(cluster > 1 ? begin_cluster(thread, threads) : Operand(thread), threads * cluster, 0);
  shared_base_ = Reg{};
  bind_arguments();
  choose_matrix_warps();
  assign_layouts([&](const ir::Op& op, const ir::Value* v) { return portable_seed(op, v); });
  find_async_rings();
  allocate_shared();
  prepare_reports();
  shared_base_ = b_.reg(Width::W32);
  ir::thread::Inst& base = b_.emit(Op::Special, {shared_base_}, {}, {static_cast<int>(SpecialRegister::SharedBase)});
  base.type = Scalar::U32;
  clear_failed_flag();
  describe_layouts();
  allocate_fragments();
  const std::optional<RowWalk> walk = row_walk();
  if (walk) {
    walk_rows(*walk);
  } else {
    bind_blocks();
    region(block_region());
  }
  if (shared_bytes_ == 0) shared_bytes_ = 16;
  b_.program().shared_bytes = shared_bytes_;
  launch.symbol = b_.program().name;
  launch.target = runtime::LaunchTarget::Cuda;
  for (const ir::Index& extent : g.extents) launch.grid.push_back(arguments_.expression(arguments_.map(extent)));
  if (walk)
    launch.grid[0] = runtime::combine(runtime::ExpressionOp::Min, {launch.grid[0], runtime::constant(walk->walkers)});
  if (cluster > 1) {
    launch.grid[0] = runtime::combine(runtime::ExpressionOp::Mul, {launch.grid[0], runtime::constant(cluster)});
    launch.cluster = {static_cast<uint32_t>(cluster), 1, 1};
  }
  launch.threads = runtime::constant(threads);
  launch.shared_bytes = runtime::constant(shared_bytes_);
  return b_.finish();
}

}  // namespace tilewright::plan::gpu
