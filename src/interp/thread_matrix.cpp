// Matrix instructions: reference sums over the lanes' cells; wgmma stays in flight until its wait.
#include "interp/thread_block.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "interp/thread_alu.h"
#include "target/gpu_matrix.h"

namespace tilewright::interp::threads {

using namespace ir::thread;

namespace {

uint64_t part(Scalar type, uint64_t word, int e) {
  const int bits = 8 * bytes(type);
  return bits >= 32 ? word : (word >> (bits * e)) & ((uint64_t{1} << bits) - 1);
}

uint64_t accumulated(Scalar type, uint64_t old, double sum) {
  if (type == Scalar::S32)
    return static_cast<uint32_t>(static_cast<int64_t>(static_cast<int32_t>(old)) + static_cast<int64_t>(sum));
  if (type == Scalar::F64) return std::bit_cast<uint64_t>(std::bit_cast<double>(old) + sum);
  return std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<float>(static_cast<uint32_t>(old)) + sum));
}

}  // namespace

void Block::matrix(Warp& w, const Inst& inst) {
  converged(w, inst);
  switch (inst.op) {
    case Op::LdMatrix:
    case Op::StMatrix: return matrix_rows(w, inst);
    case Op::Mma: return mma(w, inst);
    case Op::WgmmaCommit: ++w.matrix_group; return;
    case Op::WgmmaWait:
      while (!w.matrix.empty() && w.matrix.front().group < w.matrix_group - inst.attr[0]) retire(w);
      return;
    case Op::Wgmma: return wgmma(w, inst);
    default: return;
  }
}

void Block::matrix_rows(Warp& w, const Inst& inst) {
  const bool is_load = inst.op == Op::LdMatrix;
  for (int t = 0; t < inst.attr[0]; ++t) {
    for (int lane = 0; lane < kLanes; ++lane) {
      uint32_t word = 0;
      const size_t operand = static_cast<size_t>(t) + 1;
      if (!is_load) word = static_cast<uint32_t>(get(w, inst.in[operand], lane));
      for (int e = 0; e < 2; ++e) {
        int row = lane / 4, column = (lane % 4) * 2 + e;
        if (inst.attr[1]) std::swap(row, column);
        const auto address = static_cast<uint32_t>(get(w, inst.in[0], t * 8 + row));
        if (address % 16)
          report(DiagnosticCode::E9302, fmt::format("line {}: {} row at misaligned shared byte {}", inst.line,
                                                    mnemonic(inst.op), int64_t{address} - kSharedBase));
        uint8_t* p =
            memory(Space::Shared, address + static_cast<uint32_t>(column) * 2, 2, inst, !is_load, w.id * kLanes + lane);
        if (is_load) {
          uint16_t v;
          std::memcpy(&v, p, 2);
          word |= uint32_t{v} << (16 * e);
        } else {
          const auto v = static_cast<uint16_t>(word >> (16 * e));
          std::memcpy(p, &v, 2);
        }
      }
      if (is_load) at(w, inst.out[static_cast<size_t>(t)], lane) = word;
    }
  }
}

void Block::mma(Warp& w, const Inst& inst) {
  const target::MmaRow& r = target::row(static_cast<target::Mma>(inst.attr[0]));
  const int bits = 8 * bytes(r.a), per = bits >= 32 ? 1 : 32 / bits;
  std::vector<double> a(static_cast<size_t>(r.m * r.k)), b(static_cast<size_t>(r.k * r.n));
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int i = 0; i < r.a_registers; ++i)
      for (int e = 0; e < per; ++e) {
        const target::Cell c = target::mma_a_cell(bits, lane, i, e);
        a[static_cast<size_t>(c.row * r.k + c.column)] =
            thread_number(r.a, part(r.a, get(w, inst.in[static_cast<size_t>(i)], lane), e));
      }
    for (int i = 0; i < r.b_registers; ++i)
      for (int e = 0; e < per; ++e) {
        const target::Cell c = target::mma_b_cell(bits, lane, i, e);
        b[static_cast<size_t>(c.row * r.n + c.column)] =
            thread_number(r.b, part(r.b, get(w, inst.in[static_cast<size_t>(r.a_registers + i)], lane), e));
      }
  }
  std::vector<uint64_t> results;
  for (int lane = 0; lane < kLanes; ++lane)
    for (int i = 0; i < r.c_registers; ++i) {
      const target::Cell c = target::mma_c_cell(lane, i);
      double sum = 0;
      for (int k = 0; k < r.k; ++k)
        sum += a[static_cast<size_t>(c.row * r.k + k)] * b[static_cast<size_t>(k * r.n + c.column)];
      results.push_back(accumulated(
          r.accumulator, get(w, inst.in[static_cast<size_t>(r.a_registers + r.b_registers + i)], lane), sum));
    }
  size_t next = 0;
  for (int lane = 0; lane < kLanes; ++lane)
    for (int i = 0; i < r.c_registers; ++i) at(w, inst.out[static_cast<size_t>(i)], lane) = results[next++];
}

void Block::wgmma(Warp& w, const Inst& inst) {
  MatrixInFlight m{&inst};
  m.accumulates = get(w, inst.in[0], 0) & 1;
  const bool from_registers = inst.attr[2];
  if (from_registers) {
    for (size_t r = 0; r < 4; ++r)
      for (int lane = 0; lane < kLanes; ++lane) m.a[r][static_cast<size_t>(lane)] = get(w, inst.in[1 + r], lane);
  } else {
    m.a_descriptor = get(w, inst.in[1], 0);
  }
  m.b_descriptor = get(w, inst.in[from_registers ? 5 : 2], 0);
  m.group = w.matrix_group;
  for_operand_bytes(w, m, [&](size_t index, size_t n) {
    check_fenced(index, n, inst);
    mark(reading_, index, n, 1);
  });
  for (Reg r : inst.out) w.in_flight[r.id] = 1;
  w.matrix.push_back(m);
  // Products of a warp happen in order, however late.
  if (options_.moment == Moment::Earliest || (options_.moment == Moment::Random && random_() % 2))
    for (MatrixInFlight& earlier : w.matrix)
      if (!earlier.is_computed) compute(w, earlier);
}

