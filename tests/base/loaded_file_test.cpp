#include "base/loaded_file.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>

namespace tilewright {
namespace {

void here() {}

TEST(LoadedFile, IsThisProgramForItsOwnCode) {
  EXPECT_EQ(loaded_file(reinterpret_cast<const void*>(&here)),
            std::filesystem::read_symlink("/proc/self/exe").string());
}

TEST(LoadedFile, IsTheLibraryForItsCode) {
  const std::string path = loaded_file(reinterpret_cast<const void*>(&std::fopen));
  EXPECT_NE(path.find("libc"), std::string::npos) << path;
}

TEST(LoadedFile, IsTheProgramWhereNothingIsMapped) { EXPECT_EQ(loaded_file(nullptr), "/proc/self/exe"); }

}  // namespace
}  // namespace tilewright
