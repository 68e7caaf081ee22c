#include "bench/suite/hopper_suite.h"

#include <fmt/core.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include "bench/progress.h"
#include "bench/stage_cells.h"
#include "bench/stage_runner.h"
#include "measure/random.h"

namespace tilewright::bench {
namespace {

using nlohmann::json;

std::vector<std::string> words(const char* text) {
  std::istringstream in(text);
  std::vector<std::string> out;
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}

Contender ours(const HopperRow& row) { return {"tile:kernels/" + row.kernel, row.workload, row.dtypes}; }

/// The record of rows as JSON lines: {"row", "program", "seed", "rounds", "result" or "not_run"}.
class RowLog {
 public:
  RowLog(const HopperOptions& options) : options_(options) {
    if (options.record.empty()) return;
    std::error_code error;
    if (!options.resume) std::filesystem::remove(options.record, error);
    std::ifstream in(options.record);
    for (std::string line; std::getline(in, line);) {
      const json entry = json::parse(line, nullptr, false);
      if (!entry.is_object() || !is_of_this_run(entry)) continue;
      known_[entry.value("row", "")] = entry["result"];
      device_ = entry.value("device_name", "");
    }
  }
  /// What recorded rows were measured on; empty when there are none.
  const std::string& device() const { return device_; }
  const json* find(const std::string& row) const {
    const auto at = known_.find(row);
    return at == known_.end() ? nullptr : &at->second;
  }
  void append(const std::string& row, const json& result, const std::string& device_name) const {
    if (options_.record.empty()) return;
    std::ofstream(options_.record, std::ios::app) << json{{"row", row},
                                                          {"program", options_.program},
                                                          {"device", options_.device},
                                                          {"device_name", device_name},
                                                          {"seed", options_.seed},
                                                          {"rounds", options_.rounds},
                                                          {"processes", options_.processes},
                                                          {"result", result}}
                                                         .dump()
                                                  << '\n';
  }

 private:
  bool is_of_this_run(const json& entry) const {
    return entry.value("program", "") == options_.program && entry.value("device", "") == options_.device &&
           entry.value("seed", uint64_t{0}) == options_.seed && entry.value("rounds", 0) == options_.rounds &&
           entry.value("processes", 0) == options_.processes && entry.contains("result");
  }
  const HopperOptions& options_;
  std::map<std::string, json> known_;
  std::string device_;
};

class HopperRun {
 public:
  HopperRun(const HopperOptions& options, HopperReport& report)
      : options_(options),
        report_(report),
        log_(options),
        progress_(options.show_progress, planned_ms()),
        runner_(options.executable, std::chrono::milliseconds(options.timeout_ms), [this] { progress_.tick(); }) {}

  Status run() {
    auto folder = PrivateFolder::create(std::filesystem::temp_directory_path(), "tilewright-hopper");
    if (!folder) return std::unexpected(folder.error());
    cache_ = folder->path().string();
    for (size_t i = 0; i < report_.rows.size(); ++i) {
      if (const json* known = log_.find(report_.rows[i].name)) report_.records[i].result = *known;
    }
    if (!log_.device().empty()) report_.device = log_.device();
    const auto is_open = [](const HopperRecord& r) { return r.result.is_null(); };
    if (std::ranges::none_of(report_.records, is_open) || !probe_device()) return {};
    for (size_t i = 0; i < report_.rows.size(); ++i) {
      if (is_done(i)) continue;
      switch (report_.rows[i].kind) {
        case HopperKind::Race: race_from(i); break;
        case HopperKind::Cold: keep(i, cold(report_.rows[i])); break;
        case HopperKind::Rare: keep(i, rare(report_.rows[i])); break;
        case HopperKind::Launch: keep(i, launch_cost(report_.rows[i])); break;
      }
    }
    return {};
  }

 private:
  double planned_ms() const {
    double total = 0;
    for (const HopperRow& row : report_.rows) total += expected_ms(row);
    return total;
  }
  double expected_ms(const HopperRow& row) const {
    constexpr double kRound = 800, kData = 5000, kProcess = 1500;
    if (row.kind == HopperKind::Race)
      return kData + options_.rounds * kRound * static_cast<double>(row.rivals.size() + 1);
    return row.kind == HopperKind::Cold ? kProcess * options_.processes : 5000;
  }

  bool is_done(size_t i) const { return !report_.records[i].result.is_null() || !report_.records[i].not_run.empty(); }

  void keep(size_t i, Result<json> result) {
    if (result) {
      log_.append(report_.rows[i].name, *result, report_.device);
      report_.records[i].result = std::move(*result);
    } else {
      report_.records[i].not_run = result.error().message;
    }
  }

