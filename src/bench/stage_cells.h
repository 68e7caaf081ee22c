// From what stage children reported to cells: every statistic and every reason for refusing a measurement, as pure
// functions.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "bench/record/cell.h"
#include "bench/roofline.h"

namespace tilewright::bench {

/// A new cell of the same candidate for another stage.
Cell cell_like(const Cell& base, Stage stage);

/// Bytes of the files below the paths a candidate declares.
Cell install_cell(const Cell& base, const std::vector<std::string>& paths);

/// `ready_ms`: one per process, fork to ready; `floor_ms`: the same for a child that opens nothing.
Cell import_cell(const Cell& base, const std::vector<double>& ready_ms, const std::vector<double>& floor_ms);

/// compile_ms of one process = the compile call, plus what the first launch cost beyond the slowest of the next three:
/// a lazy compiler does not get away with an empty compile call.
double compile_ms_of(const nlohmann::json& result);

/// Results of the cold processes → compile_ms, device_init_ms, first_call_ms. Refused when a process compiled nothing
/// or hit a cache
/// ("cache-not-empty"), or wrote outside its cache folder ("persisting-cache", bytes in `outside_bytes`).
std::vector<Cell> compile_cells(const Cell& base, const std::vector<nlohmann::json>& results, int64_t outside_bytes);

/// Results of processes with a filled cache. `not-run` when the candidate keeps no cache; failed when the artefact
/// differs from `cold`'s.
Cell load_cell(const Cell& base, const std::vector<nlohmann::json>& results, const nlohmann::json& cold);

/// Results of the warm processes → warm_ms, hot_ms; failed on clocks that disagree, a sample below the floor, a wrong
/// output afterwards.
/// The result after timing is held to the errors the check allowed: the same rule, with the same reference's error,
/// though only the check had that reference at hand. Every other finding stands.
void hold_to_check(nlohmann::json& after, const nlohmann::json& check_detail);

/// The least sample of a field over all processes.
double least_sample(const std::vector<nlohmann::json>& results, const char* field);

/// What a model measured becomes this cell's; the operator's share of it goes where `decide` looks for it.
void take_model(Cell& cell, const Cell& measured);

std::vector<Cell> warm_cells(const Cell& base, const std::vector<nlohmann::json>& results, double floor_ms);

/// host_ms, launch_floor_ms, steady_ms and burst_ms; an empty result: the budget has no time for them.
std::vector<Cell> sustained_cells(const Cell& base, const nlohmann::json& result);

Cell peak_cell(const Cell& base, const nlohmann::json& result);

/// The paired comparison with the best rival; value = ratio of times, < 1 means the candidate is faster.
Cell ratio_cell(const Cell& base, const nlohmann::json& result, double delta);

/// No driver, one too old, or no such device: nothing can be measured there, and nobody's kernel is to blame.
bool is_missing_device(const Diagnostic& why);

/// How a stage that did not come to an end is recorded: not-run for what is not installed or not supported, failed for
/// the rest.
Cell broken_cell(const Cell& base, Stage stage, const Diagnostic& why);

}  // namespace tilewright::bench
