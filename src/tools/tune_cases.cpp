#include "tools/tune_cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>

#include "bench/candidate_replay.h"
#include "bench/traffic/rare_keys.h"
#include "tools/saved_winner.h"
#include "tools/workload_options.h"

namespace tilewright::tools {
namespace {

using nlohmann::json;

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> out;
  for (size_t at = 0; at <= list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    out.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

Result<std::map<std::string, std::string>> assignments(const std::vector<std::string>& texts, const char* option) {
  std::map<std::string, std::string> out;
  for (const std::string& text : texts) {
    for (const std::string& piece : split(text)) {
      const size_t equals = piece.find('=');
      if (equals == std::string::npos || equals == 0) {
        return fail(DiagnosticCode::E1804, fmt::format("{}: '{}' is not NAME=VALUE", option, piece),
                    fmt::format("write {} NAME=VALUE", option));
      }
      out[piece.substr(0, equals)] = piece.substr(equals + 1);
    }
  }
  return out;
}

/// "M <= 128 and N == 64": the dimensions the key sets are upper bounds, the others exact.
std::string bucket_condition(const bench::Workload& workload, const std::vector<std::string>& bounded) {
  std::string text;
  for (const auto& [name, extent] : workload.dims) {
    const bool is_bounded = std::ranges::find(bounded, name) != bounded.end();
    text += fmt::format("{}{} {} {}", text.empty() ? "" : " and ", name, is_bounded ? "<=" : "==", extent);
  }
  return text;
}

/// Makes the cases of a candidate whose space is a file.
class Maker {
 public:
  Maker(const CaseWords& words, const Session& session) : words_(words), session_(session) {}

  Status prepare() {
    if (words_.candidate.empty()) {
      return fail(DiagnosticCode::E1600, "tune needs a kernel file, or a candidate and --op",
                  "tilewright tune kernels/matmul.tile --kernel matmul --dim M=512,N=512,K=512");
    }
    auto given = parse_sizes(words_.dims);
    if (!given) return std::unexpected(given.error());
    auto params = assignments(words_.params, "--param");
    if (!params) return std::unexpected(params.error());
    request_ = {words_.candidate, words_.kernel, *std::move(params), *std::move(given)};
    if (is_kernel_file(words_.candidate)) return find_tuner();
    if (words_.shape.empty()) {
      return fail(DiagnosticCode::E1600, "tune of a candidate needs --op",
                  "tilewright tune lib:./gemm.so --op gemm:512x512x512:nn --space space.json");
    }
    auto workload = parse_workload_text(words_.shape, words_.dtype);
    if (!workload) return std::unexpected(workload.error());
    workload_ = *std::move(workload);
    return {};
  }

  /// `key` 0: the shape as it was named.
  Result<TuneCase> make(int64_t key, double share) const {
    const std::vector<std::string> keyed = key == 0 ? std::vector<std::string>{} : split(words_.key_dim);
    auto made = is_kernel_file(words_.candidate) ? of_kernel(key, keyed) : of_candidate(key);
    if (!made) return made;
    made->key = key;
    made->share = share;
    made->when = bucket_condition(made->workload, key == 0 ? keyed : bounded_dims(made->workload, key));
    made->log = key == 0 ? "tune.jsonl" : fmt::format("tune-{}{}.jsonl", words_.key_dim, key);
    std::ranges::replace(made->log, ',', '-');
    return made;
  }

 private:
  Status find_tuner() const {
    if (session_.tune_kernel) return {};
    return fail(DiagnosticCode::E1600, fmt::format("{} is a kernel, and this build has no compiler", words_.candidate),
                "build with -DTILEWRIGHT_COMPILER=ON");
  }

  Result<TuneCase> of_kernel(int64_t key, const std::vector<std::string>& keyed) const {
    KernelTuningRequest request = request_;
    for (const std::string& dim : keyed) request.dims[dim] = key;
    auto tuning = session_.tune_kernel(request);
    if (!tuning) return std::unexpected(tuning.error());
    TuneCase one{.candidate = tuning->candidate, .workload = tuning->workload, .when = {}, .log = {}, .prune = {}};
    one.fixed = tuning->fixed;
    one.space = one.space_word = tuning->space;
    one.prune = tuning->prune;
    if (words_.space.empty()) return one;
    return with_file(std::move(one));
  }

  Result<TuneCase> of_candidate(int64_t key) const {
    TuneCase one{.candidate = words_.candidate, .workload = workload_, .when = {}, .log = {}, .prune = {}};
    if (key != 0) bench::set_key_dims(one.workload, words_.key_dim, key);
    return with_file(std::move(one));
  }

  Result<TuneCase> with_file(TuneCase one) const {
    auto space = read_space(words_.space);
    if (!space) return std::unexpected(space.error());
    one.space = *std::move(space);
    one.space_word = words_.space;
    return one;
  }

  /// The kernel may name the keyed dimensions otherwise than the workload does: they are those whose extent is the key.
  std::vector<std::string> bounded_dims(const bench::Workload& workload, int64_t key) const {
    std::vector<std::string> named = split(words_.key_dim), out;
    const bool is_file = is_kernel_file(words_.candidate);
    for (const auto& [name, extent] : workload.dims) {
      if (std::ranges::find(named, name) != named.end() || (is_file && extent == key && is_sequence(name)))
        out.push_back(name);
    }
    return out;
  }
  static bool is_sequence(const std::string& dim) { return dim == "SQ" || dim == "SK"; }

  const CaseWords& words_;
  const Session& session_;
  KernelTuningRequest request_;
  bench::Workload workload_;
};

/// A snapshot, or one made of a trace.
Result<json> snapshot_of(const CaseWords& words) {
  std::ifstream in(words.traffic, std::ios::binary);
  if (!in) return fail(DiagnosticCode::E1643, fmt::format("cannot read '{}'", words.traffic), "check the path");
  json snapshot = json::parse(in, nullptr, false);
  if (snapshot.is_object() && snapshot.value("kind", "") == "traffic-snapshot") return snapshot;
  const Result<traffic::Trace> trace = traffic::load_trace(words.traffic);
  if (!trace) return std::unexpected(trace.error());
  const Result<traffic::KeyPolicy> policy = traffic::KeyPolicy::parse(words.policy);
  if (!policy) return std::unexpected(policy.error());
  return traffic::snapshot(*trace, *policy);
}

/// The heaviest keys of the traffic, by tokens served, ascending: key and share.
std::vector<std::pair<int64_t, double>> heaviest(const json& snapshot, int most) {
  std::vector<std::pair<int64_t, double>> keys;
  for (const json& key : snapshot["keys"]) keys.emplace_back(key.value("key", int64_t{0}), key.value("share", 0.0));
  std::ranges::sort(keys, std::greater<>(), [](const auto& k) { return k.second * static_cast<double>(k.first); });
  keys.resize(std::min(keys.size(), static_cast<size_t>(most)));
  std::ranges::sort(keys);
  return keys;
}

}  // namespace

Result<std::map<std::string, int64_t>> parse_sizes(const std::vector<std::string>& texts) {
  const auto words = assignments(texts, "--dim");
  if (!words) return std::unexpected(words.error());
  std::map<std::string, int64_t> out;
  for (const auto& [name, text] : *words) {
    int64_t& value = out[name];
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) {
      return fail(DiagnosticCode::E1804, fmt::format("--dim {}: '{}' is not a whole number", name, text),
                  "write --dim M=1000,N=777");
    }
  }
  return out;
}

bool is_kernel_file(const std::string& candidate) {
  return candidate.ends_with(".tile") && candidate.find(':') == std::string::npos;
}

Result<CaseList> make_cases(const CaseWords& words, const Session& session) {
  Maker maker(words, session);
  if (Status status = maker.prepare(); !status) return std::unexpected(status.error());
  CaseList out;
  std::vector<std::pair<int64_t, double>> keys = {{0, 1.0}};
  if (!words.traffic.empty()) {
    const Result<json> snapshot = snapshot_of(words);
    if (!snapshot) return std::unexpected(snapshot.error());
    keys = heaviest(*snapshot, words.most_cases);
    if (const double span = snapshot->value("span_s", 0.0); span > 0)
      out.requests_per_s = snapshot->value("requests", 0.0) / span;
    out.traffic = {{"trace", snapshot->value("trace", "")},
                   {"trace_sha256", snapshot->value("trace_sha256", "")},
                   {"policy", snapshot->value("policy", "")}};
  }
  for (const auto& [key, share] : keys) {
    Result<TuneCase> one = maker.make(key, share);
    if (!one) return std::unexpected(one.error());
    out.cases.push_back(*std::move(one));
  }
  return out;
}

}  // namespace tilewright::tools
