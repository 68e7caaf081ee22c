#include "bench/record/table_csv.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>

#include "bench/record/cell_log.h"

namespace tilewright::bench {
namespace {

constexpr const char* kColumns[] = {"shape",      "dtype",   "device",   "reference_ok",
                                    "compile_ms", "warm_ms", "model_ms", "peak_mb"};

std::string_view text_of(ReferenceOk ok) {
  switch (ok) {
    case ReferenceOk::True: return "true";
    case ReferenceOk::False: return "false";
    case ReferenceOk::NotRun: return "not-run";
  }
  return "";
}

std::string text_of(const Metric& metric) {
  return metric.state == State::Measured ? fmt::format("{:.6g}", metric.value) : std::string(name(metric.state));
}

/// `column` < 0: the line as a whole.
std::unexpected<Diagnostic> bad(int line, int column, const std::string& what) {
  const std::string place = column < 0 ? "" : fmt::format(", column {}", kColumns[column]);
  return fail(DiagnosticCode::E1601, fmt::format("line {}{}: {}", line, place, what),
              "a metric is a number, `not-run` or `failed`; reference_ok is true, false or not-run");
}

/// "gemm:64x64x64": an operator and what it is of.
bool is_workload_key(std::string_view shape) {
  const size_t colon = shape.find(':');
  return colon != std::string_view::npos && colon > 0 && colon + 1 < shape.size();
}

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> fields;
  while (true) {
    const size_t comma = line.find(',');
    fields.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return fields;
    line.remove_prefix(comma + 1);
  }
}

Result<Metric> parse_metric(std::string_view text, int line, int column) {
  if (text.empty() || text == "not-run") return Metric{};
  if (text == "failed") return Metric{State::Failed, 0};
  Metric metric{State::Measured, 0};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), metric.value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(metric.value)) {
    return bad(line, column, fmt::format("'{}' is not a number, not-run or failed", text));
  }
  if (metric.value < 0) return bad(line, column, fmt::format("{} is negative", text));
  return metric;
}

Result<TableRow> parse_row(const std::vector<std::string_view>& fields, int line) {
  TableRow row;
  row.subject = {std::string(fields[0]), std::string(fields[1]), std::string(fields[2])};
  for (int column = 0; column < 3; ++column) {
    if (auto ok = check_identity(kColumns[column], fields[column]); !ok) return bad(line, column, ok.error().message);
  }
  if (fields[3] == "true")
    row.reference_ok = ReferenceOk::True;
  else if (fields[3] == "false")
    row.reference_ok = ReferenceOk::False;
  else if (!fields[3].empty() && fields[3] != "not-run")
    return bad(line, 3, fmt::format("'{}' is not true, false or not-run", fields[3]));
  if (!is_workload_key(fields[0]))
    return bad(line, 0, fmt::format("'{}' is no workload key like gemm:64x64x64:nn", fields[0]));
  Metric* metrics[] = {&row.compile_ms, &row.warm_ms, &row.model_ms, &row.peak_mb};
  for (int i = 0; i < 4; ++i) {
    auto metric = parse_metric(fields[4 + i], line, 4 + i);
    if (!metric) return std::unexpected(metric.error());
    *metrics[i] = *metric;
    if (metric->state != State::NotRun && row.reference_ok != ReferenceOk::True) {
      return bad(line, 4 + i,
                 fmt::format("'{}' although reference_ok is {}: only an accepted result has times", fields[4 + i],
                             text_of(row.reference_ok)));
    }
    if (metric->state == State::Measured && metric->value == 0 && (i == 1 || i == 2))
      return bad(line, 4 + i, "no kernel takes 0 ms; what was not measured is not-run");
  }
  return row;
}

Metric metric_of(const Cell& cell) {
  if (cell.state == State::Failed) return {State::Failed, 0};
  const bool counts =
      cell.state == State::Measured && cell.value && !cell.qualifiers.simulated && !cell.qualifiers.stale;
  return counts ? Metric{State::Measured, *cell.value} : Metric{};
}

/// "check" cells carry the verdict in detail.reference_ok; a failed check is a wrong result.
ReferenceOk reference_ok_of(const Cell& check) {
  if (check.state == State::Failed) return ReferenceOk::False;
  if (check.state != State::Measured) return ReferenceOk::NotRun;
  const auto it = check.detail.find("reference_ok");
  if (it == check.detail.end() || !it->is_boolean()) return ReferenceOk::NotRun;
  return it->get<bool>() ? ReferenceOk::True : ReferenceOk::False;
}

void fill(TableRow& row, const Cell& cell) {
  switch (cell.stage) {
    case Stage::Check: row.reference_ok = reference_ok_of(cell); return;
    case Stage::Compile: row.compile_ms = metric_of(cell); return;
    case Stage::Warm: row.warm_ms = metric_of(cell); return;
    case Stage::Model: row.model_ms = metric_of(cell); return;
    case Stage::Peak: row.peak_mb = metric_of(cell); return;
    default: return;
  }
}

}  // namespace

