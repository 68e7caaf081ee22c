#include "bench/decision/claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <map>
#include <sstream>

#include "bench/oracle/arguments.h"

namespace tilewright::decision {
namespace {

struct PeakRow {
  std::string_view device, dtype;
  Peak peak;
};
constexpr PeakRow kPeaks[] = {
#define TW_DEVICE_PEAK(device, dtype, tflops, gbytes) {device, dtype, {tflops, gbytes}},
#include "bench/decision/device_peak.def"
#undef TW_DEVICE_PEAK
};

std::string lower(std::string_view text) {
  std::string out;
  for (const char c : text) out.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  return out;
}

std::string trim(std::string text) {
  const auto is_trim = [](char c) { return c == ' ' || c == '\t' || c == '"' || c == '\r' || c == '*' || c == '`'; };
  while (!text.empty() && is_trim(text.back())) text.pop_back();
  while (!text.empty() && is_trim(text.front())) text.erase(0, 1);
  return text;
}

std::vector<std::string> split_row(std::string line) {
  const bool is_markdown = line.find('|') != std::string::npos;
  const char separator = is_markdown ? '|' : ',';
  line = trim(line);
  if (is_markdown && line.starts_with('|')) line.erase(0, 1);
  if (is_markdown && line.ends_with('|')) line.pop_back();
  std::vector<std::string> fields;
  std::istringstream in(line);
  for (std::string field; std::getline(in, field, separator);) fields.push_back(trim(field));
  if (line.ends_with(separator)) fields.emplace_back();
  return fields;
}

bool is_ruler(const std::string& line) {
  return line.find('-') != std::string::npos && line.find_first_not_of("|-: \t\r") == std::string::npos;
}

enum class Meaning : uint8_t { Text, Shape, Time, Tflops, GBytes, M, N, K };

struct Column {
  std::string heading;
  Meaning meaning = Meaning::Text;
  double to_ms = 1;
};

/// The unit inside a heading, as a word: "Latency (ms)" has "ms", "time_us" has "us".
std::vector<std::string> words_of(const std::string& heading) {
  std::vector<std::string> words(1);
  for (const char c : lower(heading)) {
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '/') {
      words.back().push_back(c);
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  return words;
}

Column understand(const std::string& heading) {
  static const std::map<std::string, double, std::less<>> kUnits = {
      {"s", 1e3}, {"sec", 1e3}, {"seconds", 1e3}, {"ms", 1}, {"us", 1e-3}, {"µs", 1e-3}, {"ns", 1e-6}};
  Column column{heading};
  const std::vector<std::string> words = words_of(heading);
  const auto has = [&](std::initializer_list<std::string_view> any) {
    return std::ranges::any_of(words, [&](const std::string& w) { return std::ranges::find(any, w) != any.end(); });
  };
  if (heading == "M" || heading == "N" || heading == "K") {
    column.meaning = heading == "M" ? Meaning::M : heading == "N" ? Meaning::N : Meaning::K;
  } else if (has({"tflops", "tflop/s", "tflops/s"})) {
    column.meaning = Meaning::Tflops;
  } else if (has({"gb/s", "gbps", "bandwidth"})) {
    column.meaning = Meaning::GBytes;
  } else if (has({"shape", "workload"})) {
    column.meaning = Meaning::Shape;
  } else {
    for (const std::string& word : words) {
      if (const auto unit = kUnits.find(word); unit != kUnits.end()) {
        column.meaning = Meaning::Time;
        column.to_ms = unit->second;
      }
    }
    if (lower(heading).find("µs") != std::string::npos) column = {heading, Meaning::Time, 1e-3};
  }
  return column;
}

std::optional<double> number_of(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

void understand_shape(ClaimRow& row, const std::map<Meaning, int64_t>& extents, const std::string& dtype) {
  if (row.shape.empty() && extents.size() == 3) {
    row.shape = fmt::format("gemm:{}x{}x{}:nn", extents.at(Meaning::M), extents.at(Meaning::N), extents.at(Meaning::K));
  }
  const Result<bench::DTypes> dtypes = bench::parse_dtypes(dtype);
  if (!dtypes) return;
  const Result<bench::Workload> workload = bench::parse_workload(row.shape, *dtypes);
  if (!workload) return;
  const bench::Cost cost = bench::minimal_cost(*workload);
  row.flops = cost.flops;
  row.bytes = cost.bytes;
}

struct TableReader {
  const std::string& name;
  const std::string& dtype;
  std::vector<Column> columns;
  ClaimTable table;

  std::unexpected<Diagnostic> refuse(int line, std::string message) const {
    return fail_at(DiagnosticCode::E1660, {std::make_shared<const std::string>(name), line, 1, 1, nullptr},
                   std::move(message), "give CSV or a Markdown table with a heading like: shape, Latency (ms), TFLOPS");
  }

  Status read_heading(const std::vector<std::string>& fields, int line) {
    for (const std::string& field : fields) columns.push_back(understand(field));
    for (const Column& column : columns) {
      if (column.meaning == Meaning::Time && table.time_heading.empty()) table.time_heading = column.heading;
      if (column.meaning == Meaning::Tflops || column.meaning == Meaning::GBytes) table.rate_heading = column.heading;
    }
    if (table.time_heading.empty() && table.rate_heading.empty()) {
      return refuse(line, "no column holds a time with its unit or a rate");
    }
    return {};
  }

  Status read_row(const std::vector<std::string>& fields, int line) {
    if (fields.size() != columns.size()) {
      return refuse(line, fmt::format("expected {} columns, found {}", columns.size(), fields.size()));
    }
    ClaimRow row{.line = line};
    std::map<Meaning, int64_t> extents;
    for (size_t i = 0; i < columns.size(); ++i) {
      const Column& column = columns[i];
      if (column.meaning == Meaning::Text || column.meaning == Meaning::Shape) {
        if (column.meaning == Meaning::Shape)
          row.shape = fields[i];
        else if (!fields[i].empty())
          row.label += fmt::format("{}{}={}", row.label.empty() ? "" : " ", column.heading, fields[i]);
        continue;
      }
      if (fields[i].empty() || fields[i] == "-" || fields[i] == "–" || lower(fields[i]) == "n/a") continue;
      const std::optional<double> value = number_of(fields[i]);
      if (!value || *value <= 0)
        return refuse(line, fmt::format("column '{}': expected a number > 0, found '{}'", column.heading, fields[i]));
      if (column.meaning == Meaning::Time && !row.time_ms)
        row.time_ms = *value * column.to_ms;
      else if (column.meaning == Meaning::Tflops)
        row.tflops = *value;
      else if (column.meaning == Meaning::GBytes)
        row.gbytes_per_s = *value;
      else
        extents[column.meaning] = static_cast<int64_t>(*value);
    }
    understand_shape(row, extents, dtype);
    table.rows.push_back(std::move(row));
    return {};
  }
};

void lint_units(const ClaimRow& row, const ClaimTable& table, std::vector<Lint>& lints) {
  if (!row.time_ms) return;
  std::optional<double> implied_ms;
  if (row.tflops && row.flops)
    implied_ms = *row.flops / (*row.tflops * 1e12) * 1e3;
  else if (row.gbytes_per_s && row.bytes)
    implied_ms = *row.bytes / (*row.gbytes_per_s * 1e9) * 1e3;
  if (!implied_ms) {
    lints.push_back({"unchecked", row.line, "no rate and known shape to check the time against"});
    return;
  }
  const double factor = *row.time_ms / *implied_ms;
  for (const double thousand : {1e3, 1e-3, 1e6, 1e-6}) {
    if (factor / thousand > 0.7 && factor / thousand < 1.45) {
      lints.push_back({fmt::format("unit_mismatch×{}", thousand > 1 ? fmt::format("{:.0f}", thousand)
                                                                    : fmt::format("1/{:.0f}", 1 / thousand)),
                       row.line,
                       fmt::format("'{}' says {:.4g} ms, '{}' implies {:.4g} ms", table.time_heading, *row.time_ms,
                                   table.rate_heading, *implied_ms)});
      return;
    }
  }
  if (factor < 0.8 || factor > 1.25) {
    lints.push_back({"inconsistent", row.line, fmt::format("the time is {:.3g} × what the rate implies", factor)});
  }
}

void lint_physics(const ClaimRow& row, const Peak& peak, std::vector<Lint>& lints) {
  const auto beyond = [&](const char* what, double value, double limit, const char* unit) {
    if (value <= limit) return;
    lints.push_back({"physics", row.line,
                     fmt::format("{} {:.4g} {} is above the device's peak of {:.4g}", what, value, unit, limit)});
  };
  if (row.tflops) beyond("the claimed", *row.tflops, peak.tflops, "TFLOP/s");
  if (row.gbytes_per_s) beyond("the claimed", *row.gbytes_per_s, peak.gbytes_per_s, "GB/s");
  if (!row.time_ms) return;
  if (row.flops && !row.tflops) beyond("the time implies", *row.flops / *row.time_ms / 1e9, peak.tflops, "TFLOP/s");
}

}  // namespace

Result<ClaimTable> parse_claims(std::string_view text, const std::string& name, const std::string& dtype) {
  TableReader reader{name, dtype, {}, {}};
  std::istringstream in{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (trim(line).empty() || is_ruler(line) || line.starts_with('#')) continue;
    const std::vector<std::string> fields = split_row(line);
    const Status status =
        reader.columns.empty() ? reader.read_heading(fields, number) : reader.read_row(fields, number);
    if (!status) return std::unexpected(status.error());
  }
  if (reader.table.rows.empty()) return reader.refuse(1, "the table has no row");
  return std::move(reader.table);
}

std::optional<Peak> find_peak(std::string_view device, std::string_view dtype) {
  std::string wanted = lower(device);
  std::erase_if(wanted, [](char c) { return c == ' ' || c == '-' || c == '_'; });
  const std::string_view in = dtype.substr(0, dtype.find('/'));
  const std::string_view kind = in == "bf16" ? "f16" : in == "e5m2" ? "e4m3" : in;
  for (const PeakRow& row : kPeaks) {
    if (wanted.find(row.device) != std::string::npos && row.dtype == kind) return row.peak;
  }
  return std::nullopt;
}

std::vector<Lint> lint_claims(const ClaimTable& table, const std::optional<Peak>& peak) {
  std::vector<Lint> lints;
  for (const ClaimRow& row : table.rows) {
    lint_units(row, table, lints);
    if (peak) lint_physics(row, *peak, lints);
  }
  if (!peak)
    lints.push_back({"unchecked", 0, "the device has no data-sheet row for this dtype: physics was not checked"});
  return lints;
}

std::vector<bench::Cell> claimed_cells(const ClaimTable& table, const std::vector<Lint>& lints,
                                       const ClaimSource& source) {
  std::vector<bench::Cell> cells;
  for (const ClaimRow& row : table.rows) {
    if (!row.time_ms) continue;
    bench::Cell cell;
    cell.subject = {row.shape, source.dtype, source.device};
    cell.candidate = source.candidate;
    cell.stage = bench::Stage::Warm;
    cell.state = bench::State::Claimed;
    cell.value = *row.time_ms;
    cell.unit = "ms";
    nlohmann::json found = nlohmann::json::array();
    for (const Lint& lint : lints) {
      if (lint.line == row.line) found.push_back({{"code", lint.code}, {"message", lint.message}});
    }
    cell.detail = {{"source", source.source}, {"commit", source.commit}, {"as_of", source.as_of},
                   {"script", source.script}, {"line", row.line},        {"environment", source.environment},
                   {"label", row.label},      {"lint", std::move(found)}};
    cells.push_back(std::move(cell));
  }
  return cells;
}

}  // namespace tilewright::decision
