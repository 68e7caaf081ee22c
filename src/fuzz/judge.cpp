#include "fuzz/judge.h"

#include <fmt/format.h>

#include "interp/compare.h"

namespace tilewright::fuzz {

const char* name(Verdict verdict) {
  switch (verdict) {
    case Verdict::Match: return "match";
    case Verdict::Refused: return "refused";
    case Verdict::Inconclusive: return "inconclusive";
    case Verdict::Invalid: return "invalid case";
    case Verdict::Mismatch: return "mismatch";
    case Verdict::Failed: return "failed";
    case Verdict::Crashed: return "crashed";
    case Verdict::Hung: return "hung";
  }
  return "";
}

Judgement judge(const Case& c, Subject& subject, const Plant& plant) {
  Arrays checked(c);
  const bool bounded = c.comparison == Comparison::Bounded;
  const auto valid = interp::run(c.kernel, checked.call(), {.check = true, .seed = c.data_seed});
  if (!valid) return {Verdict::Invalid, render(valid.error())};
  if (!valid->findings.empty()) return {Verdict::Invalid, render(valid->findings[0])};
  Arrays reference(c);
  auto outcome = bounded ? interp::run(c.kernel, reference.call(), {.mode = interp::Mode::Bounded}) : valid;
  if (!outcome) return {Verdict::Invalid, render(outcome.error())};

  Arrays arrays(c);
  if (const Status done = subject.run(c.kernel, arrays.call(), plant); !done) {
    const bool refused = code_text(done.error().code).starts_with("E2");
    return {refused ? Verdict::Refused : Verdict::Failed, render(done.error())};
  }
  Judgement out = {.form = subject.form()};
  if (outcome->inconclusive) out.verdict = Verdict::Inconclusive;
  for (size_t t = 0; t < c.kernel.tensors.size(); ++t) {
    const ir::Direction direction = c.kernel.tensors[t].direction;
    if (direction == ir::Direction::In || direction == ir::Direction::Workspace || outcome->inconclusive) continue;
    const interp::Difference d = interp::compare(arrays.call().tensors[t], outcome->expected[t]);
    out.elements += d.compared;
    out.tainted += d.tainted;
    if (d.mismatched == 0 || out.verdict != Verdict::Match) continue;
    out.verdict = Verdict::Mismatch;
    out.detail = fmt::format("{}{} ({} of {} elements differ)", c.kernel.tensors[t].buffer->name, d.first, d.mismatched,
                             d.compared);
  }
  if (const int t = arrays.damaged_canary(); t >= 0) {
    out.verdict = Verdict::Mismatch;
    out.detail = fmt::format("bytes outside {} were written", c.kernel.tensors[static_cast<size_t>(t)].buffer->name);
  }
  return out;
}

}  // namespace tilewright::fuzz
