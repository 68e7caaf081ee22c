// `tilewright traffic replay`, kept apart from the simulator's subcommands.
#pragma once

#include "tools/command.h"

namespace tilewright::tools {

/// Adds the subcommand to `traffic`; the returned function runs it.
std::pair<CLI::App*, Run> add_traffic_replay(CLI::App& traffic, Session& session);

}  // namespace tilewright::tools
