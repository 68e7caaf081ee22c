#include "tools/traffic_replay.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "base/line_log.h"
#include "bench/candidate_replay.h"
#include "bench/record/table_csv.h"
#include "bench/traffic/replay.h"
#include "tools/progress_line.h"
#include "tools/saved_winner.h"
#include "tools/workload_options.h"

namespace tilewright::tools {
namespace {

using namespace traffic;

struct Options {
  std::string trace, policy = "pad128", miss = "block", serving = "jit";
  std::string shape = "gemm:1x1024x1024:nn", dtype = "f32", best, telemetry, out = "out";
  bench::CandidateReplayOptions kernels;
  ReplayOptions replay;
  double slo_ms = 0, good_ms = 500;
  int64_t limit = 2000;
  bool json = false;
};

/// The keys of the trace that a verified bucket serves, each with the bucket's configuration; the rest takes the
/// fallback. False when the record, or a bucket of it, is not what it was made from.
bool find_pinned(const Options& options, const std::set<int64_t>& keys, const Session& session, ReplayOptions& replay,
                 bench::CandidateReplayOptions& kernels) {
  if (options.best.empty()) return true;
  const dispatch::Pinned pinned = open_pinned(
      options.best, session.kinds, {.candidate = kernels.kernel, .out = options.out, .threads = kernels.threads});
  for (const std::string& notice : pinned.notices()) fmt::print(stderr, "pinned: {}\n", notice);
  for (const int64_t key : keys) {
    bench::Workload workload = kernels.workload;
    bench::set_key_dims(workload, kernels.dim, key);
    const dispatch::Choice choice = pinned.choose(dims_of(workload));
    if (!choice.bucket) continue;
    replay.pinned_keys.push_back(key);
    kernels.configs[key] = bench::config_text(choice.bucket->config);
  }
  return pinned.notices().empty();
}

void print_report(const ReplayReport& r, const Options& options) {
  const SimulationResult& s = r.service;
  fmt::print("{} requests, {} / {} / {}   [measured services on the trace's clock]\n", s.requests, s.policy,
             to_string(s.handling), r.serving);
  const auto part = [](const std::optional<double>& p99_s, const char* why_not) {
    return p99_s ? fmt::format("{:.3f} ms", 1e3 * *p99_s) : fmt::format("not-run ({})", why_not);
  };
  fmt::print("  latency     p50 {:.3f} ms   p99 {:.3f} ms   warm-up p99 {}   steady p99 {}\n", 1e3 * s.p50_s,
             1e3 * s.p99_s, part(s.warmup_p99_s, "steady at once"), part(s.steady_p99_s, "never steady"));
  fmt::print("  steady      {}\n", s.steady_at_s ? fmt::format("at {:.0f} s", *s.steady_at_s) : "never");
  fmt::print("  compiles    {} in {:.3f} s for {} keys; repaid {}\n", r.jit_events, r.compile_s, s.keys,
             r.break_even_s ? fmt::format("at {:.0f} s", *r.break_even_s) : "never");
  fmt::print("  fallback    {:.1f} % of requests; pad waste {:.1f} %; goodput below {} ms {:.1f} %\n",
             100 * s.fallback_share, 100 * s.pad_waste, options.good_ms, 100 * r.goodput);
  if (r.serving == "pinned") {
    fmt::print("  left on the table {:.4g} ms [{:.4g}, {:.4g}] (95 % of each key's paired median)\n",
               1e3 * r.left_on_table_s, 1e3 * r.left_low_s, 1e3 * r.left_high_s);
  }
  if (r.serving == "adaptive") {
    fmt::print("  switches {}, unexplained {}, rollbacks {}, explored {}, distinct outputs {}{}\n", r.switches,
               r.unexplained_switches, r.rollbacks, r.explored, r.distinct_outputs,
               r.fell_to_pinned ? "; telemetry failed: fell to pinned" : "");
  }
  std::string rates;
  for (const double rate : s.miss_rate_per_500) rates += fmt::format(" {:.0f}", 100 * rate);
  fmt::print("  misses per 500 requests, %:{}\n", rates);
}

/// The other runs of an existing service.json: a run replaces only the one of its own kind.
nlohmann::json other_runs(const std::filesystem::path& path, const nlohmann::json& run) {
  std::ifstream in(path);
  const nlohmann::json known = in ? nlohmann::json::parse(in, nullptr, false) : nlohmann::json();
  nlohmann::json kept = nlohmann::json::array();
  const auto kind = [](const nlohmann::json& one) {
    return std::tuple(one.value("policy", ""), one.value("miss", ""), one.value("serving", ""));
  };
  for (const nlohmann::json& one : known.is_array() ? known : nlohmann::json::array()) {
    if (one.is_object() && one.value("state", "") == "measured" && kind(one) != kind(run)) kept.push_back(one);
  }
  return kept;
}

/// service.json for the report, and this policy's numbers in replay.json for `decide`.
Status write_files(const Options& options, const ReplayReport& report) {
  nlohmann::json run = to_json(report);
  nlohmann::json all = nlohmann::json::object();
  const std::filesystem::path folder = options.out;
  if (std::ifstream in(folder / "replay.json"); in) {
    nlohmann::json known = nlohmann::json::parse(in, nullptr, false);
    if (known.is_object()) all = std::move(known);
  }
  all[report.serving] = run;
  if (Status status = bench::replace_file(folder / "replay.json", all.dump(2) + "\n"); !status) return status;
  run["timeline"] = sampled_timeline(report.service);
  nlohmann::json runs = other_runs(folder / "service.json", run);
  runs.push_back(std::move(run));
  return bench::replace_file(folder / "service.json", runs.dump() + "\n");
}

Result<ServingPolicy> parse_serving(const std::string& text) {
  if (text == "jit") return ServingPolicy::Jit;
  if (text == "pinned") return ServingPolicy::Pinned;
  if (text == "adaptive") return ServingPolicy::Adaptive;
  return fail(DiagnosticCode::E1644, fmt::format("unknown serving policy '{}'", text), "use jit, pinned or adaptive");
}

/// What a policy cannot do without: said before anything runs.
Status check_files(const Options& options, ServingPolicy serving) {
  std::error_code ignored;
  if (serving == ServingPolicy::Pinned && options.best.empty()) {
    return fail(DiagnosticCode::E1600, "pinned serving has no record: every request would take the fallback",
                "name the verified winners with --best out/best.json; `tilewright tune` writes them");
  }
  if (!options.best.empty() && !std::filesystem::exists(options.best, ignored))
    return fail(DiagnosticCode::E1600, fmt::format("there is no {}", options.best), "check --best");
  const std::filesystem::path folder = std::filesystem::path(options.telemetry).parent_path();
  const bool is_out = folder.lexically_normal() == std::filesystem::path(options.out).lexically_normal();  // made by us
  if (serving == ServingPolicy::Adaptive && !folder.empty() && !is_out &&
      !std::filesystem::is_directory(folder, ignored)) {
    return fail(DiagnosticCode::E1600, fmt::format("there is no folder {} for the telemetry", folder.string()),
                "make it, or correct --telemetry");
  }
  return {};
}

Result<ExitCode> run_replay(const Options& options, Session& session) {
  const Result<ServingPolicy> serving = parse_serving(options.serving);
  if (!serving) return std::unexpected(serving.error());
  if (*serving == ServingPolicy::Adaptive && options.telemetry.empty()) {
    fmt::print(stderr,
               "policy violation: adaptive serving needs --telemetry FILE; without a record of its switches it may not "
               "start\n");
    return ExitCode::PolicyViolation;
  }
  if (Status status = check_files(options, *serving); !status) return std::unexpected(status.error());
  Result<Trace> trace = load_trace(options.trace);
  if (!trace) return std::unexpected(trace.error());
  if (options.limit > 0 && std::ssize(trace->requests) > options.limit)
    trace->requests.resize(static_cast<size_t>(options.limit));
  const Result<KeyPolicy> policy = KeyPolicy::parse(options.policy);
  if (!policy) return std::unexpected(policy.error());
  const Result<MissHandling> miss = parse_miss_handling(options.miss);
  if (!miss) return std::unexpected(miss.error());
  WorkloadOptions asked;
  asked.keys = {options.shape};
  asked.dtype = options.dtype;
  const Result<std::vector<bench::Workload>> workloads = parse_workloads(asked, session);
  if (!workloads) return std::unexpected(workloads.error());
  bench::CandidateReplayOptions kernels = options.kernels;
  kernels.workload = workloads->front();
  kernels.scratch = (std::filesystem::path(options.out) / "replay-cache").string();
  if (kernels.fallback.empty()) kernels.fallback = kernels.kernel;
  ReplayOptions replaying = options.replay;
  replaying.serving = *serving;
  replaying.handling = *miss;
  replaying.slo_s = options.slo_ms / 1e3;
  replaying.goodput_limit_s = options.good_ms / 1e3;
  std::optional<LineLog> telemetry;
  if (*serving == ServingPolicy::Adaptive) {
    Result<LineLog> log = LineLog::open(options.telemetry);
    if (!log) return std::unexpected(log.error());
    telemetry.emplace(std::move(*log));
    replaying.telemetry = [&](const std::string& line) { return telemetry->append(line).has_value(); };
  }
  std::set<int64_t> keys;
  for (const Request& request : trace->requests) keys.insert(policy->key(request.prompt));
  const int64_t longest = keys.empty() ? 1 : std::max<int64_t>(1, *keys.rbegin());
  std::error_code ignored;
  std::filesystem::create_directories(options.out, ignored);
  const bool is_verified = find_pinned(options, keys, session, replaying, kernels);
  bench::CandidateReplay server(session.kinds, std::move(kernels));
  if (Status status = server.allocate(longest); !status) return std::unexpected(status.error());
  ProgressLine progress("requests");
  replaying.progress = [&](int64_t done, int64_t total) {
    if (done % 16 == 0) progress.update(done, total);
  };
  const Result<ReplayReport> report = replay(*trace, *policy, server, replaying);
  progress.finish();
  if (!report && !server.wrong().empty()) {
    fmt::print(stderr, "{}", render(report.error()));
    return ExitCode::Incorrect;
  }
  if (!report) return std::unexpected(report.error());
  if (Status status = write_files(options, *report); !status) return std::unexpected(status.error());
  std::filesystem::remove_all(std::filesystem::path(options.out) / "replay-cache", ignored);
  if (options.json) {
    fmt::print("{}\n", to_json(*report).dump(2));
  } else {
    print_report(*report, options);
  }
  return is_verified ? ExitCode::Ok : ExitCode::Stale;
}

}  // namespace

std::pair<CLI::App*, Run> add_traffic_replay(CLI::App& traffic, Session& session) {
  auto options = std::make_shared<Options>();
  CLI::App* part =
      traffic.add_subcommand("replay", "Serve the trace with kernels that really run")->group("Subcommands");
  part->add_option("trace", options->trace, "CSV or JSONL with arrival times and prompt tokens")
      ->required()
      ->type_name("FILE");
  part->add_option("--candidate", options->kernels.kernel, "what is compiled per key: lib:…, tile:…")->required();
  part->add_option("--fallback", options->kernels.fallback, "what serves meanwhile; the candidate itself when absent");
  part->add_option("--op", options->shape, "workload; its --dim is set by the key")->capture_default_str();
  part->add_option("--dtype", options->dtype, "of the workload")->capture_default_str();
  part->add_option("--dim", options->kernels.dim, "dimensions the key sets: M, or SQ,SK")->capture_default_str();
  part->add_option("--threads", options->kernels.threads, "of the candidate")->capture_default_str();
  part->add_option("--policy", options->policy, "exact, pad16|64|128, pow2, buckets=FILE")->capture_default_str();
  part->add_option("--miss", options->miss, "block, background")->capture_default_str();
  part->add_option("--serving", options->serving, "jit, pinned, adaptive")->capture_default_str();
  part->add_option("--best", options->best, "verified best.json: the buckets of pinned serving")->type_name("FILE");
  part->add_option("--telemetry", options->telemetry, "where adaptive serving writes every switch")->type_name("FILE");
  part->add_option("--slo-ms", options->slo_ms, "p99 above which adaptive serving goes back; 0 for none")
      ->capture_default_str();
  part->add_option("--good-ms", options->good_ms, "a request below this latency is good")->capture_default_str();
  part->add_option("--limit", options->limit, "requests to replay; 0 for all")->capture_default_str();
  part->add_option("--out", options->out, "folder of the record: service.json, replay.json")->capture_default_str();
  part->add_flag("--json", options->json, "print JSON");
  part->footer(
      "Every kernel is judged by the oracle before it is timed.\n"
      "Exit codes: 3 a wrong result, 7 --best is not what it was made from (the fallback served), 9 adaptive without "
      "telemetry.");
  return {part, [options, &session] { return run_replay(*options, session); }};
}

}  // namespace tilewright::tools
