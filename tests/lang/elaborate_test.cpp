#include "lang/elaborate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/verify.h"

namespace tilewright::lang {
namespace {

using testing::HasSubstr;

Source load(const std::string& name) {
  Result<Source> source = load_source(std::string(TW_SOURCE_DIR) + "/kernels/" + name);
  if (!source) throw std::runtime_error(render(source.error()));
  return *source;
}

/// Instantiates, verifies, and reads the printed text back.
ir::Kernel make(const Source& source, std::string_view kernel, const Configuration& configuration = {}) {
  Result<ir::Kernel> made = instantiate(source, kernel, configuration);
  if (!made) throw std::runtime_error(source.render(made.error()));
  if (const Status good = ir::verify(*made); !good) throw std::runtime_error(render(good.error()));
  for (const bool names : {true, false}) {
    const std::string text = ir::to_text(*made, {.names = names});
    const Result<ir::Kernel> again = ir::parse_ir(text);
    if (!again) throw std::runtime_error(render(again.error(), text));
    if (const Status good = ir::verify(*again); !good) throw std::runtime_error(render(good.error(), text));
    EXPECT_EQ(ir::to_text(*again, {.names = names}), text);
    EXPECT_TRUE(ir::equal(*made, *again));
  }
  return std::move(*made);
}

TEST(Elaborate, MatmulRelu) {
  const Source source = load("matmul_relu.tile");
  const std::string text = ir::to_text(make(source, "matmul_relu"));
  EXPECT_THAT(text, HasSubstr("gemm {a = %A_s[0 :+ 144, 0 :+ 256], b = %B_s[0 :+ 256, 0 :+ 256]"));
}

TEST(Elaborate, Attention) {
  const Source source = load("attention.tile");
  const std::string text = ir::to_text(make(source, "attention", {.dims = {{"D", 64}}}));
  EXPECT_THAT(text, HasSubstr("dim %D = 64"));
  Result<ir::Kernel> missing = instantiate(source, "attention", {});
  ASSERT_FALSE(missing);
  EXPECT_THAT(source.render(missing.error()), HasSubstr("pass --dim D="));
}

}  // namespace
}  // namespace tilewright::lang
