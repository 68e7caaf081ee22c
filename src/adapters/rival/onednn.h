// oneDNN's matmul primitive as a candidate, opened at run time; its epilogue is fused (post-operations).
#pragma once

#include <string>

#include "candidate/candidate.h"

namespace tilewright::adapters {

/// `path` empty: the PyPI package `onednn` before the system's libdnnl.
Result<candidate::CandidatePtr> make_onednn(const std::string& path, const std::string& python);

}  // namespace tilewright::adapters
