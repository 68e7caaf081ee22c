// The buffers a candidate under test works on: inputs it must not change, outputs filled with poison it must overwrite,
// and canaries before and after every buffer.
//
// An element counts as unwritten when it holds the first poison after a run on the first and the second poison after a
// run on the second, so no legal result can be mistaken for poison. Every block is allocated by `Memory`, which also
// moves bytes when the candidate computes somewhere else (a device, a worker's shared memory); the host's copy is
// always the one judged.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/tensor_file.h"
#include "bench/oracle/arguments.h"
#include "candidate/candidate.h"

namespace tilewright::bench {

/// Where the candidate's buffers live. The default is this process's memory.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual Result<void*> allocate(size_t bytes);
  virtual void release(void* block);
  /// Host to candidate and back; the default (same memory) copies only when the addresses differ.
  virtual Status upload(void* to, const std::byte* from, size_t bytes);
  virtual Status download(std::byte* to, const void* from, size_t bytes);
};

class GuardedTensors {
 public:
  static constexpr size_t kCanaryBytes = 4096;

  /// Blocks for all arguments of the workload; inputs are copied in.
  static Result<GuardedTensors> make(const Workload& workload, const std::vector<HostTensor>& inputs, Memory& memory);
  GuardedTensors(GuardedTensors&&) noexcept;
  GuardedTensors& operator=(GuardedTensors&&) = delete;
  ~GuardedTensors();

  std::span<const candidate::Tensor> tensors() const { return tensors_; }

  /// Before a run: canaries and inputs fresh, outputs full of poison number `which` (0 or 1).
  Status arm(int which);
  /// After a run: fetches everything; error text names the buffer whose canary was touched or the input that was
  /// changed.
  Result<std::optional<std::string>> collect();
  /// What the last `collect` fetched, one per output argument.
  std::vector<HostTensor> outputs() const;

 private:
  struct Block {
    Argument argument;
    void* memory = nullptr;        // where the candidate sees it
    std::vector<std::byte> host;   // canary, data, canary
    std::vector<std::byte> clean;  // the same, as armed
  };
  explicit GuardedTensors(Memory& memory) : memory_(&memory) {}
  Memory* memory_;
  std::vector<Block> blocks_;
  std::vector<candidate::Tensor> tensors_;
};

/// Number of elements that hold poison 0 in `first` and poison 1 in `second`; `where` gets the first of them.
int64_t count_unwritten(const HostTensor& first, const HostTensor& second, int64_t& where);

}  // namespace tilewright::bench
