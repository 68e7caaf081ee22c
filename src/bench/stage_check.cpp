#include "bench/stage_check.h"

#include <fmt/core.h>

#include <cstdlib>
#include <cstring>

#include "bench/foreign_code.h"
#include "bench/oracle/check.h"
#include "bench/oracle/reference_kernel.h"

namespace tilewright::bench {
namespace {

using nlohmann::json;

/// Tensors where a worker sees them.
class SharedWithWorker final : public Memory {
 public:
  explicit SharedWithWorker(candidate::Candidate& worker) : worker_(worker) {}
  Result<void*> allocate(size_t bytes) override { return worker_.allocate_shared(bytes); }
  void release(void* block) override { worker_.release_shared(block); }

 private:
  candidate::Candidate& worker_;
};

/// An opened candidate made ready for one workload after another.
class Preparer {
 public:
  Preparer(candidate::Candidate& candidate, std::string config, StageChannel& channel,
           std::shared_ptr<DeviceSession> session)
      : candidate_(candidate), config_(std::move(config)), channel_(channel), session_(std::move(session)) {
    if (candidate.is_remote()) memory_ = std::make_shared<SharedWithWorker>(candidate);
    if (session_) memory_ = std::make_shared<DeviceMemory>(session_);
  }

  Result<PreparedKernel> operator()(const Workload&, const candidate::ContractText& contract) {
    channel_.step("prepare");
    auto echo = candidate_.prepare(contract);
    if (!echo) return std::unexpected(echo.error());
    PreparedKernel out;
    out.echo = *echo;
    out.memory = memory_;
    channel_.step("compile");
    if (auto compiled = candidate_.compile(config_); !compiled) return std::unexpected(compiled.error());
    auto bytes = candidate_.workspace_bytes();
    if (!bytes) return std::unexpected(bytes.error());
    auto block = allocate_workspace(session_, *bytes);
    if (!block) return std::unexpected(block.error());
    const std::shared_ptr<std::byte> workspace = std::move(*block);
    out.lifetime = workspace;
    out.launch = [this, workspace](std::span<const candidate::Tensor> args) {
      channel_.step("launch");
      auto launched = candidate_.launch(args, workspace.get(), session_ ? session_->stream() : nullptr);
      if (launched && session_) launched = session_->synchronize();
      channel_.step("oracle");
      return launched;
    };
    return out;
  }

 private:
  candidate::Candidate& candidate_;
  std::string config_;
  StageChannel& channel_;
  std::shared_ptr<DeviceSession> session_;
  std::shared_ptr<Memory> memory_;
};

/// Runs the framework's operator on given inputs; R1 of the relative rule.
class ReferenceRunner {
 public:
  ReferenceRunner(candidate::CandidatePtr candidate, ContractOptions options, StageChannel& channel,
                  std::shared_ptr<DeviceSession> session)
      : candidate_(std::move(candidate)),
        options_(std::move(options)),
        preparer_(*candidate_, "{}", channel, std::move(session)) {}

  Result<std::vector<HostTensor>> operator()(const Workload& workload, const std::vector<HostTensor>& inputs) {
    const auto contract = contract_text(workload, options_);
    auto kernel = preparer_(workload, contract);
    if (!kernel) return std::unexpected(kernel.error());
    if (auto fair = check_fair(contract, kernel->echo, candidate_->identity().name); !fair)
      return std::unexpected(fair.error());
    Memory own;
    auto buffers = GuardedTensors::make(workload, inputs, kernel->memory ? *kernel->memory : own);
    if (!buffers) return std::unexpected(buffers.error());
    if (auto armed = buffers->arm(0); !armed) return std::unexpected(armed.error());
    if (auto launched = kernel->launch(buffers->tensors()); !launched) return std::unexpected(launched.error());
    auto damage = buffers->collect();
    if (!damage) return std::unexpected(damage.error());
    if (*damage) return fail(DiagnosticCode::E3206, **damage);
    return buffers->outputs();
  }
  std::string name() const { return candidate_->identity().name; }

