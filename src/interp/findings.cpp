#include "interp/findings.h"

#include <fmt/format.h>

namespace tilewright::interp {

void Findings::add(DiagnosticCode code, const ir::Op& op, const ir::Value* buffer, const std::function<Text()>& text) {
  const auto [found, is_new] = known_.try_emplace({code, &op, buffer}, list_.size());
  if (!is_new) {
    ++list_[found->second].count;
    return;
  }
  Text made = text();
  list_.push_back({.diagnostic = {.code = code,
                                  .location = op.location,
                                  .message = std::move(made.message),
                                  .help = std::move(made.help),
                                  .notes = std::move(made.notes)}});
}

std::vector<Diagnostic> Findings::take() {
  std::vector<Diagnostic> out;
  for (Entry& entry : list_) {
    if (entry.count > 1) {
      entry.diagnostic.notes.push_back({.text = fmt::format("and {} more of this kind here", entry.count - 1)});
    }
    out.push_back(std::move(entry.diagnostic));
  }
  list_.clear();
  known_.clear();
  return out;
}

}  // namespace tilewright::interp
