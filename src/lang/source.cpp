#include "lang/source.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "base/file_bytes.h"
#include "lang/parse.h"
#include "lang/read_once.h"

namespace tilewright::lang {
namespace {

using enum DiagnosticCode;

constexpr size_t kMostFiles = 64;

std::string beside(const std::string& file, const std::string& path) {
  const size_t slash = file.rfind('/');
  if (path.starts_with('/') || slash == std::string::npos) return path;
  return file.substr(0, slash + 1) + path;
}

Result<std::string> read_from_disk(const std::string& path) {
  if (auto text = read_once(path)) return std::move(*text);
  Result<MappedFile> file = map_file(path);
  if (!file) return std::unexpected(std::move(file.error()));
  const size_t size = file->bytes.size();
  if (size > (size_t{64} << 20))
    return fail(E1005, fmt::format("{} is {} bytes long; it is no .tile file", path, size));
  return std::string(reinterpret_cast<const char*>(file->bytes.data()), size);
}

Status check_names(const std::vector<std::shared_ptr<const File>>& files) {
  std::map<std::string, Location> seen;
  const auto add = [&](const std::string& name, const Location& location, std::string_view what) -> Status {
    const auto [found, added] = seen.emplace(name, location);
    if (added) return {};
    return fail_at(E1011, location,
                   fmt::format("{} `{}` is already defined at {}", what, name, to_string(found->second)));
  };
  for (const auto& file : files) {
    for (const KernelSyntax& k : file->kernels) {
      if (Status s = add(k.name, k.location, "kernel"); !s) return s;
    }
    for (const FnSyntax& f : file->functions) {
      if (Status s = add(f.name, f.location, "fn"); !s) return s;
    }
  }
  return {};
}

}  // namespace

std::vector<std::string> Source::kernel_names() const {
  std::vector<std::string> out;
  for (const auto& file : files_) {
    for (const KernelSyntax& k : file->kernels) out.push_back(k.name);
  }
  return out;
}

const KernelSyntax* Source::find_kernel(std::string_view name) const {
  for (const auto& file : files_) {
    for (const KernelSyntax& k : file->kernels) {
      if (k.name == name) return &k;
    }
  }
  return nullptr;
}

const FnSyntax* Source::find_function(std::string_view name) const {
  for (const auto& file : files_) {
    for (const FnSyntax& f : file->functions) {
      if (f.name == name) return &f;
    }
  }
  return nullptr;
}

std::vector<std::string> Source::function_names() const {
  std::vector<std::string> out;
  for (const auto& file : files_) {
    for (const FnSyntax& f : file->functions) out.push_back(f.name);
  }
  return out;
}

std::string_view Source::text_of(std::string_view file_name) const {
  for (const auto& file : files_) {
    if (*file->name == file_name) return file->text;
  }
  return {};
}

std::string Source::render(const Diagnostic& diagnostic) const {
  const std::string_view text = diagnostic.location.file ? text_of(*diagnostic.location.file) : std::string_view();
  return tilewright::render(diagnostic, text);
}

Result<Source> parse_source(std::string_view text, std::string file_name, const ReadFile& read) {
  Source out;
  std::set<std::string> seen{file_name};
  Result<std::shared_ptr<const File>> first = parse_file(text, std::move(file_name));
  if (!first) return std::unexpected(std::move(first.error()));
  out.files_.push_back(*first);
  for (size_t i = 0; i < out.files_.size(); ++i) {
    const std::shared_ptr<const File> file = out.files_[i];
    for (const ImportSyntax& import : file->imports) {
      const std::string path = beside(*file->name, import.path);
      if (!seen.insert(path).second) continue;
      if (!read)
        return fail_at(E1070, import.location, "imports cannot be read here: the text was given without a folder");
      if (seen.size() > kMostFiles)
        return fail_at(E1070, import.location, fmt::format("more than {} files are imported", kMostFiles));
      Result<std::string> imported = read(path);
      if (!imported) {
        return fail_at(E1070, import.location, fmt::format("cannot import: {}", imported.error().message),
                       "paths are relative to the importing file");
      }
      Result<std::shared_ptr<const File>> parsed = parse_file(*imported, path);
      if (!parsed) return std::unexpected(std::move(parsed.error()));
      out.files_.push_back(*parsed);
    }
  }
  if (Status s = check_names(out.files_); !s) return std::unexpected(std::move(s.error()));
  return out;
}

Result<Source> load_source(const std::string& path) {
  Result<std::string> text = read_from_disk(path);
  if (!text) return std::unexpected(std::move(text.error()));
  return parse_source(*text, source_name(path), read_from_disk);
}

}  // namespace tilewright::lang
