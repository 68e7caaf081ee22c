// Sources that can be read once: pipes.
#include "lang/read_once.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "lang/source.h"

namespace tilewright::lang {
namespace {

constexpr std::string_view kKernel = "kernel k(X: f32[N]) -> (Y: f32[N])\n{\n  grid (b: 1) { clear(Y[:]) }\n}\n";

TEST(ReadOnce, APipeGivesItsTextEveryTime) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], kKernel.data(), kKernel.size()), static_cast<ssize_t>(kKernel.size()));
  ::close(ends[1]);
  const std::string path = fmt::format("/proc/self/fd/{}", ends[0]);
  for (int i = 0; i < 2; ++i) {
    const auto text = read_once(path);
    ASSERT_TRUE(text && *text);
    EXPECT_EQ(**text, kKernel);
    const auto source = load_source(path);
    ASSERT_TRUE(source) << render(source.error());
    EXPECT_EQ(source->kernel_names(), std::vector<std::string>{"k"});
  }
  ::close(ends[0]);
}

TEST(ReadOnce, FilesAndFoldersAreNotKept) {
  EXPECT_FALSE(read_once(TW_SOURCE_DIR "/kernels/softmax.tile"));
  EXPECT_FALSE(read_once(TW_SOURCE_DIR "/kernels"));
  EXPECT_FALSE(read_once("/nowhere.tile"));
}

TEST(ReadOnce, StandardInputHasAName) {
  EXPECT_EQ(source_name("-"), "<stdin>");
  EXPECT_EQ(source_name("/dev/stdin"), "<stdin>");
  EXPECT_EQ(source_name("kernels/softmax.tile"), "kernels/softmax.tile");
}

}  // namespace
}  // namespace tilewright::lang
