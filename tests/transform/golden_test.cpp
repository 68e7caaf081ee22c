// Every kernel of tests/transform/golden through the passes one by one: the text after each pass that changed it is the
// .golden file's. Whatever a pass does, running it again does nothing.
#include <gtest/gtest.h>

#include "ir/printer.h"
#include "ir/verify.h"
#include "lang/elaborate.h"
#include "support/golden.h"
#include "transform/pass.h"

namespace tilewright::transform {
namespace {

const std::string kFolder = std::string(TW_SOURCE_DIR) + "/tests/transform/golden/";

Result<ir::Kernel> tile_kernel(const std::string& text, const std::string& name) {
  const auto source = lang::parse_source(text, name + ".tile");
  if (!source) return std::unexpected(source.error());
  lang::Configuration configuration;
  const auto info = lang::describe(*source, name, configuration);
  if (!info) return std::unexpected(info.error());
  configuration.dims = info->examples.at(0);
  return lang::instantiate(*source, name, configuration);
}

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, IrAfterEveryPass) {
  auto kernel = tile_kernel(test_support::read_text(kFolder + GetParam() + ".tile"), GetParam());
  ASSERT_TRUE(kernel) << render(kernel.error());
  std::string got = "tile\n" + ir::to_text(*kernel);
  for (const PassInfo& pass : passes()) {
    std::vector<Note> notes;
    const PassOptions options;
    PassContext context{options, notes};
    const std::string before = ir::to_text(*kernel);
    const bool changed = pass.run(*kernel, context);
    const std::string after = ir::to_text(*kernel);
    EXPECT_EQ(changed, before != after) << pass.name;
    EXPECT_TRUE(ir::verify(*kernel)) << pass.name;
    got += "\n" + std::string(pass.name) + (changed ? "\n" + after : ": unchanged\n");
    for (const Note& note : notes) got += "# " + note.what + ": " + note.why + "\n";
    EXPECT_FALSE(pass.run(*kernel, context)) << pass.name << " changes its own result";
  }
  test_support::expect_golden(kFolder + GetParam() + ".golden", got);
}

INSTANTIATE_TEST_SUITE_P(Kernels, Golden, testing::ValuesIn(test_support::stems(kFolder, ".tile")),
                         [](const auto& p) { return p.param; });

}  // namespace
}  // namespace tilewright::transform
