// Runs a fuzzer's kept inputs through its target again, in the tests: each once broke something or reaches code the
// others do not. The target is linked into the test (tests/fuzz/*_fuzz.cpp).
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace tilewright::fuzz {

/// Every file of tests/fuzz/corpus/`reader`; a corpus without files fails.
inline void replay_corpus(const std::string& reader) {
  int inputs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TW_SOURCE_DIR "/tests/fuzz/corpus/" + reader)) {
    SCOPED_TRACE(entry.path().string());
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(file), {});
    EXPECT_EQ(LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()), 0);
    ++inputs;
  }
  EXPECT_GT(inputs, 0);
}

}  // namespace tilewright::fuzz
