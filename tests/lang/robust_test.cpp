// Any bytes give a kernel or a diagnostic with a place: prefixes, mutations, deep and large inputs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/verify.h"
#include "lang/elaborate.h"
#include "lang/token.h"

namespace tilewright::lang {
namespace {

std::vector<std::string> sources() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(TW_SOURCE_DIR) + "/kernels")) {
    std::ostringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    out.push_back(text.str());
  }
  std::ranges::sort(out);
  return out;
}

uint32_t seed_of_run() {
  const char* given = std::getenv("TW_SEED");
  return given ? static_cast<uint32_t>(std::strtoul(given, nullptr, 10)) : 20261130;
}

/// Runs everything a text can reach; returns the diagnostic's code, or "" when all kernels were made.
std::string digest(std::string_view text) {
  const ReadFile read = [](const std::string&) -> Result<std::string> { return "fn relu(x) = max(x, 0)\n"; };
  const Result<Source> source = parse_source(text, "input.tile", read);
  if (!source) {
    EXPECT_FALSE(source.error().message.empty());
    EXPECT_TRUE(source.error().location.is_known());
    return std::string(code_text(source.error().code));
  }
  std::string out;
  for (const std::string& kernel : source->kernel_names()) {
    Configuration configuration;
    const Result<KernelInfo> info = describe(*source, kernel, configuration);
    if (info && !info->examples.empty()) configuration.dims = info->examples[0];
    const Result<ir::Kernel> made = instantiate(*source, kernel, configuration);
    if (!made) {
      out = code_text(made.error().code);
      EXPECT_FALSE(source->render(made.error()).empty());
      continue;
    }
    const Status valid = ir::verify(*made);
    EXPECT_TRUE(valid) << render(valid.error()) << "\n" << text;
  }
  return out;
}

TEST(Robust, EveryPrefixOfAKernel) {
  for (const std::string& text : sources()) {
    if (text.size() > 3000) continue;
    for (size_t n = 0; n < text.size(); ++n) digest(std::string_view(text).substr(0, n));
  }
}

TEST(Robust, MutatedKernels) {
  const uint32_t seed = seed_of_run();
  SCOPED_TRACE(testing::Message() << "TW_SEED=" << seed);
  std::mt19937 random(seed);
  const std::vector<std::string> texts = sources();
  const auto pick = [&](size_t n) { return static_cast<size_t>(random()) % n; };
  for (int round = 0; round < 1500; ++round) {
    std::string text = texts[pick(texts.size())];
    for (size_t edits = pick(4) + 1; edits > 0; --edits) {
      const size_t at = pick(text.size());
      switch (pick(4)) {
        case 0: text.erase(at, pick(12) + 1); break;
        case 1: text[at] = static_cast<char>(pick(256)); break;
        case 2: text.insert(at, text.substr(pick(text.size()), pick(20))); break;
        default: std::swap(text[at], text[pick(text.size())]);
      }
      if (text.empty()) text = "kernel";
    }
    digest(text);
  }
}

TEST(Robust, DeepNestingIsRefused) {
  for (const std::string open :
       {"(", "[", "{", "-", "~", "not ", "f(", "a[", "1 + (", "if true {", "for i in serial(1) {"}) {
    std::string deep;
    for (int i = 0; i < 20000; ++i) deep += open;
    EXPECT_FALSE(digest("kernel k(X: f32[N]) -> (Y: f32[N]) { grid (b: 1) { let x = " + deep).empty()) << open;
    EXPECT_FALSE(digest("kernel k(X: f32[N]) -> (Y: f32[N]) { grid (b: 1) { " + deep).empty()) << open;
  }
}

TEST(Robust, LongChainsAreRefusedNotOverflowed) {
  std::string chain = "1";
  for (int i = 0; i < 100000; ++i) chain += " + b";
  EXPECT_EQ(digest("kernel k(X: f32[N]) -> (Y: f32[N]) { grid (b: 1) { let x = " + chain + "\n } }"), "E1006");
  std::string elses;
  for (int i = 0; i < 20000; ++i) elses += "if b > 0 { } else ";
  EXPECT_EQ(digest("kernel k(X: f32[N]) -> (Y: f32[N]) { grid (b: 1) { " + elses + "{ } } }"), "E1006");
}

TEST(Robust, ExplosionsAreRefused) {
  std::string doubling = "fn f0(x) { print(x) }\n";
  for (int i = 1; i < 40; ++i) {
    const std::string f = "f" + std::to_string(i - 1);
    doubling += "fn f" + std::to_string(i) + "(x) { " + f + "(x); " + f + "(x) }\n";
  }
  EXPECT_EQ(digest(doubling + "kernel k(X: f32[N]) -> (Y: f32[N]) { grid (b: 1) { f39(b) } }"), "E1005");
  EXPECT_EQ(digest("kernel k(X: f32[N]) -> (Y: f32[N]) { grid (b: 1) { for i in unroll(4096) { for j in unroll(4096) { "
                   "print(i + j) } } } }"),
            "E1005");
}

TEST(Robust, LargeAndBinaryFiles) {
  EXPECT_EQ(digest(std::string(kLargestSource + 1, 'a')), "E1005");
  EXPECT_EQ(digest(std::string("kernel\0k", 8)), "E1007");
  EXPECT_EQ(digest(std::string(kLargestSource, '#')), "");
  EXPECT_EQ(digest("\xff\xfe\x01"), "E1002");
  EXPECT_EQ(digest(std::string(100000, '(')), "E1001");
  EXPECT_EQ(digest(""), "");
}

TEST(Robust, MutatedIr) {
  const uint32_t seed = seed_of_run();
  SCOPED_TRACE(testing::Message() << "TW_SEED=" << seed);
  std::mt19937 random(seed);
  const auto pick = [&](size_t n) { return static_cast<size_t>(random()) % n; };
  const Result<Source> source = load_source(std::string(TW_SOURCE_DIR) + "/kernels/attention.tile");
  ASSERT_TRUE(source);
  const Result<ir::Kernel> kernel = instantiate(*source, "attention", {.dims = {{"D", 64}}});
  ASSERT_TRUE(kernel);
  const std::string whole = ir::to_text(*kernel);
  int accepted = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text = whole;
    const size_t at = pick(text.size());
    switch (pick(3)) {
      case 0: text.erase(at, pick(12) + 1); break;
      case 1: text[at] = static_cast<char>(pick(256)); break;
      default: text.resize(at);
    }
    const Result<ir::Kernel> made = ir::parse_ir(text);
    if (made && ir::verify(*made)) ++accepted;
  }
  EXPECT_LT(accepted, 3000);
}

}  // namespace
}  // namespace tilewright::lang
