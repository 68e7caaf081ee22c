#include "models/decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace tilewright::models {
namespace {

using Json = nlohmann::json;

/// Name and shape of every weight.
template <typename Visit>
void for_each_weight(const DecoderConfig& c, Visit visit) {
  const int64_t q = c.heads * c.head_width, kv = c.kv_heads * c.head_width;
  visit("model.embed_tokens.weight", std::vector<int64_t>{c.vocabulary, c.width});
  for (int64_t l = 0; l < c.layers; ++l) {
    const std::string at = fmt::format("model.layers.{}.", l);
    visit(at + "input_layernorm.weight", std::vector<int64_t>{c.width});
    visit(at + "self_attn.q_proj.weight", std::vector<int64_t>{q, c.width});
    visit(at + "self_attn.k_proj.weight", std::vector<int64_t>{kv, c.width});
    visit(at + "self_attn.v_proj.weight", std::vector<int64_t>{kv, c.width});
    visit(at + "self_attn.o_proj.weight", std::vector<int64_t>{c.width, q});
    visit(at + "post_attention_layernorm.weight", std::vector<int64_t>{c.width});
    visit(at + "mlp.gate_proj.weight", std::vector<int64_t>{c.ffn_width, c.width});
    visit(at + "mlp.up_proj.weight", std::vector<int64_t>{c.ffn_width, c.width});
    visit(at + "mlp.down_proj.weight", std::vector<int64_t>{c.width, c.ffn_width});
  }
  visit("model.norm.weight", std::vector<int64_t>{c.width});
  if (!c.tied_embeddings) visit("lm_head.weight", std::vector<int64_t>{c.vocabulary, c.width});
}

void add_to(std::vector<float>& x, const std::vector<float>& y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) x[static_cast<size_t>(i)] += y[static_cast<size_t>(i)];
}

}  // namespace

Result<DecoderConfig> decoder_size(const std::string& name) {
  if (name == "tiny") return DecoderConfig{512, 64, 2, 4, 2, 16, 176, 256};
  if (name == "125m") return DecoderConfig{32000, 768, 12, 12, 4, 64, 2048, 2048};
  return fail(DiagnosticCode::E1608, fmt::format("there is no built-in decoder '{}'", name),
              "tiny or 125m, or a folder with config.json and model.safetensors");
}

Result<DecoderConfig> parse_decoder_config(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return fail(DiagnosticCode::E1608, "config.json is not a JSON object");
  std::string missing;
  const auto count = [&](const char* key, int64_t fallback) -> int64_t {
    if (!json.contains(key) || json[key].is_null()) {
      if (fallback < 0) missing = key;
      return fallback;
    }
    if (!json[key].is_number_integer() || json[key].get<int64_t>() <= 0) {
      missing = key;
      return 1;
    }
    return json[key].get<int64_t>();
  };
  DecoderConfig c;
  c.vocabulary = count("vocab_size", -1);
  c.width = count("hidden_size", -1);
  c.layers = count("num_hidden_layers", -1);
  c.heads = count("num_attention_heads", -1);
  c.kv_heads = count("num_key_value_heads", c.heads);
  c.head_width = count("head_dim", c.heads > 0 ? c.width / c.heads : -1);
  c.ffn_width = count("intermediate_size", -1);
  c.max_positions = count("max_position_embeddings", 2048);
  const auto real = [&](const char* key, double fallback) {
    return json.contains(key) && json[key].is_number() ? json[key].get<double>() : fallback;
  };
  c.rope_theta = real("rope_theta", 10000);
  c.norm_epsilon = static_cast<float>(real("rms_norm_eps", 1e-5));
  c.tied_embeddings = json.contains("tie_word_embeddings") && json["tie_word_embeddings"] == true;
  if (!missing.empty()) {
    return fail(DiagnosticCode::E1608, fmt::format("config.json: '{}' is missing or not a positive integer", missing));
  }
  if (c.heads % c.kv_heads != 0 || c.head_width % 2 != 0) {
    return fail(DiagnosticCode::E1608,
                fmt::format("config.json: {} heads over {} KV heads of width {}", c.heads, c.kv_heads, c.head_width),
                "heads are a multiple of KV heads, and rotary positions need an even width");
  }
  return c;
}

