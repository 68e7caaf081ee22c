#include "candidate/worker.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "candidate/child_process.h"
#include "candidate/shared_memory.h"

namespace tilewright::candidate {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr std::string_view kSuffix = "_worker.py";

class WorkerCandidate final : public Candidate {
 public:
  WorkerCandidate(std::string name, std::vector<std::string> argv, std::string options)
      : name_(std::move(name)), argv_(std::move(argv)), options_(std::move(options)) {}

  ~WorkerCandidate() override {
    if (!child_) return;
    if (child_->send_line(R"({"op":"close"})")) {
      child_->close_input();
      child_->wait(std::chrono::milliseconds(2000));
    }
  }

  Status open(const OpenOptions& options) override {
    timeout_ = options.timeout;
    auto child = ChildProcess::start({.argv = argv_, .env = thread_limits(options.threads)});
    if (!child) return std::unexpected(child.error());
    child_ = std::make_unique<ChildProcess>(std::move(*child));
    auto reply = ask({{"op", "open"},
                      {"device", options.device},
                      {"threads", options.threads},
                      {"cache_dir", options.cache_dir},
                      {"options", options_}});
    if (!reply) return std::unexpected(reply.error());
    identity_.name = reply->value("name", name_);
    identity_.version = reply->value("version", "");
    if (const auto it = reply->find("libraries"); it != reply->end() && it->is_object()) {
      for (const auto& [library, version] : it->items())
        identity_.libraries[library] = version.is_string() ? version.get<std::string>() : version.dump();
    }
    if (const auto it = reply->find("paths"); it != reply->end() && it->is_array()) {
      for (const auto& path : *it)
        if (path.is_string()) paths_.push_back(path);
    }
    return {};
  }

  Status init_device() override { return done(ask({{"op", "init_device"}})); }
  Identity identity() const override { return identity_; }

  Result<Echo> prepare(const ContractText& contract) override {
    tensors_.clear();
    auto reply =
        ask({{"op", "prepare"}, {"contract", json::parse(contract.json, nullptr, false)}, {"digest", contract.digest}});
    if (!reply) return std::unexpected(reply.error());
    Echo echo{reply->value("digest", ""), {}};
    if (const auto it = reply->find("differs"); it != reply->end() && it->is_object()) {
      for (const auto& [field, value] : it->items())
        echo.differing[field] = value.is_string() ? value.get<std::string>() : value.dump();
    }
    return echo;
  }

  Result<Compiled> compile(const std::string& config) override {
    auto reply = ask({{"op", "compile"}, {"config", json::parse(config, nullptr, false)}});
    if (!reply) return std::unexpected(reply.error());
    Compiled out;
    out.compiles = reply->value("compiles", int64_t{0});
    out.cache_hits = reply->value("cache_hits", int64_t{0});
    out.artefact_digest = reply->value("digest", "");
    return out;
  }

  Status launch(std::span<const Tensor> args, void*, void*) override {
    // What it says of its time is no matter of its result: judged where a time is wanted.
    if (auto bound = bind(args); !bound) return bound;
    return done(ask({{"op", "launch"}, {"n", 1}}));
  }

  bool is_remote() const override { return true; }

  Result<RemoteTimes> launch_batch(std::span<const Tensor> args, const RemoteLaunches& launches) override {
    if (auto bound = bind(args); !bound) return std::unexpected(bound.error());
    json request{{"op", "launch"}, {"n", launches.count}};
    if (!launches.each) request["each"] = false;
    if (launches.flush) request["flush"] = true;
    if (launches.only_timed) request["only_timed"] = true;
    if (launches.in_graphs) request["graph"] = true;
    auto reply = ask(request);
    if (!reply) return std::unexpected(reply.error());
    RemoteTimes times;
    const auto it = reply->find("ms");
    if (it != reply->end() && it->is_array()) {
      for (const auto& ms : *it)
        if (ms.is_number()) times.launch_ms.push_back(ms);
    }
    const size_t got = times.launch_ms.size();
    if (static_cast<int>(got) != launches.count && (launches.each || got != 1)) {
      const char* each = launches.each ? "" : ", or one for all,";
      return bad_reply(fmt::format("{} launches need {} times{} as numbers of ms; it told {}", launches.count,
                                   launches.count, each, got));
    }
    const auto negative = std::ranges::find_if(times.launch_ms, [](double ms) { return !(ms >= 0); });
    if (negative != times.launch_ms.end())
      return bad_reply(fmt::format("timer: a launch cannot take {} ms", *negative));
    return times;
  }

  Result<void*> allocate_shared(size_t bytes) override {
    auto memory = SharedMemory::create(bytes);
    if (!memory) return std::unexpected(memory.error());
    memory_.push_back(std::move(*memory));
    return memory_.back().data();
  }

  void release_shared(void* memory) override {
    std::erase_if(memory_, [memory](const SharedMemory& m) { return m.data() == memory; });
    tensors_.clear();
  }

  PeakMemory peak_memory() override {
    PeakMemory out;
    const auto reply = ask({{"op", "peak"}});
    if (!reply) return out;
    if (const auto it = reply->find("allocator_bytes"); it != reply->end() && it->is_number())
      out.allocator_bytes = it->get<int64_t>();
    if (const auto it = reply->find("device_bytes"); it != reply->end() && it->is_number())
      out.device_bytes = it->get<int64_t>();
    return out;
  }

