#include "tune/trial_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

namespace tilewright::tune {
namespace {

constexpr int kSchema = 1;

nlohmann::json header_json(const LogHeader& header) {
  return {{"kind", "tune-log"},
          {"schema", kSchema},
          {"identity", to_json(header.identity)},
          {"space", header.space_digest},
          {"seed", header.seed}};
}

Status check_header(const nlohmann::json& found, const LogHeader& header, const std::string& path) {
  if (!found.is_object() || found.value("kind", "") != "tune-log" || found.value("schema", 0) != kSchema) {
    return fail(DiagnosticCode::E1652, fmt::format("'{}' does not begin with the header of a tuning log", path),
                "name another file with --log");
  }
  const Result<Identity> identity = identity_from_json(found.value("identity", nlohmann::json()));
  if (!identity) return std::unexpected(identity.error());
  std::vector<std::string> differing = differences(*identity, header.identity);
  if (found.value("space", "") != header.space_digest) {
    differing.push_back(fmt::format("space: recorded {}, here {}", found.value("space", "").substr(0, 16),
                                    header.space_digest.substr(0, 16)));
  }
  if (found.value("seed", uint64_t{0}) != header.seed) {
    differing.push_back(fmt::format("seed: recorded {}, here {}", found.value("seed", uint64_t{0}), header.seed));
  }
  if (differing.empty()) return {};
  return fail(DiagnosticCode::E1651,
              fmt::format("'{}' belongs to another tuning: {}", path, fmt::join(differing, "; ")),
              "name another file with --log, or move this one away");
}

}  // namespace

TrialLog::TrialLog(TrialLog&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), resumed_(std::move(other.resumed_)) {}

TrialLog::~TrialLog() {
  if (fd_ >= 0) close(fd_);
}

Result<TrialLog> TrialLog::open(const std::filesystem::path& path, const LogHeader& header) {
  TrialLog log;
  log.path_ = path;
  std::error_code ignored;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), ignored);
  log.fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (log.fd_ < 0)
    return fail(DiagnosticCode::E3300, fmt::format("cannot open {}: {}", path.string(), strerror(errno)));
  if (flock(log.fd_, LOCK_EX | LOCK_NB) != 0) {
    return fail(DiagnosticCode::E3303, fmt::format("{} is being written by another process", path.string()),
                "wait for it, or name another --log");
  }
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  const size_t whole = text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1;
  if (ftruncate(log.fd_, static_cast<off_t>(whole)) != 0 || lseek(log.fd_, 0, SEEK_END) < 0) {
    return fail(DiagnosticCode::E3301,
                fmt::format("cannot cut the torn last line of {}: {}", path.string(), strerror(errno)));
  }
  int number = 0;
  for (size_t at = 0; at < whole;) {
    const size_t end = text.find('\n', at);
    const nlohmann::json line = nlohmann::json::parse(text.begin() + static_cast<ptrdiff_t>(at),
                                                      text.begin() + static_cast<ptrdiff_t>(end), nullptr, false);
    at = end + 1;
    if (++number == 1) {
      if (Status status = check_header(line, header, path.string()); !status) return std::unexpected(status.error());
      continue;
    }
    Result<Trial> trial = trial_from_json(line);
    if (!trial) {
      trial.error().location = {std::make_shared<const std::string>(path.string()), number, 1, 1, nullptr};
      return std::unexpected(trial.error());
    }
    log.resumed_.push_back(std::move(*trial));
  }
  if (number == 0) {
    if (Status status = log.write_line(header_json(header).dump()); !status) return std::unexpected(status.error());
  }
  return log;
}

Status TrialLog::append(const Trial& trial) { return write_line(to_json(trial).dump()); }

Status TrialLog::write_line(const std::string& line) {
  const off_t before = lseek(fd_, 0, SEEK_END);
  const std::string whole = line + "\n";
  size_t done = 0;
  while (done < whole.size()) {
    const ssize_t wrote = write(fd_, whole.data() + done, whole.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) {
      const int error = errno;
      const bool is_restored = ftruncate(fd_, before) == 0;
      return fail(error == ENOSPC ? DiagnosticCode::E3302 : DiagnosticCode::E3301,
                  fmt::format("cannot write {}: {}{}", path_.string(), strerror(error),
                              is_restored ? "" : "; its last line is torn"),
                  "earlier trials are kept; make room and run the same command again");
    }
    done += static_cast<size_t>(wrote);
  }
  if (fsync(fd_) != 0 && errno != EINVAL) {
    return fail(DiagnosticCode::E3301, fmt::format("cannot sync {}: {}", path_.string(), strerror(errno)));
  }
  return {};
}

}  // namespace tilewright::tune
