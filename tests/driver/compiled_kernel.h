// A kernel of a text compiled for this machine: what the tests that run code share.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "codegen/backend.h"
#include "driver/compile.h"
#include "driver/program.h"

namespace tilewright::driver {

/// Skips the test where there is no compiler.
#define TW_NEEDS_COMPILER() \
  if (const auto backend = codegen::open_backend(); !backend) GTEST_SKIP() << backend.error().message

inline Compilation compile_text(const std::string& text, const std::string& file = "kernel.tile") {
  const auto source = lang::parse_source(text, file);
  EXPECT_TRUE(source);
  const auto program = load_program(*source, {.path = file});
  EXPECT_TRUE(program) << program.error().rendered;
  auto compilation = compile(program->kernel, {});
  EXPECT_TRUE(compilation);
  return std::move(*compilation);
}

}  // namespace tilewright::driver
