#include "tune/trial_log.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <utility>

namespace tilewright::tune {
namespace {

constexpr int kSchema = 1;

nlohmann::json header_json(const LogHeader& header) {
  return {{"kind", "tune-log"},
          {"schema", kSchema},
          {"identity", to_json(header.identity)},
          {"space", header.space_digest},
          {"seed", header.seed}};
}

Status check_header(const nlohmann::json& found, const LogHeader& header, const std::string& path) {
  if (!found.is_object() || found.value("kind", "") != "tune-log" || found.value("schema", 0) != kSchema) {
    return fail(DiagnosticCode::E1652, fmt::format("'{}' does not begin with the header of a tuning log", path),
                "name another file with --log");
  }
  const Result<Identity> identity = identity_from_json(found.value("identity", nlohmann::json()));
  if (!identity) return std::unexpected(identity.error());
  std::vector<std::string> differing = differences(*identity, header.identity);
  if (found.value("space", "") != header.space_digest) {
    differing.push_back(fmt::format("space: recorded {}, here {}", found.value("space", "").substr(0, 16),
                                    header.space_digest.substr(0, 16)));
  }
  if (found.value("seed", uint64_t{0}) != header.seed) {
    differing.push_back(fmt::format("seed: recorded {}, here {}", found.value("seed", uint64_t{0}), header.seed));
  }
  if (differing.empty()) return {};
  return fail(DiagnosticCode::E1651,
              fmt::format("'{}' belongs to another tuning: {}", path, fmt::join(differing, "; ")),
              "name another file with --log, or move this one away");
}

}  // namespace

Result<TrialLog> TrialLog::open(const std::filesystem::path& path, const LogHeader& header) {
  Result<LineLog> lines = LineLog::open(path);
  if (!lines) return std::unexpected(lines.error());
  TrialLog log(std::move(*lines));
  int number = 0;
  for (const std::string& text : log.lines_.lines()) {
    const nlohmann::json line = nlohmann::json::parse(text, nullptr, false);
    if (++number == 1) {
      if (Status status = check_header(line, header, path.string()); !status) return std::unexpected(status.error());
      continue;
    }
    Result<Trial> trial = trial_from_json(line);
    if (!trial) {
      trial.error().location = {std::make_shared<const std::string>(path.string()), number, 1, 1, nullptr};
      return std::unexpected(trial.error());
    }
    log.resumed_.push_back(std::move(*trial));
  }
  if (number == 0) {
    if (Status status = log.lines_.append(header_json(header).dump()); !status) return std::unexpected(status.error());
  }
  return log;
}

Status TrialLog::append(const Trial& trial) { return lines_.append(to_json(trial).dump()); }

}  // namespace tilewright::tune
