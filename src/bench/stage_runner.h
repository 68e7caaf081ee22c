// The parent's side of a stage: starts a fresh child of this binary, gives it one request, listens, times, and ends it.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "bench/stage_message.h"

namespace tilewright::bench {

struct StageOutcome {
  nlohmann::json result;
  std::map<std::string, double> mark_ms;  ///< parent's clock, since just before the fork
};

/// A folder of its own, empty, removed with everything in it at the end.
class PrivateFolder {
 public:
  static Result<PrivateFolder> create(const std::filesystem::path& parent, const std::string& name);
  PrivateFolder(PrivateFolder&& other) noexcept;
  PrivateFolder& operator=(PrivateFolder&& other) noexcept;
  ~PrivateFolder();
  const std::filesystem::path& path() const { return path_; }
  int64_t byte_count() const;  ///< of all files in it

 private:
  PrivateFolder() = default;
  std::filesystem::path path_;
};

class StageRunner {
 public:
  /// `step_timeout` is how long a child may be silent; the oracle gets ten times as much.
  StageRunner(std::string executable, std::chrono::milliseconds step_timeout, std::function<void()> on_step)
      : executable_(std::move(executable)), step_timeout_(step_timeout), on_step_(std::move(on_step)) {}

  /// Every cache a framework may keep is pointed into `request.cache_dir`. A child that dies or is killed is E3202 or
  /// E3203.
  /// `on_part` gets every part of the result when the child has it.
  Result<StageOutcome> run(const StageRequest& request,
                           const std::function<void(const nlohmann::json&)>& on_part = {}) const;

 private:
  std::string executable_;
  std::chrono::milliseconds step_timeout_;
  std::function<void()> on_step_;
};

}  // namespace tilewright::bench
