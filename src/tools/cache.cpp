// `tilewright cache`: where compiled kernels are kept, how much there is, and removing it.
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "cache/folder.h"
#include "tools/command.h"

namespace tilewright::tools {
namespace {

using cache::Folder;

struct Options {
  std::string folder;
  bool json = false;
};

Result<ExitCode> print_path(const Options& options) {
  if (options.json) {
    fmt::print("{}\n", nlohmann::json{{"folder", options.folder}}.dump());
  } else {
    fmt::print("{}\n", options.folder);
  }
  return ExitCode::Ok;
}

Result<ExitCode> print_stats(const Options& options) {
  const Result<Folder> folder = Folder::open(options.folder);
  if (!folder) return std::unexpected(folder.error());
  const auto use = folder->use();
  if (!use) return std::unexpected(use.error());
  if (options.json) {
    const nlohmann::json out = {
        {"folder", options.folder}, {"entries", use->entries}, {"bytes", use->bytes}, {"damaged", use->damaged}};
    fmt::print("{}\n", out.dump());
    return ExitCode::Ok;
  }
  fmt::print("folder   {}\nentries  {}\nsize     {:.1f} MiB\ndamaged  {}\n", options.folder, use->entries,
             static_cast<double>(use->bytes) / (1 << 20), use->damaged);
  return ExitCode::Ok;
}

Result<ExitCode> clear(const Options& options) {
  const Result<Folder> folder = Folder::open(options.folder);
  if (!folder) return std::unexpected(folder.error());
  const auto removed = folder->clear();
  if (!removed) return std::unexpected(removed.error());
  if (options.json) {
    fmt::print("{}\n", nlohmann::json{{"folder", options.folder}, {"removed", *removed}}.dump());
  } else {
    fmt::print("removed {} entries from {}\n", *removed, options.folder);
  }
  return ExitCode::Ok;
}

}  // namespace

Run add_cache(CLI::App& app, Session&) {
  const auto options = std::make_shared<Options>();
  const auto action = std::make_shared<Result<ExitCode> (*)(const Options&)>(nullptr);
  options->folder = cache::default_folder();
  app.require_subcommand(1);
  app.footer(
      "Examples:\n  tilewright cache path\n  tilewright cache stats --json\n"
      "  TILEWRIGHT_CACHE_DIR=/fast/disk/kernels tilewright cache clear");
  const auto add = [&](const char* name, const char* summary, Result<ExitCode> (*run)(const Options&)) {
    CLI::App* const sub = app.add_subcommand(name, summary);
    sub->add_option("--folder", options->folder, "The cache's folder")->capture_default_str();
    sub->add_flag("--json", options->json, "Print JSON");
    sub->callback([action, run] { *action = run; });
  };
  add("path", "Print the folder", print_path);
  add("stats", "Count entries and bytes", print_stats);
  add("clear", "Remove every entry that is not being made right now", clear);
  return [options, action] { return (*action)(*options); };
}

}  // namespace tilewright::tools
