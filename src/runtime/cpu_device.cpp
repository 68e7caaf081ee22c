#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "runtime/cpu_features.h"
#include "runtime/device.h"
#include "runtime/formula.h"
#include "runtime/pool.h"

namespace tilewright::runtime {
namespace {

constexpr int64_t kSerialBelowNs = 20'000;  // a fork-join with workers that must be woken costs about this
constexpr int64_t kRangesPerWorker = 4;     // evens out blocks of unequal cost without losing contiguity
constexpr size_t kHugePage = size_t{2} << 20;

class CpuCode;

/// A launch of the recipe as it is run.
struct CpuLaunch {
  CpuLaunch(const Launch& launch, tw_cpu_entry entry_)
      : entry(entry_), blocks_per_task(launch.blocks_per_task), cost_ns(launch.cost_ns) {
    for (const Expression& extent : launch.grid) grid.emplace_back(extent);
    has_cost = launch.cost_ns.is_given();
  }

  tw_cpu_entry entry;
  std::vector<Formula> grid;
  Formula blocks_per_task, cost_ns;
  bool has_cost = false;
};

/// One launch as the workers see it.
struct Work {
  const CpuCode* code;
  tw_cpu_entry entry;
  const Execution* execution;
  std::atomic<int64_t> failed_block = INT64_MAX;  ///< the lowest block seen to fail
  std::atomic_flag record_lock = ATOMIC_FLAG_INIT;
  tw_record record = {};
};

class CpuCode final : public Code {
 public:
  CpuCode(LoadedObject object, const std::vector<tw_cpu_entry>& entries, const Recipe& recipe, const tw_pool& pool,
          const CpuOptions& options)
      : object_(std::move(object)), messages_(recipe.messages), pool_(pool), options_(options) {
    for (size_t i = 0; i < entries.size(); ++i) launches_.emplace_back(recipe.launches[i], entries[i]);
  }

  Status run(const Execution& execution) const override;

 private:
  Status run_launch(const CpuLaunch& launch, const Execution& execution) const;
  Status run_alone(tw_cpu_entry entry, int64_t blocks, const Execution& execution) const;
  Status run_shared(const CpuLaunch& launch, int64_t blocks, const Execution& execution) const;
  tw_launch call_of(const Execution& execution, tw_record& record) const;
  Status report(const tw_record& record) const;
  const Message* find_message(int32_t id) const;
  static void run_range(void* work, int64_t begin, int64_t end, int32_t worker);
  static void keep_record(Work& work, const tw_record& record, int64_t block);
  static void print(const tw_launch* launch, int32_t id, const int64_t* values, int32_t count);

  LoadedObject object_;
  std::vector<CpuLaunch> launches_;
  std::vector<Message> messages_;
  tw_pool pool_;
  CpuOptions options_;
};

Status CpuCode::run(const Execution& execution) const {
  for (const CpuLaunch& launch : launches_) {
    if (Status status = run_launch(launch, execution); !status) return status;
  }
  return {};
}

Status CpuCode::run_launch(const CpuLaunch& launch, const Execution& execution) const {
  int64_t blocks = 1;
  for (const Formula& extent : launch.grid) {
    if (!multiply_exact(blocks, std::max<int64_t>(0, extent.value(execution.slots)), blocks)) {
      const auto index = static_cast<size_t>(&launch - launches_.data());
      return fail(FailureCode::too_large, execution.recipe.launches[index].symbol + ": more than 2^63 blocks");
    }
  }
  if (blocks == 0) return {};
  if (blocks == 1 || (launch.has_cost && launch.cost_ns.value(execution.slots) < kSerialBelowNs))
    return run_alone(launch.entry, blocks, execution);
  return run_shared(launch, blocks, execution);
}

tw_launch CpuCode::call_of(const Execution& execution, tw_record& record) const {
  record.id = 0;
  return {execution.slots.data(), execution.pointers.data(), &record, print, const_cast<CpuCode*>(this)};
}

/// All blocks on the caller.
Status CpuCode::run_alone(tw_cpu_entry entry, int64_t blocks, const Execution& execution) const {
  tw_record record;
  const tw_launch call = call_of(execution, record);
  const int32_t failed = entry(&call, 0, blocks, execution.scratch);
  if (failed == 0) return {};
  if (record.id == 0) record = {.id = failed, .block = 0};
  return report(record);
}

Status CpuCode::run_shared(const CpuLaunch& launch, int64_t blocks, const Execution& execution) const {
  Work work{.code = this, .entry = launch.entry, .execution = &execution};
  int64_t grain = launch.blocks_per_task.value(execution.slots);
  if (grain <= 0) grain = std::max<int64_t>(1, blocks / (kRangesPerWorker * pool_.size(pool_.self)));
  pool_.run(pool_.self, run_range, &work, blocks, grain);
  return work.failed_block.load() == INT64_MAX ? Status{} : report(work.record);
}

void CpuCode::run_range(void* context, int64_t begin, int64_t end, int32_t worker) {
  auto& work = *static_cast<Work*>(context);
  const Execution& execution = *work.execution;
  tw_record record;
  const tw_launch launch = work.code->call_of(execution, record);
  void* const scratch = static_cast<char*>(execution.scratch) + static_cast<size_t>(worker) * execution.scratch_stride;
  const int32_t failed = work.entry(&launch, begin, end, scratch);
  if (failed == 0) return;
  if (record.id == 0) record = {.id = failed, .block = begin};
  keep_record(work, record, record.block);
}

/// The record of the lowest failing block among those that ran stays: most often the same one on every run.
void CpuCode::keep_record(Work& work, const tw_record& record, int64_t block) {
  while (work.record_lock.test_and_set(std::memory_order_acquire)) {
  }
  if (block < work.failed_block.load()) {
    work.failed_block = block;
    work.record = record;
  }
  work.record_lock.clear(std::memory_order_release);
}

const Message* CpuCode::find_message(int32_t id) const {
  const auto found = std::ranges::find(messages_, id, &Message::id);
  return found == messages_.end() ? nullptr : &*found;
}

Status CpuCode::report(const tw_record& record) const {
  const Message* const message = find_message(record.id);
  std::string text = message ? message->location + ": assertion failed: " + message->text
                             : "assertion " + std::to_string(record.id) + " failed";
  text += " (block " + std::to_string(record.block);
  const int32_t count = std::clamp<int32_t>(record.index_count, 0, std::size(record.indices));
  for (int32_t i = 0; i < count; ++i) text += (i == 0 ? ", index " : ", ") + std::to_string(record.indices[i]);
  return fail(FailureCode::assertion_failed, text + ")");
}

void CpuCode::print(const tw_launch* launch, int32_t id, const int64_t* values, int32_t count) {
  const auto& code = *static_cast<const CpuCode*>(launch->print_context);
  if (!code.options_.print) return;
  const Message* const message = code.find_message(id);
  code.options_.print(code.options_.print_context, message ? message->text.c_str() : "",
                      message ? message->location.c_str() : "", values, count);
}

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(const CpuOptions& options) : options_(options) {
    if (options.pool) {
      pool_ = *options.pool;
    } else {
      own_pool_ = std::make_unique<ThreadPool>(options.threads, options.spin_us);
      pool_ = own_pool_->interface();
    }
    options_.pool = nullptr;
  }

