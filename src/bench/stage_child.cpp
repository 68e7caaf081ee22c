#include "bench/stage_child.h"

#include <fmt/core.h>
#include <unistd.h>

#include <iostream>
#include <string>

#include "bench/foreign_code.h"
#include "bench/roofline.h"
#include "bench/stage_check.h"
#include "bench/stage_contest.h"
#include "bench/stage_pair.h"
#include "bench/stage_race.h"
#include "bench/stage_setup.h"
#include "bench/stage_sustained.h"
#include "bench/stage_timing.h"
#include "measure/machine.h"
#include "measure/memory.h"

namespace tilewright::bench {
namespace {

using nlohmann::json;

json identity_json(const candidate::Candidate& candidate) {
  const candidate::Identity identity = candidate.identity();
  return {{"name", identity.name},
          {"version", identity.version},
          {"libraries", identity.libraries},
          {"paths", candidate.installed_paths()}};
}

Result<json> run_import(const StageRequest& request, const candidate::Kinds& kinds, StageChannel& channel) {
  auto opened = open_candidate(request, request.candidate, kinds, channel);
  if (!opened) return std::unexpected(opened.error());
  channel.mark("ready");
  return json{{"identity", identity_json(**opened)}};
}

/// Timed by the kernel's clock: calibrating a finer one would stand between the process and its first result.
Result<double> first_launch_ms(Ready& ready) {
  if (ready.candidate->is_remote()) {
    auto times = ready.candidate->launch_batch(ready.memory.tensors(), {});
    if (!times) return std::unexpected(times.error());
    return times->launch_ms.front();
  }
  const int64_t start = measure::kernel_ns();
  if (auto launched = ready.launch(); !launched) return std::unexpected(launched.error());
  if (ready.session) {
    if (auto done = ready.session->synchronize(); !done) return std::unexpected(done.error());
  }
  return static_cast<double>(measure::kernel_ns() - start) * 1e-6;
}

/// A cold compile and a load from a filled cache differ only in the state of the cache folder.
Result<json> run_compile(const StageRequest& request, const candidate::Kinds& kinds, StageChannel& channel) {
  auto ready = make_ready(request, request.candidate, kinds, channel);
  if (!ready) return std::unexpected(ready.error());
  const auto memory = measure::read_process_memory();
  auto first = first_launch_ms(*ready);
  if (!first) return std::unexpected(first.error());
  channel.mark("first-result");
  LaunchTimer timer(*ready, channel, request.seed);
  std::vector<double> launches{*first};
  for (int i = 0; i < 3; ++i) {
    auto ms = timer.sample(false);
    if (!ms) return std::unexpected(ms.error());
    launches.push_back(*ms);
    channel.step("launch");
  }
  const candidate::CompilePhases& phases = ready->compiled.phases;
  return json{
      {"identity", identity_json(*ready->candidate)},
      {"device_init_ms", ready->device_init_ms},
      {"compile_call_ms", ready->compile_call_ms},
      {"launch_ms", launches},
      {"compiles", ready->compiled.compiles},
      {"cache_hits", ready->compiled.cache_hits},
      {"digest", ready->compiled.artefact_digest},
      {"peak_resident_bytes", memory ? memory->peak_resident : 0},
      {"written_bytes",
       counts_writes(*ready->candidate, request.candidate) ? written_to_files(channel, ready->is_on_device) : 0},
      {"phases",
       {{"front_end", phases.front_end},
        {"passes", phases.passes},
        {"codegen", phases.codegen},
        {"toolchain", phases.toolchain},
        {"load", phases.load}}}};
}

Result<json> run_warm(const StageRequest& request, const candidate::Kinds& kinds, StageChannel& channel) {
  auto ready = make_ready(request, request.candidate, kinds, channel);
  if (!ready) return std::unexpected(ready.error());
  LaunchTimer timer(*ready, channel, request.seed);
  if (auto awake = timer.warm_up(); !awake) return std::unexpected(awake.error());
  channel.step("warm");
  auto warm = timer.run(request.warm, true);
  if (!warm) return std::unexpected(warm.error());
  const json clocks_warm = ready->session ? ready->session->clocks() : json();
  json after = json::object();
  if (request.check_after) {
    // The inputs now differ from those of every earlier launch, in the same buffers: a replayed result does not pass.
    measure::Random random(request.seed + 1);
    ready->memory.perturb_inputs(random);
    ready->memory.poison_outputs();
    if (auto launched = ready->launch(); !launched) return std::unexpected(launched.error());
    channel.step("oracle");
    auto verdict = check_present_outputs(*ready);
    if (!verdict) return std::unexpected(verdict.error());
    after = *verdict;
  }
  channel.step("hot");
  auto hot = timer.run(request.hot, false);
  if (!hot) return std::unexpected(hot.error());
  const double hot_ms = measure::median(measure::sorted(hot->samples_ms));
  auto clocks = timer.check_clock(hot_ms);
  if (!clocks) return std::unexpected(clocks.error());
  json out{{"identity", identity_json(*ready->candidate)},
           {"warm_ms", warm->samples_ms},
           {"warm_stop", measure::name(warm->reason)},
           {"hot_ms", hot->samples_ms},
           {"hot_stop", measure::name(hot->reason)},
           {"flush", timer.flush_method()},
           {"clock_overhead_ns", timer.clock_overhead_ns()},
           {"clocks", to_json(*clocks)},
           {"check_after", after}};
  if (!clocks_warm.is_null()) out["device_clocks"] = {{"warm", clocks_warm}, {"hot", ready->session->clocks()}};
  return out;
}

/// Bytes in use on the device before the candidate is there, the context of this process included; 0 without a device.
Result<int64_t> device_bytes_before(const StageRequest& request) {
  if (!is_cuda(request.device)) return 0;
  auto session = DeviceSession::open(request.device);
  if (!session) return std::unexpected(session.error());
  return (*session)->used_bytes();
}

/// Growth of this process (or the whole of the worker) over its state before the candidate was opened, tensors left
/// out.
Result<json> run_peak(const StageRequest& request, const candidate::Kinds& kinds, StageChannel& channel) {
  auto workload = requested_workload(request);
  if (!workload) return std::unexpected(workload.error());
  int64_t tensor_bytes = 0;
  for (const Argument& arg : arguments(*workload)) tensor_bytes += arg.byte_count();
  measure::reset_peak();
  const auto before = measure::read_process_memory();
  const auto device_before = device_bytes_before(request);
  if (!device_before) return std::unexpected(device_before.error());
  auto ready = make_ready(request, request.candidate, kinds, channel);
  if (!ready) return std::unexpected(ready.error());
  for (int i = 0; i < 3; ++i) {
    if (auto launched = ready->launch(); !launched) return std::unexpected(launched.error());
    channel.step("launch");
  }
  const int pid = ready->candidate->process_id().value_or(0);
  const auto after = measure::read_process_memory(pid);
  if (!before || !after)
    return fail(DiagnosticCode::E3300, "cannot read /proc/self/status for the peak of resident memory");
  const bool is_remote = ready->candidate->is_remote();
  const int64_t growth = is_remote ? after->peak_resident - after->resident_shared
                                   : after->peak_resident - before->resident - tensor_bytes;
  const candidate::PeakMemory own = ready->candidate->peak_memory();
  std::optional<int64_t> on_device = own.device_bytes;
  if (ready->session) {
    auto used = ready->session->used_bytes();
    if (!used) return std::unexpected(used.error());
    on_device = *used - *device_before - tensor_bytes;
  }
  json out{{"identity", identity_json(*ready->candidate)},
           {"peak_bytes", std::max<int64_t>(on_device.value_or(growth), 0)},
           {"declared", on_device ? "memory of the device, without the tensors"
                        : is_remote
                            ? "resident peak of the worker process without the tensors"
                            : "growth of the resident peak since before the candidate was opened, without the tensors"},
           {"vm_hwm_bytes", after->peak_resident},
           {"tensor_bytes", tensor_bytes},
           {"workspace_bytes", ready->workspace_bytes}};
  if (own.allocator_bytes) out["allocator_bytes"] = *own.allocator_bytes;
  if (on_device) out["device_bytes"] = *on_device;
  out["host_growth_bytes"] = growth;
  if (const auto group = measure::read_cgroup_peak()) out["cgroup_bytes"] = *group;
  return out;
}

Result<json> run_request(const StageRequest& request, const candidate::Kinds& kinds, StageChannel& channel) {
  switch (request.kind) {
    case StageKind::Empty: channel.mark("ready"); return json::object();
    case StageKind::Import: return run_import(request, kinds, channel);
    case StageKind::Check: return run_check(request, kinds, channel);
    case StageKind::Compile: return run_compile(request, kinds, channel);
    case StageKind::Warm: return run_warm(request, kinds, channel);
    case StageKind::Peak: return run_peak(request, kinds, channel);
    case StageKind::Pair: return run_pair(request, kinds, channel);
    case StageKind::Roofline: return run_roofline(request, channel);
    case StageKind::Contest: return run_contest(request, kinds, channel);
    case StageKind::Sustained: return run_sustained(request, kinds, channel);
    case StageKind::Race: return run_race(request, kinds, channel);
    case StageKind::Rare: return run_rare(request, kinds, channel);
    case StageKind::LaunchCost: return run_launch_cost(request, kinds, channel);
  }
  return fail(DiagnosticCode::E9001, "unknown stage");
}

}  // namespace

int run_stage_child(const candidate::Kinds& kinds) {
  const int answer_fd = ::dup(STDOUT_FILENO);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  std::string line;
  std::getline(std::cin, line);
  const json object = json::parse(line, nullptr, false);
  auto request = parse_stage_request(object);
  StageChannel channel(answer_fd, request ? request->token : "");
  auto outcome = request ? run_request(*request, kinds, channel) : std::unexpected(request.error());
  if (outcome)
    channel.result(std::move(*outcome));
  else
    channel.error(outcome.error());
  return outcome ? 0 : 1;
}

}  // namespace tilewright::bench