Weights random_decoder_weights(const DecoderConfig& config, uint64_t seed) {
  Weights weights;
  for_each_weight(config, [&](const std::string& name, std::vector<int64_t> shape) {
    // Kept at unit scale through the layers, so that attention and logits are not degenerate.
    const float deviation = name.starts_with("model.embed") ? 1.0f : 1.0f / std::sqrt(static_cast<float>(shape.back()));
    weights.add_random(name, std::move(shape), deviation, seed);
  });
  return weights;
}

Result<Decoder> Decoder::make(const DecoderConfig& config, std::shared_ptr<const Weights> weights) {
  Decoder decoder(config);
  decoder.weights_ = std::move(weights);
  if (auto ok = decoder.find_weights(); !ok) return std::unexpected(ok.error());
  const auto cache = static_cast<size_t>(config.max_positions * config.kv_heads * config.head_width);
  decoder.k_cache_.assign(static_cast<size_t>(config.layers), std::vector<float>(cache));
  decoder.v_cache_ = decoder.k_cache_;
  for (int64_t i = 0; i < config.head_width / 2; ++i) {
    const double power = -2.0 * static_cast<double>(i) / static_cast<double>(config.head_width);
    decoder.inverse_frequency_.push_back(static_cast<float>(std::pow(config.rope_theta, power)));
  }
  return decoder;
}

Status Decoder::find_weights() {
  Status status;
  std::map<std::string, const float*> found;
  for_each_weight(config_, [&](const std::string& name, const std::vector<int64_t>& shape) {
    auto tensor = weights_->find(name, shape);
    if (!tensor && status) status = std::unexpected(tensor.error());
    if (tensor) found[name] = *tensor;
  });
  if (!status) return status;
  embedding_ = found["model.embed_tokens.weight"];
  final_norm_ = found["model.norm.weight"];
  head_ = config_.tied_embeddings ? embedding_ : found["lm_head.weight"];
  for (int64_t l = 0; l < config_.layers; ++l) {
    const std::string at = fmt::format("model.layers.{}.", l);
    const auto get = [&](const char* name) { return found[at + name]; };
    layers_.push_back({get("input_layernorm.weight"), get("self_attn.q_proj.weight"), get("self_attn.k_proj.weight"),
                       get("self_attn.v_proj.weight"), get("self_attn.o_proj.weight"),
                       get("post_attention_layernorm.weight"), get("mlp.gate_proj.weight"), get("mlp.up_proj.weight"),
                       get("mlp.down_proj.weight")});
  }
  return {};
}

/// Pairs (i, i + width/2) turn by position · frequency, as Llama's half-split convention does.
void Decoder::rotate(float* x, int64_t rows, int64_t heads) const {
  const int64_t half = config_.head_width / 2;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < half; ++i) {
      const float angle = static_cast<float>(length_ + r) * inverse_frequency_[static_cast<size_t>(i)];
      const float cosine = std::cos(angle), sine = std::sin(angle);
      for (int64_t h = 0; h < heads; ++h) {
        float* v = x + (r * heads + h) * config_.head_width;
        const float a = v[i], b = v[i + half];
        v[i] = a * cosine - b * sine;
        v[i + half] = b * cosine + a * sine;
      }
    }
  }
}

