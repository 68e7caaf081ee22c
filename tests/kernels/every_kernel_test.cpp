// Every kernel of kernels/ and examples/, both targets, every value of every parameter: it instantiates or is refused
// with an E2xxx, verifies, and its printed IR reads back as itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/verify.h"
#include "lang/elaborate.h"

namespace tilewright::lang {
namespace {

std::vector<std::string> tile_files() {
  std::vector<std::string> out;
  for (const char* folder : {"/kernels", "/examples"}) {
    for (const auto& entry : std::filesystem::directory_iterator(std::string(TW_SOURCE_DIR) + folder)) {
      if (entry.path().extension() == ".tile") out.push_back(entry.path());
    }
  }
  std::ranges::sort(out);
  return out;
}

class EveryKernel : public testing::TestWithParam<std::string> {
 protected:
  void check(const Source& source, const std::string& kernel, const Configuration& configuration) {
    const Result<ir::Kernel> made = instantiate(source, kernel, configuration);
    if (!made) {
      EXPECT_EQ(code_text(made.error().code).substr(0, 2), "E2") << source.render(made.error());
      return;
    }
    const Status valid = ir::verify(*made);
    ASSERT_TRUE(valid) << render(valid.error()) << ir::to_text(*made);
    for (const bool names : {true, false}) {
      const std::string text = ir::to_text(*made, {.names = names});
      const Result<ir::Kernel> again = ir::parse_ir(text);
      ASSERT_TRUE(again) << render(again.error(), text);
      EXPECT_EQ(ir::to_text(*again, {.names = names}), text);
    }
    EXPECT_TRUE(ir::equal(*made, ir::clone(*made)));
  }
};

TEST_P(EveryKernel, InstantiatesForEveryParameter) {
  const Result<Source> source = load_source(GetParam());
  ASSERT_TRUE(source) << render(source.error());
  for (const std::string& kernel : source->kernel_names()) {
    SCOPED_TRACE(kernel);
    for (const Target target : {Target::Cpu, Target::Cuda}) {
      const Result<KernelInfo> info = describe(*source, kernel, {.target = target});
      ASSERT_TRUE(info) << source->render(info.error());
      EXPECT_FALSE(info->doc.empty()) << "a kernel states its shapes and dtypes in the comment above it";
      EXPECT_FALSE(info->references.empty() && GetParam().find("/kernels/") != std::string::npos);
      ASSERT_FALSE(info->examples.empty());
      Configuration configuration{.target = target, .dims = info->examples[0]};
      check(*source, kernel, configuration);
      for (const ParamInfo& param : info->params) {
        for (const ParamValue& value : param.domain) {
          configuration.params = {{param.name, value}};
          SCOPED_TRACE(param.name + " = " + to_string(value));
          check(*source, kernel, configuration);
        }
      }
      configuration.params.clear();
      configuration.specialise = true;
      check(*source, kernel, configuration);
      for (const ArgumentInfo& argument : info->arguments) {
        if (argument.optional) configuration.absent.insert(argument.name);
      }
      check(*source, kernel, configuration);
    }
  }
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  const std::filesystem::path path(info.param);
  return path.parent_path().filename().string() + "_" + path.stem().string();
}
INSTANTIATE_TEST_SUITE_P(Files, EveryKernel, testing::ValuesIn(tile_files()), test_name);

}  // namespace
}  // namespace tilewright::lang
