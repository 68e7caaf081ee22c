#include "bench/stage_runner.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <random>
#include <utility>

#include "candidate/child_process.h"
#include "measure/clock.h"

namespace tilewright::bench {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

std::map<std::string, std::optional<std::string>> stage_environment(const StageRequest& request) {
  std::map<std::string, std::optional<std::string>> env;
  const std::string threads = std::to_string(request.threads);
  for (const char* name : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"})
    env[name] = threads;
  env["OPENBLAS_CORETYPE"] = std::nullopt;
  if (request.without_driver_cache) env["CUDA_CACHE_DISABLE"] = "1";
  if (request.cache_dir.empty()) return env;
  for (const char* name : {"XDG_CACHE_HOME", "TMPDIR", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR",
                           "TILELANG_CACHE_DIR", "CUDA_CACHE_PATH"}) {
    env[name] = request.cache_dir;
  }
  return env;
}

std::string make_token() {
  std::random_device source;
  return fmt::format("{:08x}{:08x}", source(), source());
}

}  // namespace

Result<PrivateFolder> PrivateFolder::create(const fs::path& parent, const std::string& name) {
  std::error_code error;
  fs::create_directories(parent, error);
  std::string pattern = (parent / (name + "-XXXXXX")).string();
  if (::mkdtemp(pattern.data()) == nullptr) {
    return fail(DiagnosticCode::E3301,
                fmt::format("cannot create a folder in {}: {}", parent.string(), std::strerror(errno)));
  }
  PrivateFolder out;
  out.path_ = fs::absolute(pattern, error);
  return out;
}

PrivateFolder::PrivateFolder(PrivateFolder&& other) noexcept { *this = std::move(other); }

PrivateFolder& PrivateFolder::operator=(PrivateFolder&& other) noexcept {
  std::swap(path_, other.path_);
  return *this;
}

PrivateFolder::~PrivateFolder() {
  std::error_code error;
  if (!path_.empty()) fs::remove_all(path_, error);
}

int64_t PrivateFolder::byte_count() const {
  int64_t total = 0;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(path_, error)) {
    if (entry.is_regular_file(error)) total += static_cast<int64_t>(entry.file_size(error));
  }
  return total;
}

Result<StageOutcome> StageRunner::run(const StageRequest& request,
                                      const std::function<void(const json&)>& on_part) const {
  StageOutcome out;
  const int64_t start = measure::kernel_ns();
  auto child = candidate::ChildProcess::start({.argv = {executable_, "stage"}, .env = stage_environment(request)});
  if (!child) return std::unexpected(child.error());
  StageRequest signed_request = request;
  signed_request.token = make_token();
  if (auto sent = child->send_line(to_json(signed_request).dump()); !sent) return std::unexpected(sent.error());
  child->close_input();
  std::string last_step = "start";
  while (true) {
    auto line = child->read_line(last_step == "oracle" ? 10 * step_timeout_ : step_timeout_);
    const int64_t now = measure::kernel_ns();
    if (!line) {
      Diagnostic died = line.error();
      // The child is this binary; what ran in it is what the reader knows.
      const std::string who = request.candidate.empty() ? fmt::format("the '{}' stage", name(request.kind))
                                                        : "the process of " + request.candidate;
      if (died.message.starts_with(executable_)) died.message.replace(0, executable_.size(), who);
      died.message = fmt::format("after step '{}': {}", last_step, died.message);
      return std::unexpected(died);
    }
    const json event = json::parse(*line, nullptr, false);
    if (!event.is_object() || event.value("token", "") != signed_request.token) {
      child->kill();
      return fail(DiagnosticCode::E3205,
                  "forged-answer: something in the stage's process wrote to the channel of its results");
    }
    const std::string kind = event.is_object() ? event.value("event", "") : "";
    if (kind == "mark") out.mark_ms[event.value("name", "")] = static_cast<double>(now - start) * 1e-6;
    if (kind == "step") last_step = event.value("name", "");
    if (kind == "step" && on_step_) on_step_();
    if (kind == "part" && on_part) on_part(event);
    if (kind == "error") return std::unexpected(parse_diagnostic(event));
    if (kind != "result") continue;
    out.result = event;
    child->wait(step_timeout_);
    return out;
  }
}

}  // namespace tilewright::bench
