// The kinds of candidates a process can open, by the prefix of their spelling on the command line:
//   lib:./gemm.so[?option=…]   a shared library behind tilewright/candidate.h
//   worker:numpy               a worker process that speaks JSON lines (a name in workers/, or a path)
// Others (our own kernels: `tile:matmul.tile`) are added by whoever links them in. No globals: the list is a value.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "candidate/candidate.h"
#include "candidate/worker.h"

namespace tilewright::candidate {

class Kinds {
 public:
  /// `target` is what follows the colon. Opens nothing yet: only checks that the spelling makes sense.
  using Maker = std::function<Result<CandidatePtr>(const std::string& target)>;

  void add(std::string prefix, std::string what, Maker maker);
  /// E3200 names the known kinds. A bare path ending in .so is a "lib", one ending in .py a "worker".
  Result<CandidatePtr> make(const std::string& spelling) const;
  /// prefix → one line about it.
  std::map<std::string, std::string> list() const;

 private:
  struct Kind {
    std::string what;
    Maker maker;
  };
  std::map<std::string, Kind> kinds_;
};

/// Shared libraries and workers.
Kinds built_in_kinds(const WorkerOptions& workers);

}  // namespace tilewright::candidate