std::string write_table(const std::vector<TableRow>& rows) {
  std::string out = std::string(kTableHeader) + "\n";
  for (const TableRow& row : rows) {
    out += fmt::format("{},{},{},{},{},{},{},{}\n", row.subject.shape, row.subject.dtype, row.subject.device,
                       text_of(row.reference_ok), text_of(row.compile_ms), text_of(row.warm_ms), text_of(row.model_ms),
                       text_of(row.peak_mb));
  }
  return out;
}

std::string table_template() { return std::string(kTableHeader) + "\n,,,,not-run,,,\n"; }

Result<std::vector<TableRow>> parse_table(std::string_view text) {
  std::vector<TableRow> rows;
  int line_number = 0;
  while (!text.empty()) {
    ++line_number;
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line_number == 1) {
      if (line != kTableHeader) return bad(1, -1, fmt::format("the header must be exactly {}", kTableHeader));
      continue;
    }
    if (line.empty()) continue;
    const auto fields = split(line);
    if (fields.size() != std::size(kColumns)) {
      return bad(line_number, -1, fmt::format("{} fields, expected {}", fields.size(), std::size(kColumns)));
    }
    if (fields[0].empty() && fields[1].empty() && fields[2].empty() && fields[3].empty()) continue;
    auto row = parse_row(fields, line_number);
    if (!row) return std::unexpected(row.error());
    if (std::ranges::find(rows, row->subject, &TableRow::subject) != rows.end())
      return bad(line_number, -1, fmt::format("{} {} {} has a row already", fields[0], fields[1], fields[2]));
    rows.push_back(std::move(*row));
  }
  if (line_number == 0) return bad(1, -1, "the file is empty");
  return rows;
}

std::vector<TableRow> make_table(const std::vector<Cell>& cells, std::string_view candidate) {
  std::vector<TableRow> rows;
  std::map<Subject, size_t> place;
  for (const Cell& cell : latest_cells(cells)) {
    if (cell.candidate != candidate || cell.state == State::Claimed) continue;
    const auto [it, is_new] = place.try_emplace(cell.subject, rows.size());
    if (is_new) rows.emplace_back().subject = cell.subject;
    fill(rows[it->second], cell);
  }
  for (TableRow& row : rows) {
    if (row.reference_ok != ReferenceOk::True) row.compile_ms = row.warm_ms = row.model_ms = row.peak_mb = Metric{};
  }
  return rows;
}

namespace {

/// All of the text into an open file; its errno or 0.
int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno != EINTR) return errno;
    if (written > 0) text.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

/// Into what is there: a device, a pipe, what another process holds open. Its node stays what it is.
int write_into(const std::filesystem::path& path, std::string_view text) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (fd < 0) return errno;
  int error = write_all(fd, text);
  if (::close(fd) != 0 && error == 0) error = errno;
  return error;
}

int write_beside_and_rename(const std::filesystem::path& path, std::string_view text) {
  const std::string temporary = path.string() + fmt::format(".tmp{}", ::getpid());
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  int error = fd < 0 ? errno : write_all(fd, text);
  if (error == 0 && ::fsync(fd) != 0 && errno != EINVAL) error = errno;
  if (fd >= 0) ::close(fd);
  if (error == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) ::unlink(temporary.c_str());
  return error;
}

bool is_open_file(const std::filesystem::path& path) { return path.string().starts_with("/proc/"); }

/// The file a name stands for in the end; a link to nothing yet stands for what it names. /dev/stdout ends in /proc: an
/// open file, whose name is no place to put another.
std::filesystem::path followed(std::filesystem::path path) {
  std::error_code error;
  for (int links = 0; links < 40 && !is_open_file(path) && std::filesystem::is_symlink(path, error); ++links) {
    const std::filesystem::path target = std::filesystem::read_symlink(path, error);
    if (error) break;
    path = target.is_absolute() ? target : path.parent_path() / target;
  }
  return path;
}

}  // namespace

Status replace_file(const std::filesystem::path& path, std::string_view text) {
  std::error_code ignored;
  const std::filesystem::file_status there = std::filesystem::status(path, ignored);
  const std::filesystem::path target = followed(path);
  const bool is_a_node = std::filesystem::exists(there) && !std::filesystem::is_regular_file(there);
  const int error =
      is_a_node || is_open_file(target) ? write_into(target, text) : write_beside_and_rename(target, text);
  if (error == 0) return {};
  return fail(error == ENOSPC || error == EDQUOT || error == EFBIG ? DiagnosticCode::E3302 : DiagnosticCode::E3301,
              fmt::format("cannot write {}: {}", path.string(), std::strerror(error)));
}

}  // namespace tilewright::bench
