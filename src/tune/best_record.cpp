#include "tune/best_record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>

#include "base/hash.h"

namespace tilewright::tune {
namespace {

using nlohmann::json;

constexpr int kSchema = 1;
constexpr const char* kRetune = "tune again; dispatch uses the fallback until then";

json bucket_json(const BestBucket& bucket) {
  return {{"when", bucket.when},
          {"dims", bucket.dims},
          {"made_from", bucket.made_from},
          {"identity", to_json(bucket.identity)},
          {"space", bucket.space_digest},
          {"config", to_json(bucket.config)},
          {"median_ms", bucket.median_ms},
          {"ci_ms", {bucket.ci_low_ms, bucket.ci_high_ms}},
          {"processes", bucket.processes},
          {"samples", bucket.samples},
          {"artefact_digest", bucket.artefact_digest},
          {"output_digest", bucket.output_digest},
          {"default_median_ms", bucket.default_median_ms},
          {"incumbent_kept", bucket.incumbent_kept},
          {"why", bucket.why},
          {"weight", bucket.weight}};
}

Result<BestBucket> bucket_from_json(const json& entry) {
  BestBucket bucket;
  Result<Identity> identity = identity_from_json(entry.at("identity"));
  if (!identity) return std::unexpected(identity.error());
  Result<Config> config = config_from_json(entry.at("config"));
  if (!config) return std::unexpected(config.error());
  bucket.when = entry.at("when").get<std::string>();
  bucket.dims = entry.at("dims");
  bucket.made_from = entry.at("made_from");
  bucket.identity = std::move(*identity);
  bucket.space_digest = entry.at("space").get<std::string>();
  bucket.config = std::move(*config);
  bucket.median_ms = entry.at("median_ms").get<double>();
  bucket.ci_low_ms = entry.at("ci_ms").at(0).get<double>();
  bucket.ci_high_ms = entry.at("ci_ms").at(1).get<double>();
  bucket.processes = entry.at("processes").get<int>();
  bucket.samples = entry.at("samples").get<int64_t>();
  bucket.artefact_digest = entry.at("artefact_digest").get<std::string>();
  bucket.output_digest = entry.at("output_digest").get<std::string>();
  bucket.default_median_ms = entry.at("default_median_ms").get<double>();
  bucket.incumbent_kept = entry.at("incumbent_kept").get<bool>();
  bucket.why = entry.at("why").get<std::string>();
  bucket.weight = entry.at("weight").get<double>();
  return bucket;
}

json body_json(const BestRecord& record) {
  json buckets = json::array();
  for (const BestBucket& bucket : record.buckets) buckets.push_back(bucket_json(bucket));
  return {{"kind", "tune-best"},
          {"schema", kSchema},
          {"buckets", std::move(buckets)},
          {"cost",
           {{"trials", record.cost.trials},
            {"points", record.cost.points},
            {"pruned", record.cost.pruned},
            {"wall_ms", record.cost.wall_ms},
            {"compile_ms", record.cost.compile_ms},
            {"seed", record.cost.seed},
            {"states", record.cost.states}}},
          {"delta", record.delta},
          {"traffic", record.traffic}};
}

std::unexpected<Diagnostic> refuse(std::string message) {
  return fail(DiagnosticCode::E1653, std::move(message), kRetune);
}

Result<BestRecord> record_from_json(const json& body) {
  BestRecord record;
  for (const json& entry : body.at("buckets")) {
    Result<BestBucket> bucket = bucket_from_json(entry);
    if (!bucket) return std::unexpected(bucket.error());
    record.buckets.push_back(std::move(*bucket));
  }
  const json& cost = body.at("cost");
  record.cost = {cost.at("trials").get<int64_t>(),
                 cost.at("points").get<int64_t>(),
                 cost.at("pruned").get<int64_t>(),
                 cost.at("wall_ms").get<double>(),
                 cost.at("compile_ms").get<double>(),
                 cost.at("seed").get<uint64_t>(),
                 cost.at("states").get<std::map<std::string, int64_t>>()};
  record.delta = body.at("delta").get<double>();
  record.traffic = body.at("traffic");
  return record;
}

}  // namespace

const BestBucket* BestRecord::find(const std::vector<std::pair<std::string, int64_t>>& dims) const {
  std::vector<std::pair<std::string, Value>> values(dims.begin(), dims.end());
  const Config bindings(std::move(values));
  for (const BestBucket& bucket : buckets) {
    if (bucket.when.empty()) return &bucket;
    const Result<Constraint> condition = Constraint::parse(bucket.when);
    if (condition && condition->holds(bindings).value_or(false)) return &bucket;
  }
  return nullptr;
}

BestBucket make_bucket(const TuneOutcome& outcome, const Identity& identity, const Space& space) {
  BestBucket bucket;
  bucket.identity = identity;
  bucket.space_digest = space.digest();
  bucket.config = outcome.winner.config;
  bucket.median_ms = outcome.confirmed.value;
  bucket.ci_low_ms = outcome.confirmed.interval ? outcome.confirmed.interval->low : outcome.winner.ci_low_ms;
  bucket.ci_high_ms = outcome.confirmed.interval ? outcome.confirmed.interval->high : outcome.winner.ci_high_ms;
  bucket.processes = static_cast<int>(outcome.confirmed.process_medians.size());
  bucket.samples = outcome.confirmed.samples;
  bucket.artefact_digest = outcome.winner.artefact_digest;
  bucket.output_digest = outcome.winner.output_digest;
  bucket.default_median_ms = outcome.confirmed_default.value;
  bucket.incumbent_kept = outcome.runoff.incumbent_kept;
  bucket.why = outcome.runoff.why;
  return bucket;
}

std::string record_digest(const BestRecord& record) { return sha256_hex(body_json(record).dump(2)); }

std::string write_record(const BestRecord& record) {
  json body = body_json(record);
  body["digest"] = sha256_hex(body.dump(2));
  return body.dump(2) + "\n";
}

Result<BestRecord> read_record(const std::string& text) {
  json body = json::parse(text, nullptr, false);
  if (!body.is_object() || body.value("kind", json()) != "tune-best") return refuse("this is not a record of tuning");
  if (body.value("schema", json()) != kSchema)
    return refuse(
        fmt::format("the record's schema is {}, this build reads {}", body.value("schema", json()).dump(), kSchema));
  if (body.dump(2) + "\n" != text) return refuse("the record's text is not as it was written");
  const json stored = body.value("digest", json());
  body.erase("digest");
  const std::string actual = sha256_hex(body.dump(2));
  if (stored != actual)
    return refuse(fmt::format("the record was changed: its digest says {}, its content gives {}",
                              stored.dump().substr(0, 17), actual.substr(0, 16)));
  try {
    return record_from_json(body);
  } catch (const json::exception& error) {
    return refuse(fmt::format("the record is incomplete: {}", error.what()));
  }
}

Result<BestRecord> load_record(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return fail(DiagnosticCode::E3300, fmt::format("cannot open {}", path.string()));
  return read_record({std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()});
}

Status verify_bucket(const BestBucket& bucket, const Identity& here, const std::string& space_digest) {
  std::vector<std::string> differing = differences(bucket.identity, here);
  if (bucket.space_digest != space_digest) {
    differing.push_back(
        fmt::format("space: recorded {}, here {}", bucket.space_digest.substr(0, 16), space_digest.substr(0, 16)));
  }
  if (differing.empty()) return {};
  return refuse(fmt::format("bucket '{}' is stale: {}", bucket.when, fmt::join(differing, "; ")));
}

Status verify_artefact(const BestBucket& bucket, const Space& space, TrialRunner& runner, const TrialLimits& limits) {
  const std::optional<size_t> point = space.find(bucket.config);
  if (!point)
    return refuse(fmt::format("bucket '{}': {} is not a point of the space", bucket.when, to_string(bucket.config)));
  Trial seen;
  const Result<measure::ProcessSummary> once = measure_in_processes(space, runner, *point, 1, limits, &seen);
  if (!once) return refuse(fmt::format("bucket '{}': {}", bucket.when, once.error().message));
  const auto compare = [&](const char* what, const std::string& recorded, const std::string& here) -> Status {
    if (recorded == here) return {};
    return refuse(fmt::format("bucket '{}': the {} changed: recorded {}, here {}", bucket.when, what,
                              recorded.substr(0, 16), here.substr(0, 16)));
  };
  if (Status status = compare("artefact", bucket.artefact_digest, seen.artefact_digest); !status) return status;
  return compare("output's bits", bucket.output_digest, seen.output_digest);
}

Result<ReplayResult> replay_bucket(const BestBucket& bucket, const Space& space, TrialRunner& runner,
                                   const TrialLimits& limits, double delta) {
  const std::optional<size_t> point = space.find(bucket.config);
  if (!point)
    return refuse(fmt::format("bucket '{}': {} is not a point of the space", bucket.when, to_string(bucket.config)));
  Result<measure::ProcessSummary> now =
      measure_in_processes(space, runner, *point, std::max(1, bucket.processes), limits);
  if (!now) return std::unexpected(now.error());
  ReplayResult result{std::move(*now), bucket.ci_low_ms / (1 + delta), bucket.ci_high_ms * (1 + delta), false};
  result.is_inside = result.now.value >= result.low_ms && result.now.value <= result.high_ms;
  return result;
}

}  // namespace tilewright::tune
