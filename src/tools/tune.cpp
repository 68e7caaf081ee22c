// `tilewright tune`: the best configuration of a candidate, saved with everything it depends on.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/harness.h"
#include "bench/oracle/contract.h"
#include "bench/record/cell_log.h"
#include "bench/record/table_csv.h"
#include "measure/machine.h"
#include "tools/command.h"
#include "tools/progress_line.h"
#include "tools/saved_winner.h"
#include "tools/tune_cases.h"
#include "tune/best_record.h"
#include "tune/payoff.h"

namespace tilewright::tools {
namespace {

using namespace tune;

struct Options {
  CaseWords words;
  std::string record, require, out = "out";
  int threads = 1;
  bool json = false;
  bool only_record = false;
  TuneOptions tune;

  std::filesystem::path file(const std::string& name) const { return std::filesystem::path(out) / name; }
};

Result<nlohmann::json> read_json(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return fail(DiagnosticCode::E1643, fmt::format("cannot read '{}'", path), "check the path");
  nlohmann::json json = nlohmann::json::parse(in, nullptr, false);
  if (json.is_discarded()) return fail(DiagnosticCode::E1643, fmt::format("'{}' is not JSON", path));
  return json;
}

void print_space(const TuneCase& one, const Space& space) {
  fmt::print("{}\nspace {}: {} points, {} pruned\n", bench::workload_key(one.workload), space.digest().substr(0, 16),
             space.points().size(), space.pruned().size());
  for (const std::string& fixed : one.fixed) fmt::print("  fixed         {}\n", fixed);
  std::map<std::string, int64_t> reasons;
  for (const PrunedPoint& point : space.pruned()) ++reasons[point.reason];
  constexpr size_t kMostReasons = 12;
  size_t shown = 0;
  for (const auto& [reason, count] : reasons) {
    if (shown++ < kMostReasons) fmt::print("  pruned {:>5}  {}\n", count, reason);
  }
  if (reasons.size() > kMostReasons) fmt::print("  … {} more reasons\n", reasons.size() - kMostReasons);
}

void print_outcome(const TuneOutcome& outcome) {
  std::string states;
  for (const auto& [state, count] : count_states(outcome.trials))
    states += fmt::format("{}{} {}", states.empty() ? "" : ", ", count, state);
  fmt::print("{} trials ({} from the log): {}; {:.1f} s spent, {:.1f} s of it compiling{}\n", outcome.trials.size(),
             outcome.resumed, states, outcome.spent_ms / 1e3, outcome.compile_ms / 1e3,
             outcome.out_of_budget ? "; the budget ended the search" : "");
  for (const Trial& trial : outcome.trials) {
    if (!trial.is_ok()) fmt::print("  {:<14} {:<36} {}\n", name(trial.state), to_string(trial.config), trial.reason);
  }
  fmt::print("runoff\n");
  for (const RunoffRow& row : outcome.runoff.rows) {
    const Trial& trial = *std::ranges::find(outcome.trials, row.point, &Trial::point);
    const measure::PairedResult& r = row.against_incumbent;
    // The first is what the others are held against: a ratio to itself would be no measurement.
    const bool is_first = &row == &outcome.runoff.rows.front();
    fmt::print("  {} {:<36} {:>9.4g} ms  {}\n", row.point == outcome.runoff.winner ? "→" : " ", to_string(trial.config),
               row.median_ms,
               is_first ? std::string("the others are held against this one")
                        : fmt::format("× {:.3f} [{:.3f}, {:.3f}] {}", r.ratio, r.interval95.low, r.interval95.high,
                                      measure::name(r.verdict)));
  }
  fmt::print("winner {}: {}\n", to_string(outcome.winner.config), outcome.runoff.why);
  const auto interval = outcome.confirmed.interval;
  fmt::print("  {:.4g} ms{} in {} processes\n", outcome.confirmed.value,
             interval ? fmt::format(" [{:.4g}, {:.4g}]", interval->low, interval->high) : "",
             outcome.confirmed.process_medians.size());
}

/// The toolchain begins with the candidate's own name, which is how the benchmark's cells call it.
std::string candidate_name(const TuneCase& one, const Identity& identity) {
  const std::string name = identity.toolchain.substr(0, identity.toolchain.find(' '));
  return name.empty() || name == "unknown" ? one.candidate : name;
}

Status record_cell(const Options& options, const Session& session, const TuneCase& one, const TuneOutcome& outcome,
                   const Identity& identity) {
  Result<bench::CellLog> log = bench::CellLog::open(options.file("cells.jsonl"));
  if (!log) return std::unexpected(log.error());
  bench::Cell cell;
  cell.subject = {bench::workload_key(one.workload), bench::to_string(one.workload.dtypes),
                  measure::cpu_device_name(options.threads)};
  cell.candidate = candidate_name(one, identity);
  cell.stage = bench::Stage::Tune;
  cell.state = bench::State::Measured;
  cell.value = outcome.spent_ms;
  cell.unit = "ms";
  cell.n = std::ssize(outcome.trials);
  cell.procs = static_cast<int>(outcome.trials.size());
  cell.stop_reason = "fixed";
  cell.started_at = cell.ended_at = bench::utc_now();
  cell.detail = {{"compile_ms", outcome.compile_ms},
                 {"states", count_states(outcome.trials)},
                 {"winner", to_json(outcome.winner.config)},
                 {"spelling", one.candidate},
                 {"threads", options.threads},
                 {"toolchain", identity.toolchain}};
  cell.command = session.command;
  cell.contract_digest = bench::contract_text(one.workload, {}).digest;
  cell.environment_digest = bench::record_environment(options.threads, options.out);
  return log->append(cell);
}

/// A record is read from any folder: the library and the space are remembered by their whole names.
std::string absolute_spelling(const std::string& spelling) {
  constexpr std::string_view kLibrary = "lib:";
  if (!spelling.starts_with(kLibrary)) return spelling;
  const size_t end = std::min(spelling.find('?'), spelling.size());
  const std::filesystem::path path = spelling.substr(kLibrary.size(), end - kLibrary.size());
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return spelling;  // the loader knows where
  return std::string(kLibrary) + std::filesystem::absolute(path, ignored).lexically_normal().string() +
         spelling.substr(end);
}

nlohmann::json absolute_space(const nlohmann::json& word) {
  std::error_code ignored;
  if (!word.is_string() || word.get<std::string>().empty()) return word;
  return std::filesystem::absolute(word.get<std::string>(), ignored).lexically_normal().string();
}

struct Tuned {
  BestRecord record;
  std::vector<ShapePayoff> shapes;
};

Status tune_case(const Options& options, const TuneCase& one, Session& session, Tuned& tuned) {
  Result<Space> space = Space::from_json(one.space, one.workload.dims);
  if (!space) return std::unexpected(space.error());
  bench::CandidateTrials runner(session.kinds, {.spelling = one.candidate,
                                                .workload = one.workload,
                                                .threads = options.threads,
                                                .scratch = options.file("trial-cache").string(),
                                                .prune = one.prune});
  space->prune([&](const Config& config) { return runner.prune(config); });
  TuneOptions tuning = options.tune;
  tuning.log = options.file(one.log);
  if (!options.json) print_space(one, *space);
  ProgressLine progress("trials");
  const Result<TuneOutcome> outcome = tune::tune(*space, runner, tuning, [&](const TuneProgress& p) {
    progress.update(p.done, p.planned, to_string(p.trial->config));
  });
  progress.finish();
  if (!outcome) return std::unexpected(outcome.error());
  if (!options.json) print_outcome(*outcome);
  if (Status status = record_cell(options, session, one, *outcome, runner.identity()); !status) return status;
  BestBucket bucket = make_bucket(*outcome, runner.identity(), *space);
  bucket.when = one.when;
  bucket.weight = one.share;
  for (const auto& [dim, extent] : one.workload.dims) bucket.dims[dim] = extent;
  bucket.made_from = {{"candidate", absolute_spelling(one.candidate)},
                      {"shape", bench::workload_key(one.workload)},
                      {"dtype", bench::to_string(one.workload.dtypes)},
                      {"space", absolute_space(one.space_word)}};
  if (one.workload.question.is_stated()) bucket.made_from["question"] = bench::to_json(one.workload.question);
  tuned.shapes.push_back({one.key, one.share,
                          bucket.default_median_ms > 0 ? bucket.default_median_ms : bucket.median_ms,
                          bucket.median_ms});
  TuningCost& cost = tuned.record.cost;
  cost.trials += std::ssize(outcome->trials);
  cost.points += std::ssize(space->points());
  cost.pruned += std::ssize(space->pruned());
  cost.wall_ms += outcome->spent_ms;
  cost.compile_ms += outcome->compile_ms;
  cost.seed = tuning.seed;
  for (const auto& [state, count] : count_states(outcome->trials)) cost.states[state] += count;
  tuned.record.buckets.push_back(std::move(bucket));
  return {};
}

Status read_incumbent(Options& options) {
  if (options.require.empty()) return {};
  const Result<nlohmann::json> json = read_json(options.require);
  if (!json) return std::unexpected(json.error());
  const bool is_record = json->is_object() && json->value("kind", "") == "tune-best";
  if (is_record) {
    const Result<BestRecord> record = load_record(options.require);
    if (!record) return std::unexpected(record.error());
    options.tune.incumbent = record->buckets.front().config;
    return {};
  }
  Result<Config> config = config_from_json(*json);
  if (!config) return std::unexpected(config.error());
  options.tune.incumbent = std::move(*config);
  return {};
}

Result<ExitCode> run_tune(Options options, Session& session) {
  if (Status status = read_incumbent(options); !status) return std::unexpected(status.error());
  const Result<CaseList> list = make_cases(options.words, session);
  if (!list) return std::unexpected(list.error());
  std::error_code ignored;
  std::filesystem::create_directories(options.out, ignored);
  Tuned tuned;
  tuned.record.delta = options.tune.paired.delta;
  tuned.record.traffic = list->traffic;
  for (const TuneCase& one : list->cases) {
    if (Status status = tune_case(options, one, session, tuned); !status) return std::unexpected(status.error());
  }
  const std::string path = options.file("best.json").string();
  if (Status status = bench::replace_file(path, write_record(tuned.record)); !status)
    return std::unexpected(status.error());
  const Payoff payoff = weigh(tuned.shapes, tuned.record.cost.wall_ms, list->requests_per_s);
  if (options.json) {
    nlohmann::json json = nlohmann::json::parse(write_record(tuned.record));
    json["payoff"] = {{"covered", payoff.covered},
                      {"gain_ms", payoff.gain_ms},
                      {"break_even_calls",
                       payoff.break_even_calls ? nlohmann::json(*payoff.break_even_calls) : nlohmann::json("never")}};
    fmt::print("{}\n", json.dump(2));
    return ExitCode::Ok;
  }
  const std::string on = options.words.traffic.empty()
                             ? "on this shape"
                             : fmt::format("on {} under {}, {:.0f} % of whose requests these shapes serve",
                                           tuned.record.traffic.value("trace", ""),
                                           tuned.record.traffic.value("policy", ""), 100 * payoff.covered);
  fmt::print(
      "tuned {:.4g} ms a call, {:.4g} ms at the space's default point (its first, where it names none): tuning "
      "{} {}\n",
      payoff.tuned_ms, payoff.default_ms, describe(payoff), on);
  fmt::print("wrote {}   reproduce: tilewright tune replay {}\n", path, path);
  return ExitCode::Ok;
}

WinnerPlaces places(const Options& options) {
  return {.candidate = options.words.candidate,
          .space = options.words.space,
          .out = options.out,
          .threads = options.threads};
}

/// Runs `use` on every bucket with the runner and space it was made with.
Result<ExitCode> for_each_bucket(
    const Options& options, Session& session,
    const std::function<Result<ExitCode>(const BestBucket&, const Space&, TrialRunner&)>& use) {
  const Result<BestRecord> record = load_record(options.record);
  if (!record) return std::unexpected(record.error());
  ExitCode worst = ExitCode::Ok;
  for (const BestBucket& bucket : record->buckets) {
    const Result<SavedWinner> winner = open_winner(bucket, session.kinds, places(options));
    if (!winner) return std::unexpected(winner.error());
    if (Status status = verify_bucket(bucket, winner->runner->identity(), winner->space.digest()); !status)
      return std::unexpected(status.error());
    const Result<ExitCode> code = use(bucket, winner->space, *winner->runner);
    if (!code) return code;
    worst = std::max(worst, *code);
  }
  return worst;
}

Result<ExitCode> run_verify(const Options& options, Session& session) {
  return for_each_bucket(options, session,
                         [&](const BestBucket& bucket, const Space& space, TrialRunner& runner) -> Result<ExitCode> {
                           if (!options.only_record) {
                             if (Status status = verify_artefact(bucket, space, runner, options.tune.limits); !status)
                               return std::unexpected(status.error());
                           }
                           fmt::print("{}: {} verified: {}\n", options.record, bucket.when, to_string(bucket.config));
                           return ExitCode::Ok;
                         });
}

Result<ExitCode> run_replay(const Options& options, Session& session) {
  return for_each_bucket(
      options, session, [&](const BestBucket& bucket, const Space& space, TrialRunner& runner) -> Result<ExitCode> {
        const Result<ReplayResult> replay =
            replay_bucket(bucket, space, runner, options.tune.limits, options.tune.paired.delta);
        if (!replay) return std::unexpected(replay.error());
        fmt::print("{}: {} now {:.4g} ms; stored [{:.4g}, {:.4g}] widened to [{:.4g}, {:.4g}]: {}\n", bucket.when,
                   to_string(bucket.config), replay->now.value, bucket.ci_low_ms, bucket.ci_high_ms, replay->low_ms,
                   replay->high_ms, replay->is_inside ? "inside" : "OUTSIDE");
        if (replay->is_inside) return ExitCode::Ok;
        return replay->now.value > replay->high_ms ? ExitCode::Regression : ExitCode::InvalidMeasurement;
      });
}

/// The key of a kernel's own reference is explained by a bucket of the record that was tuned for the same question.
Result<bench::Workload> explained_workload(const Options& options) {
  Result<bench::Workload> workload = parse_workload_text(options.words.shape, options.words.dtype);
  if (workload || !options.words.shape.starts_with("kernel:")) return workload;
  const Result<BestRecord> record = load_record(options.record);
  if (!record) return std::unexpected(record.error());
  for (const BestBucket& bucket : record->buckets) {
    auto found = parse_workload_text(options.words.shape, bucket.made_from.value("dtype", ""),
                                     bucket.made_from.value("question", nlohmann::json()));
    if (found) return found;
  }
  return workload;
}

/// Which rule serves a shape, from which record: what pinned dispatch would do.
Result<ExitCode> run_explain(const Options& options, Session& session) {
  const Result<bench::Workload> workload = explained_workload(options);
  if (!workload) return std::unexpected(workload.error());
  const dispatch::Pinned pinned = open_pinned(options.record, session.kinds, places(options));
  fmt::print("{}", dispatch::explain(pinned, options.record, dims_of(*workload)));
  return pinned.notices().empty() ? ExitCode::Ok : ExitCode::Stale;
}

void add_search_options(CLI::App& app, Options& o) {
  app.add_option("--runs", o.tune.runs, "trials; 0 for the whole space")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app.add_option("--seed", o.tune.seed, "of the search")->capture_default_str();
  app.add_option("--budget-s", o.tune.budget_s, "stop searching after this many seconds; 0 for no limit")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app.add_option("--top", o.tune.top, "contestants of the runoff")->capture_default_str()->check(CLI::Range(1, 32));
  app.add_option("--jobs", o.tune.jobs, "compiles side by side")->capture_default_str()->check(CLI::Range(1, 256));
  app.add_option("--timeout-s", o.tune.limits.run_timeout_s, "of one trial's check and samples")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--require", o.require, "configuration (or best.json) that must be beaten")->type_name("FILE");
  app.add_option("--traffic", o.words.traffic, "trace or snapshot: tune its heaviest shapes, weigh by their share")
      ->type_name("FILE");
  app.add_option("--policy", o.words.policy, "key policy of the trace")->capture_default_str();
  app.add_option("--key-dim", o.words.key_dim,
                 "dimensions the trace's key sets: M, or S,T of a kernel, SQ,SK of a workload")
      ->capture_default_str();
  app.add_option("--cases", o.words.most_cases, "shapes of the trace to tune")
      ->capture_default_str()
      ->check(CLI::Range(1, 64));
}

}  // namespace

Run add_tune(CLI::App& app, Session& session) {
  auto options = std::make_shared<Options>();
  app.add_option("candidate", options->words.candidate, "FILE.tile (its parameters are the space), lib:./gemm.so, …");
  app.add_option("--kernel", options->words.kernel, "which kernel of the file");
  app.add_option("--dim", options->words.dims, "sizes of the kernel: M=512,N=512 (else its example)");
  app.add_option("--param", options->words.params, "parameters that stay as given: T=f16");
  app.add_option("--op", options->words.shape, "workload of any other candidate: gemm:512x512x512:nn");
  app.add_option("--dtype", options->words.dtype, "of --op: f32, f16, f16/f32/f16")->capture_default_str();
  add_search_options(app, *options);
  CLI::App* replay =
      app.add_subcommand("replay", "Measure the winners again; must land in the stored interval")->group("Subcommands");
  CLI::App* verify =
      app.add_subcommand("verify", "Accept a best.json whole, or refuse it (exit 7)")->group("Subcommands");
  CLI::App* explain = app.add_subcommand("explain", "Which rule of a best.json serves a shape: rule, record, hash")
                          ->group("Subcommands");
  explain->add_option("--op", options->words.shape, "the shape asked for: gemm:512x512x512:nn")->required();
  explain->add_option("--dtype", options->words.dtype, "of --op")->capture_default_str();
  verify->add_flag("--record-only", options->only_record, "compare digests and identities, run nothing");
  for (CLI::App* part : {&app, replay, verify, explain}) {
    part->add_option("--space", options->words.space, "parameters, values and constraints")->type_name("FILE");
    part->add_option("--threads", options->threads, "of the candidate")->capture_default_str();
    part->add_option("--out", options->out, "folder of the record")->capture_default_str();
  }
  for (CLI::App* part : {replay, verify, explain}) {
    part->add_option("best", options->record, "best.json")->required()->type_name("FILE");
    part->add_option("--candidate", options->words.candidate, "where the candidate is now; as recorded when absent");
  }
  app.add_flag("--json", options->json, "print JSON");
  app.require_subcommand(0, 1);
  app.footer(
      "Examples:\n  tilewright tune kernels/matmul.tile --kernel matmul --dim M=512,N=512,K=512 --runs 40\n"
      "  tilewright tune lib:./gemm.so --op gemm:512x512x512:nn --space space.json --runs 40\n"
      "  tilewright tune lib:./gemm.so --op gemm:1x1024x1024:nn --space space.json --traffic trace.csv --policy "
      "pad128\n"
      "  tilewright tune verify out/best.json\n  tilewright tune replay out/best.json");
  return [=, &session]() -> Result<ExitCode> {
    if (replay->parsed()) return run_replay(*options, session);
    if (explain->parsed()) return run_explain(*options, session);
    return verify->parsed() ? run_verify(*options, session) : run_tune(*options, session);
  };
}

}  // namespace tilewright::tools
