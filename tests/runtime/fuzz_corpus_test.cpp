// Replays the inputs that fuzzing found interesting (tests/fuzz/corpus/records) through the same readers.
#include "fuzz/replay_corpus.h"
#include "runtime/add_recipe.h"
#include "runtime/matmul_recipe.h"

namespace tilewright::runtime {
namespace {

int run(const std::string& input) {
  return LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

std::string with_reader(char reader, const std::string& bytes) { return std::string(1, reader) + bytes; }

TEST(FuzzCorpus, EveryInputIsHandled) { fuzz::replay_corpus("records"); }

// Writes the seeds that scripts/fuzz_readers.sh starts from.
TEST(FuzzCorpus, SeedsAreReadWhole) {
  const char* const folder = std::getenv("TW_FUZZ_SEEDS");
  const std::pair<const char*, std::string> seeds[] = {
      {"recipe_matmul", with_reader(0, serialise(matmul_recipe()))},
      {"recipe_add", with_reader(0, serialise(add_artefact().recipe))},
      {"artefact_add", with_reader(1, serialise(add_artefact()))},
      {"object_add", with_reader(2, add_artefact().code)},
  };
  for (const auto& [name, bytes] : seeds) {
    EXPECT_EQ(run(bytes), 0);
    if (folder) std::ofstream(std::string(folder) + "/" + name, std::ios::binary) << bytes;
  }
}

}  // namespace
}  // namespace tilewright::runtime
