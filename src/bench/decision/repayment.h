// The three events that cost something again and again (a process start, a toolchain upgrade, the adoption itself):
// what each costs, after how many calls that is repaid, and what of it nobody measured.
//
// Guarantee: a part that was not measured makes the whole `not-run`; it is never taken as 0. Pure.
#pragma once

#include <optional>
#include <string>

#include "bench/decision/clauses.h"

namespace tilewright::decision {

enum class Event : uint8_t { Start, Upgrade, Adoption };

/// A part of an event's cost, or the saving itself, that was not measured; and the command that would.
struct Lacking {
  std::string what, command;
};
std::optional<Lacking> find_lacking(const Objective& objective, const Evidence& evidence, Event event);

/// Human hours expressed in ms of machine time by the two rates; nothing when they are unknown.
std::optional<double> human_cost_ms(const Objective& objective, const Evidence& evidence, const WhatIf& what_if);

BreakEvens compute_break_evens(const Objective& objective, const Evidence& evidence, const WhatIf& what_if);

}  // namespace tilewright::decision
