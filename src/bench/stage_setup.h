// A candidate ready to be launched in this process: opened, agreed on the contract, compiled, its arguments in memory.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "bench/device_session.h"
#include "bench/oracle/contract.h"
#include "bench/stage_message.h"
#include "candidate/candidate.h"
#include "candidate/kinds.h"
#include "measure/random.h"

namespace tilewright::bench {

/// The tensors of a contract for one candidate: 64-byte aligned, each between two margins whose bytes must never
/// change, outputs poisoned. Memory is shared with the worker when the candidate is remote; on a device the candidate
/// sees a copy there, and what is filled, poisoned or changed here is changed there too (a transfer that fails is
/// noticed by the next launch).
class ArgumentMemory {
 public:
  static Result<ArgumentMemory> allocate(candidate::Candidate* remote, const Workload& workload,
                                         std::shared_ptr<DeviceSession> session = nullptr);

  /// `inputs` as make_inputs gives them for the workload.
  void fill(const std::vector<HostTensor>& inputs);
  /// Gives back what a worker shares; the tensors are gone.
  void release(candidate::Candidate& remote);
  void poison_outputs();
  /// Changes a few elements of every floating-point input to other values of the same size, so that no launch sees what
  /// the last one saw.
  void perturb_inputs(measure::Random& random);
  /// Brings what the device wrote back; nothing to do elsewhere. Before reading outputs or margins.
  Status fetch();
  bool margins_intact() const;

  /// As the candidate sees them.
  const std::vector<candidate::Tensor>& tensors() const { return session_ ? device_tensors_ : tensors_; }
  std::vector<HostTensor> copy_inputs() const;
  std::vector<HostTensor> copy_outputs() const;
  std::vector<std::span<const std::byte>> spans() const;

 private:
  Status move_to_device(std::shared_ptr<DeviceSession> session);
  void upload(const candidate::Tensor& tensor) const { upload(tensor, 0, tensor.byte_count()); }
  void upload(const candidate::Tensor& tensor, size_t offset, size_t bytes) const;

  std::shared_ptr<DeviceSession> session_;
  std::shared_ptr<std::byte> on_device_;  ///< the whole block, margins included
  std::vector<candidate::Tensor> device_tensors_;
  std::shared_ptr<std::byte> own_;  ///< of candidates in this process
  std::byte* base_ = nullptr;
  size_t total_ = 0;
  std::vector<candidate::Tensor> tensors_;
  std::vector<size_t> ends_;  ///< offset after each tensor
};

struct Ready {
  std::shared_ptr<DeviceSession> session;  ///< of a candidate in this process on a device
  bool is_on_device = false;               ///< in this process or in a worker's
  candidate::CandidatePtr candidate;
  Workload workload;
  candidate::ContractText contract;
  ArgumentMemory memory;
  std::shared_ptr<std::byte> workspace;
  int64_t workspace_bytes = 0;
  candidate::Compiled compiled;
  double device_init_ms = 0, compile_call_ms = 0;

  Status launch();  ///< on a device: enqueues
};

/// Steps that only need the candidate; `channel` hears of each.
Result<candidate::CandidatePtr> open_candidate(const StageRequest& request, const std::string& spelling,
                                               const candidate::Kinds& kinds, StageChannel& channel);
/// Memory of a candidate in this process, on the device when there is one.
Result<std::shared_ptr<std::byte>> allocate_workspace(const std::shared_ptr<DeviceSession>& session, int64_t bytes);

/// The session of a candidate that runs in this process on a device; null for all others.
Result<std::shared_ptr<DeviceSession>> session_of(const StageRequest& request, const candidate::Candidate& candidate);

/// Opened, its device ready, nothing prepared.
Result<Ready> open_ready(const StageRequest& request, const std::string& spelling, const candidate::Kinds& kinds,
                         StageChannel& channel);
/// The rest up to the first launch, of `request`'s workload, also of one that did another before. `inputs`: what
/// make_inputs gives, where it was called already.
Status renew(Ready& ready, const StageRequest& request, StageChannel& channel,
             const std::vector<HostTensor>* inputs = nullptr);
/// Tensors and workspace go; the candidate stays open.
void release_tensors(Ready& ready);

/// Everything up to the first launch. An unfair echo is E1606.
Result<Ready> make_ready(const StageRequest& request, const std::string& spelling, const candidate::Kinds& kinds,
                         StageChannel& channel);

Result<Workload> requested_workload(const StageRequest& request);
ContractOptions contract_options(const StageRequest& request);

}  // namespace tilewright::bench
