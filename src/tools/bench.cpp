// `tilewright bench`: the whole life of a kernel, each cost by itself, or `not-run`.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>

#include "bench/doctor.h"
#include "bench/harness.h"
#include "bench/record/table_csv.h"
#include "bench/report/page.h"
#include "bench/screen_table.h"
#include "bench/text_table.h"
#include "measure/order_statistics.h"
#include "models/model_cell.h"
#include "tools/bench_suite.h"
#include "tools/command.h"
#include "tools/workload_options.h"

namespace tilewright::tools {
namespace {

struct Options {
  std::vector<std::string> candidates;
  std::string kernel;
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
  bool unchecked = false;
  SuiteFlags suite;
};

/// What takes part in what.
struct Plan {
  std::vector<std::string> candidates;
  std::vector<bench::Workload> workloads;
  std::map<std::string, bench::Workload> own;  ///< candidates that only do the workload they state themselves
  std::vector<OfferedKernel> without_reference;
};

/// With --kernel: that kernel of the file.
std::string with_kernel(const std::string& spelling, const std::string& kernel) {
  const size_t end = spelling.find(".tile");
  const bool has_one = end == std::string::npos || spelling.find(':', end) != std::string::npos;
  if (kernel.empty() || has_one) return spelling;
  return spelling.substr(0, end + 5) + ":" + kernel + spelling.substr(end + 5);
}

Status add_offers(const std::string& spelling, const Options& options, const Session& session, Plan& plan) {
  auto dims = parse_sizes(options.workload.dims);
  if (!dims) return std::unexpected(dims.error());
  auto offers = session.kernels.offers(spelling, *dims);
  if (!offers) return std::unexpected(offers.error());
  for (OfferedKernel& offer : *offers) {
    if (!offer.workload) {
      plan.without_reference.push_back(std::move(offer));
      continue;
    }
    plan.candidates.push_back(offer.spelling);
    if (std::ranges::find(plan.workloads, *offer.workload) == plan.workloads.end())
      plan.workloads.push_back(*offer.workload);
    plan.own.emplace(std::move(offer.spelling), std::move(*offer.workload));
  }
  return {};
}

/// With --op: every candidate on every workload. Without: kernels of ours on what their own `reference` and `example`
/// lines say, all others on each of those; a plain product when there is no kernel of ours.
Result<Plan> make_plan(const Options& options, const Session& session) {
  Plan plan;
  WorkloadOptions workload = options.workload;
  const std::vector<std::string>& named = options.candidates.empty() ? session.default_candidates : options.candidates;
  for (const std::string& given : named) {
    const std::string spelling = with_kernel(given, options.kernel);
    if (workload.keys.empty() && session.kernels.offers && names_kernel(spelling)) {
      if (auto added = add_offers(spelling, options, session, plan); !added) return std::unexpected(added.error());
    } else {
      plan.candidates.push_back(spelling);
    }
  }
  if (!plan.own.empty() || !plan.without_reference.empty()) return plan;
  if (workload.keys.empty()) workload.keys = {"gemm:512x512x512"};
  auto workloads = parse_workloads(workload, session);
  if (!workloads) return std::unexpected(workloads.error());
  plan.workloads = std::move(*workloads);
  return plan;
}

SuiteRun suite_run(const Options& options) {
  SuiteRun run;
  if (options.workload.threads > 0) run.threads = {options.workload.threads};
  run.seed = options.workload.seed;
  run.out = options.out;
  run.markdown_file = options.markdown_file;
  run.json = options.json;
  run.resume = options.resume;
  run.show_progress = !options.no_progress;
  run.timeout_ms = options.timeout_s * 1000;
  return run;
}

Result<bench::BenchOptions> bench_options(const Options& options, const Plan& plan, const Session& session) {
  bench::BenchOptions out;
  const auto budget = bench::find_budget(options.budget);
  if (!budget)
    return fail(DiagnosticCode::E1600, fmt::format("--budget {}: there is no such budget", options.budget),
                "quick, ci or full");
  out.budget = *budget;
  out.executable = session.executable;
  out.command = session.command;
  out.candidates = plan.candidates;
  const bool on_cpu = options.workload.device == "cpu";
  const std::vector<std::string>& usual = on_cpu ? session.default_references : session.device_references;
  out.references = options.references.empty() ? usual : options.references;
  out.references_are_named = !options.references.empty();
  if (options.no_references) out.references.clear();
  out.workloads = plan.workloads;
  out.is_wanted = [own = plan.own](const std::string& candidate, const bench::Workload& workload) {
    const auto found = own.find(candidate);
    return found == own.end() || found->second == workload;
  };
  for (const std::string& spelling : out.candidates) {
    if (auto made = session.kinds.make(spelling); !made) return std::unexpected(made.error());
  }
  // A reference that is spelled wrong is the user's mistake when he named it; its search is paid here, not in a stage.
  for (const std::string& spelling : out.references) {
    if (auto made = session.kinds.make(spelling); !made && !options.references.empty())
      return std::unexpected(made.error());
  }
  out.device = options.workload.device;
  out.threads = thread_count(options.workload);
  if (!nlohmann::json::parse(options.config, nullptr, false).is_object()) {
    return fail(DiagnosticCode::E1600, fmt::format("--config {}: not a JSON object", options.config),
                R"(for example --config '{"block_M": 64}')");
  }
  out.config = options.config;
  out.seed = options.workload.seed;
  out.out = options.out;
  out.resume = options.resume;
  out.show_progress = !options.no_progress;
  out.timeout_ms = options.timeout_s * 1000;
  if (options.model == "none" || !on_cpu) return out;  // the models run on a CPU
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

void print_report(const bench::BenchReport& report) {
  fmt::print("{}", bench::render_table(report, false));
  for (const bench::Outcome& outcome : report.outcomes) {
    const bench::Cell* check = outcome.find(bench::Stage::Check);
    if (check != nullptr && check->state == bench::State::Failed)
      fmt::print("{} failed its check, so nothing of it was timed: {}\n", outcome.candidate, check->reason);
  }
  fmt::print("{}", bench::render_not_run(report));
  for (const std::string& note : report.notes) fmt::print("note: {}\n", note);
  fmt::print("records: {}/cells.jsonl · tables: {}/<candidate>/table.csv\n", report.out.string(), report.out.string());
}

/// The page beside the records: where it is, or the command that makes it. A record that cannot be rendered is no
/// reason to fail a measurement.
std::string write_page(const bench::BenchReport& report) {
  const auto input = report::load_report_input(report.out);
  const std::string page = (report.out / "report.html").string();
  return input && bench::replace_file(page, report::render_html(*input)) ? page
                                                                         : "tilewright report " + report.out.string();
}

std::string times_text(const std::vector<double>& samples) {
  const auto sorted = measure::sorted(samples);
  std::string out = bench::duration_text(measure::median(sorted));
  if (const auto ci = measure::median_interval(sorted, 0.95))
    out += fmt::format(" [{}, {}]", bench::duration_text(ci->low), bench::duration_text(ci->high));
  return out;
}

/// Kernels nobody can check: why, how to mend it, and with --unchecked times that go nowhere but the screen.
Status print_without_reference(const Plan& plan, const Options& options, const Session& session) {
  for (const OfferedKernel& kernel : plan.without_reference) {
    fmt::print("{}: not-run (no independent reference): {}\n", kernel.spelling, kernel.why_not);
    if (!options.unchecked) continue;
    if (options.workload.device != "cpu") {
      fmt::print("  *unchecked*  not-run: times that nobody checks are taken on the CPU only (--device cpu)\n");
      continue;
    }
    auto times = session.kernels.time_unchecked(kernel.spelling, thread_count(options.workload), options.workload.seed);
    if (!times) return std::unexpected(times.error());
    fmt::print("  *unchecked*  compile {}  warm {}  hot {}  (nobody compared the result; nothing is recorded)\n",
               bench::duration_text(times->compile_ms), times_text(times->warm_ms), times_text(times->hot_ms));
  }
  if (plan.without_reference.empty()) return {};
  fmt::print(
      "  to have it checked: a line `reference silu(matmul(X, W)) * U` that says what every output is, over the "
      "kernel's\n"
      "  own arguments (words: docs/grammar.md), and an `example` line, or name an operator with --op{}\n",
      options.unchecked ? "" : "; --unchecked prints times that nobody checked");
  return {};
}

Result<ExitCode> run_one_life(const Options& options, const Session& session) {
  auto plan = make_plan(options, session);
  if (!plan) return std::unexpected(plan.error());
  auto bench_opts = bench_options(options, *plan, session);
  if (!bench_opts) return std::unexpected(bench_opts.error());
  if (plan->workloads.empty()) {
    if (auto printed = print_without_reference(*plan, options, session); !printed)
      return std::unexpected(printed.error());
    return ExitCode::Insufficient;
  }
  std::vector<std::string> warnings = bench::machine_warnings(bench_opts->threads);
  auto report = bench::run_bench(*bench_opts);
  if (!report) return std::unexpected(report.error());
  report->notes.insert(report->notes.begin(), warnings.begin(), warnings.end());
  if (!options.markdown_file.empty()) {
    if (auto ok = bench::replace_file(options.markdown_file, bench::render_table(*report, true)); !ok)
      return std::unexpected(ok.error());
  }
  const std::string page = write_page(*report);
  if (options.json) {
    fmt::print("{}\n", bench::report_json(*report).dump(2));
    return exit_code_of(*report);
  }
  print_report(*report);
  if (auto printed = print_without_reference(*plan, options, session); !printed)
    return std::unexpected(printed.error());
  fmt::print("report: {}\n", page);
  fmt::print("reproduce: {}\n", fmt::join(session.command, " "));
  return exit_code_of(*report);
}

}  // namespace

Run add_bench(CLI::App& app, Session& session) {
  auto options = std::make_shared<Options>();
  app.add_option("candidates", options->candidates,
                 "what to judge: kernel.tile, lib:./kernel.so, worker:numpy, worker:./mine.py, …")
      ->type_name("CANDIDATE");
  app.add_option("--kernel", options->kernel, "which kernel of a .tile file (else all of them)")->type_name("NAME");
  add_workload_options(app, options->workload);
  app.add_option("--reference", options->references,
                 "what to compare with (default: every reference that is installed); may be repeated")
      ->allow_extra_args(false)
      ->type_name("CANDIDATE");
  app.add_flag("--unchecked", options->unchecked,
               "print times of kernels that have no independent reference, marked *unchecked*; never recorded");
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
  app.add_flag("--resume", options->resume,
               "go on with an interrupted run: what was recorded is kept (also of --suite hopper)");
  app.add_option("--export-markdown", options->markdown_file, "write the table as markdown")->type_name("FILE");
  app.add_flag("--json", options->json, "print everything as JSON");
  app.add_flag("--no-progress", options->no_progress, "no progress line on stderr");
  add_suite_options(app, options->suite);
  app.footer(
      "Examples:\n"
      "  tilewright bench kernels/softmax.tile        every kernel of the file on its own example and reference\n"
      "  tilewright bench kernels/softmax.tile --device cuda:0     the same on a GPU\n"
      "  tilewright bench mine.tile --kernel swiglu --dim M=512,N=1024        your own, against its own reference\n"
      "  tilewright bench --suite cpu-gemm --threads 1 --filter 1024\n"
      "  tilewright bench --suite hopper --resume                  what our kernels reach on a Hopper GPU\n"
      "  tilewright bench worker:onnxruntime --op gemm:1024x1024x1024\n"
      "  tilewright bench lib:./openblas_gemm.so --op gemm:16x4096x4096:nt --budget full\n"
      "  tilewright bench worker:torch --op attn:b1hq8hkv8sq512sk512d64:bshd:causal-br --json\n"
      "  tilewright bench lib:./mine.so --op gemm:512x512x512 --resume        after an interruption\n"
      "Exit codes: 0 measured · 2 bad input · 3 wrong or unfair · 4 invalid measurement · 6 nothing could be measured");
  return [options, &session]() -> Result<ExitCode> {
    if (!options->suite.name.empty()) return run_suite_command(options->suite, suite_run(*options), session);
    return run_one_life(*options, session);
  };
}

}  // namespace tilewright::tools
