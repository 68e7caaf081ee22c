// The kept corpus of the files fuzzer, replayed: each input reaches code the others do not.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

TEST(FilesCorpus, EveryInputIsHandled) {
  int inputs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TW_SOURCE_DIR "/tests/fuzz/corpus/files")) {
    SCOPED_TRACE(entry.path().string());
    std::ostringstream text;
    text << std::ifstream(entry.path(), std::ios::binary).rdbuf();
    const std::string bytes = text.str();
    EXPECT_EQ(LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()), 0);
    ++inputs;
  }
  EXPECT_GT(inputs, 0);
}

}  // namespace
