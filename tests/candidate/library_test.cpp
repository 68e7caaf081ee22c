#include "candidate/library.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "candidate/kinds.h"

namespace tilewright::candidate {
namespace {

const std::string kToy = TW_BINARY_DIR "/toys/toy.so";
const ContractText kAdd{R"({"op":"add"})", std::string(64, 'a')};

CandidatePtr opened(const std::string& options) {
  auto made = make_library_candidate(kToy + "?" + options);
  EXPECT_TRUE(made) << made.error().message;
  EXPECT_TRUE((*made)->open({}));
  return std::move(*made);
}

TEST(LibraryCandidate, RunsThroughItsLife) {
  CandidatePtr toy = opened("spin_us=1");
  EXPECT_EQ(toy->identity().name, "toy-spin_us=1");
  EXPECT_EQ(toy->identity().version, "1.0");
  EXPECT_EQ(toy->prepare(kAdd)->digest, kAdd.digest);
  EXPECT_EQ(toy->compile("{}")->compiles, 1);
  EXPECT_EQ(toy->workspace_bytes(), 4096);
  std::vector<float> a{1, 2, 3}, b{10, 20, 30}, c(3);
  std::vector<Tensor> args{{"A", DType::F32, {3}, {1}, false, a.data()},
                           {"B", DType::F32, {3}, {1}, false, b.data()},
                           {"C", DType::F32, {3}, {1}, true, c.data()}};
  ASSERT_TRUE(toy->launch(args, nullptr, nullptr));
  EXPECT_EQ(c, (std::vector<float>{11, 22, 33}));
  EXPECT_EQ(args[0].byte_count(), 12u);
}

TEST(LibraryCandidate, ADifferingEchoIsReadAsFields) {
  CandidatePtr toy = opened("mask=causal-tl,echo=honest");
  EXPECT_EQ(toy->prepare(kAdd)->differing.at("mask.spec"), "causal-tl");
}

TEST(LibraryCandidate, RefusalIsNotAFailure) {
  CandidatePtr toy = opened("refuse=compile");
  const auto compiled = toy->compile("{}");
  ASSERT_FALSE(compiled);
  EXPECT_EQ(compiled.error().code, DiagnosticCode::E3201);
  EXPECT_EQ(compiled.error().message, "toy-refuse=compile: compile failed: the toy was told to refuse");
}

TEST(LibraryCandidate, MissingFileAndForeignLibraryAreNamed) {
  EXPECT_EQ(make_library_candidate("/nowhere/x.so").error().code, DiagnosticCode::E3200);
  auto libc = make_library_candidate("/lib/x86_64-linux-gnu/libm.so.6");
  if (!libc) GTEST_SKIP();
  EXPECT_NE((*libc)->open({}).error().message.find("does not export tw_candidate_entry"), std::string::npos);
}

TEST(Kinds, UnknownSpellingListsTheKnownOnes) {
  const Kinds kinds = built_in_kinds({});
  const auto made = kinds.make("magic:x");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().message, "no kind of candidate is spelled 'magic:x'");
  EXPECT_NE(made.error().help.find("lib:…"), std::string::npos);
  EXPECT_TRUE(kinds.make(kToy));
  EXPECT_TRUE(kinds.make("lib:" + kToy));
}

}  // namespace
}  // namespace tilewright::candidate
