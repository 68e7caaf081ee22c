#include "bench/candidate_run.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "bench/device_session.h"
#include "bench/oracle/contract.h"
#include "bench/oracle/reference_kernel.h"
#include "bench/record/table_csv.h"
#include "bench/stage_cells.h"
#include "measure/machine.h"

namespace tilewright::bench {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

/// A file-name safe stand-in for a candidate that never told its name.
std::string name_from(const std::string& spelling) {
  std::string name = spelling.substr(spelling.find(':') == std::string::npos ? 0 : spelling.find(':') + 1);
  name = name.substr(name.find_last_of('/') == std::string::npos ? 0 : name.find_last_of('/') + 1);
  for (char& c : name) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
                          c == '_' || c == '-' || c == '=';
    if (!is_plain) c = '-';
  }
  return name.empty() ? "candidate" : name;
}

class CandidateRun {
 public:
  CandidateRun(RunContext& context, const Workload& workload, const std::string& spelling, bool is_reference)
      : context_(context), workload_(workload), spelling_(spelling) {
    outcome_.is_reference = is_reference;
    outcome_.spelling = spelling;
    outcome_.candidate = name_from(spelling);
    outcome_.cost = minimal_cost(workload);
    outcome_.subject = {workload_key(workload), to_string(workload.dtypes), context.device_name};
    ContractOptions contract;
    contract.device = context.options.device;
    contract.data.seed = context.options.seed;
    contract_digest_ = contract_text(workload, contract).digest;
  }

  Result<Outcome> run() {
    if (auto ok = check(); !ok) return std::unexpected(ok.error());
    const Cell* checked = outcome_.find(Stage::Check);
    const bool accepted = checked->state == State::Measured && checked->detail.value("reference_ok", false);
    const bool may_time = accepted;
    if (may_time) {
      for (Status (CandidateRun::*stage)() : {&CandidateRun::import_stage, &CandidateRun::compile_and_load,
                                              &CandidateRun::warm, &CandidateRun::sustained, &CandidateRun::peak}) {
        if (auto ok = (this->*stage)(); !ok) return std::unexpected(ok.error());
      }
      if (auto ok = the_rest(); !ok) return std::unexpected(ok.error());
    }
    if (auto ok = write_csv(); !ok) return std::unexpected(ok.error());
    return std::move(outcome_);
  }

  Status ratio(Outcome& outcome, const Outcome* best) {
    outcome_ = std::move(outcome);
    const Status status = ratio_stage(best);
    outcome = std::move(outcome_);
    return status;
  }

 private:
  StageRequest request(StageKind kind) const {
    StageRequest r;
    r.kind = kind;
    r.candidate = spelling_;
    r.workload = workload_key(workload_);
    r.dtypes = to_string(workload_.dtypes);
    r.lengths = workload_.lengths;
    r.question = workload_.question;
    r.device = context_.options.device;
    r.threads = context_.options.threads;
    r.config = context_.options.config;
    r.seed = context_.options.seed;
    r.warm = budget().warm;
    r.hot = budget().hot;
    r.rounds = budget().ratio_rounds;
    r.rounds_limit = budget().ratio_rounds_limit;
    r.fuzz_shapes = budget().fuzz_shapes;
    r.timeout_ms = context_.options.timeout_ms;
    return r;
  }
  const Budget& budget() const { return context_.options.budget; }

  Cell base() const {
    Cell cell;
    cell.subject = outcome_.subject;
    cell.candidate = outcome_.candidate;
    cell.contract_digest = contract_digest_;
    cell.environment_digest = context_.environment;
    cell.command = context_.options.command;
    cell.started_at = started_at_;
    cell.detail["spelling"] = spelling_;
    cell.detail["budget"] = budget().name;
    cell.detail["threads"] = context_.options.threads;
    cell.detail["config"] = context_.options.config;
    cell.detail["is_reference"] = outcome_.is_reference;
    if (!outcome_.version.empty()) cell.detail["version"] = outcome_.version;
    if (!libraries_.empty()) cell.detail["libraries"] = libraries_;
    if (workload_.operation == Operation::Kernel) cell.detail["reference"] = question_label(workload_.question);
    if (outcome_.is_reference) cell.detail["tried"] = context_.references.tried;
    return cell;
  }

