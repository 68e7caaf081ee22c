#include "candidate/kinds.h"

#include <fmt/core.h>

#include "candidate/library.h"

namespace tilewright::candidate {

void Kinds::add(std::string prefix, std::string what, Maker maker) {
  kinds_[std::move(prefix)] = {std::move(what), std::move(maker)};
}

Result<CandidatePtr> Kinds::make(const std::string& spelling) const {
  const size_t colon = spelling.find(':');
  std::string prefix = colon == std::string::npos ? "" : spelling.substr(0, colon);
  std::string target = colon == std::string::npos ? spelling : spelling.substr(colon + 1);
  if (!kinds_.contains(prefix)) {
    const auto has = [&](const char* ending) {  // the end of the path: options and a kernel's name may follow
      const size_t at = spelling.find(ending);
      return at != std::string::npos && spelling.find('/', at) == std::string::npos;
    };
    prefix = has(".tile") ? "tile" : has(".so") ? "lib" : has(".py") ? "worker" : "";
    target = spelling;
  }
  const auto kind = kinds_.find(prefix);
  if (kind == kinds_.end()) {
    std::string known;
    for (const auto& [name, entry] : kinds_)
      known += fmt::format("{}{}:… ({})", known.empty() ? "" : ", ", name, entry.what);
    return fail(DiagnosticCode::E3200, fmt::format("no kind of candidate is spelled '{}'", spelling),
                spelling == "-" ? "what is judged has a name to be found by again: save the kernel as a file"
                                : "known kinds: " + known);
  }
  return kind->second.maker(target);
}

std::map<std::string, std::string> Kinds::list() const {
  std::map<std::string, std::string> out;
  for (const auto& [name, kind] : kinds_) out[name] = kind.what;
  return out;
}

Kinds built_in_kinds(const WorkerOptions& workers) {
  Kinds kinds;
  kinds.add("lib", "a shared library behind tilewright/candidate.h", make_library_candidate);
  kinds.add("worker", "a worker process that speaks JSON lines",
            [workers](const std::string& target) { return make_worker_candidate(target, workers); });
  return kinds;
}

}  // namespace tilewright::candidate
