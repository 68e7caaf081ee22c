#include "tools/exit_code.h"

namespace tilewright::tools {

ExitCode exit_code(const Diagnostic& diagnostic) {
  switch (diagnostic.code) {
    case DiagnosticCode::E1606: return ExitCode::Incorrect;  // unfair
    case DiagnosticCode::E3200:                              // no such candidate
    case DiagnosticCode::E3303:                              // the folder is in use
    case DiagnosticCode::E3300:                              // files that were named: absent, malformed, unwritable
    case DiagnosticCode::E3301:
    case DiagnosticCode::E3310:
    case DiagnosticCode::E3311:
    case DiagnosticCode::E3312:
    case DiagnosticCode::E3313:
    case DiagnosticCode::E3314:
    case DiagnosticCode::E3400: return ExitCode::Usage;
    case DiagnosticCode::E3201:  // does not do this
    case DiagnosticCode::E3204: return ExitCode::Insufficient;
    case DiagnosticCode::E3202:  // died, hung, answered nonsense, failed
    case DiagnosticCode::E3203:
    case DiagnosticCode::E3205:
    case DiagnosticCode::E3206: return ExitCode::InvalidMeasurement;
    case DiagnosticCode::E1651:  // a log or record of something else
    case DiagnosticCode::E1653: return ExitCode::Stale;
    case DiagnosticCode::E1654: return ExitCode::Incorrect;  // no configuration is right
    default: break;
  }
  const char family = code_text(diagnostic.code)[1];
  return family == '1' || family == '2' ? ExitCode::Usage : ExitCode::Internal;
}

}  // namespace tilewright::tools
