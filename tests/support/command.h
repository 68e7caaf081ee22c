// Runs a program as a user does and gives back how it ended and what it said.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "candidate/child_process.h"

namespace tilewright::test {

struct Answer {
  int code = -1;  ///< −1 when a signal ended it
  std::string out, err;
};

/// Waits at most `timeout`; a program that does not end is killed.
inline Answer run_program(candidate::ChildOptions options, std::chrono::seconds timeout = std::chrono::seconds(180)) {
  Answer answer;
  auto child = candidate::ChildProcess::start(options);
  if (!child) {
    answer.err = child.error().message;
    return answer;
  }
  child->close_input();
  while (auto line = child->read_line(timeout)) answer.out += *line + "\n";
  answer.code = child->wait(timeout).exit_code;
  answer.err = child->stderr_tail(4000);
  return answer;
}

/// `tilewright` of this build.
inline Answer tilewright(std::vector<std::string> words) {
  words.insert(words.begin(), TW_BINARY_DIR "/bin/tilewright");
  return run_program({.argv = std::move(words)});
}

}  // namespace tilewright::test