  StageRequest request(StageKind kind) const {
    StageRequest r;
    r.kind = kind;
    r.device = options_.device;
    r.cache_dir = cache_;
    r.seed = options_.seed;
    r.rounds = options_.rounds;
    r.timeout_ms = options_.timeout_ms;
    return r;
  }

  /// What the device is; false, with every row saying so, when there is none.
  bool probe_device() {
    auto probed = runner_.run(request(StageKind::Roofline));
    if (probed) {
      report_.device = probed->result.value("device", options_.device);
      return true;
    }
    report_.device_missing = probed.error().message;
    for (size_t i = 0; i < report_.rows.size(); ++i) {
      if (!is_done(i)) report_.records[i].not_run = report_.device_missing;
    }
    return false;
  }

  /// Every row of the same rivals that is still open, in one process; again after a row that killed it.
  void race_from(size_t first) {
    std::vector<size_t> open;
    for (size_t i = first; i < report_.rows.size(); ++i) {
      const HopperRow& row = report_.rows[i];
      if (row.kind == HopperKind::Race && row.rivals == report_.rows[first].rivals && !is_done(i)) open.push_back(i);
    }
    StageRequest r = request(StageKind::Race);
    for (size_t i : open) {
      const HopperRow& row = report_.rows[i];
      Race& race = r.races.emplace_back(Race{row.name, {ours(row)}, row.is_flushed, row.in_graphs});
      for (const std::string& rival : row.rivals) race.contenders.push_back({rival, row.workload, row.dtypes});
    }
    size_t next = 0;
    const auto begin = [&] {
      if (next < open.size()) progress_.begin(report_.rows[open[next]].name, expected_ms(report_.rows[open[next]]));
    };
    begin();
    auto ran = runner_.run(r, [&](const json& part) {
      keep(open[next++], part);
      begin();
    });
    if (ran || next >= open.size()) return;
    report_.records[open[next]].not_run = ran.error().message;
    if (next + 1 < open.size()) race_from(open[next + 1]);
  }

  StageRequest compile_request(const HopperRow& row, const PrivateFolder& folder) const {
    StageRequest r = request(StageKind::Compile);
    r.candidate = ours(row).candidate;
    r.workload = row.workload;
    r.dtypes = row.dtypes;
    r.cache_dir = folder.path().string();
    return r;
  }

  /// The kernel whose compile is timed gives right results.
  Status check(const HopperRow& row) {
    auto folder = PrivateFolder::create(std::filesystem::temp_directory_path(), "tilewright-check");
    if (!folder) return std::unexpected(folder.error());
    StageRequest r = compile_request(row, *folder);
    r.kind = StageKind::Check;
    r.fuzz_shapes = 0;
    auto checked = runner_.run(r);
    if (!checked) return std::unexpected(checked.error());
    if (checked->result.value("accepted", false)) return {};
    return fail(DiagnosticCode::E3206, "not timed: " + checked->result.value("reason", "wrong result"));
  }

  /// Processes with an empty cache each and the driver's switched off, in turn with processes that load what one of
  /// them left (the driver keeps what it assembled in the same folder).
  Result<json> cold(const HopperRow& row) {
    progress_.begin(row.name, expected_ms(row));
    if (auto right = check(row); !right) return std::unexpected(right.error());
    auto filled = PrivateFolder::create(std::filesystem::temp_directory_path(), "tilewright-filled");
    if (!filled) return std::unexpected(filled.error());
    if (auto first = runner_.run(compile_request(row, *filled)); !first) return std::unexpected(first.error());
    json out;
    for (int i = 0; i < options_.processes; ++i) {
      auto folder = PrivateFolder::create(std::filesystem::temp_directory_path(), "tilewright-cold");
      if (!folder) return std::unexpected(folder.error());
      StageRequest r = compile_request(row, *folder);
      r.without_driver_cache = true;
      auto compiled = runner_.run(r);
      if (!compiled) return std::unexpected(compiled.error());
      auto loaded = runner_.run(compile_request(row, *filled));
      if (!loaded) return std::unexpected(loaded.error());
      if (compiled->result.value("compiles", 0) < 1 || loaded->result.value("compiles", 1) != 0)
        return fail(DiagnosticCode::E9001, "the cold process compiled nothing, or the second compiled again");
      out["compile_ms"].push_back(compiled->result.at("compile_call_ms"));
      out["init_ms"].push_back(compiled->result.at("device_init_ms"));
      out["phases"].push_back(compiled->result.at("phases"));
      out["peak_mb"].push_back(compiled->result.at("peak_resident_bytes").get<double>() * 1e-6);
      out["load_ms"].push_back(loaded->result.at("compile_call_ms"));
      out["load_phase_ms"].push_back(loaded->result.at("phases").at("load"));
      out["start_ms"].push_back(loaded->mark_ms.at("first-result"));
      out["start_cold_ms"].push_back(compiled->mark_ms.at("first-result"));
      out["cached_peak_mb"].push_back(loaded->result.at("peak_resident_bytes").get<double>() * 1e-6);
    }
    return out;
  }

