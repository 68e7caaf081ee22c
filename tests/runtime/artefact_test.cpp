#include "runtime/artefact.h"

#include <gtest/gtest.h>

#include "runtime/matmul_recipe.h"

namespace tilewright::runtime {
namespace {

std::string example() {
  return serialise(Artefact{.recipe = matmul_recipe(),
                            .code = std::string("\x7f"
                                                "ELF and then some")});
}

TEST(Artefact, ReadsBackEqual) {
  const auto read = parse_artefact(example());
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->recipe, matmul_recipe());
  EXPECT_EQ(read->code,
            "\x7f"
            "ELF and then some");
  EXPECT_EQ(serialise(*read), example());
}

TEST(Artefact, EverySingleDamagedByteIsFound) {
  const std::string bytes = example();
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] ^= 0x20;
    EXPECT_FALSE(parse_artefact(damaged).has_value()) << i;
  }
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(parse_artefact(bytes.substr(0, size)).has_value()) << size;
}

TEST(Artefact, SaysWhy) {
  EXPECT_EQ(parse_artefact("hello").error().message, "not a Tilewright kernel file");
  std::string other = example();
  other[8] = 9;
  EXPECT_EQ(parse_artefact(other).error().message, "the kernel file has format version 9, this library reads 1");
  other = example();
  other.back() ^= 1;
  EXPECT_EQ(parse_artefact(other).error().message, "the kernel file is damaged: its digest does not match");
}

}  // namespace
}  // namespace tilewright::runtime
