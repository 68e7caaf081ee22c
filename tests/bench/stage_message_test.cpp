#include "bench/stage_message.h"

#include <gtest/gtest.h>

namespace tilewright::bench {
namespace {

TEST(StageMessage, RequestsReadBack) {
  StageRequest r;
  r.kind = StageKind::Pair;
  r.candidate = "lib:a.so";
  r.rival = "worker:numpy";
  r.references = {"x", "y"};
  r.lengths = {{3, 4}};
  r.seed = 7;
  r.warm.timeout_ms = 123;
  r.token = "abc";
  const auto back = parse_stage_request(to_json(r));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(to_json(*back), to_json(r));
  EXPECT_FALSE(parse_stage_request(nlohmann::json::object()));
  EXPECT_FALSE(parse_stage_request("text"));
}

TEST(StageMessage, DiagnosticsKeepTheirCode) {
  Diagnostic d;
  d.code = DiagnosticCode::E3204;
  d.message = "m";
  d.help = "h";
  const Diagnostic back = parse_diagnostic(to_json(d));
  EXPECT_EQ(back.code, d.code);
  EXPECT_EQ(back.message, "m");
  EXPECT_EQ(back.help, "h");
}

}  // namespace
}  // namespace tilewright::bench
