#include "models/encoder.h"

#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

namespace tilewright::models {
namespace {

using Json = nlohmann::json;

void add_to(std::vector<float>& x, const std::vector<float>& y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) x[static_cast<size_t>(i)] += y[static_cast<size_t>(i)];
}

}  // namespace

Result<EncoderConfig> parse_encoder_config(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return fail(DiagnosticCode::E1608, "config.json is not a JSON object");
  EncoderConfig c;
  const std::pair<const char*, int64_t*> fields[] = {
      {"vocab_size", &c.vocabulary},       {"hidden_size", &c.width},
      {"num_hidden_layers", &c.layers},    {"num_attention_heads", &c.heads},
      {"intermediate_size", &c.ffn_width}, {"max_position_embeddings", &c.max_positions}};
  for (const auto& [key, to] : fields) {
    if (!json.contains(key) || !json[key].is_number_integer() || json[key].get<int64_t>() <= 0) {
      return fail(DiagnosticCode::E1608, fmt::format("config.json: '{}' is missing or not a positive integer", key));
    }
    *to = json[key].get<int64_t>();
  }
  if (json.value("hidden_act", "gelu") != "gelu" || c.width % c.heads != 0) {
    return fail(DiagnosticCode::E1608, "config.json: only gelu encoders whose heads divide the width are read");
  }
  c.norm_epsilon = json.value("layer_norm_eps", 1e-12f);
  return c;
}

Result<Encoder::Dense> Encoder::dense(const std::string& name, int64_t out, int64_t in) const {
  auto weight = weights_->find(name + ".weight", {out, in});
  auto bias = weights_->find(name + ".bias", {out});
  if (!weight) return std::unexpected(weight.error());
  if (!bias) return std::unexpected(bias.error());
  return Dense{*weight, *bias};
}

Result<Encoder::Dense> Encoder::norm(const std::string& name) const {
  auto weight = weights_->find(name + ".weight", {config_.width});
  auto bias = weights_->find(name + ".bias", {config_.width});
  if (!weight) return std::unexpected(weight.error());
  if (!bias) return std::unexpected(bias.error());
  return Dense{*weight, *bias};
}

Result<Encoder::Layer> Encoder::find_layer(int64_t index) const {
  const std::string at = fmt::format("encoder.layer.{}.", index);
  const int64_t w = config_.width, f = config_.ffn_width;
  const Result<Dense> parts[] = {dense(at + "attention.self.query", w, w), dense(at + "attention.self.key", w, w),
                                 dense(at + "attention.self.value", w, w), dense(at + "attention.output.dense", w, w),
                                 dense(at + "intermediate.dense", f, w),   dense(at + "output.dense", w, f),
                                 norm(at + "attention.output.LayerNorm"),  norm(at + "output.LayerNorm")};
  for (const auto& part : parts) {
    if (!part) return std::unexpected(part.error());
  }
  return Layer{*parts[0], *parts[1], *parts[2], *parts[3], *parts[4], *parts[5], *parts[6], *parts[7]};
}

Result<Encoder> Encoder::make(const EncoderConfig& config, std::shared_ptr<const Weights> weights) {
  Encoder encoder(config);
  encoder.weights_ = std::move(weights);
  const auto words = encoder.weights_->find("embeddings.word_embeddings.weight", {config.vocabulary, config.width});
  const auto positions =
      encoder.weights_->find("embeddings.position_embeddings.weight", {config.max_positions, config.width});
  const auto types = encoder.weights_->find("embeddings.token_type_embeddings.weight", {2, config.width});
  const auto embedding_norm = encoder.norm("embeddings.LayerNorm");
  for (const auto* part : {&words, &positions, &types}) {
    if (!*part) return std::unexpected(part->error());
  }
  if (!embedding_norm) return std::unexpected(embedding_norm.error());
  encoder.words_ = *words;
  encoder.positions_ = *positions;
  encoder.types_ = *types;
  encoder.embedding_norm_ = *embedding_norm;
  for (int64_t l = 0; l < config.layers; ++l) {
    auto layer = encoder.find_layer(l);
    if (!layer) return std::unexpected(layer.error());
    encoder.layers_.push_back(*layer);
  }
  return encoder;
}

