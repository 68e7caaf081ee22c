#include "models/model_cell.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench/oracle/workload.h"
#include "measure/order_statistics.h"
#include "models/library_operators.h"

namespace tilewright::models {
namespace {

/// Rows of activations the workload implies: what the prompt must be long for.
int64_t implied_rows(const bench::Workload& w) {
  switch (bench::info(w.operation).form) {
    case bench::DimsForm::Gemm: return w.dim("M");
    case bench::DimsForm::Attention: return w.dim("SQ");
    case bench::DimsForm::Rows: return w.dim("R");
    default: return 1;
  }
}

/// Calls per run of the key, by a run that only counts.
class CountingOperators : public Operators {
 public:
  CountingOperators(Operators& base, const std::string& key) : base_(base), key_(key) {}
  void gemm(const GemmCall& c) override { count(workload_of(c)), base_.gemm(c); }
  void attention(const AttentionCall& c) override { count(workload_of(c)), base_.attention(c); }
  void norm(const NormCall& c) override { count(workload_of(c)), base_.norm(c); }
  void swiglu(const SwigluCall& c) override { count(workload_of(c)), base_.swiglu(c); }
  int64_t calls() const { return calls_; }

 private:
  void count(const std::string& key) { calls_ += key == key_; }
  Operators& base_;
  const std::string& key_;
  int64_t calls_ = 0;
};

void fill(const Comparison& comparison, bench::Cell& cell) {
  std::vector<double> swapped;
  for (const auto& round : comparison.whole_ms) swapped.push_back(round[1]);
  const auto sorted = measure::sorted(swapped);
  cell.state = bench::State::Measured;
  cell.reason.clear();
  cell.value = measure::median(sorted);
  cell.unit = "ms";
  if (const auto interval = measure::median_interval(sorted, 0.95))
    cell.ci = bench::Interval{interval->low, interval->high, interval->level};
  cell.n = static_cast<int64_t>(swapped.size());
  cell.procs = 1;
  cell.stop_reason = "fixed";
  cell.samples = {swapped};
  cell.detail = to_json(comparison);
}

}  // namespace

bench::Cell measure_model_cell(const ModelCellRequest& request) {
  const std::string how = fmt::format("tilewright model profile --model {}: what it calls", request.model);
  bench::CellKey key = request.key;
  key.stage = bench::Stage::Model;
  const auto not_run = [&](std::string reason) { return bench::not_run(key, std::move(reason), how); };
  const auto dtypes = bench::parse_dtypes(key.subject.dtype);
  if (!dtypes) return not_run(dtypes.error().message);
  const auto workload = bench::parse_workload(key.subject.shape, *dtypes);
  auto config = decoder_size(request.model);
  if (!config) return not_run(config.error().message);
  const std::string absent = fmt::format("operator not in {}", request.model);
  if (!workload || *dtypes != bench::DTypes{}) return not_run(absent);
  auto library = open_library_operators(request.threads, request.python);
  if (!library) return not_run(library.error().message);
  auto decoder = Decoder::make(*config, std::make_shared<Weights>(random_decoder_weights(*config, request.seed)));
  if (!decoder) return not_run(decoder.error().message);

  const int64_t rows = request.prompt_tokens ? request.prompt_tokens : implied_rows(*workload);
  RunShape shape{random_prompt(*config, std::clamp<int64_t>(rows, 1, config->max_positions / 2), request.seed), 8};
  CountingOperators counting(**library, key.subject.shape);
  if (auto run = run_once(*decoder, shape, counting); !run) return not_run(run.error().message);
  if (counting.calls() == 0) return not_run(absent);

  const std::string operation(bench::info(workload->operation).name);
  const SwapOptions swap{operation, request.make, request.open, true};
  auto comparison = compare_models(*decoder, **library, swap, {shape, request.rounds, request.seed, {}});
  if (!comparison) {
    const bool refused = comparison.error().code == DiagnosticCode::E3201;
    return refused ? not_run(comparison.error().message) : bench::failed(key, comparison.error().message);
  }
  bench::Cell cell = bench::not_run(key, "");
  cell.how_to_run.clear();
  fill(*comparison, cell);
  cell.detail["model"] = request.model;
  cell.detail["share"] = comparison->operator_share;
  cell.detail["calls_per_run"] = counting.calls();
  cell.detail["prompt_tokens"] = shape.prompt.size();
  return cell;
}

}  // namespace tilewright::models
