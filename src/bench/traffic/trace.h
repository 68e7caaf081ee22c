// A request trace: when each request arrived and how many prompt tokens it brought.
//
// Reads CSV or JSON lines whose columns are named `TIMESTAMP,ContextTokens,GeneratedTokens` (Azure LLM traces), or
// `t_s,in,out`, in any order. Guarantees: rows are stable-sorted by time and times are seconds since the first row;
// every refusal names the line. Does not repair: a malformed row, a negative or non-finite time, or a prompt below one
// token refuses the whole file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"

namespace tilewright::traffic {

struct Request {
  double t_s = 0;      ///< arrival, seconds since the first request
  int64_t prompt = 0;  ///< prompt tokens, >= 1
  int64_t output = 0;  ///< generated tokens, 0 where the file has no such column
};

struct Trace {
  std::string name;    ///< file name without folders
  std::string sha256;  ///< of the file's bytes
  std::vector<Request> requests;
  int64_t out_of_order = 0;  ///< rows that stood before an earlier one in the file

  double span_s() const { return requests.empty() ? 0 : requests.back().t_s; }
};

Result<Trace> parse_trace(std::string_view text, const std::string& name);
Result<Trace> load_trace(const std::filesystem::path& path);

}  // namespace tilewright::traffic
