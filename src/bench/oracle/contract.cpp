#include "bench/oracle/contract.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>

#include "base/hash.h"

namespace tilewright::bench {
namespace {

using Json = nlohmann::json;

Json args_json(const Workload& workload) {
  Json args = Json::array();
  for (const Argument& arg : arguments(workload)) {
    args.push_back({{"name", arg.name},
                    {"dtype", name(arg.dtype)},
                    {"shape", arg.shape},
                    {"strides", arg.strides()},
                    {"role", arg.is_output() ? "out" : "in"}});
  }
  return args;
}

void add_attention(const Workload& w, Json& contract) {
  const MaskBitmap bitmap = build_bitmap(w.mask, w.dim("B"), w.dim("SQ"), w.dim("SK"), w.lengths);
  contract["scale"] = attention_scale(w);
  contract["mask"] = {{"spec", to_string(w.mask)}, {"digest", bitmap.digest}, {"valid_pairs", bitmap.valid_pairs}};
  contract["lengths"] = nullptr;
  if (w.lengths.empty()) return;
  Json lengths = Json::array();
  for (const SequenceLengths& l : w.lengths) lengths.push_back({l.q, l.k});
  contract["lengths"] = std::move(lengths);
}

void collect_differences(const Json& a, const Json& b, const std::string& path, std::vector<std::string>& out) {
  if (a == b) return;
  const auto child = [&](const std::string& key) { return path.empty() ? key : path + "." + key; };
  if (a.is_object() && b.is_object()) {
    Json keys = a;
    keys.update(b);
    for (const auto& [key, unused] : keys.items()) {
      collect_differences(a.contains(key) ? a[key] : Json(), b.contains(key) ? b[key] : Json(), child(key), out);
    }
  } else if (a.is_array() && b.is_array() && a.size() == b.size() && !a.empty() && a[0].is_object()) {
    for (size_t i = 0; i < a.size(); ++i) collect_differences(a[i], b[i], child(std::to_string(i)), out);
  } else {
    out.push_back(path);
  }
}

/// The value at a dotted path, as text; "?" when there is none.
std::string value_at(const Json& contract, const std::string& field) {
  std::string pointer = "/" + field;
  for (char& c : pointer) {
    if (c == '.') c = '/';
  }
  const Json::json_pointer at(pointer);
  if (!contract.contains(at)) return "?";
  const Json& value = contract[at];
  return value.is_string() ? value.get<std::string>() : value.dump();
}

}  // namespace

double attention_scale(const Workload& workload) { return 1.0 / std::sqrt(static_cast<double>(workload.dim("D"))); }

Json contract_json(const Workload& w, const ContractOptions& options) {
  Json contract = {{"version", 1},
                   {"op", info(w.operation).name},
                   {"key", workload_key(w)},
                   {"variant", w.variant},
                   {"epilogue", to_string(w.epilogue)},
                   {"dtypes", {{"in", name(w.dtypes.in)}, {"acc", name(w.dtypes.acc)}, {"out", name(w.dtypes.out)}}},
                   {"args", args_json(w)},
                   {"math", options.math},
                   {"device", options.device},
                   {"data", {{"distribution", name(options.data.distribution)}, {"seed", options.data.seed}}}};
  Json dims = Json::object();
  for (const auto& [dim, value] : w.dims) dims[dim] = value;
  contract["dims"] = std::move(dims);
  if (w.operation == Operation::Attention) add_attention(w, contract);
  if (w.operation == Operation::Kernel) contract["kernel"] = to_json(w.question);
  if (w.operation == Operation::RmsNorm || w.operation == Operation::LayerNorm) contract["eps"] = kNormEpsilon;
  return contract;
}

candidate::ContractText contract_text(const Workload& workload, const ContractOptions& options) {
  std::string json = contract_json(workload, options).dump();
  std::string digest = sha256_hex(json);
  return {std::move(json), std::move(digest)};
}

Result<Workload> workload_of(const Json& contract) {
  const auto text = [](const Json& parent, const char* key) -> std::string {
    return parent.is_object() && parent.contains(key) && parent[key].is_string() ? parent[key].get<std::string>() : "";
  };
  if (!contract.is_object() || !contract.contains("dtypes")) {
    return fail(DiagnosticCode::E1605, "the contract is not an object with key and dtypes");
  }
  const Json& d = contract["dtypes"];
  auto dtypes = parse_dtypes(fmt::format("{}/{}/{}", text(d, "in"), text(d, "acc"), text(d, "out")));
  if (!dtypes) return std::unexpected(dtypes.error());
  std::vector<SequenceLengths> lengths;
  if (contract.contains("lengths") && contract["lengths"].is_array()) {
    for (const Json& pair : contract["lengths"]) {
      if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number_integer() || !pair[1].is_number_integer()) {
        return fail(DiagnosticCode::E1605, "the contract's lengths are not [q, k] pairs");
      }
      lengths.push_back({pair[0].get<int64_t>(), pair[1].get<int64_t>()});
    }
  }
  KernelQuestion question;
  if (contract.contains("kernel")) {
    auto stated = parse_question(contract["kernel"]);
    if (!stated) return std::unexpected(stated.error());
    question = std::move(*stated);
  }
  return parse_workload(text(contract, "key"), *dtypes, std::move(lengths), std::move(question));
}

std::vector<std::string> differing_fields(const Json& reference, const Json& other) {
  std::vector<std::string> out;
  collect_differences(reference, other, "", out);
  return out;
}

std::optional<std::string> unfair_field(const candidate::ContractText& contract, const candidate::Echo& echo) {
  if (!echo.differing.empty()) return echo.differing.begin()->first;
  if (echo.digest == contract.digest) return std::nullopt;
  return "digest";
}

Status check_fair(const candidate::ContractText& contract, const candidate::Echo& echo,
                  const std::string& candidate_name) {
  const auto field = unfair_field(contract, echo);
  if (!field) return {};
  const Json json = Json::parse(contract.json, nullptr, /*allow_exceptions=*/false);
  const auto differing = echo.differing.find(*field);
  const std::string got = differing == echo.differing.end() ? echo.digest : differing->second;
  const std::string expected = *field == "digest" ? contract.digest : value_at(json, *field);
  return fail(DiagnosticCode::E1606,
              fmt::format("unfair:{}: the contract says {}, {} does {}", *field, expected, candidate_name, got),
              "compare only what computes the same thing; change the workload or the candidate");
}

}  // namespace tilewright::bench
