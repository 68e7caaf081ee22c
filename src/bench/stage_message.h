// What the harness asks of a stage child and what the child answers: JSON lines over the child's stdin and stdout.
//
// A stage runs in a process of its own: fork and exec of this same binary (`tilewright stage`), one request on stdin.
// The child answers with events: {"event":"step","name":…} whenever it gets on (a silent child is hung),
// {"event":"mark",…} for the parent's clock, and in the end {"event":"result",…} or {"event":"error",…}. The child
// takes times; the parent computes every statistic.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "bench/oracle/workload.h"
#include "measure/stopping.h"

namespace tilewright::bench {

enum class StageKind : uint8_t {
  Empty,
  Import,
  Check,
  Compile,
  Warm,
  Peak,
  Pair,
  Roofline,
  Contest,
  Sustained,
  Race,
  Rare,
  LaunchCost
};
std::string_view name(StageKind kind);

/// One of several that run in turn in one process; it may do another workload than the rest (f16 against f32).
struct Contender {
  std::string candidate;
  std::string workload;
  std::string dtypes;
  std::string config = "{}";
};

/// A row of Race: contenders of one workload.
struct Race {
  std::string id;
  std::vector<Contender> contenders;  ///< the first is judged, the others are its rivals
  bool is_flushed = false;            ///< one by one after a flush; else steady and burst
  bool in_graphs = false;             ///< steady launches are replays of a graph
};

struct StageRequest {
  StageKind kind = StageKind::Empty;
  std::string candidate;                ///< as spelled on the command line
  std::string rival;                    ///< of Pair
  std::vector<std::string> references;  ///< of Check: their outputs set the relative rule
  std::string workload;
  std::string dtypes;
  std::vector<SequenceLengths> lengths;
  KernelQuestion question;  ///< of a kernel's own reference
  std::string device = "cpu";
  int threads = 1;
  std::string cache_dir;
  std::string config = "{}";
  uint64_t seed = 1;
  measure::StopRule warm, hot;
  bool check_after = false;  ///< Warm: verify the output of the last launch too
  int rounds = 52;           ///< of Pair, Contest and Sustained
  int rounds_limit = 400;
  double delta = 0.02;                ///< of Pair: the margin its A/A gate is judged by
  int fuzz_shapes = 25;               ///< of Check
  int64_t timeout_ms = 120'000;       ///< of one step of a worker
  std::vector<Contender> contenders;  ///< of Contest; the first is judged, the others are its rivals
  std::vector<Race> races;
  std::string ceiling = "none";       ///< of Contest: what is timed beside each sample
  bool without_driver_cache = false;  ///< the CUDA driver keeps nothing it assembles
  bool is_flushed = false;            ///< of Contest: caches are emptied before each launch
  std::string token;                  ///< every answer carries it: a candidate that writes to the channel is found out
};

nlohmann::json to_json(const StageRequest& request);
Result<StageRequest> parse_stage_request(const nlohmann::json& json);

/// The child's side of the conversation.
class StageChannel {
 public:
  StageChannel(int fd, std::string token) : fd_(fd), token_(std::move(token)) {}
  void step(std::string_view name);
  /// The parent takes its own time when it reads this.
  void mark(std::string_view name);
  /// Some of the result, as soon as it is there.
  void part(nlohmann::json fields);
  void result(nlohmann::json fields);
  void error(const Diagnostic& diagnostic);
  int64_t sent_bytes() const { return sent_bytes_; }

 private:
  void send(nlohmann::json event);
  int fd_;
  std::string token_;
  int64_t sent_bytes_ = 0;
};

nlohmann::json to_json(const Diagnostic& diagnostic);
Diagnostic parse_diagnostic(const nlohmann::json& json);

}  // namespace tilewright::bench
