// Golden files: a test compares a text with the file that holds it; `--update-golden` (or TW_UPDATE_GOLDEN=1) writes
// the file instead, for a person to read the difference in version control.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace tilewright::test_support {

inline std::string read_text(const std::filesystem::path& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

inline bool wants_update() {
  const std::vector<std::string> arguments = testing::internal::GetArgvs();
  return std::getenv("TW_UPDATE_GOLDEN") || std::ranges::find(arguments, "--update-golden") != arguments.end();
}

inline void expect_golden(const std::filesystem::path& path, const std::string& got) {
  if (wants_update()) std::ofstream(path, std::ios::binary) << got;
  EXPECT_EQ(got, read_text(path)) << path << "; run with --update-golden when the change is meant";
}

/// Stems of the files of `folder` with `extension`, sorted.
inline std::vector<std::string> stems(const std::filesystem::path& folder, const std::string& extension) {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == extension) out.push_back(entry.path().stem());
  }
  std::ranges::sort(out);
  return out;
}

}  // namespace tilewright::test_support
