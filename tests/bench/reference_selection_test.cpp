#include "bench/reference_selection.h"

#include <gtest/gtest.h>

#include "bench/stage_cells.h"

namespace tilewright::bench {
namespace {

using nlohmann::json;

json entrant(const char* spelling, double ms) {
  return {{"candidate", spelling}, {"name", spelling}, {"version", "1"}, {"ms", std::vector<double>(7, ms)}};
}

TEST(ReferenceSelection, TakesTheFastestFrameworkAndTheFastestLibraryAndListsAll) {
  json gone{{"candidate", "worker:torch"}, {"refused", "PyTorch is not installed"}};
  json wrong{{"candidate", "rival:blis"}, {"wrong", "max error 1 > 0.1"}};
  const ReferenceSelection selection =
      select_references({{"contenders",
                          {entrant("worker:numpy", 4), entrant("worker:onnxruntime", 3), gone,
                           entrant("rival:openblas", 2), wrong, entrant("rival:onednn", 2.5)}}});
  EXPECT_EQ(selection.chosen, (std::vector<std::string>{"worker:onnxruntime", "rival:openblas"}));
  EXPECT_EQ(selection.tried.size(), 6u);
  EXPECT_EQ(selection.text,
            "\n  rival:openblas                         2 ms  best library"
            "\n  rival:onednn                         2.5 ms"
            "\n  worker:onnxruntime                     3 ms  best framework"
            "\n  worker:numpy                           4 ms"
            "\n  worker:torch                        not-run  PyTorch is not installed"
            "\n  rival:blis                          not-run  max error 1 > 0.1");
}

TEST(ReferenceSelection, NothingThatRunsLeavesNothing) {
  json gone{{"candidate", "worker:torch"}, {"refused", "PyTorch is not installed"}};
  EXPECT_TRUE(select_references({{"contenders", {gone}}}).chosen.empty());
}

TEST(SustainedCells, EveryNumberHasItsOwnNameAndAReasonWhenItIsNotThere) {
  const auto cells =
      sustained_cells({}, {{"steady_ms", {2.0, 2.2, 2.1}}, {"burst_ms", {1.5, 1.6, 1.4}}, {"floor_ms", 0.001}});
  ASSERT_EQ(cells.size(), 4u);
  EXPECT_EQ(cells[0].stage, Stage::Host);
  EXPECT_EQ(cells[0].state, State::NotRun);
  EXPECT_EQ(cells[0].reason, "a launch on a CPU returns when it is done: all of it is host time");
  EXPECT_EQ(cells[1].value, 0.001);
  EXPECT_EQ(cells[2].value, 2.1);
  EXPECT_EQ(cells[3].value, 1.5);
  const auto refused =
      sustained_cells({}, {{"steady_ms", {2.0}}, {"burst_ms", {1.5}}, {"floor_refused", "no such head dimension"}});
  EXPECT_EQ(refused[1].state, State::NotRun);
  EXPECT_EQ(refused[1].reason, "not at extents of 1: no such head dimension");
  for (const Cell& cell : sustained_cells({}, json::object())) EXPECT_EQ(cell.state, State::NotRun);
}

}  // namespace
}  // namespace tilewright::bench
