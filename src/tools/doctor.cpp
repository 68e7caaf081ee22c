// `tilewright doctor`: can this machine measure, what would disturb it, and which candidates can be opened.
#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "bench/doctor.h"
#include "candidate/worker.h"
#include "measure/machine.h"
#include "tools/command.h"

namespace tilewright::tools {
namespace {

const char* mark(bench::Severe severe) {
  switch (severe) {
    case bench::Severe::Fine: return "ok  ";
    case bench::Severe::Warning: return "WARN";
    case bench::Severe::Broken: return "FAIL";
  }
  return "";
}

struct Options {
  bool json = false;
};

/// Opening a worker takes seconds for the big frameworks, which is why bench does not do this for all of them.
std::string try_worker(const Session& session, const std::string& name) {
  auto made = session.kinds.make("worker:" + name);
  if (!made) return made.error().message;
  const Status opened = (*made)->open({.threads = 1, .timeout = std::chrono::milliseconds(60'000)});
  if (!opened) {
    // "worker triton: triton computes on cuda, not on cpu": the line has its name already.
    std::string message = opened.error().message;
    if (const std::string own = "worker " + name + ": "; message.starts_with(own)) message.erase(0, own.size());
    return message + (opened.error().help.empty() ? "" : " → " + opened.error().help);
  }
  return "ready, version " + (*made)->identity().version;
}

}  // namespace

Run add_doctor(CLI::App& app, Session& session) {
  auto options = std::make_shared<Options>();
  app.add_flag("--json", options->json, "print as JSON");
  app.footer("Examples:\n  tilewright doctor\n  tilewright doctor --json\nExit codes: 0 can measure · 1 cannot");
  return [&session, options]() -> Result<ExitCode> {
    const auto lines = bench::examine_machine(measure::usable_cpus());
    nlohmann::json json{
        {"checks", nlohmann::json::array()}, {"workers", nlohmann::json::object()}, {"kinds", session.kinds.list()}};
    bool is_broken = false;
    for (const bench::DoctorLine& line : lines) {
      is_broken |= line.severe == bench::Severe::Broken;
      json["checks"].push_back(
          {{"what", line.what}, {"advice", line.advice}, {"ok", line.severe == bench::Severe::Fine}});
      if (!options->json)
        fmt::print("{} {}{}\n", mark(line.severe), line.what, line.advice.empty() ? "" : " → " + line.advice);
    }
    for (const std::string& name : candidate::list_workers(session.workers.folder)) {
      const std::string state = try_worker(session, name);
      json["workers"][name] = state;
      if (!options->json) fmt::print("{} worker:{} {}\n", state.starts_with("ready") ? "ok  " : "--  ", name, state);
    }
    if (options->json)
      fmt::print("{}\n", json.dump(2));
    else
      for (const auto& [kind, what] : session.kinds.list()) fmt::print("ok   candidates {}:… are {}\n", kind, what);
    return is_broken ? ExitCode::Internal : ExitCode::Ok;
  };
}

}  // namespace tilewright::tools
