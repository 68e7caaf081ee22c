// A fuzzing campaign: many cases from one seed, failures shrunk and kept.
//
// Case number i of seed s is the same whatever ran before it. With a planted mistake, the campaign is a test of the
// tests: it must find it.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "fuzz/coverage.h"
#include "fuzz/generate.h"
#include "fuzz/judge.h"

namespace tilewright::fuzz {

struct CampaignOptions {
  int64_t cases = 2000;
  double seconds = 0;  ///< not 0: run until then instead
  int64_t first = 0;   ///< number of the first case
  uint64_t seed = 1;
  Plant plant;
  GenerateOptions generate;
  std::string keep_in;     ///< folder for shrunk failures; empty: not kept
  int most_failures = 10;  ///< stop after so many
  int shrink_tries = 1000;
  bool isolate = true;  ///< judge in child processes
};

struct Failure {
  int64_t number = 0;  ///< of the case
  Verdict verdict = Verdict::Mismatch;
  std::string detail;             ///< of the shrunk case
  std::vector<uint32_t> choices;  ///< shrunk
  std::string kernel;             ///< shrunk, IR text with the shapes
  int operations = 0;             ///< in the shrunk kernel
  std::string file;               ///< where it was kept
};

struct CampaignReport {
  int64_t cases = 0;
  std::map<Verdict, int64_t> verdicts;
  std::map<Comparison, int64_t> comparisons;
  std::map<std::string, int64_t> forms;     ///< what kinds of code ran (Judgement::form)
  std::map<std::string, int64_t> refusals;  ///< by message, digits left out
  int64_t elements = 0;
  int64_t tainted = 0;
  Coverage coverage;
  std::vector<Failure> failures;
  double seconds = 0;
};

/// `progress` is called after each case.
CampaignReport run_campaign(Subject& subject, const CampaignOptions& options,
                            const std::function<void(const CampaignReport&)>& progress = {});

/// The choices of case `number` of a campaign.
uint64_t case_seed(uint64_t seed, int64_t number);

/// A kept failure's choices (E1216 when the file is not one), and its judgement now.
Result<std::vector<uint32_t>> read_kept(const std::string& path);

/// The kernel and the sizes of its call, for people.
std::string describe(const Case& c);

}  // namespace tilewright::fuzz