  /// With --resume: the cell of this stage from an interrupted run that asked the same of the same machine.
  std::optional<Cell> recorded(Stage stage) const {
    if (!context_.options.resume) return std::nullopt;
    std::optional<Cell> found;
    for (const Cell& cell : context_.log.cells()) {
      const bool is_same = cell.stage == stage && cell.subject == outcome_.subject &&
                           cell.detail.value("spelling", "") == spelling_ && cell.contract_digest == contract_digest_ &&
                           cell.environment_digest == context_.environment &&
                           cell.detail.value("budget", "") == budget().name &&
                           cell.detail.value("config", "") == context_.options.config;
      if (is_same) found = cell;
    }
    // What only this machine's noise spoiled is worth another try.
    if (found && found->state == State::Failed && found->reason.starts_with("noise")) return std::nullopt;
    return found;
  }

  /// True when every stage of the list was recorded before; they then join the outcome.
  bool take_recorded(std::initializer_list<Stage> stages) {
    std::vector<Cell> found;
    for (Stage stage : stages) {
      auto cell = recorded(stage);
      if (!cell) return false;
      found.push_back(std::move(*cell));
    }
    for (Cell& cell : found) {
      outcome_.candidate = cell.candidate;
      if (outcome_.version.empty()) outcome_.version = cell.detail.value("version", "");
      outcome_.cells.push_back(std::move(cell));
    }
    return true;
  }

  void begin(const char* what, double ms) {
    started_at_ = utc_now();
    context_.progress.begin(fmt::format("{} · {} · {}", outcome_.candidate, outcome_.subject.shape, what), ms);
  }

  void learn_identity(const json& result) {
    const auto it = result.find("identity");
    if (it == result.end()) return;
    outcome_.candidate = it->value("name", outcome_.candidate);
    outcome_.version = it->value("version", "");
    libraries_ = it->value("libraries", json::object());
    paths_ = it->value("paths", std::vector<std::string>());
  }

  /// A stage that was recorded before the run was interrupted, in the middle of its group, keeps what was recorded.
  Status record(Cell cell) {
    if (std::optional<Cell> known = recorded(cell.stage)) {
      outcome_.cells.push_back(*std::move(known));
      return write_csv();
    }
    cell.ended_at = utc_now();
    if (auto written = context_.log.append(cell); !written) return written;
    outcome_.cells.push_back(std::move(cell));
    return write_csv();
  }
  Status record_all(std::vector<Cell> cells) {
    for (Cell& cell : cells) {
      if (auto ok = record(std::move(cell)); !ok) return ok;
    }
    return {};
  }

  Status write_csv() const {
    std::error_code error;
    const fs::path folder = context_.options.out / outcome_.candidate;
    fs::create_directories(folder, error);
    return replace_file(folder / "table.csv", write_table(make_table(context_.log.cells(), outcome_.candidate)));
  }

  Result<PrivateFolder> work_folder() const { return PrivateFolder::create(context_.options.out, "work"); }

  Status check() {
    if (take_recorded({Stage::Check})) return {};
    begin("check", 2500);
    StageRequest r = request(StageKind::Check);
    for (const std::string& reference : context_.references.chosen) {
      if (reference != spelling_) r.references.push_back(reference);
    }
    auto folder = work_folder();
    if (!folder) return std::unexpected(folder.error());
    r.cache_dir = folder->path().string();
    auto outcome = context_.runner.run(r);
    std::string death;
    const bool died = !outcome && outcome.error().code == DiagnosticCode::E3202;
    if (died && !r.references.empty()) {
      // The candidate's own doing, or that of a reference it shares the process with? Alone it answers for itself.
      death = outcome.error().message;
      r.references.clear();
      outcome = context_.runner.run(r);
    }
    if (!outcome) return record(broken_cell(base(), Stage::Check, outcome.error()));
    outside_bytes_ = outcome->result.value("written_bytes", int64_t{0}) - folder->byte_count();
    learn_identity(outcome->result);
    Cell cell = cell_like(base(), Stage::Check);
    if (!death.empty()) cell.detail["died_beside_references"] = death;
    cell.detail["oracle"] = outcome->result.value("detail", json::object());
    const bool accepted = outcome->result.value("accepted", false);
    const bool independent = outcome->result.value("independent", true);
    if (!independent) {
      cell.reason = outcome->result.value("reason", "no independent reference");
    } else if (accepted) {
      cell.state = State::Measured;
      cell.detail["reference_ok"] = true;
    } else {
      cell.state = State::Failed;
      cell.reason = outcome->result.value("reason", "wrong result");
      cell.detail["reference_ok"] = false;
    }
    return record(std::move(cell));
  }

