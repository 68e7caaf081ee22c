#include "bench/oracle/check.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

#include "bench/oracle/fuzz_shapes.h"

namespace tilewright::bench {
namespace {

void reject(ShapeReport& report, std::string rule, std::string text) {
  report.state = ShapeReport::State::Rejected;
  report.findings.push_back({std::move(rule), std::move(text)});
}

/// Runs once on poison `which`; outputs, or nothing after a finding was added.
std::optional<std::vector<HostTensor>> run_once(GuardedTensors& buffers, const PreparedKernel& kernel, int which,
                                                ShapeReport& report) {
  if (auto ok = buffers.arm(which); !ok) {
    report.findings.push_back({"memory", ok.error().message});
    return std::nullopt;
  }
  if (auto ok = kernel.launch(buffers.tensors()); !ok) {
    reject(report, "launch", ok.error().message);
    return std::nullopt;
  }
  auto damage = buffers.collect();
  if (!damage) {
    reject(report, "launch", damage.error().message);
    return std::nullopt;
  }
  if (*damage) {
    const size_t colon = (*damage)->find(": ");
    reject(report, (*damage)->substr(0, colon), (*damage)->substr(colon + 2));
  }
  return buffers.outputs();
}

void find_unwritten(const std::vector<Argument>& outputs, const std::vector<HostTensor>& first,
                    const std::vector<HostTensor>& second, ShapeReport& report) {
  for (size_t o = 0; o < outputs.size(); ++o) {
    int64_t where = 0;
    const int64_t count = count_unwritten(first[o], second[o], where);
    if (count)
      reject(report, "unwritten",
             fmt::format("{} values of {} were never written, first at {}", count, outputs[o].name, where));
    if (first[o].data != second[o].data) report.bitwise_repeatable = false;
  }
}

std::vector<std::vector<double>> reference_values(const Workload& workload, const std::vector<HostTensor>& inputs,
                                                  const Expected& expected, const CheckOptions& options) {
  std::vector<std::vector<double>> values;
  if (options.r1) {
    if (auto tensors = options.r1(workload, inputs); tensors && tensors->size() == expected.outputs.size()) {
      for (size_t o = 0; o < tensors->size(); ++o) values.push_back(rows_of((*tensors)[o], expected.outputs[o]));
      return values;
    }
  }
  for (ExpectedOutput& out : evaluate_declared(workload, inputs, options.reference))
    values.push_back(std::move(out.values));
  return values;
}

void judge_outputs(const Workload& workload, const std::vector<HostTensor>& inputs,
                   const std::vector<HostTensor>& produced, const CheckOptions& options, ShapeReport& report) {
  Expected expected = evaluate_oracle(workload, inputs, options.reference);
  if (!expected.failure.empty()) {
    report.state = ShapeReport::State::Failed;
    report.findings.push_back({"reference", expected.failure});
    return;
  }
  if (options.contract.math == "tf32") expected.extra_roundoff += 0x1p-10;  // both factors lose 2^-11
  const auto r1 = reference_values(workload, inputs, expected, options);
  std::vector<Argument> outputs;
  for (const Argument& arg : arguments(workload)) {
    if (arg.is_output()) outputs.push_back(arg);
  }
  for (size_t o = 0; o < outputs.size(); ++o) {
    const auto values = rows_of(produced[o], expected.outputs[o]);
    const JudgeInput input{workload, expected, o, values, r1[o]};
    Judgement judgement = outputs[o].role == Role::Indices ? judge_indices(input, inputs[0]) : judge_values(input);
    for (const Finding& f : judgement.findings) reject(report, f.rule, fmt::format("{}: {}", outputs[o].name, f.text));
    report.judgements.push_back(std::move(judgement));
  }
  const int64_t width = std::max<int64_t>(expected.outputs[0].row_width, 1);
  report.rows = outputs[0].numel() / width;
  report.checked_rows = static_cast<int64_t>(expected.outputs[0].values.size()) / width;
}

/// A small ragged relative of the workload, on which every applicable mutant shows.
Workload probe_of(const Workload& like) {
  Workload probe = like;
  probe.lengths.clear();
  const auto clamp_dim = [&](const char* dim, int64_t low, int64_t high) {
    probe.set_dim(dim, std::clamp(like.dim(dim), low, high));
  };
  switch (info(like.operation).form) {
    case DimsForm::Gemm:
    case DimsForm::Gemv:
      clamp_dim("B", 1, 2);
      probe.set_dim("M", 45);
      probe.set_dim("N", 70);
      clamp_dim("K", 256, 1024);
      if (like.operation == Operation::GemmW4) probe.set_dim("K", 512);
      break;
    case DimsForm::Attention:
      probe.set_dim("B", 1);
      probe.set_dim("HQ", like.dim("HQ") / like.dim("HKV"));
      probe.set_dim("HKV", 1);
      probe.set_dim("SQ", 21);
      probe.set_dim("SK", std::max<int64_t>(135, like.dim("D") + 7));
      break;
    case DimsForm::Rows:
      probe.set_dim("R", 23);
      clamp_dim("C", 331, 2048);
      break;
    case DimsForm::Elements:
      for (auto& [dim, value] : probe.dims) value = 1;
      probe.dims.back().second = 1031;
      break;
    case DimsForm::Kernel: break;
  }
  return probe;
}

nlohmann::json shape_json(const ShapeReport& shape) {
  nlohmann::json findings = nlohmann::json::array(), judgements = nlohmann::json::array();
  for (const Finding& f : shape.findings) findings.push_back({{"rule", f.rule}, {"text", f.text}});
  for (const Judgement& j : shape.judgements) judgements.push_back(to_json(j));
  return {{"key", shape.key},
          {"state", name(shape.state)},
          {"findings", findings},
          {"judgements", judgements},
          {"rows", shape.rows},
          {"checked_rows", shape.checked_rows},
          {"bitwise_repeatable", shape.bitwise_repeatable}};
}

}  // namespace

std::string_view name(ShapeReport::State state) {
  switch (state) {
    case ShapeReport::State::Accepted: return "accepted";
    case ShapeReport::State::Rejected: return "rejected";
    case ShapeReport::State::Refused: return "refused";
    case ShapeReport::State::Unfair: return "unfair";
    case ShapeReport::State::Failed: return "failed";
  }
  return "failed";
}

ShapeReport check_prepared(const Workload& workload, const PreparedKernel& kernel, const CheckOptions& options) {
  ShapeReport report;
  report.key = workload_key(workload);
  Memory own;
  Memory& memory = kernel.memory ? *kernel.memory : own;
  const std::vector<HostTensor> inputs = make_inputs(workload, options.contract.data);
  auto buffers = GuardedTensors::make(workload, inputs, memory);
  if (!buffers) {
    report.findings.push_back({"memory", buffers.error().message});
    return report;
  }
  report.state = ShapeReport::State::Accepted;
  const auto first = run_once(*buffers, kernel, 0, report);
  const auto second = first ? run_once(*buffers, kernel, 1, report) : std::nullopt;
  if (!first || !second) {
    if (report.state == ShapeReport::State::Accepted) report.state = ShapeReport::State::Failed;
    return report;
  }
  std::vector<Argument> outputs = arguments(workload);
  std::erase_if(outputs, [](const Argument& arg) { return !arg.is_output(); });
  find_unwritten(outputs, *first, *second, report);
  judge_outputs(workload, inputs, *second, options, report);
  return report;
}

ShapeReport check_shape(const Workload& workload, const Prepare& prepare, const CheckOptions& options) {
  ShapeReport report;
  report.key = workload_key(workload);
  const auto contract = contract_text(workload, options.contract);
  auto kernel = prepare(workload, contract);
  if (!kernel) {
    const bool refused = kernel.error().code == DiagnosticCode::E3201;
    report.state = refused ? ShapeReport::State::Refused : ShapeReport::State::Failed;
    report.findings.push_back({refused ? "refused" : "prepare", kernel.error().message});
    return report;
  }
  if (auto fair = check_fair(contract, kernel->echo, options.candidate_name); !fair) {
    report.state = ShapeReport::State::Unfair;
    report.findings.push_back({*unfair_field(contract, kernel->echo), fair.error().message});
    return report;
  }
  return check_prepared(workload, *kernel, options);
}

CheckReport check_candidate(const Workload& workload, const Prepare& prepare, const CheckOptions& options) {
  CheckReport report;
  report.fuzz_seed = options.fuzz_seed;
  report.may_measure = supports_measurement(options.contract.data, workload.dtypes.in);
  report.main = check_shape(workload, prepare, options);
  if (report.main.state == ShapeReport::State::Unfair) report.unfair = report.main.findings.front().rule;
  if (report.main.state != ShapeReport::State::Accepted) return report;
  if (options.mutants) report.mutants = try_mutants(workload, options);
  if (!options.fuzz) return report;
  const std::vector<Workload> shapes = fuzz_shapes(workload, options.fuzz_seed);
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (options.progress) options.progress("fuzz shapes", static_cast<int>(i), static_cast<int>(shapes.size()));
    report.fuzz.push_back(check_shape(shapes[i], prepare, options));
  }
  return report;
}

