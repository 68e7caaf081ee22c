// `tilewright stage`: the child process of `bench`, `compare` and `tune`. Not for people: it reads one request from
// stdin.
#include "bench/stage_child.h"
#include "tools/command.h"

namespace tilewright::tools {

Run add_stage(CLI::App&, Session& session) {
  return [&session]() -> Result<ExitCode> { return static_cast<ExitCode>(bench::run_stage_child(session.kinds)); };
}

}  // namespace tilewright::tools
