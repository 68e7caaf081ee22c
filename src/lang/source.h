// A kernel source: one `.tile` file with everything it imports.
//
// Immutable and cheap to copy. Locations of everything made from it name its files; `text_of` gives a file's text for
// rendering a Diagnostic.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "lang/ast.h"

namespace tilewright::lang {

/// Gives the text of an imported file.
using ReadFile = std::function<Result<std::string>(const std::string& path)>;

class Source {
 public:
  /// Kernels of the main file first, then of its imports.
  std::vector<std::string> kernel_names() const;
  const KernelSyntax* find_kernel(std::string_view name) const;
  const FnSyntax* find_function(std::string_view name) const;
  std::vector<std::string> function_names() const;
  const std::string& name() const { return *files_.front()->name; }
  /// The text of the file called `file_name`, or empty.
  std::string_view text_of(std::string_view file_name) const;
  /// render() with the caret line of whichever file the diagnostic points into.
  std::string render(const Diagnostic& diagnostic) const;

 private:
  Source() = default;
  friend Result<Source> parse_source(std::string_view, std::string, const ReadFile&);
  std::vector<std::shared_ptr<const File>> files_;
};

/// `import "x.tile"` is looked up beside the importing file by `read`; without one, imports are refused (E1070).
Result<Source> parse_source(std::string_view text, std::string file_name, const ReadFile& read = {});

/// Reads the file and its imports from disk.
Result<Source> load_source(const std::string& path);

}  // namespace tilewright::lang
