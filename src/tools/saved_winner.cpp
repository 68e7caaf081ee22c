#include "tools/saved_winner.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace tilewright::tools {

Result<bench::Workload> parse_workload_text(const std::string& shape, const std::string& dtype,
                                            const nlohmann::json& question) {
  const Result<bench::DTypes> dtypes = bench::parse_dtypes(dtype);
  if (!dtypes) return std::unexpected(dtypes.error());
  if (question.is_null()) return bench::parse_workload(shape, *dtypes);
  auto stated = bench::parse_question(question);
  if (!stated) return std::unexpected(stated.error());
  return bench::parse_workload(shape, *dtypes, {}, std::move(*stated));
}

Result<nlohmann::json> read_space(const std::string& path) {
  if (path.empty()) {
    return fail(DiagnosticCode::E1650, "no space was named",
                R"(--space FILE with {"params": [{"name": "block_M", "values": [64, 128]}]})");
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) return fail(DiagnosticCode::E1643, fmt::format("cannot read the space '{}'", path), "name it with --space");
  nlohmann::json json = nlohmann::json::parse(in, nullptr, false);
  if (json.is_discarded()) return fail(DiagnosticCode::E1650, fmt::format("'{}' is not JSON", path));
  return json;
}

Result<SavedWinner> open_winner(const tune::BestBucket& bucket, const candidate::Kinds& kinds,
                                const WinnerPlaces& places) {
  const auto recorded = [&](const char* field, const std::string& now) {
    return now.empty() ? bucket.made_from.value(field, "") : now;
  };
  std::string spelling = recorded("candidate", places.candidate);
  const size_t end = spelling.find(".tile");
  if (!places.kernel_file.empty() && spelling.starts_with("tile:") && end != std::string::npos)
    spelling = "tile:" + places.kernel_file + spelling.substr(end + 5);
  const Result<bench::Workload> workload =
      parse_workload_text(bucket.made_from.value("shape", ""), bucket.made_from.value("dtype", ""),
                          bucket.made_from.value("question", nlohmann::json()));
  if (!workload) return std::unexpected(workload.error());
  const nlohmann::json word = bucket.made_from.value("space", nlohmann::json(""));
  const bool is_inside = places.space.empty() && word.is_object();
  const std::string file = !places.space.empty() ? places.space : word.is_string() ? word.get<std::string>() : "";
  const Result<nlohmann::json> text = is_inside ? Result<nlohmann::json>(word) : read_space(file);
  if (!text) return std::unexpected(text.error());
  Result<tune::Space> space = tune::Space::from_json(*text, workload->dims);
  if (!space) return std::unexpected(space.error());
  auto runner = std::make_unique<bench::CandidateTrials>(
      kinds, bench::CandidateTrialsOptions{.spelling = spelling,
                                           .workload = *workload,
                                           .threads = places.threads,
                                           .scratch = (std::filesystem::path(places.out) / "trial-cache").string()});
  return SavedWinner{std::move(*space), std::move(runner)};
}

dispatch::Pinned open_pinned(const std::string& best, const candidate::Kinds& kinds, const WinnerPlaces& places) {
  return dispatch::Pinned::open(best, [&](const tune::BestBucket& bucket) -> Result<dispatch::Here> {
    const Result<SavedWinner> winner = open_winner(bucket, kinds, places);
    if (!winner) return std::unexpected(winner.error());
    return dispatch::Here{winner->runner->identity(), winner->space.digest()};
  });
}

dispatch::Dims dims_of(const bench::Workload& workload) { return {workload.dims.begin(), workload.dims.end()}; }

}  // namespace tilewright::tools
