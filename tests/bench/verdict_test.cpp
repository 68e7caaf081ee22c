// From a registered objective through real measurements of toys with planted delays to the verdict.
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "toy_bench.h"

namespace tilewright::bench {
namespace {

class VerdictOfToys : public ToyBench {
 protected:
  void SetUp() override {
    if (std::getenv("TILEWRIGHT_FULL") == nullptr) GTEST_SKIP() << "takes minutes: TILEWRIGHT_FULL=1 runs it";
    ToyBench::SetUp();
  }
  /// `candidate` against `rival`, with a full life and small samples.
  void measure(const std::string& candidate, const std::string& rival) const {
    BenchOptions o = options(candidate);
    o.references = {kToy + rival};
    o.budget.name = "full";
    o.budget.warm_processes = 6;
    o.budget.warm.timeout_ms = o.budget.hot.timeout_ms = 5000;
    const auto report = run_bench(o);
    ASSERT_TRUE(report) << report.error().message;
  }
  std::string objective(const std::string& candidate) const {
    const std::string path = (out_ / "objective.json").string();
    std::ofstream(path)
        << R"({"candidate":"toy-)" << candidate
        << R"(","calls_per_day":1e6,"horizon_days":100,"human_cost":"excluded","tuning_cost":"excluded","min_gain":0.1,)"
        << R"("accepted_by":"A","accepted_on":"2026-01-31"})";
    return path;
  }
  test::Answer decide(const std::string& path) const {
    return test::tilewright({"decide", path, "--out", out_.string(), "--resamples", "500"});
  }
  test::Answer registered(const std::string& path) const {
    return test::tilewright({"decide", "--register", path, "--out", out_.string()});
  }
};

TEST_F(VerdictOfToys, TenTimesFasterIsAdopted) {
  const std::string path = objective("spin_us=200");
  ASSERT_EQ(registered(path).code, 0);
  EXPECT_EQ(decide(path).code, 6) << "nothing was measured yet";
  measure("spin_us=200", "spin_us=2000");
  const test::Answer verdict = decide(path);
  EXPECT_EQ(verdict.code, 0) << verdict.out;
  EXPECT_TRUE(verdict.out.starts_with("ADOPT")) << verdict.out;
  EXPECT_NE(verdict.out.find("what would flip it"), std::string::npos);
}

TEST_F(VerdictOfToys, SlowerIsRejectedAndTheClauseIsNamed) {
  const std::string path = objective("spin_us=2000");
  ASSERT_EQ(registered(path).code, 0);
  measure("spin_us=2000", "spin_us=200");
  const test::Answer verdict = decide(path);
  EXPECT_EQ(verdict.code, 8) << verdict.out;
  EXPECT_NE(verdict.out.find("✗ p50 warm_ms gain"), std::string::npos) << verdict.out;
}

TEST_F(VerdictOfToys, WithoutRegistrationTheSameNumbersAreInsufficient) {
  const std::string path = objective("spin_us=200");
  measure("spin_us=200", "spin_us=2000");
  const test::Answer verdict = decide(path);
  EXPECT_EQ(verdict.code, 6) << verdict.out;
  EXPECT_NE(verdict.out.find("post-hoc"), std::string::npos) << verdict.out;
}

}  // namespace
}  // namespace tilewright::bench
