// Comparison with the files of tests/plan/cpu/golden; `plan_cpu_test --update-golden` or TW_UPDATE_GOLDEN=1 writes them
// anew.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "ir/printer.h"
#include "plan/cpu/plan.h"

namespace tilewright::plan::cpu {

inline bool updates_golden() {
  const auto& arguments = testing::internal::GetArgvs();
  return std::getenv("TW_UPDATE_GOLDEN") || std::ranges::find(arguments, "--update-golden") != arguments.end();
}

inline void compare_golden(const std::string& name, const std::string& text) {
  const std::string path = std::string(TW_SOURCE_DIR) + "/tests/plan/cpu/golden/" + name + ".txt";
  if (updates_golden()) {
    std::ofstream(path) << text;
    return;
  }
  std::ifstream file(path);
  std::ostringstream expected;
  expected << file.rdbuf();
  EXPECT_EQ(text, expected.str()) << path << "; when the change is meant: plan_cpu_test --update-golden";
}

/// The facts, the planned tile operations and the vector functions of one plan.
inline void compare_stages(const std::string& name, const CpuPlan& planned) {
  std::string facts;
  for (const Fact& fact : planned.facts) facts += fact.what + ": " + fact.why + "\n";
  compare_golden(name + ".facts", facts);
  compare_golden(name + ".planned", ir::to_text(planned.planned));
  compare_golden(name + ".vector", ir::to_text(planned.vector));
}

}  // namespace tilewright::plan::cpu
