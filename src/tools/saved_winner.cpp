#include "tools/saved_winner.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace tilewright::tools {

Result<bench::Workload> parse_workload_text(const std::string& shape, const std::string& dtype) {
  const Result<bench::DTypes> dtypes = bench::parse_dtypes(dtype);
  if (!dtypes) return std::unexpected(dtypes.error());
  return bench::parse_workload(shape, *dtypes);
}

Result<tune::Space> load_space(const std::string& path, const bench::Workload& workload) {
  if (path.empty()) {
    return fail(DiagnosticCode::E1650, "no space was named",
                R"(--space FILE with {"params": [{"name": "block_M", "values": [64, 128]}]})");
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) return fail(DiagnosticCode::E1643, fmt::format("cannot read the space '{}'", path), "name it with --space");
  const nlohmann::json json = nlohmann::json::parse(in, nullptr, false);
  if (json.is_discarded()) return fail(DiagnosticCode::E1650, fmt::format("'{}' is not JSON", path));
  return tune::Space::from_json(json, workload.dims);
}

Result<SavedWinner> open_winner(const tune::BestBucket& bucket, const candidate::Kinds& kinds,
                                const WinnerPlaces& places) {
  const auto recorded = [&](const char* field, const std::string& now) {
    return now.empty() ? bucket.made_from.value(field, "") : now;
  };
  const Result<bench::Workload> workload =
      parse_workload_text(bucket.made_from.value("shape", ""), bucket.made_from.value("dtype", ""));
  if (!workload) return std::unexpected(workload.error());
  Result<tune::Space> space = load_space(recorded("space", places.space), *workload);
  if (!space) return std::unexpected(space.error());
  auto runner = std::make_unique<bench::CandidateTrials>(
      kinds, bench::CandidateTrialsOptions{.spelling = recorded("candidate", places.candidate),
                                           .workload = *workload,
                                           .threads = places.threads,
                                           .scratch = (std::filesystem::path(places.out) / "trial-cache").string()});
  return SavedWinner{std::move(*space), std::move(runner)};
}

}  // namespace tilewright::tools
