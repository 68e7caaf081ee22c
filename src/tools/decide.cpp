// `tilewright decide`: adopt, reject, or say what is missing.
#include "bench/decision/decide.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <memory>

#include "bench/record/cell_log.h"
#include "bench/record/table_csv.h"
#include "tools/command.h"

namespace tilewright::tools {
namespace {

using namespace decision;

struct Options {
  std::string objective;
  std::string template_for;
  std::string out = "out";
  DrawOptions draws;
  bool only_register = false;
  bool json = false;

  std::filesystem::path file(const char* name) const { return std::filesystem::path(out) / name; }
};

Result<std::vector<bench::Cell>> read_record(const Options& options) {
  std::error_code ignored;
  if (!std::filesystem::exists(options.file("cells.jsonl"), ignored)) return std::vector<bench::Cell>{};
  Result<bench::CellFile> file = bench::read_cells(options.file("cells.jsonl"));
  if (!file) return std::unexpected(file.error());
  return std::move(file->cells);
}

Result<ExitCode> run_register(const Options& options, const Objective& objective) {
  const Result<std::vector<bench::Cell>> cells = read_record(options);
  if (!cells) return std::unexpected(cells.error());
  const auto measured = static_cast<uint64_t>(std::ranges::count(*cells, bench::State::Measured, &bench::Cell::state));
  if (Status status = register_objective(options.out, objective, measured); !status)
    return std::unexpected(status.error());
  const Result<std::optional<Registration>> found = find_registration(options.out, objective);
  if (!found) return std::unexpected(found.error());
  fmt::print("{}: objective {} registered {}{}\n", options.file("objectives.jsonl").string(),
             objective.digest.substr(0, 16), (*found)->at,
             (*found)->measured_before
                 ? fmt::format(", after {} measured cells: it is post-hoc and cannot adopt", (*found)->measured_before)
                 : "");
  if (!objective.is_accepted())
    fmt::print("note: accepted_by and accepted_on are empty; filling them changes the digest\n");
  return ExitCode::Ok;
}

Result<Evidence> gather(const Options& options, const Objective& objective) {
  EvidenceInput input;
  input.draws = options.draws;
  if (options.out != "out") input.folder = options.out;
  Result<std::vector<bench::Cell>> cells = read_record(options);
  if (!cells) return std::unexpected(cells.error());
  input.cells = std::move(*cells);
  std::error_code ignored;
  if (std::filesystem::exists(options.file("cost.jsonl"), ignored)) {
    Result<std::vector<CostEntry>> costs = read_costs(options.file("cost.jsonl"));
    if (!costs) return std::unexpected(costs.error());
    input.costs = std::move(*costs);
  }
  Result<std::optional<Registration>> registration = find_registration(options.out, objective);
  if (!registration) return std::unexpected(registration.error());
  input.registration = std::move(*registration);
  if (std::ifstream replay(options.file("replay.json")); replay)
    input.replay = nlohmann::json::parse(replay, nullptr, false);
  return collect(objective, input);
}

const char* mark(Finding finding) {
  switch (finding) {
    case Finding::Holds: return "✓";
    case Finding::Violated: return "✗";
    case Finding::Open: return "?";
  }
  return "";
}

std::string measured_text(const Amdahl& amdahl) {
  if (!amdahl.measured_gain) return "not-run";
  std::string text = fmt::format("{:+.1f} %", 100 * *amdahl.measured_gain);
  if (amdahl.measured_ci)
    text += fmt::format(" [{:+.1f}, {:+.1f}]", 100 * amdahl.measured_ci->first, 100 * amdahl.measured_ci->second);
  return text;
}

void print_decision(const Decision& decision, const Objective& objective, const Evidence& evidence) {
  fmt::print("{}   {} against {}   {} {} {}\n\n", name(decision.verdict), evidence.candidate,
             evidence.reference.empty() ? "no measured rival" : evidence.reference, evidence.subject.shape,
             evidence.subject.dtype, evidence.subject.device);
  for (const Clause& clause : decision.clauses) {
    fmt::print("  {} {:<52} {}\n", mark(clause.finding), clause.name, clause.text);
    if (!clause.command.empty()) fmt::print("      → {}\n", clause.command);
  }
  fmt::print("\nbreak-even calls   per process start {} · per upgrade {} · per adoption {}\n",
             to_string(decision.break_evens.per_start), to_string(decision.break_evens.per_upgrade),
             to_string(decision.break_evens.per_adoption));
  if (decision.amdahl) {
    fmt::print(
        "model              {:.1f} % of its time is here: predicted gain {:+.1f} %, measured {}, at most {:.1f} %\n",
        100 * decision.amdahl->share, 100 * decision.amdahl->predicted_gain, measured_text(*decision.amdahl),
        100 * decision.amdahl->largest_gain);
  }
  if (!decision.flips.empty()) fmt::print("\nwhat would flip it, one at a time\n");
  for (const Flip& flip : decision.flips) {
    fmt::print("  {:<24} {:>10.4g} → {:<10.4g} {}\n", flip.knob, flip.now, flip.at, name(flip.becomes));
  }
  fmt::print("\nthe ways to go on\n");
  for (const PolicyOption& option : decision.options) {
    fmt::print("  {}\n    best when  {}\n    main risk  {}\n   ", option.name, option.best_when, option.main_risk);
    for (const auto& [label, value] : option.numbers) fmt::print(" {}: {};", label, value);
    fmt::print("\n");
  }
  fmt::print("\nobjective {}{}\n", objective.digest.substr(0, 16),
             objective.is_accepted()
                 ? fmt::format(", accepted by {} on {}", objective.accepted_by, objective.accepted_on)
                 : ", not accepted");
}

ExitCode code_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::Adopt: return ExitCode::Ok;
    case Verdict::Reject: return ExitCode::Reject;
    case Verdict::Insufficient: return ExitCode::Insufficient;
  }
  return ExitCode::Internal;
}

