// The mistakes an oracle must notice (mutant.def), and on which workloads each of them changes the result at all.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "bench/oracle/workload.h"

namespace tilewright::bench {

enum class Mutant : uint8_t {
#define TW_MUTANT(enumerator, name, sentence) enumerator,
#include "bench/oracle/mutant.def"
#undef TW_MUTANT
};
struct MutantInfo {
  Mutant mutant;
  std::string_view name;
  std::string_view sentence;
};
const MutantInfo& info(Mutant mutant);
std::span<const MutantInfo> all_mutants();

/// Whether the mistake changes anything for this operator, mask, shape and type (a top-left mask on a square does not).
bool applies(Mutant mutant, const Workload& workload);
int variant_count(Mutant mutant);

}  // namespace tilewright::bench
