#include "kernels/catalogue.h"

#include <gtest/gtest.h>

#include "lang/elaborate.h"

namespace tilewright::kernels {
namespace {

TEST(Catalogue, EveryFileIsBuiltInAndItsImportsResolve) {
  EXPECT_GE(embedded_files().size(), 14u);
  for (const EmbeddedFile& file : embedded_files()) {
    const Result<lang::Source> source = load(file.name);
    ASSERT_TRUE(source) << render(source.error());
    EXPECT_FALSE(source->text_of("kernels/" + std::string(file.name)).empty());
  }
}

TEST(Catalogue, FindsAKernelByName) {
  const Result<lang::Source> source = load_kernel("matmul_epilogue");
  ASSERT_TRUE(source) << render(source.error());
  EXPECT_EQ(source->name(), "kernels/matmul.tile");
  EXPECT_TRUE(lang::instantiate(*source, "matmul_epilogue", {}));
}

TEST(Catalogue, SaysWhatIsClosest) {
  const Result<lang::Source> source = load_kernel("matmull");
  ASSERT_FALSE(source);
  EXPECT_EQ(render(source.error()),
            "error[E1013]: there is no built-in kernel `matmull`\n  help: did you mean `matmul`?\n");
  EXPECT_FALSE(load("nothing_like_it"));
}

}  // namespace
}  // namespace tilewright::kernels