Result<ExitCode> run_decide(const Options& options) {
  if (!options.template_for.empty()) {
    fmt::print("{}", objective_template(options.template_for));
    return ExitCode::Ok;
  }
  if (options.objective.empty())
    return fail(DiagnosticCode::E1661, "no objective was named",
                "tilewright decide objective.json, or --template CANDIDATE");
  const Result<Objective> objective = load_objective(options.objective);
  if (!objective) return std::unexpected(objective.error());
  if (options.only_register) return run_register(options, *objective);
  const Result<Evidence> evidence = gather(options, *objective);
  if (!evidence) return std::unexpected(evidence.error());
  const Decision decision = decide(*objective, *evidence);
  nlohmann::json json = to_json(decision, *objective, *evidence);
  json["at"] = bench::utc_now();
  json["seed"] = options.draws.seed;
  json["resamples"] = options.draws.resamples;
  std::error_code ignored;
  std::filesystem::create_directories(options.out, ignored);
  if (Status status = bench::replace_file(options.file("decision.json"), json.dump(2) + "\n"); !status)
    return std::unexpected(status.error());
  if (options.json) {
    fmt::print("{}\n", json.dump(2));
  } else {
    print_decision(decision, *objective, *evidence);
  }
  return code_of(decision.verdict);
}

}  // namespace

Run add_decide(CLI::App& app, Session&) {
  auto options = std::make_shared<Options>();
  app.add_option("objective", options->objective, "objective.json")->type_name("FILE");
  app.add_option("--out", options->out, "folder of the record: cells.jsonl, cost.jsonl")->capture_default_str();
  app.add_flag("--register", options->only_register, "write the objective's digest into the record, before measuring");
  app.add_option("--template", options->template_for, "print an objective for this candidate")->type_name("CANDIDATE");
  app.add_option("--seed", options->draws.seed, "of the bootstrap")->capture_default_str();
  app.add_option("--resamples", options->draws.resamples, "of the bootstrap")
      ->capture_default_str()
      ->check(CLI::Range(100, 1000000));
  app.add_flag("--json", options->json, "print JSON");
  app.footer(
      "Exit code: 0 ADOPT, 8 REJECT, 6 INSUFFICIENT (each open clause prints the command that closes it).\n"
      "Examples:\n  tilewright decide --template ours > objective.json\n  tilewright decide --register objective.json\n"
      "  tilewright bench …\n  tilewright decide objective.json");
  return [options] { return run_decide(*options); };
}

}  // namespace tilewright::tools
