#include "bench/traffic/trace.h"

#include <gtest/gtest.h>

#include "base/hash.h"

namespace tilewright::traffic {
namespace {

Trace parsed(std::string_view text) {
  Result<Trace> trace = parse_trace(text, "folder/t.csv");
  EXPECT_TRUE(trace.has_value()) << (trace ? "" : render(trace.error()));
  return trace ? *trace : Trace{};
}

std::string refusal(std::string_view text) {
  Result<Trace> trace = parse_trace(text, "t.csv");
  EXPECT_FALSE(trace.has_value());
  return trace ? "" : render(trace.error());
}

TEST(Trace, ReadsAzureColumnsAsSecondsSinceTheFirstRow) {
  const Trace trace = parsed(
      "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
      "2023-11-16 18:59:59.9799600,4808,10\r\n"
      "2023-11-16 19:00:00.0319600,3180,8\r\n");
  ASSERT_EQ(trace.requests.size(), 2u);
  EXPECT_EQ(trace.name, "t.csv");
  EXPECT_EQ(trace.requests[0].t_s, 0);
  EXPECT_NEAR(trace.requests[1].t_s, 0.052, 1e-9);
  EXPECT_EQ(trace.requests[1].prompt, 3180);
  EXPECT_EQ(trace.requests[1].output, 8);
}

TEST(Trace, EveryFormatGivesTheSameRequests) {
  const Trace csv = parsed("t_s,in,out\n10.5,7,3\n12.25,9,1\n");
  for (std::string_view same : {
           "\xEF\xBB\xBFin,t_s,out\n7,10.5,3\n9,12.25,1",
           "{\"t_s\":10.5,\"in\":7,\"out\":3}\n\n{\"t_s\":12.25,\"in\":9,\"out\":1}\n",
           "{\"TIMESTAMP\":\"2024-02-29T23:59:59.5Z\",\"ContextTokens\":7,\"GeneratedTokens\":3}\n"
           "{\"TIMESTAMP\":\"2024-03-01T00:00:01.25Z\",\"ContextTokens\":9,\"GeneratedTokens\":1}\n",
           "\"t_s\",\"in\",\"out\"\n\"10.5\",\"7\",\"3\"\n\"12.25\",\"9\",\"1\"\n",
       }) {
    const Trace other = parsed(same);
    ASSERT_EQ(other.requests.size(), 2u) << same;
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_DOUBLE_EQ(other.requests[i].t_s, csv.requests[i].t_s);
      EXPECT_EQ(other.requests[i].prompt, csv.requests[i].prompt);
      EXPECT_EQ(other.requests[i].output, csv.requests[i].output);
    }
  }
}

TEST(Trace, SortsStablyAndCountsRowsOutOfOrder) {
  const Trace trace = parsed("t_s,in\n5,1\n3,2\n5,3\n3,4\n");
  EXPECT_EQ(trace.out_of_order, 2);
  std::vector<int64_t> prompts;
  for (const Request& request : trace.requests) prompts.push_back(request.prompt);
  EXPECT_EQ(prompts, (std::vector<int64_t>{2, 4, 1, 3}));
  EXPECT_EQ(trace.span_s(), 2);
}

TEST(Trace, RefusesWithTheLine) {
  EXPECT_NE(refusal("").find("error[E1641]: the trace is empty"), std::string::npos);
  EXPECT_NE(refusal("t_s,in,out\n").find("error[E1641]: the trace has a header and no request"), std::string::npos);
  EXPECT_NE(refusal("t_s,in\n1,2\n-0.5,3\n").find("t.csv:3:1: error[E1642]: the arrival time -0.5 s is negative"),
            std::string::npos);
  EXPECT_NE(refusal("t_s,in\n1,2\n1\n").find("t.csv:3:1: error[E1640]: expected 2 columns, found 1: '1'"),
            std::string::npos);
  EXPECT_NE(refusal("t_s,in\n1,2x\n").find("t.csv:2:1: error[E1640]: expected a whole number of tokens, found '2x'"),
            std::string::npos);
  EXPECT_NE(refusal("t_s,in\n1,0\n").find("token count 0 is outside 1..2147483648"), std::string::npos);
  EXPECT_NE(refusal("t_s,in\nnan,1\n").find("expected a time, found 'nan'"), std::string::npos);
  EXPECT_NE(refusal("when,in\n1,1\n").find("the header 'when,in' has no arrival-time column"), std::string::npos);
  EXPECT_NE(refusal("t_s,x\n1,1\n").find("has no prompt-token column"), std::string::npos);
  EXPECT_NE(refusal("{\"t_s\":1,\"in\":2}\n{\"t_s\":1,\"in\"\n").find("t.csv:2:1: error[E1640]: not a JSON object"),
            std::string::npos);
  EXPECT_NE(refusal("TIMESTAMP,in\n2023-02-30 10:00:00,1\n").find("is not a date and time"), std::string::npos);
  EXPECT_NE(refusal("TIMESTAMP,in\n2023-02-20 10:00:00+05,1\n").find("is not a date and time in UTC"),
            std::string::npos);
}

TEST(Trace, RefusesAMissingFile) {
  Result<Trace> trace = load_trace("/nonexistent/trace.csv");
  ASSERT_FALSE(trace.has_value());
  EXPECT_EQ(code_text(trace.error().code), "E1643");
}

TEST(Trace, DigestIsOfTheBytes) { EXPECT_EQ(parsed("t_s,in\n1,1\n").sha256, sha256_hex("t_s,in\n1,1\n")); }

}  // namespace
}  // namespace tilewright::traffic
