// Runs one case on the oracle and on a subject, and compares.
#pragma once

#include <string>

#include "fuzz/case.h"
#include "fuzz/subject.h"

namespace tilewright::fuzz {

enum class Verdict : uint8_t {
  Match,
  Refused,       ///< the subject says E2xxx
  Inconclusive,  ///< bounded: addresses or loops depend on rounding
  Invalid,       ///< the generator made a kernel the checks refuse: our bug
  Mismatch,      ///< a wrong element, or memory written outside the arrays
  Failed,        ///< the subject reports an error
  Crashed,       ///< the subject's process died
  Hung,          ///< the subject did not come back in time
};
const char* name(Verdict verdict);
inline bool is_failure(Verdict v) { return v >= Verdict::Invalid; }

struct Judgement {
  Verdict verdict = Verdict::Match;
  std::string detail;  ///< "O0[3, 5] is 7, expected 8"
  int64_t elements = 0;
  int64_t tainted = 0;  ///< elements of which nothing can be said
  std::string form;     ///< how the subject did it: "wgmma"; empty when it does not say
};

Judgement judge(const Case& c, Subject& subject, const Plant& plant = {});

}  // namespace tilewright::fuzz
