#include "base/diagnostic.h"

#include <gtest/gtest.h>

#include "base/dtype.h"

namespace tilewright {
namespace {

TEST(Diagnostic, PutsTheCaretUnderTheToken) {
  Diagnostic d;
  d.code = DiagnosticCode::E1001;
  d.location = {std::make_shared<const std::string>("k.tile"), 2, 7, 3, nullptr};
  d.message = "expected ')', found 'foo'";
  d.help = "close the argument list";
  EXPECT_EQ(render(d, "a\nfill(,foo\nb"),
            "k.tile:2:7: error[E1001]: expected ')', found 'foo'\n"
            "    2 | fill(,foo\n"
            "      |       ^~~\n"
            "  help: close the argument list\n");
}

TEST(DType, EverySpellingParsesBack) {
  for (int i = 0; i <= static_cast<int>(DType::E5M2); ++i) {
    const DTypeInfo& row = info(static_cast<DType>(i));
    EXPECT_EQ(parse_dtype(row.name), row.dtype);
    EXPECT_EQ(parse_dtype(std::string("torch.") + std::string(row.torch_name)), row.dtype);
  }
  EXPECT_EQ(parse_dtype("half"), std::nullopt);
}

}  // namespace
}  // namespace tilewright