  /// Shapes nobody has seen: extents at random, of both classes (pitches of 16 bytes, and not).
  Result<json> rare(const HopperRow& row) {
    progress_.begin(row.name, expected_ms(row));
    auto folder = PrivateFolder::create(std::filesystem::temp_directory_path(), "tilewright-rare");
    if (!folder) return std::unexpected(folder.error());
    StageRequest r = request(StageKind::Rare);
    r.cache_dir = folder->path().string();
    r.without_driver_cache = true;
    r.candidate = ours(row).candidate;
    measure::Random random(options_.seed);
    const auto extent = [&](bool aligned) {
      const auto n = static_cast<int64_t>(64 + random.below(512));
      return aligned ? n / 8 * 8 : n | 1;
    };
    for (int i = 0; i < row.shapes; ++i) {
      const bool aligned = i % 2 == 0;
      const int64_t m = extent(false), n = extent(aligned), k = extent(aligned);
      r.contenders.push_back({r.candidate, fmt::format("gemm:{}x{}x{}:nt", m, n, k), row.dtypes});
    }
    r.workload = r.contenders.front().workload;
    r.dtypes = row.dtypes;
    auto ran = runner_.run(r);
    if (!ran) return std::unexpected(ran.error());
    return ran->result;
  }

  Result<json> launch_cost(const HopperRow& row) {
    progress_.begin(row.name, expected_ms(row));
    StageRequest r = request(StageKind::LaunchCost);
    r.candidate = ours(row).candidate;
    r.workload = row.workload;
    r.dtypes = row.dtypes;
    auto ran = runner_.run(r);
    if (!ran) return std::unexpected(ran.error());
    return ran->result;
  }

  const HopperOptions& options_;
  HopperReport& report_;
  RowLog log_;
  Progress progress_;
  StageRunner runner_;
  std::string cache_;
};

}  // namespace

std::vector<HopperRow> hopper_rows() {
  std::map<std::string, std::vector<std::string>> rivals;
  enum class Regime : uint8_t { Steady, Graphs, Flushed };
  using enum Regime;
  std::vector<HopperRow> out;
  const auto add = [&](HopperRow row, const char* kind) {
    row.name = fmt::format("{} {} {}", kind, row.workload.empty() ? row.kernel : row.workload, row.dtypes);
    out.push_back(std::move(row));
  };
#define TW_RIVALS(id, spellings) rivals[#id] = words(spellings);
#define TW_RACE(group_name, kernel_name, key, types, rival_group, regime, speed, rate) \
  add({.kind = HopperKind::Race,                                                       \
       .group = #group_name,                                                           \
       .kernel = kernel_name,                                                          \
       .workload = key,                                                                \
       .dtypes = types,                                                                \
       .rivals = rivals[#rival_group],                                                 \
       .is_flushed = (regime) == Flushed,                                              \
       .in_graphs = (regime) == Graphs,                                                \
       .speed_goal = speed,                                                            \
       .rate_goal = rate},                                                             \
      #group_name);
#define TW_COLD(kernel_name, key, types, ms)                                                                         \
  add({.kind = HopperKind::Cold, .kernel = kernel_name, .workload = key, .dtypes = types, .rivals = {}, .most = ms}, \
      "cold-compile");
#define TW_RARE(kernel_name, types, count, classes, ms) \
  add({.kind = HopperKind::Rare,                        \
       .kernel = kernel_name,                           \
       .dtypes = types,                                 \
       .rivals = {},                                    \
       .most = ms,                                      \
       .shapes = count,                                 \
       .compiles = classes},                            \
      "rare-shapes");
#define TW_LAUNCH(kernel_name, key, types, ns)                                                                         \
  add({.kind = HopperKind::Launch, .kernel = kernel_name, .workload = key, .dtypes = types, .rivals = {}, .most = ns}, \
      "launch");
#include "bench/suite/hopper.def"
  return out;
}

Result<HopperReport> run_hopper_suite(const HopperOptions& options) {
  HopperReport report;
  report.device = options.device;
  for (HopperRow& row : hopper_rows()) {
    if (row.name.find(options.filter) != std::string::npos) report.rows.push_back(std::move(row));
  }
  if (report.rows.empty())
    return fail(DiagnosticCode::E1600, fmt::format("no row of suite {} has '{}' in it", kHopperSuite, options.filter),
                fmt::format("its first row is '{}'", hopper_rows().front().name));
  report.records.resize(report.rows.size());
  if (auto ran = HopperRun(options, report).run(); !ran) return std::unexpected(ran.error());
  return report;
}

}  // namespace tilewright::bench
