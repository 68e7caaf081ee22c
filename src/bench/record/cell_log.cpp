#include "bench/record/cell_log.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

namespace tilewright::bench {
namespace {

struct Parsed {
  CellFile file;
  size_t whole_bytes = 0;  ///< length of the prefix made of complete lines
};

Result<Parsed> parse_lines(const std::filesystem::path& path, std::string_view text) {
  Parsed out;
  int line_number = 0;
  while (out.whole_bytes < text.size()) {
    ++line_number;
    const size_t end = text.find('\n', out.whole_bytes);
    const bool is_last = end == std::string_view::npos;
    const std::string_view line = text.substr(out.whole_bytes, is_last ? end : end - out.whole_bytes);
    if (is_last) {
      out.file.had_torn_line = true;
      return out;
    }
    out.whole_bytes = end + 1;
    if (line.empty()) continue;
    const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
    auto cell = json.is_discarded() ? fail(DiagnosticCode::E1602, "not a JSON object") : parse_cell(json);
    if (!cell) {
      return fail(DiagnosticCode::E1602, fmt::format("{}:{}: {}", path.string(), line_number, cell.error().message),
                  "a damaged line is never skipped silently; move it out of the file to go on");
    }
    out.file.cells.push_back(std::move(*cell));
  }
  return out;
}

Result<std::string> read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return fail(DiagnosticCode::E3300, fmt::format("cannot open {}: {}", path.string(), std::strerror(errno)));
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

/// All of `bytes` or an errno.
int write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return ::fsync(fd) == 0 || errno == EINVAL || errno == EROFS ? 0 : errno;
}

}  // namespace

Result<CellFile> read_cells(const std::filesystem::path& path) {
  auto text = read_file(path);
  if (!text) return std::unexpected(text.error());
  auto parsed = parse_lines(path, *text);
  if (!parsed) return std::unexpected(parsed.error());
  return std::move(parsed->file);
}

std::vector<Cell> latest_cells(const std::vector<Cell>& cells) {
  std::vector<Cell> out;
  std::map<CellKey, size_t> place;
  for (const Cell& cell : cells) {
    const auto [it, is_new] = place.try_emplace(key(cell), out.size());
    if (is_new)
      out.push_back(cell);
    else
      out[it->second] = cell;
  }
  return out;
}

Result<CellLog> CellLog::open(const std::filesystem::path& path) {
  CellLog log;
  log.path_ = path;
  log.fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (log.fd_ < 0)
    return fail(DiagnosticCode::E3300, fmt::format("cannot open {}: {}", path.string(), std::strerror(errno)));
  if (::flock(log.fd_, LOCK_EX | LOCK_NB) != 0) {
    return fail(DiagnosticCode::E3303, fmt::format("{} is being written by another process", path.string()),
                "wait for it to end, or give this run its own folder with --out");
  }
  auto text = read_file(path);
  if (!text) return std::unexpected(text.error());
  auto parsed = parse_lines(path, *text);
  if (!parsed) return std::unexpected(parsed.error());
  if (parsed->file.had_torn_line && ::ftruncate(log.fd_, static_cast<off_t>(parsed->whole_bytes)) != 0) {
    return fail(DiagnosticCode::E3301,
                fmt::format("cannot cut the torn last line off {}: {}", path.string(), std::strerror(errno)));
  }
  log.cells_ = std::move(parsed->file.cells);
  for (const Cell& cell : log.cells_) log.next_seq_ = std::max(log.next_seq_, cell.seq + 1);
  return log;
}

CellLog::CellLog(CellLog&& other) noexcept { *this = std::move(other); }

CellLog& CellLog::operator=(CellLog&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(cells_, other.cells_);
  std::swap(next_seq_, other.next_seq_);
  return *this;
}

CellLog::~CellLog() {
  if (fd_ >= 0) ::close(fd_);
}

Status CellLog::append(Cell& cell) {
  cell.seq = next_seq_;
  const std::string line = to_json(cell).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  const off_t before = ::lseek(fd_, 0, SEEK_END);
  if (const int error = write_all(fd_, line); error != 0) {
    if (::ftruncate(fd_, before) != 0) {
      // The torn line stays; readers leave it out and the next open cuts it off.
    }
    const bool is_full = error == ENOSPC || error == EDQUOT || error == EFBIG;
    return fail(is_full ? DiagnosticCode::E3302 : DiagnosticCode::E3301,
                fmt::format("cannot write {}: {}", path_.string(), std::strerror(error)),
                "everything recorded before is kept; make room and run again with --resume");
  }
  ++next_seq_;
  cells_.push_back(cell);
  return {};
}

}  // namespace tilewright::bench
