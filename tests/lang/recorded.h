// Kernels written in C++ (tilewright/kernel.h), compiled to IR the way a file's text is.
#pragma once

#include <tilewright/kernel.h>

#include <stdexcept>

#include "lang/elaborate.h"

namespace tilewright::lang {

/// Why the text is refused, with its caret line.
class TextRefused : public std::runtime_error {
 public:
  TextRefused(Diagnostic d, const std::string& rendered) : std::runtime_error(rendered), diagnostic(std::move(d)) {}
  Diagnostic diagnostic;
};

inline ir::Kernel instantiate_text(const std::string& text, const std::string& kernel,
                                   const Configuration& configuration) {
  const Result<Source> source = parse_source(text, kernel + ".tile");
  if (!source) throw TextRefused(source.error(), render(source.error(), text));
  Result<ir::Kernel> made = instantiate(*source, kernel, configuration);
  if (!made) throw TextRefused(made.error(), source->render(made.error()));
  return std::move(*made);
}
inline ir::Kernel finish(const kernel::KernelBuilder& k, const Configuration& configuration = {}) {
  return instantiate_text(k.text(), k.name(), configuration);
}

}  // namespace tilewright::lang
