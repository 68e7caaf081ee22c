#include "base/loaded_file.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace tilewright {
namespace {

void here() {}

TEST(LoadedFile, IsThisProgramForItsOwnCode) {
  EXPECT_EQ(loaded_file(reinterpret_cast<const void*>(&here)),
            std::filesystem::read_symlink("/proc/self/exe").string());
}

TEST(LoadedFile, IsTheLibraryForItsCode) {
  // A function that no sanitizer replaces by one of its own.
  const std::string path = loaded_file(reinterpret_cast<const void*>(&::lldiv));
  EXPECT_NE(path.find("libc"), std::string::npos) << path;
}

TEST(LoadedFile, IsTheProgramWhereNothingIsMapped) { EXPECT_EQ(loaded_file(nullptr), "/proc/self/exe"); }

}  // namespace
}  // namespace tilewright
