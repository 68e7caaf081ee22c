// `tilewright traffic`: what a service's request trace asks of a kernel. Everything here but `replay` is arithmetic on
// the file and is labelled `simulated`.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "bench/record/cell_log.h"
#include "bench/record/table_csv.h"
#include "bench/traffic/rare_keys.h"
#include "bench/traffic/simulate.h"
#include "tools/command.h"
#include "tools/traffic_replay.h"

namespace tilewright::tools {
namespace {

using namespace traffic;

struct Options {
  std::string trace;
  std::string policy = "exact";
  std::string miss = "block";
  std::string out;
  ServiceModel model;
  double compile_ms = 1200;
  double base_ms = 20;
  double token_us = 25;
  std::string cells, candidate;  ///< where compile_ms was measured
  int top = 20;
  bool compare = false;
  bool json = false;
};

/// The latest measured compile_ms of the candidate, over all its shapes the largest; 0 of a precompiled library.
Result<double> measured_compile_ms(const Options& options) {
  const Result<bench::CellFile> file = bench::read_cells(options.cells);
  if (!file) return std::unexpected(file.error());
  double largest = -1;
  for (const bench::Cell& cell : bench::latest_cells(file->cells)) {
    const bool counts = cell.stage == bench::Stage::Compile && cell.state == bench::State::Measured && cell.value;
    if (counts && (options.candidate.empty() || cell.candidate == options.candidate))
      largest = std::max(largest, *cell.value);
    if (bench::is_precompiled(cell) && (options.candidate.empty() || cell.candidate == options.candidate))
      largest = std::max(largest, 0.0);
  }
  if (largest >= 0) return largest;
  return fail(DiagnosticCode::E1646,
              fmt::format("{} has no measured compile_ms of '{}'", options.cells, options.candidate),
              "measure it with tilewright bench, or give --compile-ms");
}

Result<ServiceModel> model_of(Options& options) {
  ServiceModel model = options.model;
  if (!options.cells.empty()) {
    const Result<double> measured = measured_compile_ms(options);
    if (!measured) return std::unexpected(measured.error());
    options.compile_ms = *measured;
  }
  model.compile_s = options.compile_ms / 1e3;
  model.base_s = options.base_ms / 1e3;
  model.per_token_s = options.token_us / 1e6;
  if (Status status = check(model); !status) return std::unexpected(status.error());
  return model;
}

std::string seconds_or_never(const std::optional<double>& seconds) {
  return seconds ? fmt::format("{:.0f} s", *seconds) : "never";
}

Result<ExitCode> run_stats(const Options& options) {
  const Result<Trace> trace = load_trace(options.trace);
  if (!trace) return std::unexpected(trace.error());
  const TraceStats s = describe(*trace);
  if (options.json) {
    nlohmann::json json = to_json(s);
    json["trace"] = trace->name;
    json["sha256"] = trace->sha256;
    fmt::print("{}\n", json.dump(2));
    return ExitCode::Ok;
  }
  fmt::print("{}  sha256 {}\n", trace->name, trace->sha256.substr(0, 16));
  fmt::print("  requests        {:>10}   over {:.0f} s, {:.2f} a second, gaps' variation {:.2f} (Poisson: 1)\n",
             s.requests, s.span_s, s.rate_per_s, s.gap_cv);
  fmt::print("  prompt tokens   {:>10}   p50 {}, p90 {}, p99 {}, max {}\n", fmt::format("min {}", s.prompt_min),
             s.prompt_p50, s.prompt_p90, s.prompt_p99, s.prompt_max);
  fmt::print("  output tokens   {:>10}   p99 {}\n", fmt::format("p50 {}", s.output_p50), s.output_p99);
  fmt::print("  prompt lengths  {:>10}   of which {} are seen once; the ten commonest serve {:.1f} % of requests\n",
             s.distinct_prompts, s.singleton_prompts, 100 * s.top10_share);
  if (s.out_of_order) fmt::print("  note: {} rows stood out of order and were sorted by time\n", s.out_of_order);
  return ExitCode::Ok;
}

void print_simulation_header() {
  fmt::print("{:<22} {:>6} {:>6} {:>9} {:>9} {:>9} {:>9} {:>9}\n", "policy / miss", "keys", "ρ_c", "p50 s", "p99 s",
             "steady at", "pad waste", "fallback");
}

void print_simulation(const SimulationResult& r) {
  fmt::print("{:<22} {:>6} {:>6.2f} {:>9.3f} {:>9.3f} {:>9} {:>8.1f}% {:>8.1f}%\n",
             fmt::format("{} / {}", r.policy, to_string(r.handling)), r.keys, r.compile_load, r.p50_s, r.p99_s,
             seconds_or_never(r.steady_at_s), 100 * r.pad_waste, 100 * r.fallback_share);
}

Result<ExitCode> run_simulate(Options& options) {
  const Result<Trace> trace = load_trace(options.trace);
  if (!trace) return std::unexpected(trace.error());
  const Result<ServiceModel> model = model_of(options);
  if (!model) return std::unexpected(model.error());
  std::vector<std::pair<std::string, std::string>> cases = {{options.policy, options.miss}};
  if (options.compare) {
    cases = {{"exact", "block"},  {"exact", "background"},  {"pad64", "block"},
             {"pad128", "block"}, {"pad128", "background"}, {"pow2", "block"}};
  }
  for (const auto& [policy_text, miss_text] : cases) {  // refused before a table is begun
    if (const Result<KeyPolicy> policy = KeyPolicy::parse(policy_text); !policy) return std::unexpected(policy.error());
    if (const auto handling = parse_miss_handling(miss_text); !handling) return std::unexpected(handling.error());
  }
  nlohmann::json all = nlohmann::json::array();
  if (!options.json) {
    fmt::print("{}: {} requests in {:.0f} s   [simulated: {} ms + {} µs × tokens, compile {} ms, fallback × {}]\n\n",
               trace->name, trace->requests.size(), trace->span_s(), options.base_ms, options.token_us,
               options.compile_ms, model->fallback_factor);
    print_simulation_header();
  }
  for (const auto& [policy_text, miss_text] : cases) {
    const Result<KeyPolicy> policy = KeyPolicy::parse(policy_text);
    const Result<MissHandling> handling = parse_miss_handling(miss_text);
    const SimulationResult result = simulate(*trace, *policy, *handling, *model);
    if (!options.json) print_simulation(result);
    nlohmann::json json = to_json(result, *model);
    json["trace"] = trace->name;
    json["trace_sha256"] = trace->sha256;
    if (!options.out.empty()) json["timeline"] = sampled_timeline(result);
    all.push_back(std::move(json));
  }
  if (options.json) fmt::print("{}\n", (options.compare ? all : all[0]).dump(2));
  if (!options.out.empty()) {
    if (Status status = bench::replace_file(options.out, all.dump(1) + "\n"); !status)
      return std::unexpected(status.error());
    if (!options.json) fmt::print("\nwrote {} (tilewright report reads it)\n", options.out);
  }
  return ExitCode::Ok;
}

void print_rare(const RareReport& report, const Options& options) {
  fmt::print("{}: {} keys, {} of them seen once   [simulated]\n", report.policy, report.keys.size(), report.singletons);
  fmt::print(
      "compiling never pays for {} keys ({:.1f} %), which serve {:.1f} % of requests\n", report.never_pay,
      100.0 * static_cast<double>(report.never_pay) / std::max<double>(1, static_cast<double>(report.keys.size())),
      100 * report.never_pay_requests);
  fmt::print("net over the trace: {:+.1f} s compiling every key, {:+.1f} s compiling only those that pay\n\n",
             report.net_all_s, report.net_chosen_s);
  fmt::print("{:>8} {:>8} {:>8} {:>11} {:>11} {:>11}  {}\n", "key", "count", "share", "cumulative", "compile ms",
             "break-even", "worth jit");
  const int64_t shown =
      options.top > 0 ? std::min<int64_t>(options.top, std::ssize(report.keys)) : std::ssize(report.keys);
  for (int64_t i = 0; i < shown; ++i) {
    const KeyUse& use = report.keys[static_cast<size_t>(i)];
    fmt::print("{:>8} {:>8} {:>7.2f}% {:>10.2f}% {:>11.0f} {:>11}  {}\n", use.key, use.count, 100 * use.share,
               100 * use.cumulative, options.compile_ms,
               use.break_even_calls ? fmt::format("{:.0f}", *use.break_even_calls) : "never",
               use.worth_jit ? "yes" : "no");
  }
  if (shown < std::ssize(report.keys))
    fmt::print("… {} more in order of first use: --top 0\n", std::ssize(report.keys) - shown);
}

Result<ExitCode> run_rare(Options& options) {
  const Result<Trace> trace = load_trace(options.trace);
  if (!trace) return std::unexpected(trace.error());
  const Result<ServiceModel> model = model_of(options);
  if (!model) return std::unexpected(model.error());
  const Result<KeyPolicy> policy = KeyPolicy::parse(options.policy);
  if (!policy) return std::unexpected(policy.error());
  const RareReport report = find_rare_keys(*trace, *policy, *model);
  if (options.json) {
    fmt::print("{}\n", to_json(report, *model).dump(2));
  } else {
    print_rare(report, options);
  }
  return ExitCode::Ok;
}

Result<ExitCode> run_snapshot(const Options& options) {
  const Result<Trace> trace = load_trace(options.trace);
  if (!trace) return std::unexpected(trace.error());
  const Result<KeyPolicy> policy = KeyPolicy::parse(options.policy);
  if (!policy) return std::unexpected(policy.error());
  const nlohmann::json json = snapshot(*trace, *policy);
  if (options.out.empty()) {
    fmt::print("{}\n", json.dump(2));
    return ExitCode::Ok;
  }
  if (Status status = bench::replace_file(options.out, json.dump(2) + "\n"); !status)
    return std::unexpected(status.error());
  fmt::print("{}: {} keys of {} requests under {}\n", options.out, json["keys"].size(), trace->requests.size(),
             options.policy);
  return ExitCode::Ok;
}

void add_policy(CLI::App& app, Options& options) {
  app.add_option("--policy", options.policy, "which shape serves a prompt: exact, pad16|64|128, pow2, buckets=FILE")
      ->capture_default_str();
}

void add_model(CLI::App& app, Options& options) {
  app.add_option("--compile-ms", options.compile_ms, "one compile (yours: the compile_ms of your table)")
      ->capture_default_str();
  app.add_option("--cells", options.cells, "take compile_ms from this record")->type_name("FILE");
  app.add_option("--candidate", options.candidate, "whose compile_ms in the record");
  app.add_option("--base-ms", options.base_ms, "service time before the first token")->capture_default_str();
  app.add_option("--token-us", options.token_us, "service time per (padded) prompt token")->capture_default_str();
  app.add_option("--fallback-factor", options.model.fallback_factor, "fallback kernel's time per token ÷ ours")
      ->capture_default_str();
}

CLI::App* add_part(CLI::App& app, Options& options, const char* name, const char* what) {
  CLI::App* part = app.add_subcommand(name, what)->group("Subcommands");
  part->add_option("trace", options.trace, "CSV or JSONL with arrival times and prompt tokens")
      ->required()
      ->type_name("FILE");
  part->add_flag("--json", options.json, "print JSON");
  return part;
}

}  // namespace

Run add_traffic(CLI::App& app, Session& session) {
  auto options = std::make_shared<Options>();
  CLI::App* stats = add_part(app, *options, "stats", "Requests, rates and lengths");
  CLI::App* simulation = add_part(app, *options, "simulate", "Latency of one server that compiles a kernel per key");
  add_policy(*simulation, *options);
  add_model(*simulation, *options);
  simulation->add_option("--miss", options->miss, "what a new key does: block, background")->capture_default_str();
  simulation->add_flag("--compare", options->compare, "the usual policies side by side");
  simulation->add_option("--out", options->out, "write the result with its timeline")->type_name("FILE");
  CLI::App* rare = add_part(app, *options, "rare", "Which shapes repay their compile");
  add_policy(*rare, *options);
  add_model(*rare, *options);
  rare->add_option("--top", options->top, "rows to print, 0 for all")->capture_default_str();
  CLI::App* snap =
      add_part(app, *options, "snapshot", "Weighted shapes of a trace, for tune --traffic and buckets=FILE");
  add_policy(*snap, *options);
  snap->add_option("--out", options->out, "where to write it; the screen when absent")->type_name("FILE");
  const auto [replay, run_replay] = add_traffic_replay(app, session);
  app.require_subcommand(1);
  app.footer(
      "Examples:\n  tilewright traffic stats trace.csv\n  tilewright traffic simulate trace.csv --compare\n"
      "  tilewright traffic simulate trace.csv --policy pad128 --miss background --compile-ms 40\n"
      "  tilewright traffic rare trace.csv --policy exact\n  tilewright traffic snapshot trace.csv --policy pad128 "
      "--out traffic.json\n"
      "  tilewright traffic replay trace.csv --candidate lib:./gemm.so --policy pad128 --miss background");
  return [=, replay = replay, run_replay = run_replay]() -> Result<ExitCode> {
    if (replay->parsed()) return run_replay();
    if (stats->parsed()) return run_stats(*options);
    if (simulation->parsed()) return run_simulate(*options);
    return rare->parsed() ? run_rare(*options) : run_snapshot(*options);
  };
}

}  // namespace tilewright::tools