  tw_device_kind kind() const override { return TW_CPU; }
  std::string description() const override { return "cpu, " + std::to_string(workers()) + " threads"; }
  int32_t workers() const override { return std::max(1, pool_.size(pool_.self)); }
  Result<std::unique_ptr<Code>> load(const Artefact& artefact) override;
  Result<std::unique_ptr<Code>> link(const Recipe& recipe, std::span<const tw_cpu_entry> entries) override;
  Result<void*> allocate(size_t bytes) override;
  void free(void* memory, size_t) override { std::free(memory); }
  Status copy_in(void* to, const void* host, size_t bytes) override { return copy(to, host, bytes); }
  Status copy_out(void* host, const void* from, size_t bytes) override { return copy(host, from, bytes); }
  Status zero(void* memory, size_t bytes, void*) override {
    std::memset(memory, 0, bytes);
    return {};
  }
  Status synchronise(void*) override { return {}; }

 private:
  static Status copy(void* to, const void* from, size_t bytes) {
    std::memcpy(to, from, bytes);
    return {};
  }

  CpuOptions options_;
  std::unique_ptr<ThreadPool> own_pool_;
  tw_pool pool_;
};

Result<std::unique_ptr<Code>> CpuDevice::load(const Artefact& artefact) {
  const Recipe& recipe = artefact.recipe;
  if (artefact.kind != CodeKind::ElfObject)
    return fail(FailureCode::wrong_device, recipe.kernel + " was built for " + recipe.target + ", which is no CPU");
  if (Status status = check_cpu_features(recipe.cpu_features); !status) return std::unexpected(status.error());
  Result<LoadedObject> object = LoadedObject::load(artefact.code, options_.visibility);
  if (!object) return std::unexpected(object.error());
  std::vector<tw_cpu_entry> entries;
  for (const Launch& launch : recipe.launches) {
    void* const entry = object->find(launch.symbol);
    if (launch.target != LaunchTarget::Cpu || !entry) {
      return fail(FailureCode::bad_object, "object: has no entry '" + launch.symbol + "'");
    }
    entries.push_back(reinterpret_cast<tw_cpu_entry>(entry));
  }
  return std::make_unique<CpuCode>(std::move(*object), entries, recipe, pool_, options_);
}

Result<std::unique_ptr<Code>> CpuDevice::link(const Recipe& recipe, std::span<const tw_cpu_entry> entries) {
  if (Status status = check_cpu_features(recipe.cpu_features); !status) return std::unexpected(status.error());
  if (entries.size() != recipe.launches.size() || std::ranges::count(entries, nullptr) != 0) {
    return fail(FailureCode::bad_object, recipe.kernel + " needs " + std::to_string(recipe.launches.size()) +
                                             " entries, got " + std::to_string(entries.size()));
  }
  return std::make_unique<CpuCode>(LoadedObject(), std::vector(entries.begin(), entries.end()), recipe, pool_,
                                   options_);
}

Result<void*> CpuDevice::allocate(size_t bytes) {
  const size_t alignment = bytes >= kHugePage ? kHugePage : kWorkspaceAlignment;
  if (bytes > SIZE_MAX / 2)
    return fail(FailureCode::out_of_memory, "cannot allocate " + std::to_string(bytes) + " bytes");
  const size_t rounded = std::max(alignment, (bytes + alignment - 1) / alignment * alignment);
  void* const memory = std::aligned_alloc(alignment, rounded);
  if (!memory) return fail(FailureCode::out_of_memory, "cannot allocate " + std::to_string(bytes) + " bytes");
  if (bytes >= kHugePage) madvise(memory, rounded, MADV_HUGEPAGE);
  return memory;
}

}  // namespace

std::unique_ptr<Device> open_cpu(const CpuOptions& options) { return std::make_unique<CpuDevice>(options); }

}  // namespace tilewright::runtime
