// Our own kernels as a candidate: `tile:FILE.tile[:KERNEL][?param=value,…]`.
//
// open reads the file; prepare finds the flags and dtypes under which the kernel's own reference is the contract (or
// says in which field it differs); compile goes through the driver with the run's private cache; launch is one execute
// of the plan.
#pragma once

#include "candidate/kinds.h"

namespace tilewright::adapters {

/// Adds the kind "tile".
void add_tile_kind(candidate::Kinds& kinds);

}  // namespace tilewright::adapters
