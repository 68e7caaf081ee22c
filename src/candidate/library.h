// A candidate behind the C interface of tilewright/candidate.h: `lib:./gemm.so?threads=2`.
#pragma once

#include "candidate/candidate.h"

namespace tilewright::candidate {

/// `target` is a path, then optionally '?' and text handed to the library as `host.options`.
Result<CandidatePtr> make_library_candidate(const std::string& target);

}  // namespace tilewright::candidate
