// A candidate that lives in a process of its own and speaks JSON lines, tensors in shared memory: PyTorch, ONNX
// Runtime, Triton, anything. docs/workers.md is the protocol. The worker times its launches itself; the harness checks
// the times against its own clock.
#pragma once

#include <filesystem>

#include "candidate/candidate.h"

namespace tilewright::candidate {

struct WorkerOptions {
  std::filesystem::path folder;    ///< where `worker:numpy` finds numpy_worker.py
  std::string python = "python3";  ///< runs files that end in .py
};

/// `target` is a ready worker's name, a .py file, or a program; then optionally '?' and text handed over in `open`.
Result<CandidatePtr> make_worker_candidate(const std::string& target, const WorkerOptions& options);

/// Names of the ready workers in the folder.
std::vector<std::string> list_workers(const std::filesystem::path& folder);

}  // namespace tilewright::candidate
