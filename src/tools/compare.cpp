// `tilewright compare A B`: which is faster, in one process, in turn, with an interval; exit 5 when A is slower.
#include "bench/compare.h"

#include <fmt/core.h>

#include <filesystem>
#include <memory>

#include "bench/record/cell_log.h"
#include "tools/command.h"
#include "tools/workload_options.h"

namespace tilewright::tools {
namespace {

struct Options {
  std::string a, b;
  WorkloadOptions workload;
  int rounds = 52;
  double delta_percent = 2;
  std::string config = "{}";
  std::string out;
  bool no_check = false;
  bool json = false;
  int64_t timeout_s = 120;
};

ExitCode exit_code_of(const bench::CompareReport& report) {
  if (!report.incorrect.empty()) return ExitCode::Incorrect;
  if (report.ratio.state == bench::State::Failed) return ExitCode::InvalidMeasurement;
  const std::string verdict = report.ratio.detail.value("verdict", "");
  return verdict == "SLOWER" ? ExitCode::Regression : verdict == "INCONCLUSIVE" ? ExitCode::Insufficient : ExitCode::Ok;
}

void print_gate(const std::string& name, const nlohmann::json& gate) {
  const int attempts = gate.value("attempts", 1);
  fmt::print("A/A gate: {} against itself {:.4f} [{:.4f}, {:.4f}], {} rounds{}{}\n", name, gate.value("ratio", 0.0),
             gate.value("low", 0.0), gate.value("high", 0.0), gate.value("rounds", 0),
             gate.value("passed", false) ? "" : " · FAILED",
             attempts > 1 ? fmt::format(" · attempt {}", attempts) : "");
}

void print_report(const bench::CompareReport& report, const Options& options) {
  if (!report.incorrect.empty()) {
    fmt::print("not timed: {}\n", report.incorrect);
    return;
  }
  const auto& detail = report.ratio.detail;
  if (detail.contains("aa")) print_gate(report.a_name, detail["aa"]);
  if (report.ratio.state == bench::State::Failed) {
    fmt::print("no verdict: {}\n", report.ratio.reason);
    return;
  }
  const bench::Interval ci = report.ratio.ci.value_or(bench::Interval{});
  const std::string verdict = detail.value("verdict", "");
  const char* link = verdict == "SAME" ? "as" : verdict == "INCONCLUSIVE" ? "against" : "than";
  const bool one_name = report.a_name == report.b_name;
  fmt::print("{} is {} {} {}: time ratio {:.4f}, 95 % interval [{:.4f}, {:.4f}], {} rounds, margin ±{:.1f} %\n",
             one_name ? options.a : report.a_name, verdict, link, one_name ? options.b : report.b_name,
             *report.ratio.value, ci.low, ci.high, report.ratio.n, 100 * detail.value("delta", 0.0));
  if (detail.value("is_gate_too_wide", false)) {
    fmt::print(
        "the interval lies inside the margin, but identical code could not be told to be the same within it: this "
        "machine cannot say SAME now\n");
  }
}

/// Into the record, when one was named and something was compared.
Status keep(const Options& options, bench::CompareReport& report) {
  if (options.out.empty() || !report.incorrect.empty()) return {};
  std::error_code error;
  std::filesystem::create_directories(options.out, error);
  auto log = bench::CellLog::open(std::filesystem::path(options.out) / "cells.jsonl");
  if (!log) return std::unexpected(log.error());
  report.ratio.environment_digest = bench::record_environment(thread_count(options.workload), options.out);
  return log->append(report.ratio);
}

}  // namespace

Run add_compare(CLI::App& app, Session& session) {
  auto options = std::make_shared<Options>();
  app.add_option("a", options->a, "the candidate")->required()->type_name("CANDIDATE");
  app.add_option("b", options->b, "what it is compared with")->required()->type_name("CANDIDATE");
  add_workload_options(app, options->workload);
  app.add_option("--rounds", options->rounds, "paired rounds; a noisy machine gets more")
      ->check(CLI::Range(6, 100000))
      ->capture_default_str();
  app.add_option("--delta", options->delta_percent, "differences below this many percent do not matter")
      ->check(CLI::Range(0.01, 100.0))
      ->capture_default_str();
  app.add_option("--config", options->config, "tuning parameters, as JSON")->capture_default_str();
  app.add_option("--timeout-s", options->timeout_s, "longest silence before a candidate is killed")
      ->check(CLI::Range(1, 86400));
  app.add_flag("--no-check", options->no_check, "skip the correctness check (only when bench has just done it)");
  app.add_option("--out", options->out, "append the ratio to the record in this folder, for decide and report")
      ->type_name("FOLDER");
  app.add_flag("--json", options->json, "print as JSON");
  app.footer(
      "Examples:\n"
      "  tilewright compare worker:onnxruntime worker:numpy --op gemm:512x512x512\n"
      "  tilewright compare lib:./new.so lib:./old.so --op softmax:4096x4096 --delta 1\n"
      "  tilewright compare tile:mine.tile:swiglu tile:mine.tile:swiglu_wide        on the first one's own reference\n"
      "Exit codes: 0 FASTER or SAME · 3 one is wrong · 4 too noisy · 5 SLOWER · 6 INCONCLUSIVE");
  return [options, &session]() -> Result<ExitCode> {
    WorkloadOptions workload = options->workload;
    // A kernel of ours says itself what it computes.
    if (workload.keys.empty()) workload.keys = {names_kernel(options->a) ? options->a : "gemm:512x512x512"};
    if (workload.keys.size() > 1) return fail(DiagnosticCode::E1600, "compare takes one --op");
    auto workloads = parse_workloads(workload, session);
    if (!workloads) return std::unexpected(workloads.error());
    if (workloads->size() > 1) {
      return fail(DiagnosticCode::E1600,
                  fmt::format("{} has {} kernels with a reference", workload.keys.front(), workloads->size()),
                  "name one: FILE.tile:KERNEL");
    }
    for (const std::string& spelling : {options->a, options->b}) {
      if (auto made = session.kinds.make(spelling); !made) return std::unexpected(made.error());
    }
    bench::CompareOptions compare;
    compare.executable = session.executable;
    compare.command = session.command;
    compare.a = options->a;
    compare.b = options->b;
    compare.workload = workloads->front();
    compare.device = workload.device;
    compare.threads = thread_count(workload);
    compare.config = options->config;
    compare.seed = workload.seed;
    compare.rounds = options->rounds;
    compare.delta = options->delta_percent / 100;
    compare.check = !options->no_check;
    compare.timeout_ms = options->timeout_s * 1000;
    auto report = bench::run_compare(compare);
    if (!report) return std::unexpected(report.error());
    if (auto kept = keep(*options, *report); !kept) return std::unexpected(kept.error());
    if (options->json) {
      nlohmann::json ratio = bench::to_json(report->ratio);
      if (options->out.empty()) ratio.erase("seq");  // in no record
      fmt::print("{}\n", nlohmann::json{{"a", report->a_name},
                                        {"b", report->b_name},
                                        {"incorrect", report->incorrect},
                                        {"ratio", std::move(ratio)}}
                             .dump(2));
    } else {
      print_report(*report, *options);
    }
    return exit_code_of(*report);
  };
}

}  // namespace tilewright::tools
