#include <gtest/gtest.h>

#include "fuzz/campaign.h"
#include "lang/elaborate.h"

namespace tilewright::fuzz {
namespace {

TEST(Planned, TheCpuPlanAgreesWithTheInterpreter) {
  const auto subject = make_planned_subject();
  const CampaignReport report = run_campaign(*subject, {.cases = 400, .seed = 1, .shrink_tries = 100});
  for (const Failure& f : report.failures) ADD_FAILURE() << "case " << f.number << ": " << f.detail << "\n" << f.kernel;
  EXPECT_EQ(report.cases, 400);
}

/// Attention hides rows behind -inf and lowest(f32): the bounds must survive both.
TEST(Bounded, AttentionIsDecidedAlmostEverywhere) {
  const auto source = lang::load_source(TW_SOURCE_DIR "/kernels/attention.tile");
  ASSERT_TRUE(source);
  lang::Configuration configuration;
  configuration.dims = {{"B", 1}, {"S", 33}, {"T", 40}, {"HQ", 2}, {"HK", 1}, {"D", 32}};
  const auto kernel = lang::instantiate(*source, source->kernel_names()[0], configuration);
  ASSERT_TRUE(kernel) << source->render(kernel.error());
  Case c;
  c.kernel = ir::clone(*kernel);
  c.comparison = Comparison::Bounded;
  for (const ir::Dimension& d : c.kernel.dimensions) c.dimensions.push_back(configuration.dims.at(d.name));
  c.tensors.resize(c.kernel.tensors.size());
  for (const ir::ScalarArgument& s : c.kernel.scalars)
    c.scalars.push_back(s.default_value.value_or(ir::ConstantAttributes{.real = 0.17}));
  Arrays arrays(c);
  const auto out = interp::run(c.kernel, arrays.call(), {.mode = interp::Mode::Bounded});
  ASSERT_TRUE(out) << render(out.error());
  for (const interp::Expected& e : out->expected) {
    int64_t unknown = 0;
    for (const double b : e.elements.bound) unknown += !(b < 0.1);
    EXPECT_LE(unknown * 10, e.elements.lanes);
  }
}

}  // namespace
}  // namespace tilewright::fuzz
