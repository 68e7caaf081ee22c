// The interface of what can be judged: a kernel of ours, a shared library behind tilewright/candidate.h, a worker
// process.
//
// The harness owns the clock, the buffers and the stream; a candidate only does one step when told to. Which process a
// step runs in and how it is timed is the harness's business. Steps come in this order, each at most once but `launch`:
//   open → init_device → prepare → compile → workspace_bytes → launch … → (destructor)
// Does not: time, check results, or know operators. The contract is opaque text here.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "base/dtype.h"

namespace tilewright::candidate {

/// One argument: inputs first, then outputs, in the contract's order. Strides in elements; `data` is device memory on a
/// device.
struct Tensor {
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  bool is_output = false;
  void* data = nullptr;

  int64_t element_count() const;
  size_t byte_count() const;  ///< of the span from the first to the last element
};

/// Equal in every field: what a candidate bound for the last launch serves this one too.
bool same_tensors(std::span<const Tensor> a, std::span<const Tensor> b);

struct Identity {
  std::string name;                              ///< file-name safe: it names the folder out/<name>
  std::string version;                           ///< of the library judged
  std::map<std::string, std::string> libraries;  ///< everything else whose version matters
};

struct OpenOptions {
  std::string device = "cpu";
  int device_ordinal = 0;
  std::string cache_dir;  ///< private to this run; empty folder at a cold compile
  int threads = 1;
  std::chrono::milliseconds timeout{120'000};  ///< of one step of a worker
};

/// What is to be computed, as canonical JSON, and its SHA-256.
struct ContractText {
  std::string json;
  std::string digest;
};

/// The answer to `prepare`: the digest when the candidate does exactly this, else the fields in which it differs.
struct Echo {
  std::string digest;
  std::map<std::string, std::string> differing;  ///< field → the candidate's value
};

/// Phase times in ms; negative where the candidate cannot tell.
struct CompilePhases {
  double front_end = -1, passes = -1, codegen = -1, toolchain = -1, load = -1;
};

struct Compiled {
  int64_t compiles = 0;    ///< kernels compiled by this call: ≥ 1 on a cold compile, 0 on a load
  int64_t cache_hits = 0;  ///< 0 on a cold compile
  std::string artefact_digest;
  CompilePhases phases;
};

/// What the candidate knows about its own memory; the process's counters are read by the harness.
struct PeakMemory {
  std::optional<int64_t> allocator_bytes;
  std::optional<int64_t> device_bytes;
};

/// Launches timed by the candidate's own process, because a round trip would drown them. The harness checks them
/// against its own clock.
struct RemoteTimes {
  std::vector<double> launch_ms;  ///< one per launch, or one for all of them: the time of a launch among many
};

struct RemoteLaunches {
  int count = 1;
  bool each = true;    ///< false: the launches follow one another and only their mean is asked for
  bool flush = false;  ///< on a device: its L2 cache holds nothing of the tensors before each launch
  /// The inputs are those of the last launch and nobody will read the outputs: a worker on a device need not move them.
  bool only_timed = false;
  bool in_graphs = false;  ///< of launches that follow one another on a device: captured and replayed where possible
};

class Candidate {
 public:
  virtual ~Candidate() = default;

  /// Loads code: dlopen, start of an interpreter and its imports. What import_ms measures.
  virtual Status open(const OpenOptions& options) = 0;
  /// Creates contexts and pools, before any compile. What device_init_ms measures.
  virtual Status init_device() { return {}; }
  /// Known after `open`.
  virtual Identity identity() const = 0;
  /// E3201 when this contract is not one the candidate can do.
  virtual Result<Echo> prepare(const ContractText& contract) = 0;
  /// `config` is a JSON object of tuning parameters, "{}" for the defaults. Leaves a loaded, launchable kernel.
  virtual Result<Compiled> compile(const std::string& config) = 0;
  virtual Result<int64_t> workspace_bytes() { return 0; }
  /// One call; on a device it is enqueued on `stream` (CUstream), on a CPU the results are there on return.
  virtual Status launch(std::span<const Tensor> args, void* workspace, void* stream) = 0;

  /// True when the kernel runs in another process: the harness then times by `launch_batch`.
  virtual bool is_remote() const { return false; }
  virtual Result<RemoteTimes> launch_batch(std::span<const Tensor> args, const RemoteLaunches& launches);
  /// A remote candidate sees only memory made here (shared between both processes); in-process candidates take any
  /// memory.
  virtual Result<void*> allocate_shared(size_t bytes);
  virtual void release_shared(void* memory);

  virtual PeakMemory peak_memory() { return {}; }
  virtual std::optional<int> process_id() const { return std::nullopt; }  ///< of a worker
  /// Files and folders that installing this candidate puts on disk. What install_bytes walks.
  virtual std::vector<std::string> installed_paths() const { return {}; }
};

using CandidatePtr = std::unique_ptr<Candidate>;

}  // namespace tilewright::candidate
