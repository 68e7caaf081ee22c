// A BERT-shaped encoder with mean pooling and normalised embeddings: the architecture of sentence-transformers' MiniLM
// models.
//
// Reads the folder such a model ships in: config.json, model.safetensors, vocab.txt. One text at a time, f32, no
// dropout.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "models/operators.h"
#include "models/weights.h"

namespace tilewright::models {

struct EncoderConfig {
  int64_t vocabulary = 0, width = 0, layers = 0, heads = 0, ffn_width = 0, max_positions = 0;
  float norm_epsilon = 1e-12f;
};
/// E1608 names the field of config.json.
Result<EncoderConfig> parse_encoder_config(const std::string& config_json);

class Encoder {
 public:
  static Result<Encoder> make(const EncoderConfig& config, std::shared_ptr<const Weights> weights);
  /// Mean of the last hidden states over the tokens, divided by its length: `width` values.
  Result<std::vector<float>> embed(const std::vector<int64_t>& tokens, Operators& operators);
  const EncoderConfig& config() const { return config_; }

 private:
  struct Dense {
    const float *weight, *bias;
  };
  struct Layer {
    Dense query, key, value, attention_output, intermediate, output, attention_norm, output_norm;
  };
  explicit Encoder(const EncoderConfig& config) : config_(config) {}
  Result<Dense> dense(const std::string& name, int64_t out, int64_t in) const;
  Result<Dense> norm(const std::string& name) const;
  Result<Layer> find_layer(int64_t index) const;
  void run_layer(const Layer& layer, int64_t rows, Operators& operators);

  EncoderConfig config_;
  std::shared_ptr<const Weights> weights_;
  const float *words_ = nullptr, *positions_ = nullptr, *types_ = nullptr;
  Dense embedding_norm_{};
  std::vector<Layer> layers_;
  std::vector<float> x_, q_, k_, v_, mixed_, projected_, wide_;
};

/// Word pieces of a text as BERT's uncased tokenizer makes them (ASCII: lower case, punctuation apart, longest pieces
/// first), with [CLS] and [SEP] around them; at most `limit` tokens.
class WordPieces {
 public:
  static Result<WordPieces> read(const std::string& vocabulary_path);
  std::vector<int64_t> tokenize(const std::string& text, size_t limit = 256) const;

 private:
  void add_word(const std::string& word, std::vector<int64_t>& out) const;
  std::map<std::string, int64_t, std::less<>> ids_;
};

}  // namespace tilewright::models
