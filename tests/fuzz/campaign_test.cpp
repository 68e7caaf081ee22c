#include "fuzz/campaign.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "fuzz/isolated.h"
#include "fuzz/shrink.h"
#include "fuzz/tables.h"

namespace tilewright::fuzz {
namespace {

/// The interpreter, wrong on purpose: with `breaks(kernel)` the first output's first byte is changed.
class Sabotaged : public Subject {
 public:
  explicit Sabotaged(std::function<bool(const ir::Kernel&)> breaks) : breaks_(std::move(breaks)) {}
  std::string name() const override { return "sabotaged interpreter"; }
  Status run(const ir::Kernel& kernel, const interp::Call& call, const Plant&) override {
    const auto out = interp::run(kernel, call);
    if (!out) return std::unexpected(out.error());
    if (!breaks_(kernel)) return {};
    for (size_t i = 0; i < kernel.tensors.size(); ++i) {
      if (kernel.tensors[i].direction != ir::Direction::Out || call.tensors[i].shape[0] == 0) continue;
      // Outside any element: the canary before the array.
      static_cast<unsigned char*>(call.tensors[i].data)[-1] = 0;
    }
    return {};
  }

 private:
  std::function<bool(const ir::Kernel&)> breaks_;
};

bool has_reduction(const ir::Kernel& kernel) {
  bool found = false;
  ir::for_each_op(*kernel.body, [&](ir::Op& op) { found |= op.kind == ir::OpKind::Reduce; });
  return found;
}

TEST(Campaign, FindsShrinksAndKeepsAFailure) {
  Sabotaged subject(has_reduction);
  const auto folder = std::filesystem::temp_directory_path() / ("fuzz_campaign_test_" + std::to_string(::getpid()));
  const CampaignReport report = run_campaign(
      subject, {.cases = 300, .seed = 5, .keep_in = folder.string(), .most_failures = 1, .isolate = false});
  ASSERT_EQ(report.failures.size(), 1u);
  const Failure& f = report.failures[0];
  EXPECT_EQ(f.verdict, Verdict::Mismatch);
  EXPECT_TRUE(f.detail.starts_with("bytes outside O0 were written")) << f.detail;
  EXPECT_LE(f.operations, 8) << f.kernel;
  const auto kept = read_kept(f.file);
  ASSERT_TRUE(kept) << render(kept.error());
  EXPECT_EQ(*kept, f.choices);
  Choices choices(*kept);
  EXPECT_EQ(judge(generate(choices), subject).verdict, Verdict::Mismatch);
  std::filesystem::remove_all(folder);
}

TEST(Campaign, TheSameSeedGivesTheSameCampaign) {
  Sabotaged subject([](const ir::Kernel&) { return false; });
  const CampaignOptions options = {.cases = 40, .seed = 11, .isolate = false};
  const CampaignReport a = run_campaign(subject, options), b = run_campaign(subject, options);
  EXPECT_EQ(a.elements, b.elements);
  EXPECT_EQ(a.coverage.table(), b.coverage.table());
  EXPECT_EQ(a.verdicts, b.verdicts);
  EXPECT_TRUE(a.failures.empty());
}

TEST(Campaign, RefusesAFileThatIsNotACase) {
  const auto kept = read_kept("/dev/null");
  ASSERT_FALSE(kept);
  EXPECT_EQ(kept.error().message, "/dev/null is not a kept fuzz case");
}

TEST(Isolated, ACrashAndAHangAreVerdictsAndTheRestGoesOn) {
  std::vector<Verdict> verdicts;
  judge_isolated(
      5,
      [](int64_t i) -> Judgement {
        if (i == 1) ::_exit(3);
        if (i == 3) ::pause();
        return {Verdict::Match, "", i, 0};
      },
      [&](int64_t i, const Judgement& j) {
        EXPECT_EQ(i, static_cast<int64_t>(verdicts.size()));
        verdicts.push_back(j.verdict);
        return true;
      },
      {.seconds_per_case = 1});
  EXPECT_EQ(verdicts, (std::vector{Verdict::Match, Verdict::Crashed, Verdict::Match, Verdict::Hung, Verdict::Match}));
}

TEST(Shrink, ReachesTheSmallestListThatStillFails) {
  // Fails when some choice is at least 5 and a later one at least 3.
  const auto fails = [](const std::vector<uint32_t>& c) {
    for (size_t i = 0; i < c.size(); ++i) {
      for (size_t j = i + 1; j < c.size() && c[i] >= 5; ++j) {
        if (c[j] >= 3) return true;
      }
    }
    return false;
  };
  EXPECT_EQ(shrink({9, 1, 7, 0, 2, 8, 4, 4, 1, 6, 2}, fails), (std::vector<uint32_t>{5, 3}));
}

TEST(Tables, TheInterpreterAgreesWithItself) {
  Sabotaged subject([](const ir::Kernel&) { return false; });
  for (const TableResult& t : run_tables(subject)) {
    EXPECT_EQ(t.wrong, 0) << t.name << ": " << t.first;
    EXPECT_GT(t.checked, 0) << t.name;
  }
}

}  // namespace
}  // namespace tilewright::fuzz
