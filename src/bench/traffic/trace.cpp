#include "bench/traffic/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "base/hash.h"

namespace tilewright::traffic {
namespace {

constexpr int64_t kMaxTokens = int64_t{1} << 31;
constexpr std::array<std::string_view, 4> kTimeNames = {"TIMESTAMP", "t_s", "arrival_s", "timestamp"};
constexpr std::array<std::string_view, 4> kPromptNames = {"ContextTokens", "in", "prompt_tokens", "input_tokens"};
constexpr std::array<std::string_view, 4> kOutputNames = {"GeneratedTokens", "out", "completion_tokens",
                                                          "output_tokens"};

template <size_t N>
bool is_one_of(std::string_view text, const std::array<std::string_view, N>& names) {
  return std::find(names.begin(), names.end(), text) != names.end();
}

/// A row before sorting. Whole seconds stay apart from the fraction, so an epoch date keeps its 100 ns digits.
struct RawRow {
  int64_t whole_s = 0;
  double fraction_s = 0;
  int64_t prompt = 0;
  int64_t output = 0;

  bool is_before(const RawRow& other) const {
    return whole_s != other.whole_s ? whole_s < other.whole_s : fraction_s < other.fraction_s;
  }
};

class Reader {
 public:
  explicit Reader(const std::string& name) : file_(std::make_shared<const std::string>(name)) {}

  Result<std::vector<RawRow>> read(std::string_view text) {
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    const size_t first = text.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos) return fail_at(DiagnosticCode::E1641, here(), "the trace is empty", kHelp);
    const bool is_json = text[first] == '{';
    std::vector<RawRow> rows;
    bool saw_header = is_json;
    while (!text.empty()) {
      ++line_;
      const size_t end = text.find('\n');
      std::string_view line = text.substr(0, end);
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line.find_first_not_of(" \t") == std::string_view::npos) continue;
      if (!saw_header) {
        if (Status status = read_header(line); !status) return std::unexpected(status.error());
        saw_header = true;
        continue;
      }
      Result<RawRow> row = is_json ? read_json(line) : read_csv(line);
      if (!row) return std::unexpected(row.error());
      rows.push_back(*row);
    }
    if (rows.empty()) return fail_at(DiagnosticCode::E1641, here(), "the trace has a header and no request", kHelp);
    return rows;
  }

 private:
  static constexpr const char* kHelp =
      "give CSV or JSON lines with TIMESTAMP,ContextTokens,GeneratedTokens or t_s,in,out; one request a row";

  Location here() const { return {file_, line_, 1, 1, nullptr}; }

  std::unexpected<Diagnostic> malformed(std::string message) const {
    return fail_at(DiagnosticCode::E1640, here(), std::move(message), kHelp);
  }

  static std::vector<std::string_view> split(std::string_view line) {
    std::vector<std::string_view> fields;
    for (;;) {
      const size_t comma = line.find(',');
      std::string_view field = line.substr(0, comma);
      while (field.starts_with(' ')) field.remove_prefix(1);
      while (field.ends_with(' ')) field.remove_suffix(1);
      if (field.size() >= 2 && field.front() == '"' && field.back() == '"') field = field.substr(1, field.size() - 2);
      fields.push_back(field);
      if (comma == std::string_view::npos) return fields;
      line.remove_prefix(comma + 1);
    }
  }

  Status read_header(std::string_view line) {
    const std::vector<std::string_view> names = split(line);
    columns_ = names.size();
    for (size_t i = 0; i < names.size(); ++i) {
      if (is_one_of(names[i], kTimeNames)) time_at_ = i;
      if (is_one_of(names[i], kPromptNames)) prompt_at_ = i;
      if (is_one_of(names[i], kOutputNames)) output_at_ = i;
    }
    if (!time_at_) return malformed(fmt::format("the header '{}' has no arrival-time column", line.substr(0, 80)));
    if (!prompt_at_) return malformed(fmt::format("the header '{}' has no prompt-token column", line.substr(0, 80)));
    return {};
  }

  Result<RawRow> read_csv(std::string_view line) const {
    const std::vector<std::string_view> fields = split(line);
    if (fields.size() != columns_) {
      return malformed(fmt::format("expected {} columns, found {}: '{}'", columns_, fields.size(), line.substr(0, 80)));
    }
    RawRow row;
    if (Status status = read_time(fields[*time_at_], row); !status) return std::unexpected(status.error());
    if (Status status = read_tokens(fields[*prompt_at_], 1, row.prompt); !status)
      return std::unexpected(status.error());
    if (output_at_) {
      if (Status status = read_tokens(fields[*output_at_], 0, row.output); !status)
        return std::unexpected(status.error());
    }
    return row;
  }

  template <size_t N>
  static std::string json_field(const nlohmann::json& object, const std::array<std::string_view, N>& names) {
    for (std::string_view name : names) {
      const auto it = object.find(name);
      if (it != object.end()) return it->is_string() ? it->template get<std::string>() : it->dump();
    }
    return {};
  }

