#include "runtime/cuda/reports.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/report_layout.h"

namespace tilewright::cuda {
namespace {

namespace report = runtime::report;
using runtime::FailureCode;

}  // namespace

Result<uint64_t> Reports::address() {
  const std::lock_guard lock(mutex_);
  if (!buffer_) {
    auto made = DeviceBuffer::allocate(device_, report::kBytes);
    if (!made) return std::unexpected(made.error());
    if (Status s = made->fill_bytes(0); !s) return std::unexpected(s.error());
    if (Status s = device_.synchronize(); !s) return std::unexpected(s.error());
    buffer_ = std::make_unique<DeviceBuffer>(std::move(*made));
  }
  return buffer_->address();
}

int32_t Reports::add(const std::vector<runtime::Message>& messages) {
  const std::lock_guard lock(mutex_);
  const auto first = static_cast<int32_t>(messages_.size());
  messages_.insert(messages_.end(), messages.begin(), messages.end());
  return first;
}

runtime::Status Reports::read() {
  const std::lock_guard lock(mutex_);
  if (!buffer_) return {};
  uint32_t head[2] = {};
  if (Status s = buffer_->download(head, sizeof head); !s) return to_status(s);
  if (head[0] == 0 && head[1] == 0) return {};
  std::vector<char> bytes(report::kBytes);
  if (Status s = buffer_->download(bytes.data(), bytes.size()); !s) return to_status(s);
  if (Status s = buffer_->fill_bytes(0); !s) return to_status(s);
  if (Status s = device_.synchronize(); !s) return to_status(s);
  print(bytes, head[1]);
  return head[0] ? failed(bytes) : runtime::Status();
}

const runtime::Message* Reports::find(int32_t id) const {
  return id >= 0 && static_cast<size_t>(id) < messages_.size() ? &messages_[static_cast<size_t>(id)] : nullptr;
}

void Reports::print(const std::vector<char>& bytes, uint32_t wanted) const {
  if (!options_.print) return;
  const auto word = [&](size_t i) {
    int64_t v = 0;
    std::memcpy(&v, bytes.data() + report::kPrints + 8 * i, 8);
    return v;
  };
  const size_t used = std::min<size_t>(wanted, report::kPrintCapacity);
  for (size_t at = 0; at < used;) {
    const int64_t header = word(at);
    if (header == 0) break;  // an entry that did not fit
    std::vector<int64_t> values;
    for (int64_t i = 0; i < header >> 32; ++i) values.push_back(word(at + 1 + static_cast<size_t>(i)));
    at += 1 + values.size();
    const runtime::Message* m = find(static_cast<int32_t>(header & 0xffffffff) - 1);
    options_.print(options_.print_context, m ? m->text.c_str() : "", m ? m->location.c_str() : "", values.data(),
                   static_cast<int32_t>(values.size()));
  }
  if (wanted > report::kPrintCapacity) {
    const std::string lost = fmt::format("({} words of printing did not fit the buffer of {})",
                                         wanted - report::kPrintCapacity, report::kPrintCapacity);
    options_.print(options_.print_context, lost.c_str(), "", nullptr, 0);
  }
}

runtime::Status Reports::failed(const std::vector<char>& bytes) const {
  tw_record record;
  std::memcpy(&record, bytes.data() + report::kRecord, sizeof record);
  const runtime::Message* m = find(record.id);
  std::string text = m ? m->location + ": assertion failed: " + m->text : fmt::format("assertion {} failed", record.id);
  text += fmt::format(" (block {}", record.block);
  for (int32_t i = 0; i < std::clamp(record.index_count, 0, report::kMostIndices); ++i)
    text += fmt::format("{}{}", i == 0 ? ", index " : ", ", record.indices[i]);
  return runtime::fail(FailureCode::assertion_failed, text + ")");
}

}  // namespace tilewright::cuda
