#include "bench/oracle/mask.h"

#include <gtest/gtest.h>

namespace tilewright::bench {
namespace {

/// The documented predicate, per pair.
bool sees(const Mask& mask, SequenceLengths n, int64_t i, int64_t j) {
  if (i >= n.q || j >= n.k) return false;
  const int64_t position = i + n.k - n.q;
  switch (mask.kind) {
    case MaskKind::None: return true;
    case MaskKind::CausalBottomRight: return j <= position;
    case MaskKind::CausalTopLeft: return j <= i;
    case MaskKind::Window: return j <= position && j > position - mask.first;
    case MaskKind::Local: return position - mask.first <= j && j <= position + mask.second;
    case MaskKind::Prefix: return j < mask.first || j <= position;
  }
  return false;
}

TEST(Mask, EveryKindIsItsPredicateForEveryPair) {
  for (const char* spec : {"none", "causal-br", "causal-tl", "window-1", "window-3", "window-0", "local-0-0",
                           "local-2-3", "prefix-0", "prefix-4", "prefix-100"}) {
    const auto mask = parse_mask(spec);
    ASSERT_TRUE(mask) << spec;
    EXPECT_EQ(to_string(*mask), spec);
    for (int64_t sq = 0; sq <= 12; ++sq) {
      for (int64_t sk = 0; sk <= 19; ++sk) {
        const MaskBitmap bitmap = build_bitmap(*mask, 1, sq, sk, {});
        int64_t pairs = 0;
        for (int64_t i = 0; i < sq; ++i) {
          for (int64_t j = 0; j < sk; ++j) {
            const bool bit = bitmap.bytes[static_cast<size_t>(i * ((sk + 7) / 8) + j / 8)] >> (j % 8) & 1;
            ASSERT_EQ(bit, sees(*mask, {sq, sk}, i, j))
                << spec << " sq " << sq << " sk " << sk << " at " << i << ',' << j;
            pairs += bit;
          }
        }
        ASSERT_EQ(bitmap.valid_pairs, pairs);
      }
    }
  }
}

TEST(Mask, TopLeftAndBottomRightDifferOnlyOffTheSquare) {
  const Mask tl{MaskKind::CausalTopLeft}, br{MaskKind::CausalBottomRight};
  EXPECT_EQ(build_bitmap(tl, 1, 64, 64, {}).digest, build_bitmap(br, 1, 64, 64, {}).digest);
  EXPECT_NE(build_bitmap(tl, 1, 128, 512, {}).digest, build_bitmap(br, 1, 128, 512, {}).digest);
  EXPECT_EQ(build_bitmap(br, 3, 128, 512, {}).valid_pairs, 3 * (128 * 384 + 128 * 129 / 2));
}

TEST(Mask, LengthsBoundRowsAndKeys) {
  const MaskBitmap bitmap = build_bitmap({MaskKind::CausalBottomRight}, 2, 4, 4, {{2, 3}, {0, 4}});
  EXPECT_EQ(bitmap.valid_pairs, 2 + 3);
  EXPECT_EQ(bitmap.bytes, std::string({3, 7, 0, 0, 0, 0, 0, 0}));
}

TEST(Mask, UnknownSpellingsAreRefused) {
  for (const char* spec : {"causal", "window-", "window-x", "window--1", "local-3", "local-3-", "prefix", ""}) {
    const auto mask = parse_mask(spec);
    ASSERT_FALSE(mask) << spec;
    EXPECT_EQ(mask.error().code, DiagnosticCode::E1603);
  }
}

}  // namespace
}  // namespace tilewright::bench
