#include "lang/elaborate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/printer.h"

namespace tilewright::lang {
namespace {

using testing::HasSubstr;

Source load(const std::string& name) {
  Result<Source> source = load_source(std::string(TW_SOURCE_DIR) + "/kernels/" + name);
  if (!source) throw std::runtime_error(render(source.error()));
  return *source;
}

TEST(Elaborate, MatmulRelu) {
  const Source source = load("matmul_relu.tile");
  Result<ir::Kernel> kernel = instantiate(source, "matmul_relu", {});
  ASSERT_TRUE(kernel) << source.render(kernel.error());
  const std::string text = ir::to_text(*kernel);
  EXPECT_THAT(text, HasSubstr("gemm {a = %A_s[0 :+ 144, 0 :+ 256], b = %B_s[0 :+ 256, 0 :+ 256]"));
}

TEST(Elaborate, Attention) {
  const Source source = load("attention.tile");
  Result<ir::Kernel> kernel = instantiate(source, "attention", {.dims = {{"D", 64}}});
  ASSERT_TRUE(kernel) << source.render(kernel.error());
  const std::string text = ir::to_text(*kernel);
  EXPECT_THAT(text, HasSubstr("dim %D = 64"));
  Result<ir::Kernel> missing = instantiate(source, "attention", {});
  ASSERT_FALSE(missing);
  EXPECT_THAT(source.render(missing.error()), HasSubstr("pass --dim D="));
}

}  // namespace
}  // namespace tilewright::lang
