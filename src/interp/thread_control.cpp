// Structured control with lanes that part and join again.
#include "interp/thread_block.h"

#include <fmt/format.h>

namespace tilewright::interp::threads {

using namespace ir::thread;

namespace {
void flatten(const std::vector<Inst>& body, std::vector<Step>& out) {
  for (const Inst& inst : body) {
    const auto here = [&] { return static_cast<int>(out.size()); };
    if (inst.op == Op::If) {
      const size_t begin = out.size();
      out.push_back({Step::Kind::IfBegin, &inst, 0});
      flatten(inst.body, out);
      const size_t middle = out.size();
      out.push_back({Step::Kind::Else, &inst, 0});
      flatten(inst.orelse, out);
      out[begin].target = static_cast<int>(middle);
      out[middle].target = here();
      out.push_back({Step::Kind::EndIf, &inst, 0});
    } else if (inst.op == Op::Loop) {
      const int begin = here();
      out.push_back({Step::Kind::LoopBegin, &inst, 0});
      flatten(inst.body, out);
      out.push_back({Step::Kind::LoopEnd, &inst, begin + 1});
      out[static_cast<size_t>(begin)].target = here();
    } else {
      out.push_back({Step::Kind::Plain, &inst, 0});
    }
  }
}
}  // namespace

std::vector<Step> flatten(const std::vector<Inst>& body) {
  std::vector<Step> code;
  flatten(body, code);
  return code;
}

void Block::step(Warp& w) {
  if (++steps_ > options_.step_limit) report(DiagnosticCode::E9305, "the kernel did not finish within the step limit");
  if (w.pc >= static_cast<int>(code_.size()) || w.mask == 0) {
    if (w.pc >= static_cast<int>(code_.size()) || w.frames.empty()) {
      finish_warp(w);
      return;
    }
  }
  const Step& s = code_[static_cast<size_t>(w.pc)];
  ++w.pc;
  switch (s.kind) {
    case Step::Kind::Plain:
      if (w.mask) execute(w, *s.inst);
      return;
    case Step::Kind::IfBegin: return begin_if(w, s);
    case Step::Kind::Else: return begin_else(w, s);
    case Step::Kind::EndIf: return end_if(w);
    case Step::Kind::LoopBegin: return begin_loop(w, s);
    case Step::Kind::LoopEnd: return end_loop(w, s);
  }
}

void Block::begin_if(Warp& w, const Step& s) {
  uint32_t yes = 0;
  for (int lane = 0; lane < kLanes; ++lane)
    if (get(w, s.inst->in[0], lane) & 1) yes |= 1u << lane;
  touch(w, *s.inst);
  w.frames.push_back({false, w.mask, w.mask & ~yes});
  w.mask &= yes;
  if (w.mask == 0) w.pc = s.target;
}

void Block::begin_else(Warp& w, const Step& s) {
  w.mask = w.frames.back().pending & ~w.dead;
  if (w.mask == 0) w.pc = s.target;
}

void Block::end_if(Warp& w) {
  const uint32_t entry = w.frames.back().entry;
  w.frames.pop_back();
  w.mask = entry & ~w.dead & ~exited(w);
}

void Block::begin_loop(Warp& w, const Step& s) {
  if (w.mask)
    w.frames.push_back({true, w.mask, 0, 0, s.target});
  else
    w.pc = s.target;
}

void Block::end_loop(Warp& w, const Step& s) {
  const Frame& frame = w.frames.back();
  w.mask = frame.entry & ~frame.exited & ~w.dead;
  if (w.mask) {
    w.pc = s.target;
    return;
  }
  w.mask = frame.entry & ~w.dead;
  w.frames.pop_back();
}

uint32_t Block::exited(const Warp& w) {
  for (auto it = w.frames.rbegin(); it != w.frames.rend(); ++it)
    if (it->is_loop) return it->exited;
  return 0;
}

void Block::finish_warp(Warp& w) {
  if (!w.matrix.empty())
    report(DiagnosticCode::E9301, fmt::format("warp {} ends with matrix instructions in flight", w.id));
  w.state = Warp::State::Done;
}

void Block::converged(Warp& w, const Inst& inst) {
  const uint32_t full = (w.id + 1) * kLanes > program_.threads ? (1u << (program_.threads % kLanes)) - 1 : ~0u;
  if (w.mask != full)
    report(DiagnosticCode::E9306,
           fmt::format("line {}: {} by warp {} with lanes {:08x} only", inst.line, mnemonic(inst.op), w.id, w.mask));
}

void Block::control(Warp& w, const Inst& inst, uint32_t mask) {
  switch (inst.op) {
    case Op::BreakIf: return break_if(w, inst, mask);
    case Op::Return:
      w.dead |= mask;
      w.mask &= ~mask;
      if ((~w.dead & (~0u)) == 0) finish_warp(w);
      return;
    case Op::Trap:
      if (mask) report(DiagnosticCode::E9307, fmt::format("line {}: trap", inst.line));
      return;
    default: return;
  }
}

void Block::break_if(Warp& w, const Inst& inst, uint32_t mask) {
  uint32_t leave = 0;
  for (int lane = 0; lane < kLanes; ++lane)
    if (get(w, inst.in[0], lane) & 1) leave |= 1u << lane;
  leave &= mask;
  size_t depth = w.frames.size();
  while (depth > 0 && !w.frames[depth - 1].is_loop) --depth;
  Frame& loop = w.frames[depth - 1];
  loop.exited |= leave;
  w.mask &= ~leave;
  if (w.mask != 0 || (loop.entry & ~loop.exited & ~w.dead) != 0) return;
  w.pc = loop.end;
  w.mask = loop.entry & ~w.dead;
  w.frames.resize(depth - 1);
}

}  // namespace tilewright::interp::threads
