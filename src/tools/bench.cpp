// `tilewright bench`: the whole life of a kernel, each cost by itself, or `not-run`.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <memory>

#include "bench/doctor.h"
#include "bench/harness.h"
#include "bench/record/table_csv.h"
#include "bench/screen_table.h"
#include "models/model_cell.h"
#include "tools/bench_suite.h"
#include "tools/command.h"
#include "tools/workload_options.h"

namespace tilewright::tools {
namespace {

struct Options {
  std::vector<std::string> candidates;
  WorkloadOptions workload;
  std::vector<std::string> references;
  std::string budget = "quick";
  std::string out = "out";
  std::string config = "{}";
  std::string markdown_file;
  std::string model = "tiny";
  int64_t timeout_s = 120;
  bool resume = false;
  bool json = false;
  bool no_progress = false;
  bool no_references = false;
  SuiteFlags suite;
};

SuiteRun suite_run(const Options& options) {
  SuiteRun run;
  if (options.workload.threads > 0) run.threads = {options.workload.threads};
  run.seed = options.workload.seed;
  run.out = options.out;
  run.markdown_file = options.markdown_file;
  run.json = options.json;
  run.show_progress = !options.no_progress;
  run.timeout_ms = options.timeout_s * 1000;
  return run;
}

Result<bench::BenchOptions> bench_options(const Options& options, const Session& session) {
  bench::BenchOptions out;
  const auto budget = bench::find_budget(options.budget);
  if (!budget)
    return fail(DiagnosticCode::E1600, fmt::format("--budget {}: there is no such budget", options.budget),
                "quick, ci or full");
  out.budget = *budget;
  out.executable = session.executable;
  out.command = session.command;
  out.candidates = options.candidates.empty() ? session.default_candidates : options.candidates;
  out.references = options.references.empty() ? session.default_references : options.references;
  if (options.no_references) out.references.clear();
  WorkloadOptions workload = options.workload;
  if (workload.keys.empty()) workload.keys = {"gemm:512x512x512"};
  auto workloads = parse_workloads(workload);
  if (!workloads) return std::unexpected(workloads.error());
  out.workloads = std::move(*workloads);
  for (const std::string& spelling : out.candidates) {
    if (auto made = session.kinds.make(spelling); !made) return std::unexpected(made.error());
  }
  out.device = workload.device;
  out.threads = thread_count(workload);
  out.config = options.config;
  out.seed = workload.seed;
  out.out = options.out;
  out.resume = options.resume;
  out.show_progress = !options.no_progress;
  out.timeout_ms = options.timeout_s * 1000;
  if (options.model == "none") return out;
  out.measure_model = [&session, model = options.model, threads = out.threads, seed = out.seed](
                          const bench::CellKey& key, const std::string& spelling) {
    models::ModelCellRequest request{key, model, threads, 20, seed, 0, {}, {}, session.workers.python};
    request.make = [&session, spelling] { return session.kinds.make(spelling); };
    request.open.threads = threads;
    return models::measure_model_cell(request);
  };
  return out;
}

/// The worst that happened to a candidate decides; references only inform.
ExitCode exit_code_of(const bench::BenchReport& report) {
  bool incorrect = false, invalid = false, nothing = true;
  for (const bench::Outcome& outcome : report.outcomes) {
    if (outcome.is_reference) continue;
    const bench::Cell* check = outcome.find(bench::Stage::Check);
    incorrect |= check != nullptr && check->state == bench::State::Failed;
    for (const bench::Cell& cell : outcome.cells) {
      nothing &= cell.state != bench::State::Measured;
      const bool is_timing =
          cell.stage == bench::Stage::Warm || cell.stage == bench::Stage::Compile || cell.stage == bench::Stage::Load;
      invalid |= is_timing && cell.state == bench::State::Failed;
    }
  }
  return incorrect ? ExitCode::Incorrect
         : invalid ? ExitCode::InvalidMeasurement
         : nothing ? ExitCode::Insufficient
                   : ExitCode::Ok;
}

void print_report(const bench::BenchReport& report, const Session& session) {
  fmt::print("{}", bench::render_table(report, false));
  for (const bench::Outcome& outcome : report.outcomes) {
    const bench::Cell* check = outcome.find(bench::Stage::Check);
    if (check != nullptr && check->state == bench::State::Failed)
      fmt::print("{} is wrong or unfair: {}\n", outcome.candidate, check->reason);
  }
  fmt::print("{}", bench::render_not_run(report));
  for (const std::string& note : report.notes) fmt::print("note: {}\n", note);
  fmt::print("records: {}/cells.jsonl · tables: {}/<candidate>/table.csv\n", report.out.string(), report.out.string());
  fmt::print("report: tilewright report {} --out {}/report.html\n", report.out.string(), report.out.string());
  fmt::print("reproduce: {}\n", fmt::join(session.command, " "));
}

}  // namespace

Run add_bench(CLI::App& app, Session& session) {
  auto options = std::make_shared<Options>();
  app.add_option("candidates", options->candidates, "what to judge: lib:./kernel.so, worker:numpy, worker:./mine.py, …")
      ->type_name("CANDIDATE");
  add_workload_options(app, options->workload);
  app.add_option("--reference", options->references,
                 "what to compare with (default: every reference that is installed); may be repeated")
      ->type_name("CANDIDATE");
  app.add_flag("--no-reference", options->no_references, "compare with the float64 oracle only");
  app.add_option("--budget", options->budget, "quick (a look), ci, or full (for a decision)")->capture_default_str();
  app.add_option("--config", options->config, "tuning parameters of the candidates, as JSON")->capture_default_str();
  app.add_option("--model", options->model,
                 "model_ms: tiny or 125m where it calls this operator at this shape; none to skip")
      ->capture_default_str();
  app.add_option("--out", options->out, "folder of the records")->capture_default_str();
  app.add_option("--timeout-s", options->timeout_s, "longest silence of a candidate before it is killed")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  app.add_flag("--resume", options->resume, "go on with an interrupted run: what was recorded is kept");
  app.add_option("--export-markdown", options->markdown_file, "write the table as markdown")->type_name("FILE");
  app.add_flag("--json", options->json, "print everything as JSON");
  app.add_flag("--no-progress", options->no_progress, "no progress line on stderr");
  add_suite_options(app, options->suite);
  app.footer(
      "Examples:\n"
      "  tilewright bench --suite cpu-gemm --threads 1 --filter 1024\n"
      "  tilewright bench worker:onnxruntime --op gemm:1024x1024x1024\n"
      "  tilewright bench lib:./openblas_gemm.so --op gemm:16x4096x4096:nt --budget full\n"
      "  tilewright bench worker:torch --op attn:b1hq8hkv8sq512sk512d64:bshd:causal-br --json\n"
      "  tilewright bench lib:./mine.so --op gemm:512x512x512 --resume        after an interruption\n"
      "Exit codes: 0 measured · 2 bad input · 3 wrong or unfair · 4 invalid measurement · 6 nothing could be measured");
  return [options, &session]() -> Result<ExitCode> {
    if (!options->suite.name.empty()) return run_suite_command(options->suite, suite_run(*options), session);
    auto bench_opts = bench_options(*options, session);
    if (!bench_opts) return std::unexpected(bench_opts.error());
    std::vector<std::string> warnings = bench::machine_warnings(bench_opts->threads);
    auto report = bench::run_bench(*bench_opts);
    if (!report) return std::unexpected(report.error());
    report->notes.insert(report->notes.begin(), warnings.begin(), warnings.end());
    if (!options->markdown_file.empty()) {
      if (auto ok = bench::replace_file(options->markdown_file, bench::render_table(*report, true)); !ok)
        return std::unexpected(ok.error());
    }
    if (options->json)
      fmt::print("{}\n", bench::report_json(*report).dump(2));
    else
      print_report(*report, session);
    return exit_code_of(*report);
  };
}

}  // namespace tilewright::tools
