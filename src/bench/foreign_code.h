// What a candidate uses besides its own code. Kernel libraries this process has mapped, and files it has written: a
// candidate that computes with one must say so, or it is judged under a name that is not its own.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "bench/stage_message.h"
#include "candidate/candidate.h"

namespace tilewright::bench {

class ForeignCode {
 public:
  static ForeignCode of_this_process();

  /// A library mapped since, of the known list or another candidate's, that the identity of this candidate does not
  /// name.
  std::optional<std::string> undeclared_library(const candidate::Candidate& candidate) const;

 private:
  std::set<std::string> files_;
};

/// Workers write in their own process; our rivals ask an interpreter for its folders, whose output the kernel's counter
/// of this process includes.
bool counts_writes(const candidate::Candidate& candidate, std::string_view spelling);
/// Bytes this process has written to files through system calls; what went to the parent and to stderr does not count.
/// On a device the little that the CUDA driver writes to itself (125 bytes were seen) does not count either.
int64_t written_to_files(const StageChannel& channel, bool is_on_device = false);

}  // namespace tilewright::bench
