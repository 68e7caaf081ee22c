#include "bench/suite/suite_run.h"

#include <fmt/core.h>

#include "bench/progress.h"
#include "bench/stage_runner.h"

namespace tilewright::bench {
namespace {

StageRequest request_of(const SuiteOptions& options, const SuiteCase& what, int threads) {
  StageRequest r;
  r.kind = StageKind::Contest;
  r.contenders = what.contenders();
  r.workload = what.workload;
  r.dtypes = what.dtypes;
  r.device = options.suite.device;
  r.threads = threads;
  r.seed = options.seed;
  r.rounds = options.rounds;
  r.warm.timeout_ms = options.row_limit_s * 1000;
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

Result<SuiteReport> run_suite(const SuiteOptions& options) {
  SuiteReport report{options.suite, options.threads, {}, options.seed};
  const std::vector<SuiteCase> cases = wanted_cases(options);
  if (cases.empty())
    return fail(DiagnosticCode::E1600,
                fmt::format("no row of suite {} has '{}' in it", options.suite.name, options.filter),
                fmt::format("its first row is '{} {}'", options.suite.cases.front().workload,
                            options.suite.cases.front().dtypes));
  const double row_ms = 3000 + options.row_limit_s * 250;
  Progress progress(options.show_progress, row_ms * static_cast<double>(cases.size() * options.threads.size()));
  const StageRunner runner(options.executable, std::chrono::milliseconds(options.timeout_ms), [&] { progress.tick(); });
  auto folder = PrivateFolder::create(std::filesystem::temp_directory_path(), "tilewright-suite");
  if (!folder) return std::unexpected(folder.error());
  for (const SuiteCase& what : cases) {
    for (int threads : options.threads) {
      progress.begin(fmt::format("{} {} · {} threads", what.workload, what.dtypes, threads), row_ms);
      StageRequest request = request_of(options, what, threads);
      request.cache_dir = folder->path().string();
      SuiteRow row{what, threads, "", {}};
      auto outcome = runner.run(request);
      if (outcome)
        row.contestants = parse_contest(outcome->result);
      else
        row.not_run = outcome.error().message;
      report.rows.push_back(std::move(row));
    }
  }
  return report;
}

}  // namespace tilewright::bench
