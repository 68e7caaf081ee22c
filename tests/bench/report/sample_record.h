// A record with every kind of cell, made up: for the tests of the report, and for the screenshot in docs/.
#pragma once

#include <cmath>
#include <filesystem>
#include <fstream>

#include "bench/decision/decide.h"
#include "bench/record/cell_log.h"
#include "bench/report/report_input.h"
#include "bench/traffic/rare_keys.h"
#include "bench/traffic/simulate.h"
#include "measure/order_statistics.h"
#include "measure/random.h"

namespace tilewright::report {

class SampleRecord {
 public:
  SampleRecord() {
    for (const auto& [name, warm, compile, import] :
         {std::tuple{"tile", 2.31, 38.0, 11.0}, {"openblas", 2.52, 0.0, 24.0}, {"onednn", 2.74, 3.1, 62.0}}) {
      add_check(name);
      add(name, bench::Stage::Import, import, 0.03);
      if (compile > 0) add(name, bench::Stage::Compile, compile, 0.05);
      if (std::string(name) == "tile") add(name, bench::Stage::Load, 1.4, 0.06);
      add(name, bench::Stage::FirstCall, 0.6 * warm, 0.1);
      add(name, bench::Stage::Warm, warm, 0.012);
      add(name, bench::Stage::Peak, 84 + 10 * warm, 0.01);
    }
    add("tile", bench::Stage::Tune, 41200, 0).samples.clear();
    add("tile", bench::Stage::Model, 61.2, 0.01).detail["share"] = 0.34;
    add("openblas", bench::Stage::Model, 63.4, 0.01);
    cells.push_back(bench::not_run({subject, "onednn", bench::Stage::Model}, "operator not in MODEL",
                                   "tilewright bench worker:onednn --model 125m"));
    cells.back().seq = cells.size();
    cells.push_back(bench::failed({subject, "numpy", bench::Stage::Check}, "max error 3.1e-2 beyond 4.4e-5"));
    cells.back().seq = cells.size();
    add_ratio("tile", "openblas", 0.917, 0.006);
    add_ratio("onednn", "openblas", 1.087, 0.008);
    add_claim("vendor-a", 1.92, nlohmann::json::array());
    add_claim("blog-b", 1830, {{{"code", "unit_mismatch×1000"}, {"message", "the heading says s"}}});
  }

  void write(const std::filesystem::path& folder) {
    std::filesystem::create_directories(folder);
    std::filesystem::remove(folder / "cells.jsonl");
    std::filesystem::remove(folder / "cost.jsonl");
    std::ofstream lines(folder / "cells.jsonl");
    for (const bench::Cell& cell : cells) lines << bench::to_json(cell).dump() << "\n";
    lines.close();
    (void)decision::append_cost(folder / "cost.jsonl", {.candidate = "tile",
                                                        .kind = decision::CostKind::Port,
                                                        .hours = 6,
                                                        .by = "A. Reader",
                                                        .note = "padding of odd sizes"});
    (void)decision::append_cost(folder / "cost.jsonl", {.candidate = "tile",
                                                        .kind = decision::CostKind::Validate,
                                                        .is_measured = true,
                                                        .wall_ms = 9400,
                                                        .checked = 6,
                                                        .failures = 0});
    write_decision(folder);
    write_traffic(folder);
    write_trials(folder);
  }

  bench::Subject subject{"gemm:512x1024x1024:nn", "f32/f32/f32", "cpu:zen3:2c"};
  std::vector<bench::Cell> cells;

 private:
  bench::Cell& add(const std::string& candidate, bench::Stage stage, double value, double noise) {
    bench::Cell cell;
    cell.seq = cells.size() + 1;
    cell.subject = subject;
    cell.candidate = candidate;
    cell.stage = stage;
    cell.state = bench::State::Measured;
    cell.unit = std::string(bench::info(stage).unit);
    std::vector<double> medians;
    for (int process = 0; process < 6; ++process) {
      const double level = value * (1 + 0.6 * noise * random_.normal());
      std::vector<double> samples;
      for (int i = 0; i < 220; ++i)
        samples.push_back(level * (1 + noise * std::abs(random_.normal()) + (random_.uniform() < 0.02 ? 0.08 : 0)));
      medians.push_back(measure::median(measure::sorted(samples)));
      if (stage == bench::Stage::Warm || stage == bench::Stage::Model)
        cell.samples.push_back(std::move(samples));
      else
        cell.samples.push_back({medians.back()});
    }
    medians = measure::sorted(medians);
    cell.value = measure::median(medians);
    cell.ci = bench::Interval{medians.front(), medians.back(), 0.969};
    cell.n = 1320;
    cell.procs = 6;
    cell.stop_reason = "precision";
    cell.command = {"tilewright", "bench", candidate, "--op", subject.shape};
    cell.detail = {{"budget", "full"}, {"is_reference", candidate != "tile"}};
    cells.push_back(std::move(cell));
    return cells.back();
  }