std::vector<MutantReport> try_mutants(const Workload& workload, const CheckOptions& options) {
  const Workload probe = probe_of(workload);
  CheckOptions own = options;
  own.r1 = nullptr;
  std::vector<MutantReport> reports;
  for (const MutantInfo& row : all_mutants()) {
    if (!applies(row.mutant, probe)) continue;
    MutantReport report{row.mutant, true, ""};
    for (int variant = 0; variant < variant_count(row.mutant); ++variant) {
      const ShapeReport shape = check_shape(probe, tile_kernel_candidate({row.mutant, variant}), own);
      report.rejected = report.rejected && shape.state == ShapeReport::State::Rejected;
      if (!shape.findings.empty()) report.by = shape.findings.front().rule;
    }
    reports.push_back(std::move(report));
  }
  return reports;
}

Prepare tile_kernel_candidate(const TileKernel& kernel) {
  return [kernel](const Workload& workload, const candidate::ContractText& contract) -> Result<PreparedKernel> {
    PreparedKernel prepared;
    prepared.echo.digest = contract.digest;
    prepared.launch = [kernel, workload](std::span<const candidate::Tensor> tensors) {
      return run_tile_kernel(workload, kernel, tensors);
    };
    return prepared;
  };
}

int CheckReport::rejected_shapes() const {
  return static_cast<int>(std::ranges::count_if(fuzz, [](const ShapeReport& s) {
    return s.state == ShapeReport::State::Rejected || s.state == ShapeReport::State::Failed ||
           s.state == ShapeReport::State::Unfair;
  }));
}
int CheckReport::refused_shapes() const {
  return static_cast<int>(std::ranges::count(fuzz, ShapeReport::State::Refused, &ShapeReport::state));
}
bool CheckReport::oracle_blind() const { return !std::ranges::all_of(mutants, &MutantReport::rejected); }
bool CheckReport::accepted() const { return main.state == ShapeReport::State::Accepted && rejected_shapes() == 0; }

