#include "bench/record/table_csv.h"

#include <gtest/gtest.h>

namespace tilewright::bench {
namespace {

const Subject kGemm{"gemm:128x128x128:nn", "f32/f32/f32", "cpu:EPYC:2c"};

Cell measured(Stage stage, double value) {
  Cell cell = not_run({kGemm, "toy", stage}, "");
  cell.state = State::Measured;
  cell.value = value;
  return cell;
}

Cell check(bool ok) {
  Cell cell = measured(Stage::Check, 0);
  cell.value.reset();
  cell.detail["reference_ok"] = ok;
  return cell;
}

TEST(TableCsv, TemplateIsByteExact) {
  EXPECT_EQ(table_template(), "shape,dtype,device,reference_ok,compile_ms,warm_ms,model_ms,peak_mb\n,,,,not-run,,,\n");
}

TEST(TableCsv, TemplateReadsAsNoRows) {
  const auto rows = parse_table(table_template());
  ASSERT_TRUE(rows);
  EXPECT_TRUE(rows->empty());
}

TEST(TableCsv, WrittenRowsReadBack) {
  const TableRow row{kGemm, ReferenceOk::True, {State::Measured, 12.3456789}, {State::Measured, 0.001},
                     {},    {State::Failed, 0}};
  const std::string text = write_table({row});
  EXPECT_EQ(text, std::string(kTableHeader) +
                      "\ngemm:128x128x128:nn,f32/f32/f32,cpu:EPYC:2c,true,12.3457,0.001,not-run,failed\n");
  const auto back = parse_table(text);
  ASSERT_TRUE(back);
  EXPECT_EQ(write_table(*back), text);
}

TEST(TableCsv, EmptyMetricIsNotRun) {
  const auto rows = parse_table(std::string(kTableHeader) + "\ns,f32,cpu:x:1c,,,,,\n");
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->at(0).warm_ms.state, State::NotRun);
  EXPECT_EQ(rows->at(0).reference_ok, ReferenceOk::NotRun);
}

TEST(TableCsv, BadFieldsAreNamed) {
  const auto message = [](const std::string& line) {
    const auto rows = parse_table(std::string(kTableHeader) + "\n" + line + "\n");
    return rows ? std::string("accepted") : rows.error().message;
  };
  EXPECT_EQ(message("s,f32,cpu:x:1c,true,abc,,,"),
            "table.csv line 2, column compile_ms: 'abc' is not a number, not-run or failed");
  EXPECT_EQ(message("s,f32,cpu:x:1c,true,-1,,,"), "table.csv line 2, column compile_ms: -1 is negative");
  EXPECT_EQ(message("s,f32,cpu:x:1c,true,nan,,,"),
            "table.csv line 2, column compile_ms: 'nan' is not a number, not-run or failed");
  EXPECT_EQ(message("s,f32,cpu:x:1c,yes,1,,,"),
            "table.csv line 2, column reference_ok: 'yes' is not true, false or not-run");
  EXPECT_EQ(message("s,f32,true,1"), "table.csv line 2, column shape: 4 fields, expected 8");
  EXPECT_EQ(message(",f32,cpu:x:1c,true,1,,,"), "table.csv line 2, column shape: the shape is empty");
  EXPECT_FALSE(parse_table("shape;dtype\n"));
  EXPECT_FALSE(parse_table(""));
}

TEST(TableCsv, WrongResultHidesEveryTiming) {
  const auto rows = make_table({check(false), measured(Stage::Warm, 1), measured(Stage::Compile, 2)}, "toy");
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(write_table(rows).find("false,not-run,not-run,not-run,not-run") != std::string::npos, true);
}

TEST(TableCsv, UncheckedResultHidesEveryTiming) {
  EXPECT_NE(write_table(make_table({measured(Stage::Warm, 1)}, "toy")).find("not-run,not-run,not-run,not-run,not-run"),
            std::string::npos);
}

TEST(TableCsv, ClaimsAndSimulationsNeverEnter) {
  Cell claim = measured(Stage::Warm, 1);
  claim.state = State::Claimed;
  Cell simulated = measured(Stage::Model, 1);
  simulated.qualifiers.simulated = true;
  const auto rows = make_table({check(true), claim, simulated}, "toy");
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].warm_ms.state, State::NotRun);
  EXPECT_EQ(rows[0].model_ms.state, State::NotRun);
}

TEST(TableCsv, LatestCellCounts) {
  const auto rows = make_table({check(true), measured(Stage::Warm, 1), measured(Stage::Warm, 2)}, "toy");
  EXPECT_EQ(rows.at(0).warm_ms.value, 2);
}

}  // namespace
}  // namespace tilewright::bench
