#include "kernels/catalogue.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <vector>

#include "lang/foreign.h"
#include "lang/parse.h"

namespace tilewright::kernels {
namespace {

using enum DiagnosticCode;

constexpr std::array kFiles = std::to_array<EmbeddedFile>({
#include "kernels/embedded.inc"
});
constexpr std::string_view kFolder = "kernels/";

std::string_view plain(std::string_view name) {
  if (name.starts_with(kFolder)) name.remove_prefix(kFolder.size());
  if (name.ends_with(".tile")) name.remove_suffix(5);
  return name;
}

const EmbeddedFile* find(std::string_view name) {
  for (const EmbeddedFile& file : kFiles) {
    if (plain(file.name) == plain(name)) return &file;
  }
  return nullptr;
}

std::unexpected<Diagnostic> unknown(std::string_view what, std::string_view name,
                                    const std::vector<std::string>& known) {
  const std::string near = lang::closest(name, known);
  return fail(
      E1013, fmt::format("there is no built-in {} `{}`", what, name),
      near.empty() ? fmt::format("there are: {}", fmt::join(known, ", ")) : fmt::format("did you mean `{}`?", near));
}

Result<lang::Source> parse(const EmbeddedFile& file) {
  const lang::ReadFile read = [](const std::string& path) -> Result<std::string> {
    if (const EmbeddedFile* found = find(path)) return std::string(found->text);
    return fail(E1070, fmt::format("{} is not built in", path));
  };
  return lang::parse_source(file.text, std::string(kFolder) + std::string(file.name), read);
}

}  // namespace

std::span<const EmbeddedFile> embedded_files() { return kFiles; }

Result<lang::Source> load(std::string_view name) {
  if (const EmbeddedFile* file = find(name)) return parse(*file);
  std::vector<std::string> known;
  for (const EmbeddedFile& file : kFiles) known.emplace_back(plain(file.name));
  return unknown("file", plain(name), known);
}

Result<lang::Source> load_kernel(std::string_view kernel) {
  std::vector<std::string> known;
  for (const EmbeddedFile& file : kFiles) {
    const Result<std::shared_ptr<const lang::File>> parsed = lang::parse_file(file.text, std::string(file.name));
    if (!parsed) return std::unexpected(parsed.error());
    for (const lang::KernelSyntax& k : (*parsed)->kernels) {
      if (k.name == kernel) return parse(file);
      known.push_back(k.name);
    }
  }
  return unknown("kernel", kernel, known);
}

}  // namespace tilewright::kernels
