// `tilewright model`: whole models with an operator swapped. profile · run · compare · embed.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "models/comparison.h"
#include "models/encoder.h"
#include "models/library_operators.h"
#include "tools/command.h"

namespace tilewright::tools {
namespace {

using namespace models;

struct Options {
  std::string model = "tiny", swap, command;
  std::vector<std::string> texts;
  int64_t prompt = 16, new_tokens = 16;
  int threads = 0, rounds = 20;
  uint64_t seed = 1;
  bool json = false;
};

/// A model ready to run, with the library's operators.
struct Loaded {
  std::unique_ptr<LibraryOperators> library;
  std::unique_ptr<Decoder> decoder;
  RunShape shape;
  int64_t parameters = 0;
};

Result<std::string> read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return fail(DiagnosticCode::E3310, fmt::format("cannot read '{}'", path));
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

int thread_count(const Options& options) {
  return options.threads > 0 ? options.threads : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

Result<Loaded> load(const Options& options, const Session& session) {
  Loaded loaded;
  auto library = open_library_operators(thread_count(options), session.workers.python);
  if (!library) return std::unexpected(library.error());
  loaded.library = *std::move(library);
  const bool folder = std::filesystem::is_directory(options.model);
  Result<DecoderConfig> config = decoder_size(options.model);
  Result<Weights> weights{};
  if (folder) {
    auto text = read_text(options.model + "/config.json");
    if (!text) return std::unexpected(text.error());
    config = parse_decoder_config(*text);
    weights = Weights::read(options.model + "/model.safetensors");
  }
  if (!config) return std::unexpected(config.error());
  if (!folder) weights = random_decoder_weights(*config, options.seed);
  if (!weights) return std::unexpected(weights.error());
  loaded.parameters = weights->parameter_count();
  auto decoder = Decoder::make(*config, std::make_shared<Weights>(*std::move(weights)));
  if (!decoder) return std::unexpected(decoder.error());
  loaded.decoder = std::make_unique<Decoder>(*std::move(decoder));
  loaded.shape = {random_prompt(*config, options.prompt, options.seed), options.new_tokens};
  return loaded;
}

/// "gemm=rival:blis".
Result<SwapOptions> parse_swap(const Options& options, const Session& session) {
  const size_t at = options.swap.find('=');
  if (at == std::string::npos) {
    return fail(DiagnosticCode::E1600, fmt::format("--swap '{}' is not OPERATOR=CANDIDATE", options.swap),
                "for example gemm=rival:blis or gemm=tile:matmul.tile");
  }
  SwapOptions swap;
  swap.operation = options.swap.substr(0, at);
  const std::string spelling = options.swap.substr(at + 1);
  if (auto probe = session.kinds.make(spelling); !probe) return std::unexpected(probe.error());
  swap.make = [&session, spelling] { return session.kinds.make(spelling); };
  swap.open.threads = thread_count(options);
  return swap;
}

void print_profile(const Loaded& loaded, const Profile& p, const Options& options) {
  fmt::print("{} ({:.1f} M parameters), prompt {}, {} new tokens, {} threads, {}: {:.2f} ms\n\n", options.model,
             static_cast<double>(loaded.parameters) * 1e-6, options.prompt, options.new_tokens, thread_count(options),
             loaded.library->describe(), p.total_ms);
  fmt::print("{:52} {:>6} {:>9} {:>7} {:>13}\n", "operator", "calls", "ms", "share", "largest gain");
  const auto line = [](const ProfileRow& row, const char* indent) {
    fmt::print("{:52} {:6} {:9.3f} {:6.1f}% {:12.2f}×\n", indent + row.workload, row.calls, row.ms, row.share * 100,
               row.largest_gain);
  };
  for (const ProfileRow& sum : by_operator(p)) {
    line(sum, "");
    size_t shown = 0;
    for (const ProfileRow& row : p.rows) {
      if (row.workload.starts_with(sum.workload + ":") && shown++ < 4) line(row, "  ");
    }
  }
  fmt::print("{:52} {:6} {:9.3f} {:6.1f}%\n\nbottleneck: {}\n", "everything else", "", p.total_ms * p.other_share,
             p.other_share * 100, by_operator(p).front().workload);
}

nlohmann::json profile_json(const Profile& p) {
  const auto rows = [](const std::vector<ProfileRow>& list) {
    nlohmann::json out = nlohmann::json::array();
    for (const ProfileRow& r : list) {
      out.push_back({{"workload", r.workload},
                     {"calls", r.calls},
                     {"ms", r.ms},
                     {"share", r.share},
                     {"largest_gain", r.largest_gain}});
    }
    return out;
  };
  return {{"total_ms", p.total_ms},
          {"operators", rows(by_operator(p))},
          {"workloads", rows(p.rows)},
          {"other_share", p.other_share},
          {"bottleneck", by_operator(p).front().workload}};
}

Result<ExitCode> run_profile(const Options& options, const Session& session) {
  auto loaded = load(options, session);
  if (!loaded) return std::unexpected(loaded.error());
  auto p = profile(*loaded->decoder, loaded->shape, *loaded->library);
  if (!p) return std::unexpected(p.error());
  if (options.json) {
    fmt::print("{}\n", profile_json(*p).dump(2));
  } else {
    print_profile(*loaded, *p, options);
  }
  return ExitCode::Ok;
}

Result<ExitCode> run_model(const Options& options, const Session& session) {
  auto loaded = load(options, session);
  if (!loaded) return std::unexpected(loaded.error());
  std::unique_ptr<SwappedOperators> swapped;
  if (!options.swap.empty()) {
    auto swap = parse_swap(options, session);
    if (!swap) return std::unexpected(swap.error());
    swapped = std::make_unique<SwappedOperators>(*loaded->library, *std::move(swap));
  }
  Operators& operators = swapped ? static_cast<Operators&>(*swapped) : *loaded->library;
  auto warm = run_once(*loaded->decoder, loaded->shape, operators);
  if (!warm) return std::unexpected(warm.error());
  auto run = run_once(*loaded->decoder, loaded->shape, operators);
  if (!run) return std::unexpected(run.error());
  const double per_token =
      run->time.steps.empty() ? 0 : (run->time.total - run->time.prefill) / static_cast<double>(run->time.steps.size());
  if (options.json) {
    fmt::print("{}\n", nlohmann::json{{"tokens", run->tokens},
                                      {"prefill_ms", run->time.prefill},
                                      {"ms_per_token", per_token},
                                      {"swapped", swapped ? swapped->taken() : std::vector<std::string>{}}}
                           .dump(2));
    return ExitCode::Ok;
  }
  fmt::print("tokens: {}\nprefill of {}: {:.2f} ms · {:.3f} ms per token ({})\n", fmt::join(run->tokens, " "),
             options.prompt, run->time.prefill, per_token, loaded->library->describe());
  if (swapped) {
    fmt::print("swapped: {} shapes of {}", swapped->taken().size(), options.swap);
    fmt::print("{}\n", swapped->refused().empty() ? ""
                                                  : fmt::format(", {} refused ({})", swapped->refused().size(),
                                                                swapped->refused().begin()->second));
  }
  return ExitCode::Ok;
}

/// A difference has a word only where identical code was found identical.
std::string_view verdict_word(const measure::GateResult& gate, const measure::PairedResult& paired) {
  return gate.passed ? measure::name(paired.verdict) : "no verdict";
}

void print_phase(const PhaseTimes& p, const measure::GateResult& gate) {
  const auto p99 = [](const std::optional<double>& v) {
    return v ? fmt::format("{:.3f}", *v) : std::string("unsupported");
  };
  fmt::print("{:12} p50 {:9.3f} → {:9.3f} ms   p99 {:>11} → {:>11} ms   ratio {:.3f} [{:.3f}, {:.3f}]  {}\n", p.name,
             p.p50_library, p.p50_swapped, p99(p.p99_library), p99(p.p99_swapped), p.paired.ratio,
             p.paired.interval95.low, p.paired.interval95.high, verdict_word(gate, p.paired));
}

ExitCode verdict_code(const measure::GateResult& gate, const measure::PairedResult& paired) {
  if (!gate.passed) return ExitCode::InvalidMeasurement;
  switch (paired.verdict) {
    case measure::Verdict::Faster:
    case measure::Verdict::Same: return ExitCode::Ok;
    case measure::Verdict::Slower: return ExitCode::Regression;
    case measure::Verdict::Inconclusive: return ExitCode::Insufficient;
  }
  return ExitCode::Insufficient;
}

void print_gate(const measure::GateResult& gate) {
  fmt::print("A/A gate: {} (ratio {:.3f} [{:.3f}, {:.3f}])\n",
             gate.passed ? "passed" : fmt::format("failed: {}", gate.why), gate.result.ratio,
             gate.result.interval95.low, gate.result.interval95.high);
}

Result<ExitCode> run_command_comparison(const Options& options) {
  auto c = compare_command(options.command, options.rounds, options.seed);
  if (!c) return std::unexpected(c.error());
  if (options.json) {
    fmt::print("{}\n", nlohmann::json{{"rounds_ms", c->whole_ms},
                                      {"ratio", c->whole.paired.ratio},
                                      {"p50_a_ms", c->whole.p50_library},
                                      {"p50_b_ms", c->whole.p50_swapped},
                                      {"verdict", verdict_word(c->identical, c->whole.paired)},
                                      {"gate_passed", c->identical.passed},
                                      {"seed", options.seed}}
                           .dump(2));
  } else {
    fmt::print("model command: {} (a → b, {} rounds, seed {})\n", options.command, options.rounds, options.seed);
    print_gate(c->identical);
    print_phase(c->whole, c->identical);
  }
  return verdict_code(c->identical, c->whole.paired);
}

Result<ExitCode> run_compare(const Options& options, const Session& session) {
  if (!options.command.empty()) return run_command_comparison(options);
  auto swap = parse_swap(options, session);
  if (!swap) return std::unexpected(swap.error());
  auto loaded = load(options, session);
  if (!loaded) return std::unexpected(loaded.error());
  ComparisonOptions how{loaded->shape, options.rounds, options.seed, {}};
  auto c = compare_models(*loaded->decoder, *loaded->library, *swap, how);
  if (!c) {
    if (c.error().code != DiagnosticCode::E1609) return std::unexpected(c.error());
    fmt::print(stderr, "{}", render(c.error()));
    return ExitCode::Incorrect;
  }
  if (options.json) {
    fmt::print("{}\n", to_json(*c).dump(2));
    return verdict_code(c->identical, c->phases.back().paired);
  }
  fmt::print("{}: {} → {} ({} threads, prompt {}, {} new tokens, {} rounds, seed {})\n", options.model,
             loaded->library->describe(), options.swap, thread_count(options), options.prompt, options.new_tokens,
             options.rounds, options.seed);
  fmt::print("correct: {} shapes accepted by the oracle, {} refused; tokens {}\n", c->taken.size(), c->refused.size(),
             c->same_tokens ? "equal" : "differ");
  print_gate(c->identical);
  for (const PhaseTimes& phase : c->phases) print_phase(phase, c->identical);
  fmt::print("Amdahl: share {:.1f} %, operator {:.2f}× → predicted {:.3f}×, measured {:.3f}×\n",
             c->operator_share * 100, c->operator_speedup, c->predicted_speedup, c->measured_speedup);
  return verdict_code(c->identical, c->phases.back().paired);
}

Result<ExitCode> run_embed(const Options& options, const Session& session) {
  auto library = open_library_operators(thread_count(options), session.workers.python);
  if (!library) return std::unexpected(library.error());
  auto text = read_text(options.model + "/config.json");
  if (!text) return std::unexpected(text.error());
  auto config = parse_encoder_config(*text);
  if (!config) return std::unexpected(config.error());
  auto weights = Weights::read(options.model + "/model.safetensors");
  if (!weights) return std::unexpected(weights.error());
  auto pieces = WordPieces::read(options.model + "/vocab.txt");
  if (!pieces) return std::unexpected(pieces.error());
  auto encoder = Encoder::make(*config, std::make_shared<Weights>(*std::move(weights)));
  if (!encoder) return std::unexpected(encoder.error());
  std::vector<std::vector<float>> embeddings;
  for (const std::string& sentence : options.texts) {
    auto embedding = encoder->embed(pieces->tokenize(sentence), **library);
    if (!embedding) return std::unexpected(embedding.error());
    embeddings.push_back(*std::move(embedding));
  }
  if (options.json) {
    fmt::print("{}\n", nlohmann::json(embeddings).dump());
    return ExitCode::Ok;
  }
  for (size_t i = 0; i < embeddings.size(); ++i) {
    fmt::print("{:2}", i + 1);
    for (const auto& other : embeddings) {
      float cosine = 0;
      for (size_t d = 0; d < other.size(); ++d) cosine += embeddings[i][d] * other[d];
      fmt::print(" {:6.3f}", cosine);
    }
    fmt::print("  {}\n", options.texts[i]);
  }
  return ExitCode::Ok;
}

void add_common(CLI::App& app, Options& options) {
  app.add_option("--model", options.model,
                 "tiny, 125m (seeded random weights), or a folder with config.json and model.safetensors")
      ->capture_default_str();
  app.add_option("--prompt", options.prompt, "tokens of the prompt")->capture_default_str()->check(CLI::PositiveNumber);
  app.add_option("--new", options.new_tokens, "tokens to decode")->capture_default_str()->check(CLI::PositiveNumber);
  app.add_option("--threads", options.threads, "0: all cores")->capture_default_str();
  app.add_option("--seed", options.seed, "of weights, prompt and order")->capture_default_str();
  app.add_flag("--json", options.json, "machine-readable");
}

}  // namespace

Run add_model(CLI::App& app, Session& session) {
  auto options = std::make_shared<Options>();
  app.require_subcommand(1);
  CLI::App* profiling =
      app.add_subcommand("profile", "operators by share of time, the largest possible gain of each, the bottleneck");
  CLI::App* running = app.add_subcommand("run", "decode greedily and say how long it took");
  CLI::App* comparing =
      app.add_subcommand("compare", "paired A/B of the model with one operator swapped; exit 5 when slower");
  CLI::App* embedding =
      app.add_subcommand("embed", "embeddings of texts by a MiniLM-shaped encoder, and their cosines");
  for (CLI::App* sub : {profiling, running, comparing}) add_common(*sub, *options);
  running->add_option("--swap", options->swap, "OPERATOR=CANDIDATE, e.g. gemm=rival:blis");
  comparing->add_option("--swap", options->swap, "OPERATOR=CANDIDATE, e.g. gemm=tile:matmul.tile");
  comparing->add_option("--model-cmd", options->command,
                        "a program of yours as the model (says ready; reads a or b; answers done)");
  comparing->add_option("--rounds", options->rounds, "paired rounds")
      ->capture_default_str()
      ->check(CLI::Range(6, 10000));
  embedding->add_option("--model", options->model, "folder with config.json, model.safetensors, vocab.txt")->required();
  embedding->add_option("text", options->texts, "one or more")->required();
  embedding->add_option("--threads", options->threads, "0: all cores");
  embedding->add_flag("--json", options->json, "the vectors");
  app.footer(
      "Examples:\n  tilewright model profile --model 125m --prompt 64 --new 16\n"
      "  tilewright model compare --model 125m --swap gemm=rival:blis\n"
      "  tilewright model compare --model-cmd 'python3 examples/models/ort_swapped.py'\n"
      "  tilewright model embed --model all-MiniLM-L6-v2 'a cat' 'a kitten'");
  return [=, &session]() -> Result<ExitCode> {
    if (profiling->parsed()) return run_profile(*options, session);
    if (running->parsed()) return run_model(*options, session);
    if (embedding->parsed()) return run_embed(*options, session);
    return run_compare(*options, session);
  };
}

}  // namespace tilewright::tools
