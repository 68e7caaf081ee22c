// Whether the contents of a tile may still be read: what lets a store, or a whole copy, be left out.
//
// Guarantees: conservative ("live" when in doubt); follows program order, out of regions and around loops. Does not do:
// parts of a tile; values in registers. Internal to plan/cpu.
#pragma once

#include "ir/ir.h"

namespace tilewright::plan::cpu {

/// What an operation with everything inside it does to the contents of one buffer.
enum class Effect {
  None,
  Reads,       ///< some old content may be read
  Overwrites,  ///< all of it is replaced and nothing old is read
  Writes,      ///< a part may be replaced, nothing old is read
};

Effect effect_on(const ir::Op& op, const ir::Value* buffer);

/// True when what `buffer` holds after `op`, an operation somewhere below `grid`, may be read before it is overwritten.
bool is_live_after(const ir::Op& grid, const ir::Op& op, const ir::Value* buffer);

bool writes(const ir::Op& op, const ir::Value* buffer);
/// A `parallel` that replaces every element by a function of the old contents.
bool updates_in_place(const ir::Op& op, const ir::Value* buffer);

/// A view of every element of its buffer.
bool is_whole(const ir::View& view);
/// An access of a `parallel` at its own iteration's element, over the whole buffer.
bool is_own_element(const ir::AccessAttributes& access, const ir::Op& parallel);

}  // namespace tilewright::plan::cpu
