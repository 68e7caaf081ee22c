#include <fmt/format.h>
#include <fmt/ranges.h>

#include "interp/tile_machine.h"

namespace tilewright::interp {
namespace {

/// "i=3, j=7" for a flat number; `first_fastest` as blocks count, last fastest as iterations do.
std::string coordinates(const std::vector<ir::Value*>& variables, const std::vector<int64_t>& extents, int64_t flat,
                        bool first_fastest) {
  std::vector<int64_t> at(extents.size());
  for (size_t n = 0; n < extents.size(); ++n) {
    const size_t d = first_fastest ? n : extents.size() - 1 - n;
    const int64_t extent = extents[d] > 0 ? extents[d] : 1;
    at[d] = flat % extent;
    flat /= extent;
  }
  std::vector<std::string> parts;
  for (size_t d = 0; d < at.size(); ++d) {
    const std::string& name = d < variables.size() ? variables[d]->name : std::string();
    parts.push_back(name.empty() ? std::to_string(at[d]) : fmt::format("{}={}", name, at[d]));
  }
  return fmt::format("({})", fmt::join(parts, ", "));
}

}  // namespace

std::string TileMachine::iteration_text(int64_t flat) const {
  return coordinates(lanes_.parallel->regions[0]->arguments, parallel_extents_, flat, false);
}

std::string TileMachine::block_text(int64_t flat) const {
  if (!grid_) return "()";
  return coordinates(grid_->regions[0]->arguments, grid_extents_, flat, true);
}

std::string TileMachine::place_text(int64_t lane) const {
  const std::string block = fmt::format("block {}", block_text(block_));
  return lanes_.parallel ? fmt::format("iteration {}, {}", iteration_text(lanes_.first + lane), block) : block;
}

bool TileMachine::is_ordered_after(int32_t block) const {
  return static_cast<size_t>(block) < happened_before_.size() && happened_before_[static_cast<size_t>(block)];
}

void TileMachine::report_conflict(const ir::Op& op, const Storage& s, int64_t element, int64_t lane, Conflict c,
                                  bool blocks) {
  const DiagnosticCode code = blocks         ? DiagnosticCode::E1202
                              : c.both_write ? DiagnosticCode::E1200
                                             : DiagnosticCode::E1201;
  findings.add(code, op, s.buffer, [&]() -> Findings::Text {
    const std::string element_name = s.element_text(element);
    if (blocks) {
      return {fmt::format("blocks {} and {} {} {}", block_text(c.other), block_text(block_),
                          c.both_write ? "both write" : "read and write", element_name),
              "blocks are independent and run in any order: give each its own elements, use an atomic, or split the "
              "kernel into two grids"};
    }
    const std::string one = iteration_text(c.other), two = iteration_text(lanes_.first + lane);
    if (c.both_write) {
      return {fmt::format("iterations {} and {} both write {}", one, two, element_name),
              "iterations of a `parallel` are independent: give each its own element, or use an atomic"};
    }
    return {fmt::format("iterations {} and {} communicate through {}", one, two, element_name),
            "iterations of a `parallel` run in any order: split it in two, or use a `for`"};
  });
}

void TileMachine::note_read(const ir::Op& op, Storage& s, int64_t element, int64_t lane) {
  if (!s.written[static_cast<size_t>(element)]) {
    findings.add(DiagnosticCode::E1204, op, s.buffer, [&]() -> Findings::Text {
      return {
          fmt::format("{} is read before anything was written to it, by {}", s.element_text(element), place_text(lane)),
          "clear or fill the buffer first, or check that the writes before cover all of it"};
    });
  }
  if (lanes_.parallel && s.tracked_parallel == lanes_.parallel) {
    const auto actor = static_cast<int32_t>(lanes_.first + lane);
    if (const auto c = s.by_iteration.read(element, parallel_epoch_, actor)) {
      report_conflict(op, s, element, lane, *c, false);
    }
  }
  if (s.by_block.is_enabled()) {
    const auto c = s.by_block.read(element, grid_epoch_, block_);
    if (c && !is_ordered_after(c->other)) report_conflict(op, s, element, lane, *c, true);
  }
}

void TileMachine::note_write(const ir::Op& op, Storage& s, int64_t element, int64_t lane, bool atomic) {
  if (lanes_.parallel && s.tracked_parallel == lanes_.parallel) {
    const auto actor = static_cast<int32_t>(lanes_.first + lane);
    if (const auto c = s.by_iteration.write(element, parallel_epoch_, actor, atomic)) {
      report_conflict(op, s, element, lane, *c, false);
    }
  }
  if (s.by_block.is_enabled()) {
    const auto c = s.by_block.write(element, grid_epoch_, block_, atomic);
    if (c && !is_ordered_after(c->other)) report_conflict(op, s, element, lane, *c, true);
  }
}

}  // namespace tilewright::interp
