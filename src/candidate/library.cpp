#include "candidate/library.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tilewright/candidate.h"

namespace tilewright::candidate {
namespace {

std::string file_safe(std::string name) {
  for (char& c : name) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
                          c == '_' || c == '-' || c == '=';
    if (!is_plain) c = '-';
  }
  return name;
}

class LibraryCandidate final : public Candidate {
 public:
  LibraryCandidate(std::filesystem::path path, std::string options)
      : path_(std::move(path)), options_(std::move(options)) {}
  ~LibraryCandidate() override {
    if (self_ != nullptr && api_->close != nullptr) api_->close(self_);
    // The library stays mapped: unloading code that may own threads is not safe, and the process ends soon.
  }

  Status open(const OpenOptions& options) override {
    void* library = ::dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr)
      return fail(DiagnosticCode::E3200, fmt::format("cannot load {}: {}", path_.string(), ::dlerror()));
    using Entry = const tw_candidate_api* (*)(uint32_t);
    const auto entry = reinterpret_cast<Entry>(::dlsym(library, "tw_candidate_entry"));
    if (entry == nullptr) {
      return fail(DiagnosticCode::E3200, fmt::format("{} does not export tw_candidate_entry", path_.string()),
                  "implement include/tilewright/candidate.h; examples/candidate shows one");
    }
    api_ = entry(TW_CANDIDATE_ABI_VERSION);
    if (api_ == nullptr || api_->abi_version != TW_CANDIDATE_ABI_VERSION || api_->size < sizeof(tw_candidate_api)) {
      return fail(DiagnosticCode::E3200, fmt::format("{} does not support version {} of the candidate interface",
                                                     path_.string(), TW_CANDIDATE_ABI_VERSION));
    }
    const tw_candidate_host host{sizeof(tw_candidate_host), options.device.c_str(), options.cache_dir.c_str(),
                                 options.threads, options_.c_str()};
    return check(api_->open(&host, &self_), "open");
  }

  Identity identity() const override {
    std::string name = api_ != nullptr && api_->name != nullptr ? api_->name : path_.stem().string();
    if (!options_.empty()) name += "-" + options_;
    return {file_safe(name),
            api_ != nullptr && api_->version != nullptr ? api_->version : "",
            {{"file", path_.filename().string()}}};
  }

  Result<Echo> prepare(const ContractText& contract) override {
    std::string text(8192, '\0');
    if (auto ok = check(api_->prepare(self_, contract.json.c_str(), contract.digest.c_str(), text.data(), text.size()),
                        "prepare");
        !ok) {
      return std::unexpected(ok.error());
    }
    text.resize(std::char_traits<char>::length(text.c_str()));
    if (!text.starts_with('{')) return Echo{text, {}};
    const auto json = nlohmann::json::parse(text, nullptr, false);
    if (!json.is_object())
      return fail(DiagnosticCode::E3205,
                  fmt::format("{}: prepare answered neither a digest nor a JSON object", name()));
    Echo echo;
    for (const auto& [field, value] : json.items())
      echo.differing[field] = value.is_string() ? value.get<std::string>() : value.dump();
    return echo;
  }

  Result<Compiled> compile(const std::string& config) override {
    tw_candidate_compiled report{};
    report.size = sizeof report;
    for (double& ms : report.phase_ms) ms = -1;
    if (auto ok = check(api_->compile(self_, config.c_str(), &report), "compile"); !ok)
      return std::unexpected(ok.error());
    report.digest[sizeof report.digest - 1] = '\0';
    const double* ms = report.phase_ms;
    return Compiled{report.compiles, report.cache_hits, report.digest, {ms[0], ms[1], ms[2], ms[3], ms[4]}};
  }

  Result<int64_t> workspace_bytes() override {
    const int64_t bytes = api_->workspace != nullptr ? api_->workspace(self_) : 0;
    if (bytes < 0) return fail(DiagnosticCode::E3205, fmt::format("{}: workspace answered {}", name(), bytes));
    return bytes;
  }

  Status launch(std::span<const Tensor> args, void* workspace, void* stream) override {
    bind(args);
    return check(api_->launch(self_, bound_.data(), static_cast<int32_t>(bound_.size()), workspace, stream), "launch");
  }

  std::vector<std::string> installed_paths() const override { return {path_.string()}; }

 private:
  std::string name() const { return identity().name; }

  /// Translates once for the same arguments, so that a launch costs one call.
  void bind(std::span<const Tensor> args) {
    if (!bound_.empty() && same_tensors(args, tensors_)) return;
    tensors_.assign(args.begin(), args.end());
    bound_.clear();
    for (const Tensor& t : tensors_) {
      bound_.push_back({t.data, t.name.c_str(), tilewright::name(t.dtype).data(), static_cast<int32_t>(t.shape.size()),
                        t.is_output ? 1 : 0, t.shape.data(), t.strides.data()});
    }
  }

  Status check(int32_t result, const char* step) {
    if (result == 0) return {};
    const char* text = api_->last_error != nullptr ? api_->last_error(self_) : nullptr;
    const std::string why = text != nullptr && *text != '\0' ? text : fmt::format("error {}", result);
    return fail(result == TW_CANDIDATE_UNSUPPORTED ? DiagnosticCode::E3201 : DiagnosticCode::E3206,
                fmt::format("{}: {} failed: {}", name(), step, why));
  }

  std::filesystem::path path_;
  std::string options_;
  const tw_candidate_api* api_ = nullptr;
  void* self_ = nullptr;
  std::vector<tw_candidate_tensor> bound_;
  std::vector<Tensor> tensors_;  ///< what `bound_` points into
};

}  // namespace

Result<CandidatePtr> make_library_candidate(const std::string& target) {
  const size_t question = target.find('?');
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(target.substr(0, question), error);
  if (!std::filesystem::exists(path, error))
    return fail(DiagnosticCode::E3200, fmt::format("there is no file {}", path.string()));
  return std::make_unique<LibraryCandidate>(path, question == std::string::npos ? "" : target.substr(question + 1));
}

}  // namespace tilewright::candidate