  void add_check(const std::string& candidate) {
    bench::Cell& cell = add(candidate, bench::Stage::Check, 1, 0);
    nlohmann::json fuzz = nlohmann::json::array();
    for (const int k : {1, 7, 16, 31, 64, 127, 256, 509, 1024, 2048, 4093}) {
      const double bound = 1.2e-7 * (2 * std::sqrt(k) + 4);
      fuzz.push_back(
          {{"key", "gemm:33x65x" + std::to_string(k) + ":nn"},
           {"judgements", {{{"max_error", bound * (0.2 + 0.3 * random_.uniform())}, {"max_allowed", bound}}}}});
    }
    cell.detail["fuzz"] = std::move(fuzz);
  }

  void add_ratio(const std::string& candidate, const std::string& rival, double ratio, double half) {
    bench::Cell& cell = add(candidate, bench::Stage::Ratio, ratio, 0);
    cell.value = ratio;
    cell.ci = bench::Interval{ratio - half, ratio + half, 0.95};
    cell.samples = {{}, {}};
    for (int round = 0; round < 52; ++round) {
      const double phase = 2.5 * (1 + 0.05 * random_.uniform());
      cell.samples[0].push_back(phase * ratio * (1 + half * random_.normal()));
      cell.samples[1].push_back(phase);
    }
    cell.n = 52;
    cell.procs = 1;
    cell.detail["rival"] = rival;
    cell.detail["aa"] = {{"ratio", 1.001}, {"low", 1.001 - half}, {"high", 1.001 + half}, {"passed", true}};
  }

  void add_claim(const std::string& candidate, double ms, nlohmann::json lint) {
    bench::Cell& cell = add(candidate, bench::Stage::Warm, ms, 0);
    cell.state = bench::State::Claimed;
    cell.samples.clear();
    cell.ci.reset();
    cell.detail = {{"source", "https://example.org/table"}, {"as_of", "2026-01-31"}, {"lint", std::move(lint)}};
  }

  void write_decision(const std::filesystem::path& folder) const {
    const std::string text =
        R"({"candidate":"tile","min_gain":0.05,"slo_ms":4,"peak_mb":128,"warmup_s":0.5,"calls_per_day":2e8,"horizon_days":365,
      "human_rate_per_hour":120,"machine_rate_per_hour":4,"accepted_by":"A. Reader","accepted_on":"2026-01-31"})";
    const decision::Objective objective = decision::parse_objective(text, "objective.json").value();
    decision::EvidenceInput input{.cells = cells, .draws = {.resamples = 1000}};
    input.costs = decision::read_costs(folder / "cost.jsonl").value();
    input.registration = decision::Registration{objective.digest, "2026-01-31T09:00:00.000Z", 0};
    const decision::Evidence evidence = decision::collect(objective, input).value();
    std::ofstream(folder / "decision.json")
        << decision::to_json(decision::decide(objective, evidence), objective, evidence).dump(2);
  }

  void write_traffic(const std::filesystem::path& folder) {
    traffic::Trace trace;
    double t = 0;
    for (int i = 0; i < 6000; ++i) {
      trace.requests.push_back(
          {t, std::clamp<int64_t>(static_cast<int64_t>(std::exp(6.5 + 0.9 * random_.normal())), 1, 16000), 100});
      t += -std::log(1 - random_.uniform()) / 5.5;
    }
    std::ofstream(folder / "traffic.json")
        << traffic::snapshot(trace, traffic::KeyPolicy::parse("exact").value()).dump();
    nlohmann::json runs = nlohmann::json::array();
    for (const auto& [policy, miss] :
         {std::pair{"exact", "block"}, {"pad128", "block"}, {"pad128", "background"}, {"pow2", "block"}}) {
      const traffic::ServiceModel model;
      const auto result = traffic::simulate(trace, traffic::KeyPolicy::parse(policy).value(),
                                            traffic::parse_miss_handling(miss).value(), model);
      nlohmann::json run = traffic::to_json(result, model);
      run["timeline"] = traffic::sampled_timeline(result);
      runs.push_back(std::move(run));
    }
    std::ofstream(folder / "service.json") << runs.dump();
  }

  void write_trials(const std::filesystem::path& folder) {
    std::ofstream lines(folder / "tune.jsonl");
    lines << R"({"kind":"tune-log"})"
          << "\n";
    for (int i = 0; i < 48; ++i) {
      const double median = 2.3 + 2.2 * random_.uniform() * std::exp(-i / 30.0);
      nlohmann::json trial = {{"point", i},
                              {"config", {{"block_M", 16 + i}, {"block_N", 256}}},
                              {"state", "ok"},
                              {"spent_ms", 600 + 500 * random_.uniform()},
                              {"median_ms", median}};
      if (i % 11 == 7)
        trial = {{"point", i},
                 {"config", {{"block_M", 16 + i}}},
                 {"state", i % 2 ? "crashed" : "wrong"},
                 {"reason", "planted"},
                 {"spent_ms", 300}};
      lines << trial.dump() << "\n";
    }
  }

  measure::Random random_{2026};
};

}  // namespace tilewright::report