// Every 16 bytes of shared memory this warp's part of the instruction reads.
template <typename F>
void Block::for_operand_bytes(Warp& w, const MatrixInFlight& m, F&& visit) {
  const Inst& inst = *m.inst;
  const target::WgmmaRow& r = target::row(static_cast<target::Wgmma>(inst.attr[0]));
  const int element = bytes(r.a);
  const auto operand = [&](uint64_t bits, bool mn_major, int first, int count) {
    const target::MatrixDescriptor d = target::decode(bits);
    if (mn_major) {
      for (int k = 0; k < r.k; ++k)
        for (int x = first * element; x < (first + count) * element; x += kGranule)
          visit(shared_index((target::mn_major_address(d, x, k)), kGranule, inst), kGranule);
    } else {
      for (int x = first; x < first + count; ++x)
        for (int k = 0; k < r.k * element; k += kGranule)
          visit(shared_index((target::k_major_address(d, x, k)), kGranule, inst), kGranule);
    }
  };
  if (!inst.attr[2]) operand(m.a_descriptor, inst.attr[3], 16 * (w.id % 4), 16);
  operand(m.b_descriptor, inst.attr[4], 0, inst.attr[1]);
}

double Block::shared_number(Scalar type, uint32_t address) {
  uint64_t v = 0;
  std::memcpy(&v, shared_.data() + (address - kSharedBase), static_cast<size_t>(bytes(type)));
  return thread_number(type, v);
}

std::vector<double> Block::left_operand(const Warp& w, const MatrixInFlight& m) {
  const Inst& inst = *m.inst;
  const target::WgmmaRow& r = target::row(static_cast<target::Wgmma>(inst.attr[0]));
  const int bits = 8 * bytes(r.a), per = bits >= 32 ? 1 : 32 / bits, element = bytes(r.a);
  std::vector<double> a(static_cast<size_t>(16 * r.k));
  if (inst.attr[2]) {
    for (int lane = 0; lane < kLanes; ++lane)
      for (int i = 0; i < 4; ++i)
        for (int e = 0; e < per; ++e) {
          const target::Cell c = target::mma_a_cell(bits, lane, i, e);
          a[static_cast<size_t>(c.row * r.k + c.column)] =
              thread_number(r.a, part(r.a, m.a[static_cast<size_t>(i)][static_cast<size_t>(lane)], e));
        }
    return a;
  }
  const target::MatrixDescriptor d = target::decode(m.a_descriptor);
  for (int x = 0; x < 16; ++x)
    for (int k = 0; k < r.k; ++k) {
      const int row = 16 * (w.id % 4) + x;
      a[static_cast<size_t>(x * r.k + k)] =
          shared_number(r.a, inst.attr[3] ? target::mn_major_address(d, row * element, k)
                                          : target::k_major_address(d, row, k * element));
    }
  return a;
}

std::vector<double> Block::right_operand(const MatrixInFlight& m) {
  const Inst& inst = *m.inst;
  const target::WgmmaRow& r = target::row(static_cast<target::Wgmma>(inst.attr[0]));
  const int n = inst.attr[1], element = bytes(r.b);
  std::vector<double> b(static_cast<size_t>(r.k * n));
  const target::MatrixDescriptor d = target::decode(m.b_descriptor);
  for (int k = 0; k < r.k; ++k)
    for (int x = 0; x < n; ++x)
      b[static_cast<size_t>(k * n + x)] = shared_number(
          r.b, inst.attr[4] ? target::mn_major_address(d, x * element, k) : target::k_major_address(d, x, k * element));
  return b;
}

void Block::compute(Warp& w, MatrixInFlight& m) {
  const Inst& inst = *m.inst;
  const target::WgmmaRow& r = target::row(static_cast<target::Wgmma>(inst.attr[0]));
  const int n = inst.attr[1];
  const std::vector<double> a = left_operand(w, m), b = right_operand(m);
  for (int lane = 0; lane < kLanes; ++lane)
    for (int i = 0; i < n / 2; ++i) {
      const target::Cell c = target::mma_c_cell(lane, i);
      double sum = 0;
      for (int k = 0; k < r.k; ++k)
        sum += a[static_cast<size_t>(c.row * r.k + k)] * b[static_cast<size_t>(k * n + c.column)];
      uint64_t& out = at(w, inst.out[static_cast<size_t>(i)], lane);
      out = accumulated(r.accumulator, m.accumulates ? out : 0, sum);
    }
  // The registers and the operands stay in flight until the wait, whenever the sum is taken.
  m.is_computed = true;
}

void Block::retire(Warp& w) {
  MatrixInFlight m = w.matrix.front();
  w.matrix.pop_front();
  if (!m.is_computed) compute(w, m);
  for_operand_bytes(w, m, [&](size_t index, size_t count) { mark(reading_, index, count, -1); });
  std::fill(w.in_flight.begin(), w.in_flight.end(), 0);
  for (const MatrixInFlight& other : w.matrix)
    for (Reg r : other.inst->out) w.in_flight[r.id] = 1;
}

}  // namespace tilewright::interp::threads
