#include "fuzz/campaign.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "fuzz/isolated.h"
#include "fuzz/shrink.h"
#include "ir/printer.h"

namespace tilewright::fuzz {
namespace {

constexpr int64_t kNoLimit = int64_t{1} << 40;
constexpr std::string_view kKeptHeader = "tilewright fuzz case 1";

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

int operation_count(const ir::Kernel& kernel) {
  int n = 0;
  ir::for_each_op(*kernel.body, [&](ir::Op&) { ++n; });
  return n;
}

/// The first line of a refusal without its place and its numbers, so that equal reasons are counted together.
std::string kind_of(const std::string& refusal) {
  std::string out;
  for (const char c : refusal.substr(0, refusal.find('\n')))
    if (c < '0' || c > '9')
      out += c;
    else if (out.empty() || out.back() != '#')
      out += '#';
  return out;
}

class Campaign {
 public:
  Campaign(Subject& subject, const CampaignOptions& options) : subject_(subject), options_(options) {}

  CampaignReport run(const std::function<void(const CampaignReport&)>& progress) {
    const double start = now();
    const int64_t count = options_.seconds > 0 ? kNoLimit : options_.cases;
    const auto judge_one = [&](int64_t i) { return judge_choices(fresh(options_.first + i)); };
    const auto done = [&](int64_t i, const Judgement& j) {
      record(options_.first + i, j);
      report_.seconds = now() - start;
      if (progress) progress(report_);
      const bool in_time = options_.seconds <= 0 || report_.seconds < options_.seconds;
      return in_time && static_cast<int>(report_.failures.size()) < options_.most_failures;
    };
    if (options_.isolate) {
      judge_isolated(count, judge_one, done, isolation());
    } else {
      for (int64_t i = 0; i < count && done(i, judge_one(i)); ++i) continue;
    }
    return std::move(report_);
  }

 private:
  std::vector<uint32_t> fresh(int64_t i) const {
    Choices choices(case_seed(options_.seed, i));
    generate(choices, options_.generate);
    return choices.made();
  }
  Case replay(const std::vector<uint32_t>& made) const {
    Choices choices(made);
    return generate(choices, options_.generate);
  }
  Judgement judge_choices(const std::vector<uint32_t>& made) { return judge(replay(made), subject_, options_.plant); }

  IsolatedOptions isolation() const {
    if (!subject_.needs_fresh_process()) return {};
    return {.cases_per_child = 50, .ends_at_failure = true};
  }

  Judgement judge_once(const std::vector<uint32_t>& made) {
    if (!options_.isolate) return judge_choices(made);
    Judgement out;
    judge_isolated(
        1, [&](int64_t) { return judge_choices(made); },
        [&](int64_t, const Judgement& j) {
          out = j;
          return true;
        },
        isolation());
    return out;
  }

  void record(int64_t number, const Judgement& j) {
    const std::vector<uint32_t> made = fresh(number);
    const Case c = replay(made);
    ++report_.cases;
    ++report_.verdicts[j.verdict];
    ++report_.comparisons[c.comparison];
    if (!j.form.empty()) ++report_.forms[j.form];
    if (j.verdict == Verdict::Refused) ++report_.refusals[kind_of(j.detail)];
    report_.elements += j.elements;
    report_.tainted += j.tainted;
    report_.coverage.add(c.kernel);
    if (is_failure(j.verdict)) keep(number, j, made);
  }

  void keep(int64_t number, const Judgement& found, const std::vector<uint32_t>& made) {
    Failure f = {.number = number, .verdict = found.verdict};
    f.choices = shrink(
        made, [&](const std::vector<uint32_t>& candidate) { return judge_once(candidate).verdict == found.verdict; },
        {.tries = options_.shrink_tries});
    const Case c = replay(f.choices);
    f.detail = judge_once(f.choices).detail;
    if (f.detail.empty()) f.detail = found.detail;
    f.kernel = describe(c);
    f.operations = operation_count(c.kernel);
    if (!options_.keep_in.empty()) write(f);
    report_.failures.push_back(std::move(f));
  }

  void write(Failure& f) const {
    std::filesystem::create_directories(options_.keep_in);
    f.file =
        (std::filesystem::path(options_.keep_in) / fmt::format("seed{}-case{}.fuzz", options_.seed, f.number)).string();
    std::ofstream out(f.file);
    out << fmt::format("{}\nchoices: {}\nfound by: seed {}, case {}{}\nverdict: {}\n{}\n\n{}", kKeptHeader,
                       fmt::join(f.choices, " "), options_.seed, f.number,
                       options_.plant.is_empty() ? "" : fmt::format(", plant {}", to_string(options_.plant)),
                       name(f.verdict), f.detail, f.kernel);
  }

  Subject& subject_;
  const CampaignOptions& options_;
  CampaignReport report_;
};

}  // namespace

uint64_t case_seed(uint64_t seed, int64_t number) {
  return seed * 0x9E3779B97F4A7C15ULL + static_cast<uint64_t>(number) * 0xD1B54A32D192ED03ULL;
}

std::string describe(const Case& c) {
  std::string out = fmt::format("{} comparison; ", c.comparison == Comparison::Exact ? "exact" : "bounded");
  for (size_t i = 0; i < c.dimensions.size(); ++i)
    out += fmt::format("{} = {} ", c.kernel.dimensions[i].name, c.dimensions[i]);
  for (size_t i = 0; i < c.tensors.size(); ++i) {
    if (c.tensors[i].padding)
      out += fmt::format("; pitch of {} + {}", c.kernel.tensors[i].buffer->name, c.tensors[i].padding);
  }
  return out + "\n" + ir::to_text(c.kernel);
}

CampaignReport run_campaign(Subject& subject, const CampaignOptions& options,
                            const std::function<void(const CampaignReport&)>& progress) {
  return Campaign(subject, options).run(progress);
}

Result<std::vector<uint32_t>> read_kept(const std::string& path) {
  std::ifstream in(path);
  std::string header, line;
  if (!std::getline(in, header) || header != kKeptHeader || !std::getline(in, line) || !line.starts_with("choices:")) {
    return fail(DiagnosticCode::E1216, fmt::format("{} is not a kept fuzz case", path),
                "files of --keep start with their choices");
  }
  std::vector<uint32_t> out;
  std::istringstream numbers(line.substr(8));
  for (uint32_t v; numbers >> v;) out.push_back(v);
  return out;
}

}  // namespace tilewright::fuzz
