#include "bench/candidate_trials.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "bench/clock_check.h"
#include "bench/oracle/check.h"
#include "measure/clock.h"
#include "measure/flush.h"
#include "measure/machine.h"
#include "measure/order_statistics.h"
#include "tune/forked_process.h"

namespace tilewright::bench {
namespace {

constexpr const char* kHarness = "tilewright-trials-1";

/// Memory a worker process can see.
class SharedWithWorker : public Memory {
 public:
  explicit SharedWithWorker(candidate::Candidate& candidate) : candidate_(candidate) {}
  Result<void*> allocate(size_t bytes) override { return candidate_.allocate_shared(bytes); }
  void release(void*) override {}  // the worker's memory goes with the worker

 private:
  candidate::Candidate& candidate_;
};

/// The buffers of one seed: inputs drawn, outputs empty.
struct TrialBuffers {
  std::vector<HostTensor> inputs;
  std::unique_ptr<GuardedTensors> tensors;
};

class CandidateTrial : public tune::LoadedTrial {
 public:
  CandidateTrial(candidate::CandidatePtr candidate, candidate::Compiled compiled, Workload workload,
                 candidate::Echo echo)
      : candidate_(std::move(candidate)),
        compiled_(std::move(compiled)),
        workload_(std::move(workload)),
        echo_(std::move(echo)) {
    if (candidate_->is_remote())
      memory_ = std::make_shared<SharedWithWorker>(*candidate_);
    else
      memory_ = std::make_shared<Memory>();
  }

  Status make_workspace() {
    const Result<int64_t> bytes = candidate_->workspace_bytes();
    if (!bytes) return std::unexpected(bytes.error());
    if (*bytes <= 0) return {};
    Result<void*> block = memory_->allocate(static_cast<size_t>(*bytes));
    if (!block) return std::unexpected(block.error());
    workspace_ = *block;
    return {};
  }

  std::string artefact_digest() const override { return compiled_.artefact_digest; }

  Result<std::string> check(uint64_t seed) override {
    PreparedKernel kernel;
    kernel.echo = echo_;
    kernel.memory = memory_;
    kernel.launch = [this](std::span<const candidate::Tensor> args) {
      return candidate_->launch(args, workspace_, nullptr);
    };
    CheckOptions options;
    options.contract.data.seed = seed;
    options.fuzz = options.mutants = false;
    const ShapeReport report = check_prepared(workload_, kernel, options);
    if (report.state != ShapeReport::State::Accepted) {
      const std::string why = report.findings.empty()
                                  ? std::string(name(report.state))
                                  : fmt::format("{}: {}", report.findings[0].rule, report.findings[0].text);
      return fail(DiagnosticCode::E1654, why);
    }
    return output_digest(seed);
  }

  Result<double> launch_ms() override {
    if (!buffers_.tensors) {
      if (Status status = make_buffers(1); !status) return std::unexpected(status.error());
    }
    for (const candidate::Tensor& tensor : buffers_.tensors->tensors()) {
      flush_.flush({static_cast<const std::byte*>(tensor.data), tensor.byte_count()});
    }
    flush_.finish();
    if (candidate_->is_remote()) return is_clock_checked_ ? launch_remote() : launch_first_remote();
    const int64_t start = clock_.now_ns();
    const Status status = candidate_->launch(buffers_.tensors->tensors(), workspace_, nullptr);
    const int64_t end = clock_.now_ns();
    if (!status) return std::unexpected(status.error());
    return static_cast<double>(end - start) * 1e-6;
  }

 private:
  Result<double> launch_remote() {
    const Result<candidate::RemoteTimes> times = candidate_->launch_batch(buffers_.tensors->tensors(), {});
    if (!times) return std::unexpected(times.error());
    if (times->launch_ms.size() != 1) {
      return fail(DiagnosticCode::E3205, fmt::format("asked for 1 time, got {}", times->launch_ms.size()));
    }
    return times->launch_ms.front();
  }

