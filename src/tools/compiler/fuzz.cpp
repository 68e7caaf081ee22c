// `tilewright fuzz`: random kernels through the compiler and the interpreter, tables of hard cases, planted mistakes.
#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "fuzz/campaign.h"
#include "fuzz/plants.h"
#include "fuzz/tables.h"
#include "tools/command.h"

namespace tilewright::tools {
namespace {

using fuzz::CampaignReport;
using fuzz::Verdict;
using nlohmann::json;

struct FuzzOptions {
  int64_t cases = 2000, first = 0;
  double seconds = 0;
  uint64_t seed = 1;
  std::string plant, subject = "native", target = "cpu", device, keep, replay;
  int shrink = 1000;
  bool as_json = false, no_tables = false, no_coverage = false, assemble = false;
};

Result<std::unique_ptr<fuzz::Subject>> make_subject(const FuzzOptions& options) {
  if (options.device.starts_with("cuda:")) return fuzz::make_device_subject(std::atoi(options.device.c_str() + 5));
  if (options.target.starts_with("cuda")) {
    const auto gpu = target::parse_gpu(options.target.size() > 5 ? options.target.substr(5) : "sm_90a");
    if (gpu) return fuzz::make_thread_subject(*gpu, {.assembles = options.assemble});
  } else if (options.target == "cpu") {
    if (options.subject == "plan") return fuzz::make_planned_subject();
    return fuzz::make_native_subject();
  }
  return fail(DiagnosticCode::E2502, fmt::format("unknown target '{}'", options.target),
              "targets are cpu, cuda:sm_80, cuda:sm_86, cuda:sm_89, cuda:sm_90, cuda:sm_90a");
}

/// Kernels for GPUs include some that matrix instructions and the copy engine can take.
fuzz::GenerateOptions generation(const FuzzOptions& options, const Plant& plant) {
  return {.matrix = options.target != "cpu" || !options.device.empty(), .focus = fuzz::focus_of(plant)};
}

/// Each failure at once: what comes later may hang or take long.
void show_failure(const CampaignReport& r, const FuzzOptions& options) {
  if (r.failures.empty() || r.failures.back().number + 1 != options.first + r.cases) return;
  fmt::print(stderr, "case {}: {}: {}\n{}\n", r.failures.back().number, fuzz::name(r.failures.back().verdict),
             r.failures.back().detail, r.failures.back().kernel);
}

void show_progress(const CampaignReport& r, const FuzzOptions& options) {
  if (!options.device.empty()) show_failure(r, options);
  if (!::isatty(STDERR_FILENO) || r.cases % 20 != 0 || r.seconds < 2) return;
  const double done = options.seconds > 0 ? r.seconds / options.seconds
                                          : static_cast<double>(r.cases) / static_cast<double>(options.cases);
  fmt::print(stderr, "\r{:3.0f} %  {} cases, {} failures, {:.0f} s left   ", 100 * done, r.cases, r.failures.size(),
             done > 0 ? r.seconds / done - r.seconds : 0.0);
}

int64_t failure_count(const CampaignReport& r, const std::vector<fuzz::TableResult>& tables) {
  int64_t n = static_cast<int64_t>(r.failures.size());
  for (const fuzz::TableResult& t : tables) n += t.wrong > 0;
  return n;
}

int64_t count_of(const CampaignReport& r, Verdict v) {
  const auto found = r.verdicts.find(v);
  return found == r.verdicts.end() ? 0 : found->second;
}

double tainted_share(const CampaignReport& r) {
  return r.elements ? static_cast<double>(r.tainted) / static_cast<double>(r.elements) : 0;
}

json to_json(const CampaignReport& r, const std::vector<fuzz::TableResult>& tables, const FuzzOptions& options) {
  json out = {{"seed", options.seed},
              {"cases", r.cases},
              {"elements", r.elements},
              {"tainted", r.tainted},
              {"seconds", r.seconds}};
  for (const auto& [verdict, n] : r.verdicts) out["verdicts"][fuzz::name(verdict)] = n;
  for (const auto& [operation, dtypes] : r.coverage.counts()) {
    for (const auto& [dtype, n] : dtypes) out["coverage"][operation][std::string(name(dtype))] = n;
  }
  for (const auto& [form, n] : r.forms) out["forms"][form] = n;
  for (const auto& [why, n] : r.refusals) out["refusals"][why] = n;
  out["failures"] = json::array();
  for (const fuzz::Failure& f : r.failures) {
    out["failures"].push_back({{"case", f.number},
                               {"verdict", fuzz::name(f.verdict)},
                               {"detail", f.detail},
                               {"operations", f.operations},
                               {"file", f.file},
                               {"kernel", f.kernel}});
  }
  out["tables"] = json::array();
  for (const fuzz::TableResult& t : tables) {
    out["tables"].push_back({{"name", t.name}, {"checked", t.checked}, {"wrong", t.wrong}, {"first", t.first}});
  }
  return out;
}

void print_report(const CampaignReport& r, const std::vector<fuzz::TableResult>& tables, const FuzzOptions& options) {
  for (const fuzz::Failure& f : r.failures) {
    fmt::print("case {} of seed {}: {}: {}\nshrunk to {} operations{}:\n{}\n", f.number, options.seed,
               fuzz::name(f.verdict), f.detail, f.operations, f.file.empty() ? "" : ", kept in " + f.file, f.kernel);
  }
  int64_t entries = 0, wrong = 0;
  for (const fuzz::TableResult& t : tables) {
    entries += t.checked, wrong += t.wrong;
    if (t.wrong) fmt::print("table WRONG: {}: {} of {}; {}\n", t.name, t.wrong, t.checked, t.first);
  }
  if (!options.no_coverage) fmt::print("{}\n", r.coverage.table());
  const auto comparison = [&](fuzz::Comparison c) {
    const auto found = r.comparisons.find(c);
    return found == r.comparisons.end() ? int64_t{0} : found->second;
  };
  fmt::print("seed {}: {} cases in {:.1f} s: {} exact, {} bounded; {} elements compared, {:.2f} % undecidable\n",
             options.seed, r.cases, r.seconds, comparison(fuzz::Comparison::Exact),
             comparison(fuzz::Comparison::Bounded), r.elements, 100 * tainted_share(r));
  fmt::print("verdicts: {} match, {} refused, {} inconclusive\n", count_of(r, Verdict::Match),
             count_of(r, Verdict::Refused), count_of(r, Verdict::Inconclusive));
  for (const auto& [form, n] : r.forms) fmt::print("  ran     {:>4} × {}\n", n, form);
  for (const auto& [why, n] : r.refusals) fmt::print("  refused {:>4} × {}\n", n, why);
  if (!tables.empty()) fmt::print("tables: {} entries in {} tables, {} wrong\n", entries, tables.size(), wrong);
  fmt::print("{} mismatches\n", failure_count(r, tables));
}

Result<ExitCode> replay(const FuzzOptions& options, fuzz::Subject& subject, const Plant& plant) {
  auto made = fuzz::read_kept(options.replay);
  if (!made) return std::unexpected(made.error());
  fuzz::Choices choices(*made);
  const fuzz::Case c = fuzz::generate(choices, generation(options, plant));
  fmt::print("{}", fuzz::describe(c));
  const fuzz::Judgement j = fuzz::judge(c, subject, plant);
  fmt::print("\n{}{}{}\n", fuzz::name(j.verdict), j.detail.empty() ? "" : ": ", j.detail);
  return fuzz::is_failure(j.verdict) ? ExitCode::Incorrect : ExitCode::Ok;
}

Result<ExitCode> run_fuzz(const FuzzOptions& options) {
  Plant plant;
  if (!options.plant.empty()) {
    auto parsed = fuzz::find_plant(options.plant);
    if (!parsed) return std::unexpected(parsed.error());
    plant = *parsed;
  }
  auto subject = make_subject(options);
  if (!subject) return std::unexpected(subject.error());
  if (!options.replay.empty()) return replay(options, **subject, plant);
  const fuzz::CampaignOptions campaign = {.cases = options.cases,
                                          .seconds = options.seconds,
                                          .first = options.first,
                                          .seed = options.seed,
                                          .plant = plant,
                                          .generate = generation(options, plant),
                                          .keep_in = options.keep,
                                          .most_failures = plant.is_empty() ? 10 : 1,
                                          .shrink_tries = options.shrink};
  const CampaignReport report =
      fuzz::run_campaign(**subject, campaign, [&](const CampaignReport& r) { show_progress(r, options); });
  if (::isatty(STDERR_FILENO) && report.seconds > 2) fmt::print(stderr, "\r{:60}\r", "");
  // Tables run last, in this process: its threads must not exist when children are made.
  const bool want_tables = !options.no_tables && options.target == "cpu" && options.device.empty() &&
                           (plant.is_empty() || report.failures.empty());
  const auto tables = want_tables ? fuzz::run_tables(**subject, plant) : std::vector<fuzz::TableResult>();
  if (options.as_json) {
    fmt::print("{}\n", to_json(report, tables, options).dump(2));
  } else {
    print_report(report, tables, options);
  }
  const int64_t failures = failure_count(report, tables);
  if (!plant.is_empty()) {
    if (!options.as_json) fmt::print("planted mistake {}: {}\n", options.plant, failures ? "found" : "NOT FOUND");
    return failures ? ExitCode::Ok : ExitCode::Insufficient;
  }
  return failures || tainted_share(report) > 0.1 ? ExitCode::Incorrect : ExitCode::Ok;
}

}  // namespace

Run add_fuzz(CLI::App& app, Session&) {
  auto options = std::make_shared<FuzzOptions>();
  auto* cases = app.add_option("--cases", options->cases, "how many random kernels")
                    ->check(CLI::Range(1, 100'000'000))
                    ->capture_default_str();
  app.add_option("--first", options->first, "number of the first case: --first 270 --cases 1 is case 270 alone")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--seconds", options->seconds, "run for so long instead")->check(CLI::PositiveNumber)->excludes(cases);
  app.add_option("--seed", options->seed, "case i of a seed is always the same kernel and data")->capture_default_str();
  app.add_option("--plant", options->plant, "plant a mistake in a pass; the fuzzer must find it")->type_name("PASS:N");
  app.add_option("--subject", options->subject, "what is tested: native code, or the plan on the interpreter")
      ->check(CLI::IsMember({"native", "plan"}))
      ->capture_default_str();
  app.add_option(
         "--target", options->target,
         "cpu, or a GPU architecture (cuda:sm_90a): its thread programs run on the interpreter, no device needed")
      ->capture_default_str();
  app.add_flag("--assemble", options->assemble, "of GPU programs: nvJitLink must take every one as well");
  app.add_option("--device", options->device, "A device of this machine runs the kernels, 50 to a process: cuda:0")
      ->check(
          CLI::Validator([](const std::string& s) { return s.starts_with("cuda:") ? "" : "write cuda:0"; }, "cuda:N"));
  app.add_option("--keep", options->keep, "folder for shrunk failures")->type_name("DIR");
  app.add_option("--replay", options->replay, "run one kept failure again")->type_name("FILE");
  app.add_option("--shrink", options->shrink, "How many attempts to make a failing case smaller; 0: none")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_flag("--no-tables", options->no_tables, "random kernels only");
  app.add_flag("--no-coverage", options->no_coverage, "leave the coverage table out");
  app.add_flag("--json", options->as_json, "print the report as JSON");
  app.footer(
      "Exit code 0: no mismatch (with --plant: the mistake was found); 3: mismatches; 6: the planted mistake was not "
      "found.\n"
      "Examples:\n  tilewright fuzz --cases 2000 --seed 1\n  tilewright fuzz --seconds 60 --keep out/fuzz\n"
      "  tilewright fuzz --target cuda:sm_90a --cases 1000\n"
      "  tilewright fuzz --plant pack_panels:1\n  tilewright fuzz --replay out/fuzz/seed1-case7.fuzz");
  return [options]() -> Result<ExitCode> { return run_fuzz(*options); };
}

}  // namespace tilewright::tools
