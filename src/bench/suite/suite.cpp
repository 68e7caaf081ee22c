#include "bench/suite/suite.h"

#include <sstream>

namespace tilewright::bench {
namespace {

enum class SuiteId : uint8_t {
#define TW_SUITE(id, name, device, ceiling, flushed, mean_goal, summary) id,
#define TW_RIVALS(id, spellings)
#define TW_CASE(suite, kernel, workload, dtypes, rivals, goal, share)
#define TW_LIFE(kernel, workload, goal_ms)
#include "bench/suite/suites.def"
#undef TW_SUITE
#undef TW_RIVALS
};

enum class Rivals : uint8_t {
#define TW_SUITE(id, name, device, ceiling, flushed, mean_goal, summary)
#define TW_RIVALS(id, spellings) id,
#include "bench/suite/suites.def"
#undef TW_RIVALS
};

std::string_view spellings_of(Rivals rivals) {
  switch (rivals) {
#define TW_RIVALS(id, spellings) \
  case Rivals::id:               \
    return spellings;
#include "bench/suite/suites.def"
#undef TW_RIVALS
#undef TW_SUITE
#undef TW_CASE
#undef TW_LIFE
  }
  return "";
}

std::vector<std::string> words(std::string_view text) {
  std::istringstream in{std::string(text)};
  std::vector<std::string> out;
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}

/// Takes `suffix` off the end of `text`.
bool take_suffix(std::string& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.resize(text.size() - suffix.size());
  return true;
}

SuiteCase make_case(std::string_view kernel, std::string_view workload, std::string_view dtypes, Rivals rivals,
                    double goal, double share) {
  SuiteCase out{kernel, workload, dtypes, words(spellings_of(rivals)), rivals == Rivals::Products, goal, share};
  return out;
}

Contender rival_of(const SuiteCase& c, std::string spelling) {
  Contender out{"", std::string(c.workload), std::string(c.dtypes)};
  if (take_suffix(spelling, "@f32")) out.dtypes = "f32";
  if (take_suffix(spelling, "@unmasked")) out.workload.resize(out.workload.rfind(':'));
  out.candidate = std::move(spelling);
  return out;
}

}  // namespace

std::vector<Contender> SuiteCase::contenders() const {
  std::vector<Contender> out{{"tile:kernels/" + std::string(kernel), std::string(workload), std::string(dtypes)}};
  for (const std::string& rival : rivals) out.push_back(rival_of(*this, rival));
  return out;
}

std::vector<Suite> all_suites() {
  std::vector<Suite> out;
#define TW_SUITE(id, name, device, ceiling, flushed, mean_goal, summary) \
  out.push_back({name, device, CeilingProbe::Kind::ceiling, flushed, mean_goal, summary, {}});
#define TW_RIVALS(id, spellings)
#define TW_LIFE(kernel, workload, goal_ms)
#define TW_CASE(suite, kernel, workload, dtypes, rivals, goal, share) \
  out[static_cast<size_t>(SuiteId::suite)].cases.push_back(           \
      make_case(kernel, workload, dtypes, Rivals::rivals, goal, share));
#include "bench/suite/suites.def"
#undef TW_SUITE
#undef TW_RIVALS
#undef TW_CASE
#undef TW_LIFE
  return out;
}

std::optional<Suite> find_suite(std::string_view name) {
  for (Suite& suite : all_suites()) {
    if (suite.name == name) return std::move(suite);
  }
  return std::nullopt;
}

}  // namespace tilewright::bench