std::string CheckReport::summary() const {
  const auto line = [](const ShapeReport& s) {
    return s.findings.empty()
               ? fmt::format("{}: {}", s.key, name(s.state))
               : fmt::format("{}: {} ({}: {})", s.key, name(s.state), s.findings[0].rule, s.findings[0].text);
  };
  if (main.state != ShapeReport::State::Accepted) return line(main);
  for (const ShapeReport& s : fuzz) {
    if (s.state != ShapeReport::State::Accepted && s.state != ShapeReport::State::Refused) {
      return fmt::format("{} of {} fuzz shapes (seed {}) are wrong, first {}", rejected_shapes(), fuzz.size(),
                         fuzz_seed, line(s));
    }
  }
  std::string text = "accepted";
  if (main.checked_rows < main.rows) text += fmt::format(", {} of {} rows sampled", main.checked_rows, main.rows);
  if (!fuzz.empty()) {
    text += fmt::format(", {} of {} fuzz shapes", fuzz.size() - static_cast<size_t>(refused_shapes()), fuzz.size());
    if (refused_shapes()) text += fmt::format(" ({} not done by it)", refused_shapes());
  }
  for (const MutantReport& m : mutants) {
    if (!m.rejected) return fmt::format("oracle blind: {} passes on this data ({})", info(m.mutant).name, text);
  }
  if (!mutants.empty()) text += fmt::format(", {} of {} mutants noticed", mutants.size(), mutants.size());
  return text;
}

nlohmann::json to_json(const CheckReport& report) {
  nlohmann::json fuzz = nlohmann::json::array(), mutants = nlohmann::json::array();
  for (const ShapeReport& s : report.fuzz) fuzz.push_back(shape_json(s));
  for (const MutantReport& m : report.mutants) {
    mutants.push_back({{"name", info(m.mutant).name}, {"rejected", m.rejected}, {"by", m.by}});
  }
  nlohmann::json out = {{"accepted", report.accepted()},
                        {"summary", report.summary()},
                        {"oracle_blind", report.oracle_blind()},
                        {"may_measure", report.may_measure},
                        {"fuzz_seed", report.fuzz_seed},
                        {"main", shape_json(report.main)},
                        {"fuzz", fuzz},
                        {"mutants", mutants}};
  if (report.unfair) out["unfair"] = *report.unfair;
  return out;
}

}  // namespace tilewright::bench
