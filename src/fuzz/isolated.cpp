#include "fuzz/isolated.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace tilewright::fuzz {
namespace {

struct Record {
  int32_t verdict = 0;
  int32_t detail_length = 0;
  int32_t form_length = 0;
  int64_t elements = 0;
  int64_t tainted = 0;
};

bool write_all(int fd, const void* data, size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t n = ::write(fd, at, size);
    if (n <= 0) return false;
    at += n, size -= static_cast<size_t>(n);
  }
  return true;
}

/// Waits at most `seconds` for each piece. False at the end of the stream or when time is up.
bool read_all(int fd, void* data, size_t size, int seconds, bool& timed_out) {
  char* at = static_cast<char*>(data);
  while (size > 0) {
    pollfd waiting = {fd, POLLIN, 0};
    if (::poll(&waiting, 1, seconds * 1000) == 0) {
      timed_out = true;
      return false;
    }
    const ssize_t n = ::read(fd, at, size);
    if (n <= 0) return false;
    at += n, size -= static_cast<size_t>(n);
  }
  return true;
}

void run_child(int fd, int64_t first, int64_t count, const std::function<Judgement(int64_t)>& judge_one) {
  for (int64_t i = first; i < count; ++i) {
    const Judgement j = judge_one(i);
    const Record record = {static_cast<int32_t>(j.verdict), static_cast<int32_t>(j.detail.size()),
                           static_cast<int32_t>(j.form.size()), j.elements, j.tainted};
    const std::string text = j.detail + j.form;
    if (!write_all(fd, &record, sizeof record) || !write_all(fd, text.data(), text.size())) break;
  }
  ::_exit(0);
}

bool receive(int fd, int seconds, Judgement& j, bool& timed_out) {
  Record record;
  if (!read_all(fd, &record, sizeof record, seconds, timed_out)) return false;
  j = {.verdict = static_cast<Verdict>(record.verdict),
       .detail = std::string(static_cast<size_t>(record.detail_length), '\0'),
       .elements = record.elements,
       .tainted = record.tainted,
       .form = std::string(static_cast<size_t>(record.form_length), '\0')};
  return read_all(fd, j.detail.data(), j.detail.size(), seconds, timed_out) &&
         read_all(fd, j.form.data(), j.form.size(), seconds, timed_out);
}

Judgement death(int status, bool timed_out, int seconds) {
  if (timed_out) return {Verdict::Hung, fmt::format("no answer within {} s", seconds)};
  if (WIFSIGNALED(status)) return {Verdict::Crashed, fmt::format("died of signal {}", WTERMSIG(status))};
  return {Verdict::Crashed, fmt::format("exited with {}", WEXITSTATUS(status))};
}

}  // namespace

void judge_isolated(int64_t count, const std::function<Judgement(int64_t)>& judge_one,
                    const std::function<bool(int64_t, const Judgement&)>& done, const IsolatedOptions& options) {
  bool go_on = true;
  for (int64_t next = 0; next < count && go_on;) {
    int ends[2];
    if (::pipe(ends) != 0) return;
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(ends[0]);
      run_child(ends[1], next, next + std::min(options.cases_per_child, count - next), judge_one);
    }
    ::close(ends[1]);
    bool timed_out = false;
    Judgement j;
    const int64_t end = next + std::min(options.cases_per_child, count - next);
    bool was_failure = false;
    while (next < end && go_on && !was_failure && receive(ends[0], options.seconds_per_case, j, timed_out)) {
      was_failure = options.ends_at_failure && is_failure(j.verdict);
      go_on = done(next++, j);
    }
    ::close(ends[0]);
    if (timed_out || !go_on || was_failure) ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (next < end && go_on && !was_failure)
      go_on = done(next, death(status, timed_out, options.seconds_per_case)), ++next;
  }
}

}  // namespace tilewright::fuzz