 private:
  candidate::CandidatePtr candidate_;
  ContractOptions options_;
  Preparer preparer_;
};

/// E3201 and E1606 as they come; a launch that fails is a wrong result.
Result<json> check_first_launch(const Workload& workload, Preparer& preparer, const ContractOptions& options) {
  const auto contract = contract_text(workload, options);
  auto kernel = preparer(workload, contract);
  if (!kernel) return std::unexpected(kernel.error());
  if (auto fair = check_fair(contract, kernel->echo, "the candidate"); !fair) return std::unexpected(fair.error());
  const std::vector<HostTensor> inputs = make_inputs(workload, options.data);
  Memory own;
  auto buffers = GuardedTensors::make(workload, inputs, kernel->memory ? *kernel->memory : own);
  if (!buffers) return std::unexpected(buffers.error());
  if (auto armed = buffers->arm(0); !armed) return std::unexpected(armed.error());
  if (auto launched = kernel->launch(buffers->tensors()); !launched)
    return json{{"accepted", false}, {"reason", launched.error().message}};
  auto damage = buffers->collect();
  if (!damage) return std::unexpected(damage.error());
  if (*damage) return json{{"accepted", false}, {"reason", **damage}};
  return OutputJudge(workload, inputs).judge(buffers->outputs());
}

/// The first reference that can be opened and does this workload.
std::shared_ptr<ReferenceRunner> open_reference(const StageRequest& request, const candidate::Kinds& kinds,
                                                StageChannel& channel) {
  for (const std::string& spelling : request.references) {
    auto opened = open_candidate(request, spelling, kinds, channel);
    if (!opened) continue;
    auto session = session_of(request, **opened);
    if (!session || !(*opened)->init_device()) continue;
    auto runner =
        std::make_shared<ReferenceRunner>(std::move(*opened), contract_options(request), channel, std::move(*session));
    const auto workload = requested_workload(request);
    const auto inputs = make_inputs(*workload, contract_options(request).data);
    if ((*runner)(*workload, inputs)) return runner;
  }
  return nullptr;
}

}  // namespace

OutputJudge::OutputJudge(const Workload& workload, std::vector<HostTensor> inputs, const ReferenceOptions& options)
    : workload_(workload),
      inputs_(std::move(inputs)),
      expected_(evaluate_oracle(workload, inputs_, options)),
      declared_(evaluate_declared(workload, inputs_, options)) {}

json OutputJudge::judge(const std::vector<HostTensor>& outputs) const {
  if (!expected_.failure.empty()) return json{{"accepted", false}, {"reason", expected_.failure}};
  std::vector<Argument> args = arguments(workload_);
  std::erase_if(args, [](const Argument& arg) { return !arg.is_output(); });
  json judgements = json::array();
  std::string reason;
  for (size_t o = 0; o < outputs.size(); ++o) {
    const auto produced = rows_of(outputs[o], expected_.outputs[o]);
    const JudgeInput input{workload_, expected_, o, produced, declared_[o].values};
    const Judgement judgement = args[o].role == Role::Indices ? judge_indices(input, inputs_[0]) : judge_values(input);
    if (!judgement.accepted() && reason.empty()) reason = judgement.findings.front().text;
    judgements.push_back(to_json(judgement));
  }
  return json{{"accepted", reason.empty()}, {"reason", reason}, {"judgements", judgements}};
}

Result<json> run_check(const StageRequest& request, const candidate::Kinds& kinds, StageChannel& channel) {
  auto workload = requested_workload(request);
  if (!workload) return std::unexpected(workload.error());
  const ForeignCode before = ForeignCode::of_this_process();
  auto opened = open_candidate(request, request.candidate, kinds, channel);
  if (!opened) return std::unexpected(opened.error());
  candidate::Candidate& candidate = **opened;
  channel.step("init_device");
  if (auto ok = candidate.init_device(); !ok) return std::unexpected(ok.error());
  CheckOptions options;
  options.contract = contract_options(request);
  options.candidate_name = candidate.identity().name;
  options.fuzz = request.fuzz_shapes > 0;
  options.mutants = request.fuzz_shapes > 0;
  options.fuzz_seed = request.seed;
  options.progress = [&](const std::string&, int, int) { channel.step("oracle"); };
  auto session = session_of(request, candidate);
  if (!session) return std::unexpected(session.error());
  Preparer preparer(candidate, request.config, channel, std::move(*session));
  // The candidate runs once before any reference is opened, so that code it shares with one is its own doing; and the
  // result of this very first launch is judged, so that work put off to the next one is noticed.
  auto first = check_first_launch(*workload, preparer, options.contract);
  if (!first) return std::unexpected(first.error());
  const auto borrowed = before.undeclared_library(candidate);
  const int64_t written =
      counts_writes(candidate, request.candidate) ? written_to_files(channel, is_cuda(request.device)) : 0;
  CheckOptions main_only = options;
  main_only.fuzz = main_only.mutants = false;
  // A reference can be lucky on a few values, and a kernel is not wrong because it is not lucky: the relative rule
  // takes the less accurate of R1 and the oracle's own operator in the declared types. Fuzz shapes are small and take
  // the latter.
  CheckReport report = check_candidate(*workload, std::ref(preparer), options);
  const auto reference = report.accepted() ? open_reference(request, kinds, channel) : nullptr;
  bool holds_against_r1 = false;
  if (reference) {
    main_only.r1 = [reference](const Workload& w, const std::vector<HostTensor>& inputs) {
      return (*reference)(w, inputs);
    };
    const CheckReport against = check_candidate(*workload, std::ref(preparer), main_only);
    holds_against_r1 = against.accepted();
    // The record keeps the judgement that decided.
    if (holds_against_r1) report.main.judgements = against.main.judgements;
  }
  json detail = to_json(report);
  if (workload->operation == Operation::Kernel) detail["reference"] = question_label(workload->question);
  if (reference) detail["r1"] = {{"name", reference->name()}, {"relative_rule_holds_against_it", holds_against_r1}};
  detail["first_launch"] = *first;
  std::string reason = report.accepted() ? "" : report.unfair ? "unfair:" + *report.unfair : report.summary();
  if (reason.empty() && report.oracle_blind()) reason = report.summary();
  if (reason.empty() && !first->value("accepted", false)) reason = "first launch: " + first->value("reason", "");
  if (reason.empty() && borrowed) reason = fmt::format("calls-the-reference: {} is used but not declared", *borrowed);
  return json{{"identity",
               {{"name", candidate.identity().name},
                {"version", candidate.identity().version},
                {"libraries", candidate.identity().libraries},
                {"paths", candidate.installed_paths()}}},
              {"accepted", reason.empty()},
              {"blind", report.oracle_blind()},
              {"reason", reason},
              {"written_bytes", written},
              {"detail", detail}};
}

Result<json> check_present_outputs(Ready& ready) {
  if (auto fetched = ready.memory.fetch(); !fetched) return std::unexpected(fetched.error());
  json out = OutputJudge(ready.workload, ready.memory.copy_inputs()).judge(ready.memory.copy_outputs());
  if (!ready.memory.margins_intact()) out = {{"accepted", false}, {"reason", "wrote outside its tensors"}};
  return out;
}

}  // namespace tilewright::bench