void Encoder::run_layer(const Layer& layer, int64_t rows, Operators& ops) {
  const EncoderConfig& c = config_;
  const auto project = [&](const Dense& d, const std::vector<float>& from, int64_t in, int64_t out, Activation act,
                           std::vector<float>& to) {
    ops.gemm({rows, out, in, from.data(), d.weight, d.bias, act, to.data()});
  };
  project(layer.query, x_, c.width, c.width, Activation::None, q_);
  project(layer.key, x_, c.width, c.width, Activation::None, k_);
  project(layer.value, x_, c.width, c.width, Activation::None, v_);
  ops.attention(
      {c.heads, c.heads, rows, rows, c.width / c.heads, false, q_.data(), k_.data(), v_.data(), mixed_.data()});
  project(layer.attention_output, mixed_, c.width, c.width, Activation::None, projected_);
  add_to(projected_, x_, rows * c.width);
  ops.norm({rows, c.width, projected_.data(), layer.attention_norm.weight, layer.attention_norm.bias, c.norm_epsilon,
            x_.data()});
  project(layer.intermediate, x_, c.width, c.ffn_width, Activation::Gelu, wide_);
  project(layer.output, wide_, c.ffn_width, c.width, Activation::None, projected_);
  add_to(projected_, x_, rows * c.width);
  ops.norm(
      {rows, c.width, projected_.data(), layer.output_norm.weight, layer.output_norm.bias, c.norm_epsilon, x_.data()});
}

Result<std::vector<float>> Encoder::embed(const std::vector<int64_t>& tokens, Operators& ops) {
  const EncoderConfig& c = config_;
  const auto rows = static_cast<int64_t>(tokens.size());
  if (rows == 0 || rows > c.max_positions) {
    return fail(DiagnosticCode::E1608, fmt::format("{} tokens do not fit {} positions", rows, c.max_positions));
  }
  for (auto* buffer : {&x_, &q_, &k_, &v_, &mixed_, &projected_}) buffer->resize(static_cast<size_t>(rows * c.width));
  wide_.resize(static_cast<size_t>(rows * c.ffn_width));
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t token = tokens[static_cast<size_t>(r)];
    if (token < 0 || token >= c.vocabulary) {
      return fail(DiagnosticCode::E1608, fmt::format("token {} is outside the vocabulary of {}", token, c.vocabulary));
    }
    for (int64_t j = 0; j < c.width; ++j) {
      projected_[static_cast<size_t>(r * c.width + j)] =
          words_[token * c.width + j] + positions_[r * c.width + j] + types_[j];
    }
  }
  ops.norm({rows, c.width, projected_.data(), embedding_norm_.weight, embedding_norm_.bias, c.norm_epsilon, x_.data()});
  for (const Layer& layer : layers_) run_layer(layer, rows, ops);
  if (auto ok = ops.status(); !ok) return std::unexpected(ok.error());

  std::vector<float> embedding(static_cast<size_t>(c.width));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t j = 0; j < c.width; ++j) embedding[static_cast<size_t>(j)] += x_[static_cast<size_t>(r * c.width + j)];
  }
  float squares = 0;
  for (float& value : embedding) {
    value /= static_cast<float>(rows);
    squares += value * value;
  }
  for (float& value : embedding) value /= std::sqrt(squares);
  return embedding;
}

Result<WordPieces> WordPieces::read(const std::string& path) {
  std::ifstream in(path);
  WordPieces pieces;
  int64_t id = 0;
  for (std::string line; std::getline(in, line); ++id) pieces.ids_.emplace(line, id);
  for (const char* needed : {"[CLS]", "[SEP]", "[UNK]"}) {
    if (!pieces.ids_.contains(needed))
      return fail(DiagnosticCode::E3310, fmt::format("'{}' is no vocabulary: it has no {}", path, needed));
  }
  return pieces;
}

void WordPieces::add_word(const std::string& word, std::vector<int64_t>& out) const {
  std::vector<int64_t> pieces;
  for (size_t begin = 0; begin < word.size();) {
    size_t end = word.size();
    for (; end > begin; --end) {
      const auto found = ids_.find((begin ? "##" : "") + word.substr(begin, end - begin));
      if (found == ids_.end()) continue;
      pieces.push_back(found->second);
      break;
    }
    if (end == begin) {
      out.push_back(ids_.find("[UNK]")->second);
      return;
    }
    begin = end;
  }
  out.insert(out.end(), pieces.begin(), pieces.end());
}

std::vector<int64_t> WordPieces::tokenize(const std::string& text, size_t limit) const {
  std::vector<int64_t> out = {ids_.find("[CLS]")->second};
  std::string word;
  const auto flush = [&] {
    if (!word.empty()) add_word(word, out);
    word.clear();
  };
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isspace(byte)) {
      flush();
    } else if (std::ispunct(byte)) {
      flush();
      add_word(std::string(1, c), out);
    } else {
      word += static_cast<char>(std::tolower(byte));
    }
  }
  flush();
  if (out.size() > limit - 1) out.resize(limit - 1);
  out.push_back(ids_.find("[SEP]")->second);
  return out;
}

}  // namespace tilewright::models
