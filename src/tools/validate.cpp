// `tilewright validate`: every saved winner, checked again here and now; what that takes is the measured part of its
// cost.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/decision/cost_log.h"
#include "measure/clock.h"
#include "tools/command.h"
#include "tools/progress_line.h"
#include "tools/saved_winner.h"

namespace tilewright::tools {
namespace {

struct Options {
  std::vector<std::string> records;
  std::string name;
  WinnerPlaces places;
  bool json = false;
};

enum class State { Ok, Stale, Failed };

/// One line of the matrix: record × bucket (a shape, dtype, target and toolchain).
struct Line {
  std::string record, shape, dtype, device, toolchain;
  State state = State::Ok;
  std::string why;
  double wall_ms = 0;
};

const char* word(State state) { return state == State::Ok ? "ok" : state == State::Stale ? "stale" : "failed"; }

Line check(const std::string& path, const tune::BestBucket& bucket, const Options& options,
           const candidate::Kinds& kinds) {
  const int64_t start = measure::kernel_ns();
  Line line{path, bucket.made_from.value("shape", ""), bucket.made_from.value("dtype", ""), bucket.identity.device,
            bucket.identity.toolchain};
  const auto judge = [&](State state, const Diagnostic& why) {
    line.state = state;
    line.why = why.message;
  };
  if (Result<SavedWinner> winner = open_winner(bucket, kinds, options.places); !winner) {
    judge(State::Failed, winner.error());
  } else if (Status fresh = tune::verify_bucket(bucket, winner->runner->identity(), winner->space.digest()); !fresh) {
    judge(State::Stale, fresh.error());
  } else if (Status same = tune::verify_artefact(bucket, winner->space, *winner->runner, {}); !same) {
    judge(State::Failed, same.error());
  }
  line.wall_ms = static_cast<double>(measure::kernel_ns() - start) * 1e-6;
  return line;
}

/// A record that cannot be opened was not validated: nothing of it is a cost.
Result<std::vector<Line>> check_all(const Options& options, const candidate::Kinds& kinds) {
  std::vector<Line> lines;
  ProgressLine progress("records");
  for (const std::string& path : options.records) {
    const Result<tune::BestRecord> record = tune::load_record(path);
    if (!record && record.error().code == DiagnosticCode::E3300) return std::unexpected(record.error());
    if (!record) {
      lines.push_back({.record = path, .state = State::Stale, .why = record.error().message});
      continue;
    }
    for (const tune::BestBucket& bucket : record->buckets) lines.push_back(check(path, bucket, options, kinds));
    progress.update(std::ssize(lines), std::ssize(options.records), path);
  }
  return lines;
}

void print_lines(const std::vector<Line>& lines) {
  fmt::print("{:<8} {:<32} {:<14} {:<28} {:>9}  {}\n", "state", "shape", "dtype", "device", "ms", "record");
  for (const Line& line : lines) {
    fmt::print("{:<8} {:<32} {:<14} {:<28} {:>9.1f}  {}\n", word(line.state), line.shape, line.dtype,
               line.device.substr(0, 28), line.wall_ms, line.record);
    if (!line.why.empty()) fmt::print("         {}\n", line.why);
  }
}

Result<ExitCode> run_validate(const Options& options, const candidate::Kinds& kinds) {
  const Result<std::vector<Line>> checked = check_all(options, kinds);
  if (!checked) return std::unexpected(checked.error());
  const std::vector<Line>& lines = *checked;
  decision::CostEntry entry{.candidate = options.name, .kind = decision::CostKind::Validate, .is_measured = true};
  nlohmann::json list = nlohmann::json::array();
  for (const Line& line : lines) {
    entry.wall_ms += line.wall_ms;
    ++entry.checked;
    entry.failures += line.state == State::Failed;
    entry.stale += line.state == State::Stale;
    list.push_back({{"record", line.record},
                    {"shape", line.shape},
                    {"dtype", line.dtype},
                    {"device", line.device},
                    {"toolchain", line.toolchain},
                    {"state", word(line.state)},
                    {"why", line.why},
                    {"wall_ms", line.wall_ms}});
  }
  if (Status status = decision::append_cost(std::filesystem::path(options.places.out) / "cost.jsonl", entry); !status)
    return std::unexpected(status.error());
  if (options.json) {
    fmt::print("{}\n", nlohmann::json{{"lines", std::move(list)},
                                      {"wall_ms", entry.wall_ms},
                                      {"checked", entry.checked},
                                      {"failures", entry.failures},
                                      {"stale", entry.stale}}
                           .dump(2));
  } else {
    print_lines(lines);
    fmt::print("{} checked in {:.1f} s: {} failed, {} stale; written to the cost of {}\n", entry.checked,
               entry.wall_ms / 1e3, entry.failures, entry.stale, options.name);
  }
  if (entry.failures > 0) return ExitCode::Incorrect;
  return entry.stale > 0 ? ExitCode::Stale : ExitCode::Ok;
}

}  // namespace

Run add_validate(CLI::App& app, Session& session) {
  auto options = std::make_shared<Options>();
  app.add_option("--matrix", options->records, "saved winners: best.json files")->required()->type_name("FILE...");
  app.add_option("--candidate", options->name, "whose cost this is")->required();
  app.add_option("--at", options->places.candidate, "where the candidate is now; as recorded when absent");
  app.add_option("--space", options->places.space, "where the space is now; as recorded when absent")
      ->type_name("FILE");
  app.add_option("--threads", options->places.threads, "of the candidate")->capture_default_str();
  app.add_option("--out", options->places.out, "folder of the record: cost.jsonl")->capture_default_str();
  app.add_flag("--json", options->json, "print JSON");
  app.footer(
      "Every bucket of every record is a shape, dtype, target and toolchain: identities are compared, the winner is "
      "compiled,\n"
      "checked by the oracle, and its bits compared. Exit 0 all hold, 7 some are stale, 3 some are wrong.\n"
      "Examples:\n  tilewright validate --matrix out/best.json out-f16/best.json --candidate mine");
  return [options, &session] { return run_validate(*options, session.kinds); };
}

}  // namespace tilewright::tools
