#include "models/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "bench/oracle/data.h"
#include "candidate/child_process.h"
#include "measure/clock.h"
#include "measure/latin_square.h"
#include "measure/order_statistics.h"

namespace tilewright::models {
namespace {

enum Contender { kLibrary, kLibraryAgain, kSwapped };

double now_ms() { return static_cast<double>(measure::kernel_ns()) * 1e-6; }

double median_of(const std::vector<double>& values) {
  return values.empty() ? 0 : measure::median(measure::sorted(values));
}

/// Per contender: one value per round, and all single values of the phase.
struct Samples {
  std::vector<double> per_round[3];
  std::vector<double> all[3];
};

PhaseTimes phase_times(std::string name, const Samples& samples) {
  PhaseTimes phase{std::move(name), median_of(samples.all[kLibrary]), median_of(samples.all[kSwapped]), {}, {}, {}};
  phase.p99_library = measure::supported_percentile(measure::sorted(samples.all[kLibrary]), 0.99);
  phase.p99_swapped = measure::supported_percentile(measure::sorted(samples.all[kSwapped]), 0.99);
  phase.paired = measure::compare_paired(samples.per_round[kSwapped], samples.per_round[kLibrary]);
  return phase;
}

void add_round(const RoundTime& time, Contender who, Samples& prefill, Samples& step, Samples& whole) {
  prefill.per_round[who].push_back(time.prefill);
  prefill.all[who].push_back(time.prefill);
  whole.per_round[who].push_back(time.total);
  whole.all[who].push_back(time.total);
  if (time.steps.empty()) return;
  step.per_round[who].push_back(median_of(time.steps));
  step.all[who].insert(step.all[who].end(), time.steps.begin(), time.steps.end());
}

double time_of(const Profile& profile, const std::vector<std::string>& keys) {
  double ms = 0;
  for (const ProfileRow& row : profile.rows) {
    if (std::ranges::find(keys, row.workload) != keys.end()) ms += row.ms;
  }
  return ms;
}

void add_amdahl(const Profile& swapped, Comparison& out) {
  const double before = time_of(out.library_profile, out.taken), after = time_of(swapped, out.taken);
  out.operator_share = out.library_profile.total_ms > 0 ? before / out.library_profile.total_ms : 0;
  out.operator_speedup = after > 0 ? before / after : 1;
  out.predicted_speedup = 1 / ((1 - out.operator_share) + out.operator_share / out.operator_speedup);
}

nlohmann::json paired_json(const measure::PairedResult& p, bool may_judge = true) {
  return {{"ratio", p.ratio},
          {"low95", p.interval95.low},
          {"high95", p.interval95.high},
          {"rounds", p.rounds},
          {"verdict", may_judge ? measure::name(p.verdict) : "no verdict"}};
}

}  // namespace

std::vector<int64_t> random_prompt(const DecoderConfig& config, int64_t count, uint64_t seed) {
  const HostTensor draws =
      bench::make_tensor({"prompt", DType::U8, {count * 2}, bench::Role::Packed}, {bench::Distribution::Normal, seed});
  std::vector<int64_t> tokens;
  for (int64_t i = 0; i < count; ++i) {
    tokens.push_back((draws.as<uint8_t>()[2 * i] * 256 + draws.as<uint8_t>()[2 * i + 1]) % config.vocabulary);
  }
  return tokens;
}

Result<TimedRun> run_once(Decoder& decoder, const RunShape& shape, Operators& operators) {
  TimedRun run;
  decoder.reset();
  std::vector<int64_t> next = shape.prompt;
  const double start = now_ms();
  double last = start;
  for (int64_t i = 0; i < std::max<int64_t>(shape.new_tokens, 1); ++i) {
    auto logits = decoder.forward(next, operators);
    if (!logits) return std::unexpected(logits.error());
    run.tokens.push_back(argmax(*logits));
    next = {run.tokens.back()};
    const double now = now_ms();
    if (i == 0) {
      run.time.prefill = now - last;
    } else {
      run.time.steps.push_back(now - last);
    }
    last = now;
  }
  run.time.total = last - start;
  return run;
}

Result<Profile> profile(Decoder& decoder, const RunShape& shape, Operators& operators, int repeats) {
  TimedOperators timed(operators);
  if (auto warm = run_once(decoder, shape, timed); !warm) return std::unexpected(warm.error());
  using Times = std::map<std::string, OperatorTime>;
  std::vector<std::pair<double, Times>> runs;
  for (int i = 0; i < std::max(repeats, 1); ++i) {
    timed.clear();
    auto run = run_once(decoder, shape, timed);
    if (!run) return std::unexpected(run.error());
    runs.emplace_back(run->time.total, timed.times());
  }
  // One run as a whole, so that shares add up: medians taken per operator would drop what disturbed a different one
  // each time.
  std::ranges::sort(runs, {}, &std::pair<double, Times>::first);
  const auto& [total, times] = runs[runs.size() / 2];
  Profile out;
  out.total_ms = total;
  out.other_share = 1;
  for (const auto& [key, entry] : times) {
    const double share = entry.ms / total;
    out.rows.push_back({key, entry.calls, entry.ms, share, share < 1 ? 1 / (1 - share) : 1e9});
    out.other_share -= share;
  }
  std::ranges::sort(out.rows, std::greater<>(), &ProfileRow::ms);
  return out;
}

std::vector<ProfileRow> by_operator(const Profile& profile) {
  std::map<std::string, ProfileRow> sums;
  for (const ProfileRow& row : profile.rows) {
    ProfileRow& sum = sums[row.workload.substr(0, row.workload.find(':'))];
    sum.calls += row.calls;
    sum.ms += row.ms;
    sum.share += row.share;
  }
  std::vector<ProfileRow> rows;
  for (auto& [name, row] : sums) {
    row.workload = name;
    row.largest_gain = row.share < 1 ? 1 / (1 - row.share) : 1e9;
    rows.push_back(row);
  }
  std::ranges::sort(rows, std::greater<>(), &ProfileRow::ms);
  return rows;
}

Result<Comparison> compare_models(Decoder& decoder, Operators& library, const SwapOptions& swap,
                                  const ComparisonOptions& options) {
  SwappedOperators swapped(library, swap);
  Comparison out;
  auto checked = run_once(decoder, options.shape, swapped);  // prepares and checks every shape
  if (!checked) return std::unexpected(checked.error());
  out.taken = swapped.taken();
  out.refused = swapped.refused();
  if (out.taken.empty()) {
    return fail(DiagnosticCode::E3201,
                fmt::format("the candidate takes no '{}' of this model{}{}", swap.operation,
                            out.refused.empty() ? "" : ": ", out.refused.empty() ? "" : out.refused.begin()->second),
                "operators of a decoder: gemm, attn, rmsnorm, swiglu");
  }
  auto plain = run_once(decoder, options.shape, library);
  if (!plain) return std::unexpected(plain.error());
  out.same_tokens = plain->tokens == checked->tokens;
  auto library_profile = profile(decoder, options.shape, library);
  auto swapped_profile = profile(decoder, options.shape, swapped);
  if (!library_profile) return std::unexpected(library_profile.error());
  if (!swapped_profile) return std::unexpected(swapped_profile.error());
  out.library_profile = *std::move(library_profile);
  add_amdahl(*swapped_profile, out);

  Samples prefill, step, whole;
  int done = 0;
  for (const std::vector<int>& order : measure::latin_rounds(3, options.rounds, options.seed)) {
    for (int who : order) {
      auto run = run_once(decoder, options.shape, who == kSwapped ? static_cast<Operators&>(swapped) : library);
      if (!run) return std::unexpected(run.error());
      add_round(run->time, static_cast<Contender>(who), prefill, step, whole);
    }
    if (options.progress) options.progress(++done, options.rounds);
  }
  out.phases.push_back(phase_times("prefill", prefill));
  if (!step.all[0].empty()) out.phases.push_back(phase_times("decode step", step));
  out.phases.push_back(phase_times("whole", whole));
  out.identical = measure::judge_identical(whole.per_round[kLibrary], whole.per_round[kLibraryAgain]);
  for (size_t r = 0; r < whole.per_round[0].size(); ++r) {
    out.whole_ms.push_back({whole.per_round[kLibrary][r], whole.per_round[kSwapped][r]});
  }
  out.measured_speedup = 1 / out.phases.back().paired.ratio;
  return out;
}

Result<CommandComparison> compare_command(const std::string& command, int rounds, uint64_t seed) {
  constexpr std::chrono::milliseconds kLimit{120'000};
  constexpr int kNotExecutable = 126, kNotFound = 127;  // of a shell
  auto child = candidate::ChildProcess::start({{"sh", "-c", command}, {}, "", false});
  if (!child) return std::unexpected(child.error());
  const auto expect = [&](const std::string& wanted) -> Status {
    auto line = child->read_line(kLimit);
    if (!line) return std::unexpected(line.error());
    if (line->starts_with(wanted)) return {};
    return fail(DiagnosticCode::E3205, fmt::format("the model command said '{}', expected '{}'", *line, wanted),
                "it reads lines `a` or `b`, runs one forward, answers `done`; first of all it says `ready`");
  };
  if (auto ok = expect("ready"); !ok) {
    const int code = ok.error().code == DiagnosticCode::E3202 ? child->wait(std::chrono::seconds(1)).exit_code : 0;
    if (code != kNotFound && code != kNotExecutable) return std::unexpected(ok.error());
    return fail(DiagnosticCode::E3200,
                fmt::format("the model command '{}' cannot be started: {}", command, child->stderr_tail()),
                "--model-cmd takes what a shell takes, e.g. 'python3 examples/models/ort_swapped.py'");
  }
  const auto run = [&](const char* which) -> Result<double> {
    const double start = now_ms();
    if (auto ok = child->send_line(which); !ok) return std::unexpected(ok.error());
    if (auto ok = expect("done"); !ok) return std::unexpected(ok.error());
    return now_ms() - start;
  };
  Samples samples;
  for (const char* warm : {"a", "b", "a", "b"}) {
    if (auto ok = run(warm); !ok) return std::unexpected(ok.error());
  }
  for (const std::vector<int>& order : measure::latin_rounds(3, rounds, seed)) {
    for (int who : order) {
      auto ms = run(who == kSwapped ? "b" : "a");
      if (!ms) return std::unexpected(ms.error());
      samples.per_round[who].push_back(*ms);
      samples.all[who].push_back(*ms);
    }
  }
  CommandComparison out{phase_times("whole", samples),
                        measure::judge_identical(samples.per_round[kLibrary], samples.per_round[kLibraryAgain]),
                        {}};
  for (size_t r = 0; r < samples.per_round[0].size(); ++r) {
    out.whole_ms.push_back({samples.per_round[kLibrary][r], samples.per_round[kSwapped][r]});
  }
  return out;
}

nlohmann::json to_json(const Comparison& c) {
  nlohmann::json phases = nlohmann::json::array(), profile_rows = nlohmann::json::array();
  const auto percentile = [](const std::optional<double>& p) {
    return p ? nlohmann::json(*p) : nlohmann::json("percentile-unsupported");
  };
  for (const PhaseTimes& p : c.phases) {
    phases.push_back({{"phase", p.name},
                      {"p50_library_ms", p.p50_library},
                      {"p50_swapped_ms", p.p50_swapped},
                      {"p99_library_ms", percentile(p.p99_library)},
                      {"p99_swapped_ms", percentile(p.p99_swapped)},
                      {"paired", paired_json(p.paired, c.identical.passed)}});
  }
  for (const ProfileRow& row : c.library_profile.rows) {
    profile_rows.push_back({{"workload", row.workload},
                            {"calls", row.calls},
                            {"ms", row.ms},
                            {"share", row.share},
                            {"largest_gain", row.largest_gain}});
  }
  return {
      {"phases", phases},
      {"gate", {{"passed", c.identical.passed}, {"why", c.identical.why}, {"paired", paired_json(c.identical.result)}}},
      {"same_tokens", c.same_tokens},
      {"taken", c.taken},
      {"refused", c.refused},
      {"operator_share", c.operator_share},
      {"operator_speedup", c.operator_speedup},
      {"predicted_speedup", c.predicted_speedup},
      {"measured_speedup", c.measured_speedup},
      {"rounds_ms", c.whole_ms},
      {"profile", profile_rows}};
}

}  // namespace tilewright::models
