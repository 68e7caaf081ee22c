// A decoder-only transformer: RMSNorm, rotary positions, grouped-query attention with a KV cache, SwiGLU; greedy
// decoding.
//
// Configuration and weights carry the names of Hugging Face's Llama family, so such a folder (config.json,
// model.safetensors) loads; `tiny` and `125m` are built in with seeded random weights. f32 throughout. One sequence at
// a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "models/operators.h"
#include "models/weights.h"

namespace tilewright::models {

struct DecoderConfig {
  int64_t vocabulary = 0, width = 0, layers = 0, heads = 0, kv_heads = 0, head_width = 0, ffn_width = 0,
          max_positions = 0;
  double rope_theta = 10000;
  float norm_epsilon = 1e-5f;
  bool tied_embeddings = false;
};
/// "tiny" (0.2 M parameters) or "125m". E1608.
Result<DecoderConfig> decoder_size(const std::string& name);
/// E1608 names the field of config.json.
Result<DecoderConfig> parse_decoder_config(const std::string& config_json);
Weights random_decoder_weights(const DecoderConfig& config, uint64_t seed);

class Decoder {
 public:
  /// Checks that every weight is there in the right shape.
  static Result<Decoder> make(const DecoderConfig& config, std::shared_ptr<const Weights> weights);

  /// Processes `tokens` after what the cache holds; logits of the last one.
  Result<std::vector<float>> forward(const std::vector<int64_t>& tokens, Operators& operators);
  /// Prefill, then `count` greedy steps: the tokens chosen.
  Result<std::vector<int64_t>> generate(const std::vector<int64_t>& prompt, int64_t count, Operators& operators);
  void reset() { length_ = 0; }

  const DecoderConfig& config() const { return config_; }
  int64_t length() const { return length_; }  ///< positions in the cache

 private:
  struct Layer {
    const float *input_norm, *q, *k, *v, *o, *ffn_norm, *gate, *up, *down;
  };
  explicit Decoder(const DecoderConfig& config) : config_(config) {}
  Status find_weights();
  void attention_block(const Layer& layer, size_t index, int64_t rows, Operators& operators);
  void ffn_block(const Layer& layer, int64_t rows, Operators& operators);
  void rotate(float* x, int64_t rows, int64_t heads) const;

  DecoderConfig config_;
  std::shared_ptr<const Weights> weights_;
  const float *embedding_ = nullptr, *final_norm_ = nullptr, *head_ = nullptr;
  std::vector<Layer> layers_;
  std::vector<std::vector<float>> k_cache_, v_cache_;  // per layer, [max_positions × kv_heads × head_width]
  std::vector<float> inverse_frequency_;
  int64_t length_ = 0;
  std::vector<float> x_, normed_, q_, attended_, gate_, up_, activated_, projected_;
};

int64_t argmax(const std::vector<float>& values);

}  // namespace tilewright::models
