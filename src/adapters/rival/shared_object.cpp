#include "adapters/rival/shared_object.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>

namespace tilewright::adapters {

Result<SharedObject> SharedObject::open(const std::string& path) {
  SharedObject object;
  object.handle_ = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!object.handle_) return fail(DiagnosticCode::E3204, fmt::format("cannot open {}: {}", path, ::dlerror()));
  object.path_ = path;
  return object;
}

void* SharedObject::address(const std::string& name) const { return ::dlsym(handle_, name.c_str()); }

namespace {

std::vector<std::string> ask_interpreter(const std::string& python) {
  const std::string command = python +
                              " -c \"import sysconfig as s; print(s.get_paths()['platlib']); "
                              "print(s.get_config_var('prefix') + '/lib')\" 2>/dev/null";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  std::vector<std::string> folders;
  std::array<char, 4096> line;
  while (pipe && std::fgets(line.data(), line.size(), pipe.get())) {
    std::string folder(line.data());
    while (!folder.empty() && folder.back() == '\n') folder.pop_back();
    folders.push_back(std::move(folder));
  }
  return folders;
}

}  // namespace

std::vector<std::string> python_folders(const std::string& python) {
  // A parent's answer reaches its children this way: the search must not be part of what a rival takes to open.
  constexpr const char* kKnown = "TILEWRIGHT_PYTHON_FOLDERS";
  if (::getenv(kKnown) == nullptr)
    ::setenv(kKnown, fmt::format("{}", fmt::join(ask_interpreter(python), ":")).c_str(), /*overwrite=*/1);
  std::vector<std::string> folders;
  std::istringstream known(::getenv(kKnown));
  for (std::string folder; std::getline(known, folder, ':');) folders.push_back(folder);
  return folders;
}

}  // namespace tilewright::adapters
