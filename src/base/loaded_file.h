// Which file the running code was loaded from.
// Guarantees: an absolute path however the program or the library was named when it was loaded, and wherever the
// current folder is now. Does not: follow files that were replaced since (the path gets the system's " (deleted)").
#pragma once

#include <string>

namespace tilewright {

/// The file whose mapping holds `code`; "/proc/self/exe" when the system does not say.
std::string loaded_file(const void* code);

}  // namespace tilewright
