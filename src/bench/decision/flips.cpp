#include "bench/decision/flips.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "bench/decision/clauses.h"

namespace tilewright::decision {

using bench::Cell;
using bench::Stage;

namespace {

/// A number of the case that can be turned, one at a time.
struct Knob {
  std::string name;
  double now;
  std::function<void(Objective&, WhatIf&, double factor)> turn;
};

std::vector<Knob> knobs_of(const Objective& objective, const Evidence& evidence) {
  std::vector<Knob> knobs = {
      {"calls_per_day", objective.calls_per_day, [](Objective& o, WhatIf&, double f) { o.calls_per_day *= f; }},
      {"horizon_days", objective.horizon_days, [](Objective& o, WhatIf&, double f) { o.horizon_days *= f; }},
      {"starts_per_day", objective.starts_per_day, [](Objective& o, WhatIf&, double f) { o.starts_per_day *= f; }},
      {"min_gain", objective.min_gain,
       [](Objective& o, WhatIf&, double f) { o.min_gain = std::min(0.999, o.min_gain * f); }}};
  const auto optional_knob = [&](const char* label, std::optional<double> Objective::*member) {
    if (objective.*member)
      knobs.push_back({label, *(objective.*member), [member](Objective& o, WhatIf&, double f) { *(o.*member) *= f; }});
  };
  optional_knob("slo_ms", &Objective::slo_ms);
  optional_knob("peak_mb cap", &Objective::peak_mb);
  optional_knob("warmup_s cap", &Objective::warmup_s);
  optional_knob("human_rate_per_hour", &Objective::human_rate_per_hour);
  if (const Cell* cell = evidence.measured(*bench::parse_stage(objective.metric))) {
    knobs.push_back({"candidate " + objective.metric, *cell->value,
                     [](Objective&, WhatIf& w, double f) { w.scale.candidate *= f; }});
  }
  if (const Cell* cell = evidence.measured_reference(*bench::parse_stage(objective.metric))) {
    knobs.push_back({"reference " + objective.metric, *cell->value,
                     [](Objective&, WhatIf& w, double f) { w.scale.reference *= f; }});
  }
  if (const Cell* cell = evidence.measured(Stage::Compile)) {
    knobs.push_back({"compile_ms", *cell->value, [](Objective&, WhatIf& w, double f) { w.scale.compile *= f; }});
  }
  if (const Cell* cell = evidence.measured(Stage::Peak)) {
    knobs.push_back({"peak_mb", *cell->value, [](Objective&, WhatIf& w, double f) { w.peak *= f; }});
  }
  if (evidence.cost.hours > 0)
    knobs.push_back({"human hours", evidence.cost.hours, [](Objective&, WhatIf& w, double f) { w.hours *= f; }});
  return knobs;
}

class FlipFinder {
 public:
  FlipFinder(const Objective& objective, const Evidence& evidence, Verdict now)
      : objective_(objective), evidence_(evidence), now_(now) {
    // Hundreds of verdicts are asked for: a thousand draws place the flip well enough.
    if (evidence_.draws.size() > kDraws) evidence_.draws.resize(kDraws);
  }

  /// The nearest factor in each direction, on a grid of thirds of an octave up to 1000, then by bisection.
  std::vector<Flip> find(const Knob& knob) const {
    std::vector<Flip> flips;
    for (const double direction : {-1.0, 1.0}) {
      double before = 1;
      for (int step = 1; step <= 30; ++step) {
        const double factor = std::exp2(direction * step / 3.0);
        const Verdict verdict = verdict_at(knob, factor);
        if (verdict == now_) {
          before = factor;
          continue;
        }
        flips.push_back(refine(knob, before, factor));
        break;
      }
    }
    return flips;
  }

 private:
  Verdict verdict_at(const Knob& knob, double factor) const {
    Objective objective = objective_;
    WhatIf what_if;
    knob.turn(objective, what_if, factor);
    return verdict_of(judge(objective, evidence_, what_if).clauses);
  }

  Flip refine(const Knob& knob, double same, double other) const {
    for (int i = 0; i < 12; ++i) {
      const double middle = std::sqrt(same * other);
      (verdict_at(knob, middle) == now_ ? same : other) = middle;
    }
    return {knob.name, knob.now, knob.now * other, verdict_at(knob, other)};
  }

  static constexpr size_t kDraws = 1000;
  const Objective& objective_;
  Evidence evidence_;
  Verdict now_;
};

}  // namespace

std::vector<Flip> find_flips(const Objective& objective, const Evidence& evidence, Verdict now) {
  const FlipFinder finder(objective, evidence, now);
  std::vector<Flip> flips;
  for (const Knob& knob : knobs_of(objective, evidence)) {
    for (Flip& flip : finder.find(knob)) flips.push_back(std::move(flip));
  }
  return flips;
}

}  // namespace tilewright::decision
