// Kernels of other systems get whole rows with no `.tile` file: the example library over OpenBLAS, built with the
// command its own header gives, and an operator of ONNX Runtime.
#include <dlfcn.h>

#include "toy_bench.h"

namespace tilewright::bench {
namespace {

class ForeignCandidates : public ToyBench {
 protected:
  test::Answer bench_foreign(const std::string& candidate, const std::string& key) const {
    return test::tilewright({"bench", candidate, "--op", key, "--budget", "selftest", "--no-reference", "--model",
                             "none", "--out", out_.string(), "--no-progress"});
  }
  /// A library its vendor compiled has everything but a compile.
  void expect_whole_row(const std::string& candidate, State compile) const {
    const TableRow line = row(candidate);
    EXPECT_EQ(line.reference_ok, ReferenceOk::True);
    EXPECT_EQ(line.compile_ms.state, compile);
    EXPECT_EQ(line.warm_ms.state, State::Measured);
    EXPECT_GT(line.warm_ms.value, 0);
    EXPECT_EQ(line.peak_mb.state, State::Measured);
    EXPECT_EQ(line.model_ms.state, State::NotRun);
  }
};

TEST_F(ForeignCandidates, TheOpenBlasExampleBuildsAndGetsItsRow) {
  if (dlopen("libopenblas.so.0", RTLD_LAZY) == nullptr) GTEST_SKIP() << "OpenBLAS is not installed";
  const std::filesystem::path built_at = out_ / "library";  // beside the folders of candidates
  std::filesystem::create_directories(built_at);
  const std::string library = (built_at / "openblas_gemm.so").string();
  const std::string root = TW_SOURCE_DIR;
  const test::Answer built = test::run_program(
      {.argv = {"cc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-I", root + "/include",
                root + "/examples/candidate/openblas_gemm.c", "-o", library, "-ldl"}});
  ASSERT_EQ(built.code, 0) << built.err;
  for (const char* layout : {"nn", "tt"}) {
    const test::Answer measured = bench_foreign("lib:" + library, std::string("gemm:48x40x32:") + layout);
    ASSERT_EQ(measured.code, 0) << measured.out << measured.err;
  }
  expect_whole_row("openblas-gemm", State::NotRun);
  const test::Answer refused = bench_foreign("lib:" + library, "softmax:8x8");
  EXPECT_EQ(refused.code, 6) << refused.err;
  EXPECT_NE(refused.out.find("only products (gemm)"), std::string::npos) << refused.out;
}

TEST_F(ForeignCandidates, AFileThatIsNoLibraryIsToldBeforeAnythingIsMeasured) {
  const test::Answer refused = bench_foreign("lib:" TW_SOURCE_DIR "/README.md", "gemm:16x16x16");
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("E3200"), std::string::npos) << refused.err;
  EXPECT_TRUE(cells().empty());
}

TEST_F(ForeignCandidates, ALibraryUnderAnotherOfItsNamesIsNoCheat) {
  const std::filesystem::path folder = out_ / "library";
  std::filesystem::create_directories(folder);
  std::filesystem::create_symlink(TW_BINARY_DIR "/toys/toy.so", folder / "link.so");
  for (const std::string& name : {folder.string() + "/link.so", folder.string() + "/../library/./link.so"}) {
    const test::Answer measured = bench_foreign("lib:" + name + "?spin_us=10", "gemm:16x16x16");
    EXPECT_EQ(measured.code, 0) << measured.out;
  }
}

TEST_F(ForeignCandidates, AnOperatorOfOnnxRuntimeGetsItsRow) {
  const test::Answer measured = bench_foreign("worker:onnxruntime", "gemm:48x40x32");
  if (measured.code == 6) GTEST_SKIP() << "ONNX Runtime is not installed: " << measured.out;
  ASSERT_EQ(measured.code, 0) << measured.out << measured.err;
  expect_whole_row("onnxruntime", State::Measured);
}

}  // namespace
}  // namespace tilewright::bench
