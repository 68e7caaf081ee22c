// A library opened with dlopen and kept open, its symbols by name; and where the libraries of the rivals are looked
// for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"

namespace tilewright::adapters {

class SharedObject {
 public:
  /// Never closed again: thread pools of numeric libraries do not survive dlclose. E3204.
  static Result<SharedObject> open(const std::string& path);
  const std::string& path() const { return path_; }

  /// Null when there is no such symbol.
  template <typename Function>
  Function* find(const std::string& name) const {
    return reinterpret_cast<Function*>(address(name));
  }

 private:
  void* address(const std::string& name) const;
  void* handle_ = nullptr;
  std::string path_;
};

/// The folders below which `python` keeps packages and data (site-packages, then the prefix's lib), or nothing without
/// Python.
std::vector<std::string> python_folders(const std::string& python);

}  // namespace tilewright::adapters
