#include "base/line_log.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

namespace tilewright {
namespace {

std::filesystem::path fresh(const std::string& name) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "line_log" / name;
  std::filesystem::remove(path);
  return path;
}

TEST(LineLog, KeepsLinesAndCutsATornOne) {
  const auto path = fresh("torn.jsonl");
  {
    LineLog log = LineLog::open(path).value();
    EXPECT_TRUE(log.append("one").has_value());
    EXPECT_TRUE(log.append("two").has_value());
  }
  std::ofstream(path, std::ios::app) << "thr";
  LineLog log = LineLog::open(path).value();
  EXPECT_EQ(log.lines(), (std::vector<std::string>{"one", "two"}));
  EXPECT_TRUE(log.append("three").has_value());
  EXPECT_EQ(read_lines(path).value(), (std::vector<std::string>{"one", "two", "three"}));
}

TEST(LineLog, HasOneWriter) {
  const auto path = fresh("locked.jsonl");
  const LineLog log = LineLog::open(path).value();
  const Result<LineLog> second = LineLog::open(path);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(code_text(second.error().code), "E3303");
}

TEST(LineLog, AFailedWriteLeavesTheFileAsItWas) {
  const auto path = fresh("full.jsonl");
  const pid_t child = fork();
  if (child == 0) {
    // A file-size limit stands in for a full disk: writes beyond it fail with EFBIG.
    signal(SIGXFSZ, SIG_IGN);
    LineLog log = LineLog::open(path).value();
    if (!log.append("kept")) _exit(2);
    const rlimit limit{20, 20};
    setrlimit(RLIMIT_FSIZE, &limit);
    _exit(log.append(std::string(100, 'x')).has_value() ? 3 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(read_lines(path).value(), (std::vector<std::string>{"kept"}));
  EXPECT_EQ(std::filesystem::file_size(path), 5u);
}

TEST(LineLog, RefusesAMissingFolderItCannotMake) {
  EXPECT_EQ(code_text(LineLog::open("/proc/none/x.jsonl").error().code), "E3300");
  EXPECT_EQ(code_text(read_lines("/proc/none/x.jsonl").error().code), "E3300");
}

}  // namespace
}  // namespace tilewright
