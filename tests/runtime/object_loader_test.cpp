#include "runtime/object_loader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <random>
#include <sstream>

#include "tilewright/tilewright.h"

namespace tilewright::runtime {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

TEST(ObjectLoader, RunsLoadedCode) {
  const auto loaded = LoadedObject::load(read_file(TW_ADD_KERNEL));
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  const auto entry = reinterpret_cast<tw_cpu_entry>(loaded->find("tw_test_add"));
  ASSERT_NE(entry, nullptr);
  const std::vector<float> a = {1, 2, 3};
  const std::vector<float> b = {10, 20, 30};
  std::vector<float> c(3);
  const int64_t slots[] = {3, 0x40000000};  // n, 2.0f
  void* const pointers[] = {const_cast<float*>(a.data()), const_cast<float*>(b.data()), c.data()};
  tw_record record = {};
  const tw_launch launch = {slots, pointers, &record, nullptr, nullptr};
  std::vector<float> scratch(1024);
  EXPECT_EQ(entry(&launch, 0, 1, scratch.data()), 0);
  EXPECT_EQ(c, (std::vector<float>{21, 42, 63}));
  const auto table = reinterpret_cast<float (*)(int64_t)>(loaded->find("tw_test_table"));
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(table(2), 2.0f);  // constants are reached
  EXPECT_EQ(loaded->find("tw_test_missing"), nullptr);
}

TEST(ObjectLoader, RefusesState) {
  const auto loaded = LoadedObject::load(read_file(TW_WRITABLE_KERNEL));
  ASSERT_FALSE(loaded.has_value());
  EXPECT_EQ(loaded.error().code, FailureCode::bad_object);
  EXPECT_EQ(loaded.error().message, "object: writable data in .data");
}

TEST(ObjectLoader, RefusesCallsOutsideTheList) {
  const auto loaded = LoadedObject::load(read_file(TW_OUTSIDE_KERNEL));
  ASSERT_FALSE(loaded.has_value());
  EXPECT_EQ(loaded.error().message, "object: needs 'system', which kernels may not call");
}

TEST(ObjectLoader, CodeIsNeverWritableAndExecutable) {
  const auto loaded = LoadedObject::load(read_file(TW_ADD_KERNEL));
  ASSERT_TRUE(loaded.has_value());
  const auto address = reinterpret_cast<uintptr_t>(loaded->find("tw_test_add"));
  std::ifstream maps("/proc/self/maps");
  std::string line;
  bool found = false;
  while (std::getline(maps, line)) {
    uintptr_t begin = 0, end = 0;
    char rights[5] = {};
    if (std::sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, rights) != 3) continue;
    EXPECT_FALSE(rights[1] == 'w' && rights[2] == 'x') << line;
    if (address < begin || address >= end) continue;
    found = true;
    EXPECT_STREQ(rights, "r-xp");
  }
  EXPECT_TRUE(found);
}

TEST(ObjectLoader, EveryTruncationIsRefused) {
  const std::string object = read_file(TW_ADD_KERNEL);
  ASSERT_GT(object.size(), 64u);
  for (size_t size = 0; size < object.size(); size += 1 + size / 64) {
    EXPECT_FALSE(LoadedObject::load(std::string_view(object).substr(0, size)).has_value()) << size;
  }
  EXPECT_FALSE(LoadedObject::load("#!/bin/sh\n").has_value());
}

// Damage in headers, symbols, relocations: accepted or refused, but nothing outside the mapping is touched (the
// sanitizers and the guard of the mapping would say so). The code is not run.
TEST(ObjectLoader, SurvivesDamage) {
  const std::string object = read_file(TW_ADD_KERNEL);
  const uint32_t seed = std::getenv("TW_SEED") ? std::strtoul(std::getenv("TW_SEED"), nullptr, 10) : 1;
  SCOPED_TRACE("TW_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  int refused = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string damaged = object;
    for (uint32_t n = 1 + random() % 8; n > 0; --n) damaged[random() % damaged.size()] = static_cast<char>(random());
    if (random() % 2) {  // aim at the ELF header and at the section table, which is at the end
      damaged[random() % 64] = static_cast<char>(random());
      damaged[damaged.size() - 1 - random() % 1024] = static_cast<char>(random());
    }
    refused += !LoadedObject::load(damaged).has_value();
  }
  EXPECT_GT(refused, 0);
}

TEST(ObjectLoader, ShowsItsSymbolsToPerf) {
  const auto loaded = LoadedObject::load(read_file(TW_ADD_KERNEL), {.debugger = true, .perf_map = true});
  ASSERT_TRUE(loaded.has_value());
  const std::string path = "/tmp/perf-" + std::to_string(getpid()) + ".map";
  const std::string map = read_file(path);
  char address[32];
  std::snprintf(address, sizeof address, "%lx ", reinterpret_cast<uintptr_t>(loaded->find("tw_test_add")));
  EXPECT_NE(map.find(address), std::string::npos) << map;
  EXPECT_NE(map.find(" tw_test_add\n"), std::string::npos) << map;
  unlink(path.c_str());
}

}  // namespace
}  // namespace tilewright::runtime
