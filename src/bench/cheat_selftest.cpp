#include "bench/cheat_selftest.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "bench/harness.h"
#include "bench/stage_runner.h"

namespace tilewright::bench {
namespace {

struct Cheat {
  const char* name;
  const char* what;
};

constexpr Cheat kCheats[] = {
    {"reuse", "gives the first result for ever"},
    {"input_edit", "changes an input"},
    {"partial_write", "leaves the last row unwritten"},
    {"side_thread", "returns while a thread still computes"},
    {"lazy", "does the work at the next launch"},
    {"cached_replay", "recognises inputs by a few elements and replays"},
    {"timer", "slows the processor's time-stamp counter"},
    {"statistics", "writes its own answer into the results"},
    {"failed_launch", "reports success without having run"},
    {"precision", "accumulates in half precision"},
    {"constant", "fills the output with a constant"},
    {"calls_reference", "computes with another candidate's library"},
    {"persistent_cache", "keeps compiled code outside the folder it was given"},
};

std::string first_failure(const Outcome& outcome) {
  for (const Cell& cell : outcome.cells) {
    if (cell.state == State::Failed) return std::string(info(cell.stage).metric) + ": " + cell.reason;
  }
  return "";
}

Result<CheatLine> run_one(const std::string& executable, const std::string& library, const Cheat& cheat,
                          const std::filesystem::path& folder) {
  BenchOptions options;
  options.executable = executable;
  options.command = {"tilewright", "selftest", "--cheats"};
  options.candidates = {"lib:" + library + (*cheat.name != '\0' ? "?" + std::string(cheat.name) : "")};
  options.workloads = {*parse_workload("gemm:96x80x512:nn", DTypes{})};
  options.budget = *find_budget("selftest");
  options.out = folder / (*cheat.name != '\0' ? cheat.name : "honest");
  options.show_progress = false;
  options.timeout_ms = 20'000;
  auto report = run_bench(options);
  if (!report) return std::unexpected(report.error());
  const std::string failure = first_failure(report->outcomes.front());
  return CheatLine{cheat.name, cheat.what, !failure.empty(), failure};
}

}  // namespace

bool CheatSelftest::passed() const { return !control.caught && std::ranges::all_of(cheats, &CheatLine::caught); }

Result<CheatSelftest> run_cheat_selftest(const std::string& executable, const std::string& library) {
  auto folder = PrivateFolder::create(std::filesystem::temp_directory_path(), "tilewright-cheats");
  if (!folder) return std::unexpected(folder.error());
  std::error_code error;
  std::filesystem::remove("/tmp/tilewright-selftest-persistent-cache", error);
  CheatSelftest out;
  auto control = run_one(executable, library, {"", "the same kernel, honest"}, folder->path());
  if (!control) return std::unexpected(control.error());
  out.control = std::move(*control);
  out.control.name = "honest";
  for (const Cheat& cheat : kCheats) {
    auto line = run_one(executable, library, cheat, folder->path());
    if (!line) return std::unexpected(line.error());
    out.cheats.push_back(std::move(*line));
  }
  std::filesystem::remove("/tmp/tilewright-selftest-persistent-cache", error);
  return out;
}

}  // namespace tilewright::bench
