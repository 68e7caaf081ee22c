// A candidate as the server of a replayed trace: one compiled kernel per key, a fallback that takes any length.
//
// The trace's key sets one dimension of the workload (M of a product, SQ of attention). Buffers are made once, for the
// longest prompt; a shorter one sees their beginning, so equal prompts see equal data. In-process candidates only.
// Guarantee: every kernel is judged by the oracle, on rows it samples, before it is timed once; a wrong one ends the
// replay (`wrong`). The check is outside of every time that is reported.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "bench/oracle/workload.h"
#include "bench/traffic/replay.h"
#include "candidate/kinds.h"
#include "measure/clock.h"

namespace tilewright::bench {

struct CandidateReplayOptions {
  std::string kernel;     ///< spelling of what is compiled per key
  std::string fallback;   ///< spelling of what serves any prompt
  Workload workload;      ///< its `dim` is replaced by the key
  std::string dim = "M";  ///< or several, all set by the key: "SQ,SK"
  std::string config = "{}";
  std::map<int64_t, std::string> configs;  ///< of single keys: saved winners
  int threads = 1;
  std::string scratch;
};

class CandidateReplay : public traffic::ReplayOperator {
 public:
  CandidateReplay(const candidate::Kinds& kinds, CandidateReplayOptions options);
  ~CandidateReplay() override;

  /// Buffers for prompts up to `longest`, padded.
  Status allocate(int64_t longest);

  Result<double> compile(int64_t key) override;
  Result<Run> run(int64_t key, int64_t prompt) override;
  Result<Run> run_fallback(int64_t prompt) override;

  /// Why a kernel was rejected by the oracle; empty: none was.
  const std::string& wrong() const { return wrong_; }

 private:
  struct Ready;
  /// What is opened for how many rows, with which configuration and cache.
  struct Order {
    std::string spelling;
    int64_t rows = 0;
    std::string config, cache;
  };
  Result<std::unique_ptr<Ready>> prepare(const Order& order, double* compile_s);
  Status check(const Order& order, const Workload& workload, Ready& ready, const candidate::Echo& echo);
  Result<Run> launch(Ready& ready, int64_t prompt);

  const candidate::Kinds& kinds_;
  CandidateReplayOptions options_;
  std::vector<std::vector<std::byte>> buffers_;
  std::map<int64_t, std::unique_ptr<Ready>> kernels_, fallbacks_;
  measure::FastClock clock_;
  std::string wrong_;
};

/// Every dimension of the comma-separated list is set to `key`.
void set_key_dims(Workload& workload, const std::string& list, int64_t key);

}  // namespace tilewright::bench