  Status import_stage() {
    if (take_recorded({Stage::Import, Stage::Install})) return {};
    begin("import", std::max(budget().import_processes * 150.0, budget().import_min_ms) + 450);
    std::vector<double> ready, floor;
    double spent = 0;
    while (static_cast<int>(ready.size()) < budget().import_processes ||
           (spent < budget().import_min_ms && ready.size() < 200)) {
      auto outcome = context_.runner.run(request(StageKind::Import));
      if (!outcome) return record(broken_cell(base(), Stage::Import, outcome.error()));
      learn_identity(outcome->result);
      ready.push_back(outcome->mark_ms.at("ready"));
      spent += ready.back();
      if (floor.size() < 3) {
        auto empty = context_.runner.run(request(StageKind::Empty));
        if (!empty) return std::unexpected(empty.error());
        floor.push_back(empty->mark_ms.at("ready"));
      }
    }
    if (auto ok = record(install_cell(base(), paths_)); !ok) return ok;
    return record(import_cell(base(), ready, floor));
  }

  Status compile_and_load() {
    if (take_recorded({Stage::DeviceInit, Stage::Compile, Stage::FirstCall, Stage::Load})) return {};
    begin("compile", budget().compile_processes * 600.0);
    std::vector<json> cold, loaded;
    int64_t outside = outside_bytes_;  // the check's process came first, so it was the one to fill a hidden cache
    for (int i = 0; i < budget().compile_processes; ++i) {
      auto folder = work_folder();
      if (!folder) return std::unexpected(folder.error());
      StageRequest r = request(StageKind::Compile);
      r.cache_dir = folder->path().string();
      auto outcome = context_.runner.run(r);
      if (!outcome) return record(broken_cell(base(), Stage::Compile, outcome.error()));
      learn_identity(outcome->result);
      outside = std::max(outside, outcome->result.value("written_bytes", int64_t{0}) - folder->byte_count());
      cold.push_back(outcome->result);
      // The folder this process filled is what the next one loads from.
      auto again = context_.runner.run(r);
      if (!again) return record(broken_cell(base(), Stage::Load, again.error()));
      loaded.push_back(again->result);
    }
    if (auto ok = record_all(compile_cells(base(), cold, outside)); !ok) return ok;
    return record(load_cell(base(), loaded, cold.front()));
  }

  Status warm() {
    if (take_recorded({Stage::Warm, Stage::Hot})) return {};
    begin("warm", budget().warm_processes * (300 + 3 * budget().warm.min_total_ms + 2 * budget().hot.min_total_ms));
    auto folder = work_folder();
    if (!folder) return std::unexpected(folder.error());
    std::vector<json> results;
    for (int i = 0; i < budget().warm_processes; ++i) {
      StageRequest r = request(StageKind::Warm);
      r.cache_dir = folder->path().string();
      r.seed += static_cast<uint64_t>(i) + 1;
      r.check_after = i + 1 == budget().warm_processes;
      auto outcome = context_.runner.run(r);
      if (!outcome) return record(broken_cell(base(), Stage::Warm, outcome.error()));
      results.push_back(outcome->result);
    }
    if (const Cell* checked = outcome_.find(Stage::Check))
      hold_to_check(results.back()["check_after"], checked->detail);
    return record_all(warm_cells(base(), results, floor_ms(results)));
  }

  double floor_ms() const {
    return physical_floor_ms(context_.roofline, outcome_.cost.flops, outcome_.cost.bytes, workload_.dtypes.in);
  }
  /// A sample below the floor accuses the candidate; or the ceilings were measured while other work ran. Before the
  /// former is said they are measured again.
  double floor_ms(const std::vector<json>& results) {
    if (least_sample(results, "warm_ms") >= floor_ms()) return floor_ms();
    if (auto again = find_roofline(context_.options)) context_.roofline = best_of(context_.roofline, *again);
    return floor_ms();
  }

  /// Steady, burst and the floor of a launch: of the candidate, not of its references.
  Status sustained() {
    if (outcome_.is_reference) return {};
    if (take_recorded({Stage::Host, Stage::LaunchFloor, Stage::Steady, Stage::Burst})) return {};
    if (budget().sustained_rounds == 0) return record_all(sustained_cells(base(), json::object()));
    begin("steady and burst", budget().sustained_rounds * 1000.0 + 500);
    auto folder = work_folder();
    if (!folder) return std::unexpected(folder.error());
    StageRequest r = request(StageKind::Sustained);
    r.cache_dir = folder->path().string();
    r.rounds = budget().sustained_rounds;
    auto outcome = context_.runner.run(r);
    if (!outcome) return record(broken_cell(base(), Stage::Steady, outcome.error()));
    return record_all(sustained_cells(base(), outcome->result));
  }

