// `tilewright doctor`: can this machine measure, and what would disturb it.
#include <fmt/core.h>

#include "tools/command.h"

namespace tilewright::tools {

Run add_doctor(CLI::App& app, Session& session) {
  app.footer("Examples:\n  tilewright doctor");
  return [&session]() -> Result<ExitCode> {
    for (const auto& [kind, what] : session.kinds.list()) fmt::print("{:<8} {}\n", kind, what);
    return ExitCode::Ok;
  };
}

}  // namespace tilewright::tools
