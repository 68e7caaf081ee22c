#include "bench/foreign_code.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

namespace tilewright::bench {
namespace {

constexpr const char* kLibraries[] = {"openblas", "libblis", "mkl",   "dnnl",  "onednn",  "onnxruntime", "torch",
                                      "cublas",   "cudnn",   "eigen", "atlas", "libblas", "nvpl",        "armpl"};

std::set<std::string> mapped_files() {
  std::set<std::string> out;
  std::ifstream maps("/proc/self/maps");
  std::string line;
  while (std::getline(maps, line)) {
    const size_t slash = line.find('/');
    if (slash != std::string::npos) out.insert(line.substr(slash));
  }
  return out;
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

/// Everything the candidate says about itself.
std::string declaration(const candidate::Candidate& candidate) {
  const candidate::Identity identity = candidate.identity();
  std::string text = identity.name + " " + identity.version;
  for (const auto& [library, version] : identity.libraries) text += " " + library + " " + version;
  for (const std::string& path : candidate.installed_paths())
    text += " " + std::filesystem::path(path).filename().string();
  return lower(text);
}

/// True for a shared library that offers the candidate interface itself: another candidate.
bool is_a_candidate(const std::string& file) {
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return false;
  const bool found = ::dlsym(library, "tw_candidate_entry") != nullptr;
  ::dlclose(library);
  return found;
}

}  // namespace

ForeignCode ForeignCode::of_this_process() {
  ForeignCode out;
  out.files_ = mapped_files();
  return out;
}

std::optional<std::string> ForeignCode::undeclared_library(const candidate::Candidate& candidate) const {
  const std::string declared = declaration(candidate);
  const auto own = candidate.installed_paths();
  // The same file under whatever name it was asked for: ./kernel.so, a link.
  const auto is_own = [&](const std::string& file) {
    std::error_code error;
    return std::ranges::any_of(
        own, [&](const std::string& path) { return path == file || std::filesystem::equivalent(path, file, error); });
  };
  for (const std::string& file : mapped_files()) {
    if (files_.contains(file) || is_own(file)) continue;
    const std::string name = lower(std::filesystem::path(file).filename().string());
    for (const char* library : kLibraries) {
      std::string word = library;
      if (word.starts_with("lib")) word = word.substr(3);
      if (name.find(library) != std::string::npos && declared.find(word) == std::string::npos) return name;
    }
    if (name.find(".so") != std::string::npos && is_a_candidate(file)) return name;
  }
  return std::nullopt;
}

bool counts_writes(const candidate::Candidate& candidate, std::string_view spelling) {
  return !candidate.is_remote() && !spelling.starts_with("rival:");
}

int64_t written_to_files(const StageChannel& channel, bool is_on_device) {
  constexpr int64_t kDriversOwn = 4096;
  FILE* io = std::fopen("/proc/self/io", "r");
  if (io == nullptr) return 0;
  long long read_chars = 0, written_chars = 0;
  const bool found = std::fscanf(io, "rchar: %lld wchar: %lld", &read_chars, &written_chars) == 2;
  std::fclose(io);
  struct stat log {};
  const bool is_kept = ::fstat(STDERR_FILENO, &log) == 0 && S_ISREG(log.st_mode);
  if (!found) return 0;
  return written_chars - channel.sent_bytes() - (is_kept ? log.st_size : 0) - (is_on_device ? kDriversOwn : 0);
}

}  // namespace tilewright::bench
