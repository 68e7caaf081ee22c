// A libFuzzer target over the files users and other programs hand to the measuring side: tensors (.npy, .safetensors),
// cells, tables, traces, claims, objectives, bucket policies, tuning spaces, constraints, trials and best records. The
// first byte chooses the reader. What is accepted must be usable and, where it can be written, must read back as
// itself. scripts/fuzz_readers.sh builds and runs it; tools_test replays the kept corpus.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "base/tensor_file.h"
#include "bench/decision/claims.h"
#include "bench/decision/objective.h"
#include "bench/record/cell.h"
#include "bench/record/table_csv.h"
#include "bench/traffic/key_policy.h"
#include "bench/traffic/trace.h"
#include "tune/best_record.h"
#include "tune/constraint.h"
#include "tune/space.h"
#include "tune/trial.h"

namespace {

using namespace tilewright;
using nlohmann::json;

void require(bool condition) {
  if (!condition) std::abort();
}

std::span<const std::byte> as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

/// Every file of JSON is parsed like this before its reader sees it.
json as_json(std::string_view text) { return json::parse(text, nullptr, false); }

void read_npy_bytes(std::string_view text) {
  const Result<HostTensor> tensor = parse_npy(as_bytes(text), "fuzz.npy");
  if (tensor) require(tensor->data.size() <= text.size());
}

void read_safetensors_bytes(std::string_view text) {
  const auto file = SafetensorsFile::parse(as_bytes(text), "fuzz.safetensors", nullptr);
  if (!file) return;
  for (const auto& [name, entry] : file->entries()) {
    require(entry.data.empty() || entry.data.data() >= as_bytes(text).data());
    require(entry.data.size() <= text.size());
    static_cast<void>(file->read(name));
  }
}

void read_cell(std::string_view text) {
  const json line = as_json(text);
  if (line.is_discarded()) return;
  const Result<bench::Cell> cell = bench::parse_cell(line);
  if (!cell) return;
  const Result<bench::Cell> again = bench::parse_cell(as_json(bench::to_json(*cell).dump()));
  require(again.has_value());
  require(bench::to_json(*again) == bench::to_json(*cell));
}

void read_table(std::string_view text) {
  const auto rows = bench::parse_table(text);
  if (!rows) return;
  require(bench::parse_table(bench::write_table(*rows)).has_value());
}

void read_trace(std::string_view text) {
  const auto trace = traffic::parse_trace(text, "fuzz.csv");
  if (!trace) return;
  double before = 0;
  for (const traffic::Request& request : trace->requests) {
    require(request.t_s >= before && request.prompt >= 1 && request.output >= 0);
    before = request.t_s;
  }
}

void read_claims(std::string_view text) {
  const auto table = decision::parse_claims(text, "fuzz.md", "f32");
  if (table) static_cast<void>(decision::lint_claims(*table, decision::Peak{1000, 1000}));
}

void read_objective(std::string_view text) { static_cast<void>(decision::parse_objective(text, "fuzz.json")); }

void read_policy(std::string_view text) {
  if (text.starts_with("buckets=")) return;  // names a file of the machine
  const auto policy = traffic::KeyPolicy::parse(std::string(text));
  if (!policy) return;
  for (const int64_t prompt : {int64_t{1}, int64_t{127}, int64_t{1} << 40}) require(policy->key(prompt) >= 1);
}

void read_space(std::string_view text) {
  const json value = as_json(text);
  if (value.is_discarded()) return;
  const auto space = tune::Space::from_json(value, {{"M", 128}});
  if (!space) return;
  for (size_t point = 0; point < space->points().size() && point < 64; ++point) {
    require(space->find(space->points()[point]) == point);
    static_cast<void>(space->neighbours(point));
  }
}

void read_constraint(std::string_view text) {
  const auto constraint = tune::Constraint::parse(std::string(text));
  if (constraint) static_cast<void>(constraint->holds(tune::Config{}));
}

void read_trial(std::string_view text) {
  const json value = as_json(text);
  if (!value.is_discarded()) static_cast<void>(tune::trial_from_json(value));
}

void read_best(std::string_view text) {
  const auto record = tune::read_record(std::string(text));
  if (!record) return;
  const auto again = tune::read_record(tune::write_record(*record));
  require(again.has_value() && tune::write_record(*again) == tune::write_record(*record));
}

constexpr void (*kReaders[])(std::string_view) = {
    read_npy_bytes, read_safetensors_bytes,
    read_cell,      read_table,
    read_trace,     read_claims,
    read_objective, read_policy,
    read_space,     read_constraint,
    read_trial,     read_best,
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  kReaders[data[0] % std::size(kReaders)](std::string_view(reinterpret_cast<const char*>(data) + 1, size - 1));
  return 0;
}
