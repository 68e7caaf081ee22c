// Every code of base/diagnostic.def is met by a test, or stands in unreached_diagnostics.txt with the reason why no
// test can provoke it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <string>

namespace {

namespace fs = std::filesystem;

const fs::path kRoot = TW_SOURCE_DIR;

std::string read(const fs::path& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

/// code → name, of every `MACRO(code, name)` row.
std::map<std::string, std::string> rows(const fs::path& path, const std::string& macro) {
  std::map<std::string, std::string> out;
  const std::string text = read(path);
  const std::regex row(macro + R"(\((E?\d{4}), (\w+)\))");
  for (auto at = std::sregex_iterator(text.begin(), text.end(), row); at != std::sregex_iterator(); ++at)
    out[(*at)[1]] = (*at)[2];
  return out;
}

/// Everything the tests say, this test's own list apart.
std::string text_of_tests() {
  std::string out;
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / "tests")) {
    const fs::path& path = entry.path();
    if (!entry.is_regular_file() || path.string().find("/corpus/") != std::string::npos) continue;
    const std::string extension = path.extension();
    if (extension == ".cpp" || extension == ".h" || extension == ".c" || extension == ".expected" ||
        extension == ".golden" || extension == ".sh" || extension == ".py")
      out += read(path);
  }
  return out + read(kRoot / "scripts/check_examples.sh");
}

bool mentions(const std::string& text, const std::string& word) {
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    const auto is_part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    if ((at == 0 || !is_part(text[at - 1])) && (end == text.size() || !is_part(text[end]))) return true;
  }
  return false;
}

TEST(Diagnostics, EveryCodeIsTestedOrItsAbsenceExplained) {
  const auto codes = rows(kRoot / "src/base/diagnostic.def", "TW_DIAGNOSTIC");
  const auto failures = rows(kRoot / "src/runtime/failure.def", "TW_FAILURE");
  ASSERT_GT(codes.size(), 100u);
  std::map<std::string, std::string> reasons;
  std::istringstream list(read(kRoot / "tests/project/unreached_diagnostics.txt"));
  for (std::string line; std::getline(list, line);) {
    if (line.empty() || line[0] == '#') continue;
    ASSERT_GT(line.size(), 12u) << line;
    reasons[line.substr(0, 5)] = line.substr(7);
  }
  const std::string tests = text_of_tests();
  for (const auto& [code, name] : codes) {
    const auto failure = failures.find(code.substr(1));
    const bool tested = mentions(tests, code) || (failure != failures.end() &&
                                                  tests.find("FailureCode::" + failure->second) != std::string::npos);
    if (reasons.contains(code)) {
      EXPECT_FALSE(tested) << code << " " << name << " is tested: take it off tests/project/unreached_diagnostics.txt";
    } else {
      EXPECT_TRUE(tested) << code << " " << name
                          << " has no test: write one with its exact text, or say in "
                             "tests/project/unreached_diagnostics.txt why none can reach it";
    }
  }
  for (const auto& [code, reason] : reasons) EXPECT_TRUE(codes.contains(code)) << code << " is no code: " << reason;
}

TEST(Plants, EveryPlantTheCodeAsksForIsInTheTable) {
  const std::string table = read(kRoot / "src/fuzz/plants.def");
  const std::regex asked(R"(plant_?\.is\(\"(\w+)\", (\d+)\))");
  int count = 0;
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / "src")) {
    if (entry.path().extension() != ".cpp") continue;
    const std::string text = read(entry.path());
    for (auto at = std::sregex_iterator(text.begin(), text.end(), asked); at != std::sregex_iterator(); ++at, ++count)
      EXPECT_NE(table.find("\"" + (*at)[1].str() + ":" + (*at)[2].str() + "\""), std::string::npos)
          << (*at)[0] << " in " << entry.path() << " has no row in src/fuzz/plants.def";
  }
  EXPECT_GE(count, 8);
}

}  // namespace
