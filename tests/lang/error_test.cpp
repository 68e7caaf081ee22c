// Every file of tests/lang/errors is refused with exactly the text of its .expected file (TW_UPDATE_GOLDEN=1 rewrites
// them).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "lang/elaborate.h"

namespace tilewright::lang {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

/// What a user sees first: parsing, the header, or the kernel of the first example (of the optional tensors, none).
std::string refusal(const std::string& text, const std::string& name) {
  const Result<Source> source = parse_source(text, name);
  if (!source) return render(source.error(), text);
  Configuration configuration;
  const KernelSyntax* syntax = source->find_kernel(source->kernel_names().at(0));
  for (const ArgumentSyntax& a : syntax->arguments) {
    if (a.optional) configuration.absent.insert(a.name);
  }
  const Result<KernelInfo> info = describe(*source, syntax->name, configuration);
  if (!info) return source->render(info.error());
  if (!info->examples.empty()) configuration.dims = info->examples[0];
  const Result<ir::Kernel> kernel = instantiate(*source, syntax->name, configuration);
  return kernel ? "accepted\n" : source->render(kernel.error());
}

std::vector<std::string> error_files() {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(std::string(TW_SOURCE_DIR) + "/tests/lang/errors")) {
    if (entry.path().extension() == ".tile") out.push_back(entry.path().stem());
  }
  std::ranges::sort(out);
  return out;
}

class Refused : public testing::TestWithParam<std::string> {};

TEST_P(Refused, WithThisText) {
  const std::string stem = std::string(TW_SOURCE_DIR) + "/tests/lang/errors/" + GetParam();
  const std::string got = refusal(read(stem + ".tile"), GetParam() + ".tile");
  if (std::getenv("TW_UPDATE_GOLDEN")) std::ofstream(stem + ".expected", std::ios::binary) << got;
  EXPECT_EQ(got, read(stem + ".expected"));
  EXPECT_NE(got, "accepted\n");
}

INSTANTIATE_TEST_SUITE_P(Files, Refused, testing::ValuesIn(error_files()), [](const auto& file) { return file.param; });

}  // namespace
}  // namespace tilewright::lang