  std::optional<int> process_id() const override { return child_ ? std::optional<int>(child_->pid()) : std::nullopt; }
  std::vector<std::string> installed_paths() const override { return paths_; }

 private:
  static std::map<std::string, std::optional<std::string>> thread_limits(int threads) {
    std::map<std::string, std::optional<std::string>> env;
    for (const char* name : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"})
      env[name] = std::to_string(threads);
    env["PYTHONUNBUFFERED"] = "1";
    return env;
  }

  static Status done(const Result<json>& reply) {
    if (!reply) return std::unexpected(reply.error());
    return {};
  }

  std::unexpected<Diagnostic> bad_reply(const std::string& what) const {
    return fail(DiagnosticCode::E3205, fmt::format("worker {}: {}", name_, what),
                "docs/workers.md says what each request wants");
  }

  /// One request, one reply. {"ok": false} becomes the diagnostic its `kind` asks for.
  Result<json> ask(const json& request) {
    if (!child_) return bad_reply("asked before it was opened");
    if (auto sent = child_->send_line(request.dump()); !sent) {
      const auto line =
          child_->read_line(std::chrono::milliseconds(200));  // waits for the end, so that the message says why
      return std::unexpected(line ? sent.error() : line.error());
    }
    auto line = child_->read_line(timeout_);
    if (!line) return std::unexpected(line.error());
    json reply = json::parse(*line, nullptr, false);
    if (!reply.is_object()) return bad_reply(fmt::format("'{}' is not a JSON object", line->substr(0, 80)));
    const auto ok = reply.find("ok");
    if (ok != reply.end() && ok->is_boolean() && ok->get<bool>()) return reply;
    const auto text_of = [&](const char* field) {
      const auto it = reply.find(field);
      return it != reply.end() && it->is_string() ? it->get<std::string>() : std::string();
    };
    const std::string kind = text_of("kind");
    const auto code = kind == "not-installed" ? DiagnosticCode::E3204
                      : kind == "unsupported" ? DiagnosticCode::E3201
                                              : DiagnosticCode::E3206;
    return fail(
        code,
        fmt::format("worker {}: {}", name_, text_of("error").empty() ? "failed without a reason" : text_of("error")),
        text_of("help"));
  }

  /// Tells the worker where the tensors are, once for the same arguments.
  Status bind(std::span<const Tensor> args) {
    if (!tensors_.empty() && same_tensors(args, tensors_)) return {};
    json list = json::array();
    for (const Tensor& t : args) {
      const auto* data = static_cast<const std::byte*>(t.data);
      const auto home = std::ranges::find_if(
          memory_, [&](const SharedMemory& m) { return data >= m.data() && data < m.data() + m.size(); });
      if (home == memory_.end())
        return fail(DiagnosticCode::E9001, fmt::format("tensor {} is not in memory shared with the worker", t.name));
      list.push_back({{"name", t.name},
                      {"dtype", tilewright::name(t.dtype)},
                      {"shape", t.shape},
                      {"strides", t.strides},
                      {"output", t.is_output},
                      {"path", home->path()},
                      {"bytes", home->size()},
                      {"offset", data - home->data()}});
    }
    if (auto bound = done(ask({{"op", "bind"}, {"args", list}})); !bound) return bound;
    tensors_.assign(args.begin(), args.end());
    return {};
  }

  std::string name_;
  std::vector<std::string> argv_;
  std::string options_;
  std::chrono::milliseconds timeout_{0};
  std::unique_ptr<ChildProcess> child_;
  Identity identity_;
  std::vector<std::string> paths_;
  std::vector<SharedMemory> memory_;
  std::vector<Tensor> tensors_;  ///< as the worker last heard of them
};

}  // namespace

std::vector<std::string> list_workers(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string file = entry.path().filename().string();
    if (file.ends_with(kSuffix)) names.push_back(file.substr(0, file.size() - kSuffix.size()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<CandidatePtr> make_worker_candidate(const std::string& target, const WorkerOptions& options) {
  const size_t question = target.find('?');
  const std::string program = target.substr(0, question),
                    text = question == std::string::npos ? "" : target.substr(question + 1);
  std::error_code error;
  const fs::path ready = options.folder / (program + std::string(kSuffix));
  const bool is_ready = program.find('/') == std::string::npos && fs::exists(ready, error);
  const fs::path path = is_ready ? ready : fs::absolute(program, error);
  if (!fs::exists(path, error)) {
    std::string known;
    for (const std::string& name : list_workers(options.folder)) known += (known.empty() ? "" : ", ") + name;
    return fail(DiagnosticCode::E3200, fmt::format("there is no worker '{}'", program),
                fmt::format("ready workers: {} (in {}); or give the path of a program that speaks docs/workers.md",
                            known, options.folder.string()));
  }
  std::vector<std::string> argv;
  if (path.extension() == ".py") argv.push_back(options.python);
  argv.push_back(path.string());
  std::string name = is_ready ? program : path.stem().string();
  return std::make_unique<WorkerCandidate>(std::move(name), std::move(argv), text);
}

}  // namespace tilewright::candidate