void Decoder::attention_block(const Layer& layer, size_t index, int64_t rows, Operators& ops) {
  const DecoderConfig& c = config_;
  const int64_t q_width = c.heads * c.head_width, kv_width = c.kv_heads * c.head_width;
  ops.norm({rows, c.width, x_.data(), layer.input_norm, nullptr, c.norm_epsilon, normed_.data()});
  float* k = k_cache_[index].data() + length_ * kv_width;
  float* v = v_cache_[index].data() + length_ * kv_width;
  ops.gemm({rows, q_width, c.width, normed_.data(), layer.q, nullptr, Activation::None, q_.data()});
  ops.gemm({rows, kv_width, c.width, normed_.data(), layer.k, nullptr, Activation::None, k});
  ops.gemm({rows, kv_width, c.width, normed_.data(), layer.v, nullptr, Activation::None, v});
  rotate(q_.data(), rows, c.heads);
  rotate(k, rows, c.kv_heads);
  ops.attention({c.heads, c.kv_heads, rows, length_ + rows, c.head_width, true, q_.data(), k_cache_[index].data(),
                 v_cache_[index].data(), attended_.data()});
  ops.gemm({rows, c.width, q_width, attended_.data(), layer.o, nullptr, Activation::None, projected_.data()});
  add_to(x_, projected_, rows * c.width);
}

void Decoder::ffn_block(const Layer& layer, int64_t rows, Operators& ops) {
  const DecoderConfig& c = config_;
  ops.norm({rows, c.width, x_.data(), layer.ffn_norm, nullptr, c.norm_epsilon, normed_.data()});
  ops.gemm({rows, c.ffn_width, c.width, normed_.data(), layer.gate, nullptr, Activation::None, gate_.data()});
  ops.gemm({rows, c.ffn_width, c.width, normed_.data(), layer.up, nullptr, Activation::None, up_.data()});
  ops.swiglu({rows, c.ffn_width, gate_.data(), up_.data(), activated_.data()});
  ops.gemm({rows, c.width, c.ffn_width, activated_.data(), layer.down, nullptr, Activation::None, projected_.data()});
  add_to(x_, projected_, rows * c.width);
}

Result<std::vector<float>> Decoder::forward(const std::vector<int64_t>& tokens, Operators& ops) {
  const DecoderConfig& c = config_;
  const auto rows = static_cast<int64_t>(tokens.size());
  if (rows == 0 || length_ + rows > c.max_positions) {
    return fail(DiagnosticCode::E1608,
                fmt::format("{} tokens after {} do not fit {} positions", rows, length_, c.max_positions));
  }
  for (const auto& [buffer, width] : {std::pair<std::vector<float>*, int64_t>{&x_, c.width},
                                      {&normed_, c.width},
                                      {&projected_, c.width},
                                      {&q_, c.heads * c.head_width},
                                      {&attended_, c.heads * c.head_width},
                                      {&gate_, c.ffn_width},
                                      {&up_, c.ffn_width},
                                      {&activated_, c.ffn_width}}) {
    buffer->resize(static_cast<size_t>(rows * width));
  }
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t token = tokens[static_cast<size_t>(r)];
    if (token < 0 || token >= c.vocabulary) {
      return fail(DiagnosticCode::E1608, fmt::format("token {} is outside the vocabulary of {}", token, c.vocabulary));
    }
    std::copy_n(embedding_ + token * c.width, c.width, x_.begin() + r * c.width);
  }
  for (size_t l = 0; l < layers_.size(); ++l) {
    attention_block(layers_[l], l, rows, ops);
    ffn_block(layers_[l], rows, ops);
  }
  length_ += rows;
  std::vector<float> logits(static_cast<size_t>(c.vocabulary));
  ops.norm({1, c.width, x_.data() + (rows - 1) * c.width, final_norm_, nullptr, c.norm_epsilon, normed_.data()});
  ops.gemm({1, c.vocabulary, c.width, normed_.data(), head_, nullptr, Activation::None, logits.data()});
  if (auto ok = ops.status(); !ok) return std::unexpected(ok.error());
  return logits;
}

Result<std::vector<int64_t>> Decoder::generate(const std::vector<int64_t>& prompt, int64_t count, Operators& ops) {
  std::vector<int64_t> chosen;
  std::vector<int64_t> next = prompt;
  while (static_cast<int64_t>(chosen.size()) < count) {
    auto logits = forward(next, ops);
    if (!logits) return std::unexpected(logits.error());
    chosen.push_back(argmax(*logits));
    next = {chosen.back()};
  }
  return chosen;
}

int64_t argmax(const std::vector<float>& values) { return std::ranges::max_element(values) - values.begin(); }

}  // namespace tilewright::models