  /// Before the first time that counts: is the worker's clock to be believed?
  Result<double> launch_first_remote() {
    constexpr int kSamples = 9;
    std::vector<double> samples;
    for (int i = 0; i < kSamples; ++i) {
      auto ms = launch_remote();
      if (!ms) return ms;
      samples.push_back(*ms);
    }
    const auto batch = [this](int count) -> Result<TimedBatch> {
      const int64_t start = measure::kernel_ns();
      auto times = candidate_->launch_batch(buffers_.tensors->tensors(), {.count = count});
      if (!times) return std::unexpected(times.error());
      return timed_batch(static_cast<double>(measure::kernel_ns() - start) * 1e-6 / count, times->launch_ms);
    };
    const ClockCheckOptions options{.is_remote = true, .process = candidate_->process_id().value_or(0)};
    auto check = check_clock(measure::median(measure::sorted(samples)), options, batch);
    if (!check) return std::unexpected(check.error());
    if (!check->agree) return fail(DiagnosticCode::E3205, disagreement(*check));
    is_clock_checked_ = true;
    return launch_remote();
  }

  Status make_buffers(uint64_t seed) {
    buffers_.inputs = make_inputs(workload_, DataSpec{.seed = seed});
    Result<GuardedTensors> tensors = GuardedTensors::make(workload_, buffers_.inputs, *memory_);
    if (!tensors) return std::unexpected(tensors.error());
    buffers_.tensors = std::make_unique<GuardedTensors>(std::move(*tensors));
    return buffers_.tensors->arm(0);
  }

  Result<std::string> output_digest(uint64_t seed) {
    if (Status status = make_buffers(seed); !status) return std::unexpected(status.error());
    if (Status status = candidate_->launch(buffers_.tensors->tensors(), workspace_, nullptr); !status)
      return std::unexpected(status.error());
    if (Result<std::optional<std::string>> damage = buffers_.tensors->collect(); !damage)
      return std::unexpected(damage.error());
    std::string bits;
    for (const HostTensor& output : buffers_.tensors->outputs()) {
      bits.append(reinterpret_cast<const char*>(output.data.data()), output.data.size());
    }
    return sha256_hex(bits);
  }