  Result<RawRow> read_json(std::string_view line) const {
    const nlohmann::json object = nlohmann::json::parse(line, nullptr, false);
    if (!object.is_object()) return malformed(fmt::format("not a JSON object: '{}'", line.substr(0, 80)));
    RawRow row;
    if (Status status = read_time(json_field(object, kTimeNames), row); !status) return std::unexpected(status.error());
    if (Status status = read_tokens(json_field(object, kPromptNames), 1, row.prompt); !status) {
      return std::unexpected(status.error());
    }
    if (const std::string output = json_field(object, kOutputNames); !output.empty()) {
      if (Status status = read_tokens(output, 0, row.output); !status) return std::unexpected(status.error());
    }
    return row;
  }

  Status read_tokens(std::string_view text, int64_t least, int64_t& value) const {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || text.empty()) {
      return malformed(fmt::format("expected a whole number of tokens, found '{}'", text.substr(0, 40)));
    }
    if (value < least || value > kMaxTokens) {
      return malformed(fmt::format("token count {} is outside {}..{}", value, least, kMaxTokens));
    }
    return {};
  }

  Status read_time(std::string_view text, RawRow& row) const {
    if (text.find(':') != std::string_view::npos) return read_date(text, row);
    double seconds = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(seconds)) {
      return malformed(fmt::format("expected a time, found '{}'", text.substr(0, 40)));
    }
    if (seconds < 0)
      return fail_at(DiagnosticCode::E1642, here(), fmt::format("the arrival time {} s is negative", seconds), kHelp);
    if (seconds > 1e12) return malformed(fmt::format("the arrival time {} s is beyond 1e12", seconds));
    row.whole_s = static_cast<int64_t>(std::floor(seconds));
    row.fraction_s = seconds - std::floor(seconds);
    return {};
  }

  /// "2023-11-16 18:17:03.9799600", also with 'T' and 'Z'.
  Status read_date(std::string_view text, RawRow& row) const {
    const std::string shown(text.substr(0, 40));
    const auto digits = [&](size_t at, size_t count) -> int {
      int value = -1;
      if (at + count > text.size()) return -1;
      const auto [end, error] = std::from_chars(text.data() + at, text.data() + at + count, value);
      return error == std::errc() && end == text.data() + at + count ? value : -1;
    };
    const bool shaped = text.size() >= 19 && text[4] == '-' && text[7] == '-' && (text[10] == ' ' || text[10] == 'T') &&
                        text[13] == ':' && text[16] == ':';
    if (!shaped) return malformed(fmt::format("expected a time like 2023-11-16 18:17:03.97, found '{}'", shown));
    const int hour = digits(11, 2), minute = digits(14, 2), second = digits(17, 2);
    const std::chrono::year_month_day date{std::chrono::year(digits(0, 4)), std::chrono::month(digits(5, 2)),
                                           std::chrono::day(digits(8, 2))};
    const bool in_range =
        date.ok() && hour >= 0 && hour < 24 && minute >= 0 && minute < 60 && second >= 0 && second <= 60;
    if (!in_range) return malformed(fmt::format("'{}' is not a date and time", shown));
    text.remove_prefix(19);
    if (text.ends_with('Z')) text.remove_suffix(1);
    if (text.ends_with("+00:00")) text.remove_suffix(6);
    if (!text.empty()) {
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), row.fraction_s);
      if (text.front() != '.' || error != std::errc() || end != text.data() + text.size()) {
        return malformed(fmt::format("'{}' is not a date and time in UTC", shown));
      }
    }
    const int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
    row.whole_s = ((days * 24 + hour) * 60 + minute) * 60 + second;
    return {};
  }

  std::shared_ptr<const std::string> file_;
  int line_ = 0;
  size_t columns_ = 0;
  std::optional<size_t> time_at_, prompt_at_, output_at_;
};

}  // namespace

Result<Trace> parse_trace(std::string_view text, const std::string& name) {
  Result<std::vector<RawRow>> rows = Reader(name).read(text);
  if (!rows) return std::unexpected(rows.error());
  Trace trace;
  trace.name = std::filesystem::path(name).filename().string();
  trace.sha256 = sha256_hex(text);
  for (size_t i = 1; i < rows->size(); ++i) trace.out_of_order += (*rows)[i].is_before((*rows)[i - 1]);
  std::stable_sort(rows->begin(), rows->end(), [](const RawRow& a, const RawRow& b) { return a.is_before(b); });
  const RawRow origin = rows->front();
  trace.requests.reserve(rows->size());
  for (const RawRow& row : *rows) {
    const double t_s = static_cast<double>(row.whole_s - origin.whole_s) + (row.fraction_s - origin.fraction_s);
    trace.requests.push_back({t_s, row.prompt, row.output});
  }
  return trace;
}

Result<Trace> load_trace(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return fail(DiagnosticCode::E1643, fmt::format("'{}' is a folder, not a trace", path.string()),
                "name the CSV or JSONL file");
  }
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  if (!in || !(text << in.rdbuf())) {
    // An empty file makes operator<< fail without an error of the stream itself.
    if (in.is_open() && std::filesystem::file_size(path, error) == 0) return parse_trace("", path.string());
    return fail(DiagnosticCode::E1643, fmt::format("cannot read the trace '{}'", path.string()), "check the path");
  }
  return parse_trace(text.str(), path.string());
}

}  // namespace tilewright::traffic
