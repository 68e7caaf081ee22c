// The GPU planner against the interpreter, and its planted mistakes.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "codegen/cuda/assemble.h"
#include "fuzz/campaign.h"
#include "fuzz/plants.h"
#include "fuzz/tables.h"

namespace tilewright::fuzz {
namespace {

std::unique_ptr<Subject> subject_for(const char* architecture) {
  return make_thread_subject(*target::parse_gpu(architecture));
}

CampaignReport expect_agreement(const char* architecture, int64_t cases, uint64_t seed, Focus focus = Focus::Any) {
  const auto subject = subject_for(architecture);
  const CampaignReport report = run_campaign(
      *subject, {.cases = cases, .seed = seed, .generate = {.matrix = true, .focus = focus}, .shrink_tries = 100});
  for (const Failure& f : report.failures) ADD_FAILURE() << "case " << f.number << ": " << f.detail << "\n" << f.kernel;
  EXPECT_EQ(report.cases, cases);
  for (const auto& [form, n] : report.forms) std::printf("%4ld × %s\n", static_cast<long>(n), form.c_str());
  return report;
}

TEST(ThreadPrograms, AgreeWithTheInterpreterOnHopper) { expect_agreement("sm_90a", 60, 3); }
// Without a focus few cases, or none, are products that wgmma takes.
TEST(ThreadPrograms, ProductsOnHopperAgreeWithTheInterpreter) {
  const CampaignReport report = expect_agreement("sm_90a", 24, 5, Focus::Products);
  int64_t on_wgmma = 0;
  for (const auto& [form, n] : report.forms)
    if (form.starts_with("wgmma")) on_wgmma += n;
  EXPECT_GT(on_wgmma, 4);
}

TEST(ThreadPrograms, AgreeWithTheInterpreterOnAmpere) { expect_agreement("sm_80", 40, 4); }

/// Mistakes of the form that has warps of roles, rings and wgmma.
bool is_hopper(const std::string& plant) {
  return plant.starts_with("gpu_ring") || plant.starts_with("gpu_products") || plant.starts_with("gpu_chain") ||
         plant.starts_with("gpu_cluster");
}

// Programs the interpreter runs, refused by the assembler.
TEST(ThreadPrograms, AreTakenByTheAssembler) {
  if (const auto assembler = codegen::Assembler::open(); !assembler) GTEST_SKIP() << assembler.error().message;
  const auto subject = make_thread_subject(*target::parse_gpu("sm_90a"), {.assembles = true});
  const CampaignReport report =
      run_campaign(*subject, {.cases = 12, .seed = 11, .generate = {.matrix = true}, .shrink_tries = 20});
  for (const Failure& f : report.failures) ADD_FAILURE() << "case " << f.number << ": " << f.detail << "\n" << f.kernel;
}

// Every pair of dtypes at every halfway point and limit: rounded once, saturated, NaN as docs/semantics.md says.
TEST(Conversions, ThreadProgramsRoundOnce) {
  for (const char* architecture : {"sm_80", "sm_90a"}) {
    const auto subject = subject_for(architecture);
    for (const TableResult& t : run_conversion_tables(*subject)) {
      EXPECT_EQ(t.wrong, 0) << architecture << ", " << t.name << ": " << t.first;
      EXPECT_GT(t.checked, 0) << t.name;
    }
  }
}

TEST(Conversions, NativeCodeRoundsOnce) {
  const auto subject = make_native_subject();
  if (!subject) GTEST_SKIP() << subject.error().message;
  for (const TableResult& t : run_conversion_tables(**subject)) EXPECT_EQ(t.wrong, 0) << t.name << ": " << t.first;
}

class PlantedGpuMistake : public testing::TestWithParam<std::string> {};

TEST_P(PlantedGpuMistake, IsFound) {
  const auto plant = parse_plant(GetParam());
  ASSERT_TRUE(plant);
  const Focus focus = focus_of(*plant);
  const bool is_slow = focus == Focus::Products || focus == Focus::Chain;  // and small as it is found
  const auto subject = subject_for(is_hopper(GetParam()) ? "sm_90a" : "sm_80");
  const CampaignReport report = run_campaign(*subject, {.cases = 200,
                                                        .seed = 1,
                                                        .plant = *plant,
                                                        .generate = {.matrix = true, .focus = focus},
                                                        .most_failures = 1,
                                                        .shrink_tries = is_slow ? 1 : 400});
  ASSERT_EQ(report.failures.size(), 1u) << "not found in " << report.cases << " cases";
  const Failure& f = report.failures[0];
  EXPECT_LE(f.operations, 96) << f.kernel;
  std::printf("%s: found by case %ld, %.1f s, shrunk to %d operations: %s\n", GetParam().c_str(),
              static_cast<long>(f.number), report.seconds, f.operations, f.detail.c_str());
}

std::vector<std::string> gpu_plants() {
  std::vector<std::string> out;
  for (const PlantInfo& p : plants())
    if (p.is_gpu) out.emplace_back(p.name);
  return out;
}

INSTANTIATE_TEST_SUITE_P(All, PlantedGpuMistake, testing::ValuesIn(gpu_plants()), [](const auto& param) {
  std::string name = param.param;
  std::replace(name.begin(), name.end(), ':', '_');
  return name;
});

}  // namespace
}  // namespace tilewright::fuzz