  Status peak() {
    if (take_recorded({Stage::Peak})) return {};
    begin("memory", 300);
    auto folder = work_folder();
    if (!folder) return std::unexpected(folder.error());
    StageRequest r = request(StageKind::Peak);
    r.cache_dir = folder->path().string();
    auto outcome = context_.runner.run(r);
    if (!outcome) return record(broken_cell(base(), Stage::Peak, outcome.error()));
    return record(peak_cell(base(), outcome->result));
  }

  /// Stages other commands measure: a cell says which.
  Status the_rest() {
    const struct {
      Stage stage;
      const char* reason;
      const char* how;
    } rows[] = {{Stage::Model, "no model", ""}, {Stage::Tune, "not tuned", "tilewright tune --help"}};
    for (const auto& row : rows) {
      if (take_recorded({row.stage})) continue;
      if (row.stage == Stage::Tune) {
        if (auto known = tuned_before()) {
          outcome_.cells.push_back(*std::move(known));
          continue;
        }
      }
      Cell cell = cell_like(base(), row.stage);
      cell.reason = row.reason;
      cell.how_to_run = row.how;
      if (row.stage == Stage::Model) fill_model(cell);
      if (auto ok = record(std::move(cell)); !ok) return ok;
    }
    return {};
  }

  /// What `tune` spent is measured by that command, before: it stands while question, machine and program are the same.
  std::optional<Cell> tuned_before() const {
    std::optional<Cell> last;
    for (const Cell& cell : context_.log.cells()) {
      if (key(cell) == CellKey{outcome_.subject, outcome_.candidate, Stage::Tune}) last = cell;
    }
    if (!last || last->state != State::Measured || last->environment_digest != context_.environment)
      return std::nullopt;
    const std::string source = libraries_.value("source", "");
    const bool is_same = source.empty() || last->detail.value("toolchain", "").find(source) != std::string::npos;
    return is_same ? last : std::nullopt;
  }

  /// The whole model, where there is one to ask and the candidate was right and timed.
  void fill_model(Cell& cell) {
    if (!outcome_.value(Stage::Warm)) {
      cell.reason = "no warm_ms, so no model was run with it";
    } else if (context_.options.measure_model) {
      begin("inside a model", 8000);
      take_model(cell, context_.options.measure_model(key(cell), spelling_));
    } else if (is_cuda(context_.options.device)) {
      cell.reason = "the models run on a CPU";
      cell.how_to_run = "tilewright model compare --model-cmd 'your model on the GPU'";
    } else {
      cell.reason = "no model was asked for";
      cell.how_to_run = "the same command with --model tiny, or 125m";
    }
  }

  Status ratio_stage(const Outcome* best) {
    if (!outcome_.value(Stage::Warm) || take_recorded({Stage::Ratio})) return {};
    if (best == nullptr) {
      Cell cell = cell_like(base(), Stage::Ratio);
      const bool is_own = workload_.operation == Operation::Kernel;
      cell.reason = is_own ? "no library computes this expression" : "no reference could be measured";
      cell.how_to_run = is_own ? "name another kernel or worker that takes the same arguments with --reference"
                               : "pip install numpy onnxruntime, or name one with --reference";
      return record(std::move(cell));
    }
    begin("against the best rival", budget().ratio_rounds_limit * 12.5);
    auto folder = work_folder();
    if (!folder) return std::unexpected(folder.error());
    StageRequest r = request(StageKind::Pair);
    r.rival = best->spelling;
    r.cache_dir = folder->path().string();
    auto outcome = context_.runner.run(r);
    if (!outcome) return record(broken_cell(base(), Stage::Ratio, outcome.error()));
    Cell cell = ratio_cell(base(), outcome->result, 0.02);
    if (cell.state == State::Failed) cell.how_to_run = "the same command with --resume, when the machine is idle";
    return record(std::move(cell));
  }

  RunContext& context_;
  const Workload& workload_;
  std::string spelling_;
  std::string contract_digest_;
  std::string started_at_;
  json libraries_ = json::object();
  std::vector<std::string> paths_;
  int64_t outside_bytes_ = 0;
  Outcome outcome_;
};

}  // namespace

Result<Outcome> run_candidate(RunContext& context, const Workload& workload, const std::string& spelling,
                              bool is_reference) {
  return CandidateRun(context, workload, spelling, is_reference).run();
}

Status run_ratio(RunContext& context, const Workload& workload, Outcome& outcome, const Outcome* best) {
  return CandidateRun(context, workload, outcome.spelling, false).ratio(outcome, best);
}

}  // namespace tilewright::bench
