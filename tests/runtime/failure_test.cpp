#include "runtime/failure.h"

#include <gtest/gtest.h>

#include <map>

namespace tilewright::runtime {
namespace {

// The compiler's table of codes has the same rows, so that `E1403` means one thing everywhere.
TEST(Failure, RowsStandInTheDiagnosticTable) {
  const std::map<std::string, std::string> diagnostics = {
#define TW_DIAGNOSTIC(code, name) {#code, #name},
#include "base/diagnostic.def"
#undef TW_DIAGNOSTIC
  };
#define TW_FAILURE(number, name)                          \
  ASSERT_TRUE(diagnostics.count("E" #number)) << #number; \
  EXPECT_EQ(diagnostics.at("E" #number), #name);
#include "runtime/failure.def"
#undef TW_FAILURE
}

TEST(Failure, SaysCodeAndName) {
  EXPECT_EQ(code_text(FailureCode::wrong_dtype), "E1403");
  EXPECT_EQ(name(FailureCode::wrong_dtype), "wrong_dtype");
}

}  // namespace
}  // namespace tilewright::runtime