  candidate::CandidatePtr candidate_;
  candidate::Compiled compiled_;
  Workload workload_;
  candidate::Echo echo_;
  std::shared_ptr<Memory> memory_;
  void* workspace_ = nullptr;
  TrialBuffers buffers_;
  measure::CacheFlush flush_;
  measure::FastClock clock_;
  bool is_clock_checked_ = false;
};

/// "lib:./a.so?threads=2" and "tile:k.tile:matmul?T=f32" in two: the file, and what is asked of it.
std::pair<std::string, std::string> file_and_rest(const std::string& spelling) {
  const size_t colon = spelling.find(':');
  const std::string target = spelling.substr(colon == std::string::npos ? 0 : colon + 1);
  const size_t end = std::min(
      target.find('?'), target.find(".tile:") == std::string::npos ? std::string::npos : target.find(".tile:") + 5);
  if (end >= target.size()) return {target, ""};
  return {target.substr(0, end), target.substr(end)};
}

/// The digest of the program (else of the file's bytes) and what is asked of it, or of the spelling when it names no
/// file (a ready worker). Where the file lies does not matter.
std::string source_digest(const CandidateTrialsOptions& options, const std::string& program) {
  const auto [named, rest] = file_and_rest(options.spelling);
  if (!program.empty() && options.source_file.empty()) return sha256_hex(program + rest);
  const std::string path = options.source_file.empty() ? named : options.source_file;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return sha256_hex(options.spelling);
  std::ifstream in(path, std::ios::binary);
  return sha256_hex(std::string{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()} + rest);
}

std::string identity_text(const candidate::Kinds& kinds, const CandidateTrialsOptions& options) {
  Result<candidate::CandidatePtr> made = kinds.make(options.spelling);
  if (!made) return "unknown";
  candidate::OpenOptions open;
  open.device = options.device;
  open.cache_dir = options.scratch;
  if (!(*made)->open(open)) return "unknown";
  const candidate::Identity identity = (*made)->identity();
  std::string text = identity.name + " " + identity.version;
  for (const auto& [library, version] : identity.libraries) text += fmt::format("; {} {}", library, version);
  const auto source = identity.libraries.find("source");
  return text + "\n" + (source == identity.libraries.end() ? "" : source->second);
}

/// What a candidate says of itself: its toolchain in one line, and the digest of its program where it knows one.
struct OwnWords {
  std::string toolchain = "unknown", program;
};

/// Asks a copy of this process, so that the candidate is opened in none that goes on.
OwnWords own_words(const candidate::Kinds& kinds, const CandidateTrialsOptions& options) {
  constexpr int64_t kPatienceNs = 60'000'000'000;
  Result<tune::ForkedProcess> child =
      tune::ForkedProcess::start([&](tune::ParentChannel& channel) { channel.send(identity_text(kinds, options)); });
  if (!child) return {};
  OwnWords out;
  out.toolchain = child->read_line(measure::kernel_ns() + kPatienceNs).value_or("unknown");
  if (out.toolchain != "unknown") out.program = child->read_line(measure::kernel_ns() + kPatienceNs).value_or("");
  return out;
}

}  // namespace

std::string config_text(const tune::Config& config) {
  nlohmann::json object = nlohmann::json::object();
  for (const auto& [name, value] : config.values()) {
    const int64_t* number = std::get_if<int64_t>(&value);
    object[name] = number ? nlohmann::json(*number) : nlohmann::json(std::get<std::string>(value));
  }
  return object.dump();
}

CandidateTrials::CandidateTrials(const candidate::Kinds& kinds, CandidateTrialsOptions options)
    : kinds_(kinds), options_(std::move(options)) {
  OwnWords words = own_words(kinds_, options_);
  identity_.source = source_digest(options_, words.program);
  identity_.workload = workload_key(options_.workload) + " " + to_string(options_.workload.dtypes);
  identity_.device = measure::cpu_device_name(options_.threads);
  identity_.harness = kHarness;
  utsname system{};
  if (uname(&system) == 0) {
    identity_.arch = system.machine;
    identity_.driver = fmt::format("{} {}", system.sysname, system.release);
  }
  identity_.toolchain = std::move(words.toolchain);
}

CandidateTrials::~CandidateTrials() {
  std::error_code ignored;
  if (!options_.scratch.empty()) std::filesystem::remove_all(options_.scratch, ignored);
}

Result<std::unique_ptr<tune::LoadedTrial>> CandidateTrials::load(const tune::Config& config) {
  Result<candidate::CandidatePtr> made = kinds_.make(options_.spelling);
  if (!made) return std::unexpected(made.error());
  candidate::CandidatePtr candidate = std::move(*made);
  candidate::OpenOptions open;
  open.device = options_.device;
  open.threads = options_.threads;
  open.cache_dir = fmt::format("{}/{}", options_.scratch, getpid());
  std::error_code ignored;
  std::filesystem::create_directories(open.cache_dir, ignored);
  if (Status status = candidate->open(open); !status) return std::unexpected(status.error());
  if (Status status = candidate->init_device(); !status) return std::unexpected(status.error());
  const candidate::ContractText contract = contract_text(options_.workload, {.device = options_.device});
  Result<candidate::Echo> echo = candidate->prepare(contract);
  if (!echo) return std::unexpected(echo.error());
  if (Status status = check_fair(contract, *echo, options_.spelling); !status) return std::unexpected(status.error());
  Result<candidate::Compiled> compiled = candidate->compile(config_text(config));
  if (!compiled) return std::unexpected(compiled.error());
  auto trial =
      std::make_unique<CandidateTrial>(std::move(candidate), std::move(*compiled), options_.workload, std::move(*echo));
  if (Status status = trial->make_workspace(); !status) return std::unexpected(status.error());
  return trial;
}

}  // namespace tilewright::bench
