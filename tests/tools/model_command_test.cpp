// The worked example of `--model-cmd`: an operator swapped inside ONNX Runtime, so that the framework's overhead is in
// the number.
#include <gtest/gtest.h>

#include "support/command.h"

namespace tilewright::tools {
namespace {

TEST(ModelCommand, TheOnnxRuntimeExampleIsComparedWithItsOwnOperator) {
  const std::string script = TW_SOURCE_DIR "/examples/models/ort_swapped.py";
  std::string python = "python3";
  for (const char* own : {TW_BINARY_DIR "/../python/bin/python3"}) {
    if (test::run_program({.argv = {own, "-c", "import onnxruntime_extensions"}}).code == 0) python = own;
  }
  if (test::run_program({.argv = {python, "-c", "import onnx, onnxruntime, onnxruntime_extensions, scipy_openblas32"}})
          .code != 0)
    GTEST_SKIP() << "pip install onnxruntime onnx onnxruntime-extensions scipy-openblas32";
  const test::Answer answer =
      test::tilewright({"model", "compare", "--model-cmd", python + " " + script, "--rounds", "8"});
  // Which is faster is the machine's business; that it was right, paired and judged is ours.
  EXPECT_TRUE(answer.code == 0 || answer.code == 4 || answer.code == 5 || answer.code == 6) << answer.out << answer.err;
  for (const char* part : {"8 rounds", "ratio", "A/A gate"})
    EXPECT_NE(answer.out.find(part), std::string::npos) << part << "\n" << answer.out;
}

TEST(ModelCommand, AProgramThatIsNoModelIsNamed) {
  const test::Answer answer = test::tilewright({"model", "compare", "--model-cmd", "true", "--rounds", "6"});
  EXPECT_NE(answer.code, 0);
  EXPECT_NE(answer.err.find("ended (exit 0)"), std::string::npos) << answer.err;
}

TEST(ModelCommand, AProgramThatIsNotThereIsAMistypedCommand) {
  const test::Answer answer =
      test::tilewright({"model", "compare", "--model-cmd", "nosuchprog --fast", "--rounds", "6"});
  EXPECT_EQ(answer.code, 2);
  EXPECT_NE(answer.err.find("the model command 'nosuchprog --fast' cannot be started"), std::string::npos)
      << answer.err;
}

}  // namespace
}  // namespace tilewright::tools
