#include "tune/space.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

namespace tilewright::tune {
namespace {

bool holds(const std::string& text, const nlohmann::json& bindings) {
  const Result<Constraint> constraint = Constraint::parse(text);
  EXPECT_TRUE(constraint.has_value()) << text;
  const Result<bool> result = constraint->holds(config_from_json(bindings).value());
  EXPECT_TRUE(result.has_value()) << text;
  return result.value_or(false);
}

Space space_of(const std::string& text, std::vector<std::pair<std::string, int64_t>> dims = {}) {
  Result<Space> space = Space::from_json(nlohmann::json::parse(text), std::move(dims));
  EXPECT_TRUE(space.has_value()) << (space ? "" : render(space.error()));
  return std::move(*space);
}

TEST(Constraint, MeansWhatTheLanguageMeans) {
  const nlohmann::json b = {{"a", 7}, {"b", -2}, {"w", "f16"}, {"z", 0}};
  EXPECT_TRUE(holds("a // b == -4 and a % b == -1", b));
  EXPECT_TRUE(holds("a + 2 * 3 == 13", b));
  EXPECT_TRUE(holds("(a + 2) * 3 == 27", b));
  EXPECT_TRUE(holds("a - 1 - 1 == 5", b));
  EXPECT_TRUE(holds("not a < b and a >= 7", b));
  EXPECT_TRUE(holds("not (a < b or a == 0)", b));
  EXPECT_TRUE(holds("w == 'f16' and w != \"f32\"", b));
  EXPECT_TRUE(holds("min(a, b) == b and max(a, -b) == a", b));
  EXPECT_TRUE(holds("a == 7 or 1 // z == 0", b));  // the right side is not reached
  EXPECT_FALSE(holds("a <= 6", b));
}

TEST(Constraint, RefusesWithTheText) {
  for (const char* text : {"", "a +", "a b", "(a", "min(a)", "1x", "a == 'f", "a = 1", "a and"}) {
    EXPECT_FALSE(Constraint::parse(text).has_value()) << text;
  }
  const Config config = config_from_json({{"w", "f16"}, {"z", 0}}).value();
  EXPECT_EQ(Constraint::parse("q == 1")->holds(config).error().message,
            "constraint 'q == 1': 'q' is neither a parameter nor a dimension");
  EXPECT_EQ(Constraint::parse("1 % z == 1")->holds(config).error().message,
            "constraint '1 % z == 1': division by zero");
  EXPECT_EQ(Constraint::parse("w < 1")->holds(config).error().message,
            "constraint 'w < 1': the word 'f16' is used as a number");
  EXPECT_FALSE(Constraint::parse(std::string(100000, '(')).has_value());
}

TEST(Space, EnumeratesInDeclaredOrderAndKeepsThePruned) {
  const Space space =
      space_of(R"({"params":[{"name":"m","values":[1,2,3]},{"name":"t","values":["x","y"],"default":"y"}],
    "constraints":[{"expr":"m != 2 or t == 'x'","reason":"y needs odd m"}, "m <= M"]})",
               {{"M", 2}});
  std::vector<std::string> points;
  for (const Config& config : space.points()) points.push_back(to_string(config));
  EXPECT_EQ(points, (std::vector<std::string>{"m=1 t=x", "m=1 t=y", "m=2 t=x"}));
  ASSERT_EQ(space.pruned().size(), 3u);
  EXPECT_EQ(to_string(space.pruned()[0].config), "m=2 t=y");
  EXPECT_EQ(space.pruned()[0].reason, "y needs odd m");
  EXPECT_EQ(space.pruned()[1].reason, "m <= M");
  EXPECT_EQ(space.default_point(), 1u);
  EXPECT_EQ(space.neighbours(0), (std::vector<size_t>{1, 2}));
  EXPECT_EQ(space.find(config_from_json({{"t", "x"}, {"m", 2}}).value()), 2u);
}

TEST(Space, DigestIsOfParametersOrderConstraintsAndDims) {
  const std::string base =
      R"({"params":[{"name":"a","values":[1,2]},{"name":"b","values":[1,2]}],"constraints":["a <= b"]})";
  std::set<std::string> digests = {space_of(base).digest()};
  EXPECT_EQ(space_of(base).digest(), *digests.begin());
  for (
      const char* other : {
          R"({"params":[{"name":"b","values":[1,2]},{"name":"a","values":[1,2]}],"constraints":["a <= b"]})",
          R"({"params":[{"name":"a","values":[2,1]},{"name":"b","values":[1,2]}],"constraints":["a <= b"]})",
          R"({"params":[{"name":"a","values":[1,2]},{"name":"b","values":[1,2]}],"constraints":["a < b"]})",
          R"({"params":[{"name":"a","values":[1,2]},{"name":"b","values":[1,2]}]})",
          R"({"params":[{"name":"a","values":[1,2],"default":2},{"name":"b","values":[1,2]}],"constraints":["a <= b"]})",
      }) {
    EXPECT_TRUE(digests.insert(space_of(other).digest()).second) << other;
  }
  EXPECT_TRUE(digests.insert(space_of(base, {{"M", 1}}).digest()).second);
}

TEST(Space, RefusesNonsense) {
  for (const char* text : {
           R"([])",
           R"({"params":[{"name":"a"}]})",
           R"({"params":[{"name":"a","values":[]}]})",
           R"({"params":[{"name":"a","values":[1,1]}]})",
           R"({"params":[{"name":"a","values":[1.5]}]})",
           R"({"params":[{"name":"a","values":[1],"default":2}]})",
           R"({"params":[{"name":"a","values":[1]},{"name":"a","values":[1]}]})",
           R"({"params":[{"name":"a","values":[1]}],"constraints":[3]})",
           R"({"params":[{"name":"a","values":[1]}],"constraints":["b == 1"]})",
       }) {
    EXPECT_FALSE(Space::from_json(nlohmann::json::parse(text)).has_value()) << text;
  }
}

TEST(Space, TargetPruningKeepsTheDigest) {
  Space space = space_of(R"({"params":[{"name":"a","values":[1,2]}]})");
  const std::string before = space.digest();
  space.prune([](const Config& config) {
    return config.number("a", 0) == 2 ? std::optional<std::string>("too big") : std::nullopt;
  });
  EXPECT_EQ(space.points().size(), 1u);
  EXPECT_EQ(space.pruned().back().reason, "too big");
  EXPECT_EQ(space.digest(), before);
}

}  // namespace
}  // namespace tilewright::tune
