#include "bench/report/report_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "base/line_log.h"
#include "bench/record/cell_log.h"

namespace tilewright::report {

using bench::Cell;
using bench::Stage;
using bench::State;

namespace {

Result<nlohmann::json> read_json(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return nlohmann::json();
  nlohmann::json json = nlohmann::json::parse(in, nullptr, false);
  if (json.is_discarded())
    return fail(DiagnosticCode::E1643, fmt::format("{} is not JSON", path.string()), "make it again, or move it away");
  return json;
}

bool is_there(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

Status load_lines(const std::filesystem::path& folder, ReportInput& input) {
  if (is_there(folder / "tune.jsonl")) {
    const Result<std::vector<std::string>> lines = read_lines(folder / "tune.jsonl");
    if (!lines) return std::unexpected(lines.error());
    for (const std::string& line : *lines) {
      nlohmann::json trial = nlohmann::json::parse(line, nullptr, false);
      if (trial.is_object() && trial.contains("point")) input.trials.push_back(std::move(trial));
    }
  }
  if (is_there(folder / "cost.jsonl")) {
    Result<std::vector<decision::CostEntry>> costs = decision::read_costs(folder / "cost.jsonl");
    if (!costs) return std::unexpected(costs.error());
    input.costs = std::move(*costs);
  }
  return {};
}

}  // namespace

Result<ReportInput> load_report_input(const std::filesystem::path& folder) {
  ReportInput input;
  input.folder = folder.string();
  input.written_at = bench::utc_now();
  Result<bench::CellFile> cells = bench::read_cells(folder / "cells.jsonl");
  if (!cells) return std::unexpected(cells.error());
  input.cells = std::move(cells->cells);
  if (input.cells.empty()) {
    return fail(DiagnosticCode::E1643,
                fmt::format("{} holds no whole record{}", (folder / "cells.jsonl").string(),
                            cells->had_torn_line ? ": its only line is torn" : ""),
                "`tilewright bench` writes them");
  }
  for (auto [name, member] :
       {std::pair{"decision.json", &ReportInput::decision}, std::pair{"traffic.json", &ReportInput::traffic},
        std::pair{"service.json", &ReportInput::service}}) {
    Result<nlohmann::json> json = read_json(folder / name);
    if (!json) return std::unexpected(json.error());
    input.*member = std::move(*json);
  }
  if (Status status = load_lines(folder, input); !status) return std::unexpected(status.error());
  return input;
}

namespace {

/// A decision rests on the cells that were there when it was taken; anything recorded since makes it one of the past.
std::string why_stale(const ReportInput& input, const bench::Subject& subject) {
  const nlohmann::json& d = input.decision;
  if (!d.is_object()) return "";
  const uint64_t last_seen = d.value("last_seq", UINT64_MAX);
  const std::string at = d.value("at", "");
  int64_t newer = 0;
  for (const Cell& cell : input.cells) {
    const bool counts = cell.state != State::Claimed && cell.subject == subject;
    newer += counts && (cell.seq > last_seen || (!at.empty() && cell.ended_at > at));
  }
  if (newer > 0) return fmt::format("{} cells were recorded after it", newer);
  const nlohmann::json costs = d.value("cost_entries", nlohmann::json());
  if (costs.is_number_unsigned() && costs.get<size_t>() != input.costs.size())
    return fmt::format("it knew {} cost entries, there are {}", costs.get<size_t>(), input.costs.size());
  return "";
}

}  // namespace

ReportView::ReportView(const ReportInput& report_input) : input(report_input) {
  std::vector<Cell> facts;
  for (const Cell& cell : input.cells) (cell.state == State::Claimed ? claims : facts).push_back(cell);
  latest = bench::latest_cells(facts);
  std::string judged;
  if (input.decision.is_object() && input.decision.contains("subject")) {
    const nlohmann::json& s = input.decision["subject"];
    subject = {s.value("shape", ""), s.value("dtype", ""), s.value("device", "")};
    judged = input.decision.value("candidate", "");
  }
  const auto is_here = [&](const Cell& cell) { return cell.subject == subject; };
  if (std::ranges::none_of(latest, is_here)) {
    const auto warm = std::ranges::find_if(
        latest, [](const Cell& c) { return c.stage == Stage::Warm && c.state == State::Measured; });
    const auto first = warm != latest.end() ? warm : latest.begin();
    if (first != latest.end()) subject = first->subject;
  }
  stale = why_stale(input, subject);
  std::set<std::string> names, references;
  for (const Cell& cell : latest) {
    if (is_here(cell) && cell.detail.is_object() && cell.detail.value("is_reference", false))
      references.insert(cell.candidate);
    else if (is_here(cell) && cell.stage == Stage::Warm)
      references.erase(cell.candidate);
  }
  for (const Cell& cell : latest) {
    if (is_here(cell) && cell.stage != Stage::Roofline && names.insert(cell.candidate).second)
      candidates.push_back(cell.candidate);
  }
  std::ranges::stable_sort(candidates, [&](const std::string& a, const std::string& b) {
    if ((a == judged) != (b == judged)) return a == judged;
    if (references.contains(a) != references.contains(b)) return references.contains(b);
    const Cell *x = measured(a, Stage::Warm), *y = measured(b, Stage::Warm);
    if ((x != nullptr) != (y != nullptr)) return x != nullptr;
    return x && *x->value < *y->value;
  });
}

const Cell* ReportView::find(const std::string& candidate, Stage stage) const {
  for (const Cell& cell : latest) {
    if (cell.stage == stage && cell.candidate == candidate && cell.subject == subject) return &cell;
  }
  return nullptr;
}

const Cell* ReportView::measured(const std::string& candidate, Stage stage) const {
  const Cell* cell = find(candidate, stage);
  return cell && cell->state == State::Measured && cell->value ? cell : nullptr;
}

int ReportView::colour(const std::string& candidate) const {
  const auto it = std::ranges::find(candidates, candidate);
  return static_cast<int>((it - candidates.begin()) % 8);
}

}  // namespace tilewright::report
