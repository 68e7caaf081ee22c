#include "bench/decision/closing_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace tilewright::decision {

using bench::Cell;
using bench::Stage;

namespace {

using Cells = std::map<Stage, Cell>;

/// How the command line spells a candidate of the record; where no cell says, its kind is the reader's to fill in.
std::string spelling_of(const std::string& candidate, const Cells& cells) {
  for (const auto& [stage, cell] : cells) {
    if (cell.detail.is_object() && cell.detail.contains("spelling")) return cell.detail.value("spelling", candidate);
  }
  return candidate.find(':') == std::string::npos ? "KIND:" + candidate : candidate;
}

std::string quoted(const std::string& word) {
  const bool is_plain = word.find_first_of(" \t'\"\\$&;|<>()*?[]#~`!") == std::string::npos;
  if (is_plain) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

/// "kernel:NAME:M=64.N=64:ref=…" in its parts; of other workloads both are empty.
struct OwnQuestion {
  std::string kernel, dims;
};

OwnQuestion own_question(const std::string& shape) {
  constexpr std::string_view kKernel = "kernel:";
  if (!shape.starts_with(kKernel)) return {};
  const size_t name_end = shape.find(':', kKernel.size());
  if (name_end == std::string::npos) return {};
  OwnQuestion own{shape.substr(kKernel.size(), name_end - kKernel.size()),
                  shape.substr(name_end + 1, shape.find(':', name_end + 1) - name_end - 1)};
  std::ranges::replace(own.dims, '.', ',');
  return own;
}

/// "kernels/matmul.tile" of "tile:kernels/matmul.tile:matmul?T=f32"; empty: no kernel of ours.
std::string kernel_file(const std::string& spelling) {
  constexpr std::string_view kTile = "tile:", kEnding = ".tile";
  const size_t colon = spelling.rfind(".tile:");
  if (!spelling.starts_with(kTile) || colon == std::string::npos) return "";
  return spelling.substr(kTile.size(), colon + kEnding.size() - kTile.size());
}

/// A kernel's own question is named by the file that states it: the key has its digest only.
std::string workload_words(const Evidence& evidence) {
  if (evidence.subject.shape.empty()) return " --op SHAPE";
  const OwnQuestion own = own_question(evidence.subject.shape);
  const std::string file = kernel_file(spelling_of(evidence.candidate, evidence.cells));
  const std::string op = own.kernel.empty()
                             ? evidence.subject.shape
                             : fmt::format("{}:{} --dim {}", file.empty() ? "FILE.tile" : file, own.kernel, own.dims);
  return fmt::format(" --op {}{}", op, evidence.subject.dtype.empty() ? "" : " --dtype " + evidence.subject.dtype);
}

std::string out_words(const Evidence& evidence) {
  return evidence.folder.empty() ? "" : " --out " + quoted(evidence.folder);
}

/// The threads the candidate was measured with, so that what is added belongs to the same device.
std::string thread_words(const Evidence& evidence) {
  for (const auto& [stage, cell] : evidence.cells) {
    const nlohmann::json threads = cell.detail.is_object() ? cell.detail.value("threads", nlohmann::json()) : nullptr;
    if (threads.is_number_integer()) return fmt::format(" --threads {}", threads.get<int64_t>());
  }
  return "";
}

/// The configuration that was measured: what is added must be of the same one.
std::string config_words(const Evidence& evidence) {
  for (const auto& [stage, cell] : evidence.cells) {
    const std::string config = cell.detail.is_object() ? cell.detail.value("config", "") : "";
    if (!config.empty()) return config == "{}" ? "" : " --config " + quoted(config);
  }
  return "";
}

/// A kernel of ours brings its space along; anything else needs a file.
std::string tune_words(const std::string& spelling, const Evidence& evidence) {
  const std::string file = kernel_file(spelling);
  if (file.empty()) return fmt::format("{}{} --space space.json", quoted(spelling), workload_words(evidence));
  const size_t at = spelling.find(file) + file.size() + 1;
  const std::string kernel = spelling.substr(at, spelling.find('?', at) - at);
  std::string dims = own_question(evidence.subject.shape).dims;
  int64_t m = 0, n = 0, k = 0;
  if (std::sscanf(evidence.subject.shape.c_str(), "gemm:%ldx%ldx%ld", &m, &n, &k) == 3)
    dims = fmt::format("M={},N={},K={}", m, n, k);
  return fmt::format("{} --kernel {} --dim {}", quoted(file), kernel, dims.empty() ? "NAME=SIZE" : dims);
}

}  // namespace

std::string bench_command(const Evidence& evidence, Stage stage) {
  const auto cell = evidence.cells.find(stage);
  if (stage == Stage::Model && cell != evidence.cells.end() && !cell->second.how_to_run.empty())
    return cell->second.how_to_run;
  const std::string spelling = spelling_of(evidence.candidate, evidence.cells);
  if (stage == Stage::Tune) {
    return fmt::format("tilewright tune {}{}{}", tune_words(spelling, evidence), thread_words(evidence),
                       out_words(evidence));
  }
  std::string rival;
  if (!evidence.reference_cells.empty())
    rival = " --reference " + quoted(spelling_of(evidence.reference, evidence.reference_cells));
  return fmt::format("tilewright bench {}{}{}{} --budget full{}{}", quoted(spelling), workload_words(evidence), rival,
                     config_words(evidence), thread_words(evidence), out_words(evidence));
}

std::string compare_command(const Evidence& evidence) {
  // A comparison is not recorded by itself: the folder is always named.
  return fmt::format(
      "tilewright compare {} {}{} --rounds 400{}{}{}", quoted(spelling_of(evidence.candidate, evidence.cells)),
      quoted(spelling_of(evidence.reference, evidence.reference_cells)), workload_words(evidence),
      config_words(evidence), thread_words(evidence), evidence.folder.empty() ? " --out out" : out_words(evidence));
}

std::string validate_command(const Evidence& evidence) {
  const std::string folder = evidence.folder.empty() ? "out" : evidence.folder;
  return fmt::format("tilewright validate --matrix {} --candidate {}{}{}", quoted(folder + "/best.json"),
                     quoted(evidence.candidate), thread_words(evidence), out_words(evidence));
}

std::string cost_command(const Evidence& evidence) {
  return fmt::format("tilewright cost add --candidate {} --kind port --hours H --by NAME{}", quoted(evidence.candidate),
                     out_words(evidence));
}

}  // namespace tilewright::decision
