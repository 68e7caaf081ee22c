#include "tools/exit_code.h"

namespace tilewright::tools {

ExitCode exit_code(const Diagnostic& diagnostic) {
  const char family = code_text(diagnostic.code)[1];
  return family == '1' || family == '2' ? ExitCode::Usage : ExitCode::Internal;
}

}  // namespace tilewright::tools
