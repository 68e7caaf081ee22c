#include "bench/suite/suite_run.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>

#include "bench/progress.h"
#include "bench/stage_runner.h"

namespace tilewright::bench {
namespace {

using nlohmann::json;

constexpr double kRowStartS = 3;  ///< of a row before its timing: compiling, the reference, checking every contender

/// The record of rows as JSON lines: {"key", "result"}; a torn or foreign line counts for nothing.
class RowLog {
 public:
  explicit RowLog(const SuiteOptions& options) : options_(options) {
    if (options.record.empty()) return;
    std::error_code error;
    if (!options.resume) std::filesystem::remove(options.record, error);
    std::ifstream in(options.record);
    for (std::string line; std::getline(in, line);) {
      json entry = json::parse(line, nullptr, false);
      if (entry.is_object() && entry.contains("key") && entry.contains("result"))
        known_[entry["key"].dump()] = std::move(entry["result"]);
    }
  }
  const json* find(const SuiteCase& what, int threads) const {
    const auto at = known_.find(key(what, threads).dump());
    return at == known_.end() ? nullptr : &at->second;
  }
  void append(const SuiteCase& what, int threads, const json& result) const {
    if (options_.record.empty()) return;
    std::ofstream(options_.record, std::ios::app)
        << json{{"key", key(what, threads)}, {"result", result}}.dump() << '\n';
  }

 private:
  /// The time limits are no part of it: they decide how many rounds there are, which the record tells.
  json key(const SuiteCase& what, int threads) const {
    return {{"suite", options_.suite.name}, {"program", options_.program}, {"workload", what.workload},
            {"dtypes", what.dtypes},        {"threads", threads},          {"seed", options_.seed},
            {"rounds", options_.rounds}};
  }
  const SuiteOptions& options_;
  std::map<std::string, json> known_;
};

StageRequest request_of(const SuiteOptions& options, const SuiteCase& what, int threads, double limit_s) {
  StageRequest r;
  r.kind = StageKind::Contest;
  r.contenders = what.contenders();
  r.workload = what.workload;
  r.dtypes = what.dtypes;
  r.device = options.suite.device;
  r.threads = threads;
  r.seed = options.seed;
  r.rounds = options.rounds;
  r.warm.timeout_ms = limit_s * 1000;
  r.ceiling = name(options.suite.ceiling);
  r.is_flushed = options.suite.is_flushed;
  r.timeout_ms = options.timeout_ms;
  return r;
}

std::vector<SuiteCase> wanted_cases(const SuiteOptions& options) {
  std::vector<SuiteCase> out;
  for (const SuiteCase& what : options.suite.cases) {
    const std::string text = fmt::format("{} {}", what.workload, what.dtypes);
    if (text.find(options.filter) != std::string::npos) out.push_back(what);
  }
  return out;
}

}  // namespace

double row_limit_s(const SuiteOptions& options, double left_s, size_t rows_left) {
  constexpr double kLeastS = 0.5;
  if (options.total_limit_s <= 0 || rows_left == 0) return options.row_limit_s;
  return std::clamp(left_s / static_cast<double>(rows_left) - kRowStartS, kLeastS,
                    std::max(kLeastS, options.row_limit_s));
}

Result<SuiteReport> run_suite(const SuiteOptions& options) {
  SuiteReport report{options.suite, options.threads, {}, options.seed};
  const std::vector<SuiteCase> cases = wanted_cases(options);
  if (cases.empty())
    return fail(DiagnosticCode::E1600,
                fmt::format("no row of suite {} has '{}' in it", options.suite.name, options.filter),
                fmt::format("its first row is '{} {}'", options.suite.cases.front().workload,
                            options.suite.cases.front().dtypes));
  const RowLog log(options);
  size_t rows_left = cases.size() * options.threads.size();
  for (const SuiteCase& what : cases)
    for (int threads : options.threads) rows_left -= log.find(what, threads) != nullptr;
  const auto row_ms = [&](double limit_s) {
    return 1000 * kRowStartS + limit_s * (options.total_limit_s > 0 ? 1000 : 250);
  };
  const double first_limit_s = row_limit_s(options, options.total_limit_s, rows_left);
  Progress progress(options.show_progress, row_ms(first_limit_s) * static_cast<double>(rows_left));
  const StageRunner runner(options.executable, std::chrono::milliseconds(options.timeout_ms), [&] { progress.tick(); });
  auto folder = PrivateFolder::create(std::filesystem::temp_directory_path(), "tilewright-suite");
  if (!folder) return std::unexpected(folder.error());
  const auto start = std::chrono::steady_clock::now();
  for (const SuiteCase& what : cases) {
    for (int threads : options.threads) {
      SuiteRow row{what, threads, "", {}};
      if (const json* known = log.find(what, threads)) {
        row.contestants = parse_contest(*known);
        report.rows.push_back(std::move(row));
        continue;
      }
      const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
      const double limit_s = row_limit_s(options, options.total_limit_s - spent.count(), rows_left--);
      progress.begin(fmt::format("{} {} · {} threads", what.workload, what.dtypes, threads), row_ms(limit_s));
      StageRequest request = request_of(options, what, threads, limit_s);
      request.cache_dir = folder->path().string();
      auto outcome = runner.run(request);
      if (outcome) {
        log.append(what, threads, outcome->result);
        row.contestants = parse_contest(outcome->result);
      } else {
        row.not_run = outcome.error().message;
      }
      report.rows.push_back(std::move(row));
    }
  }
  return report;
}

}  // namespace tilewright::bench
