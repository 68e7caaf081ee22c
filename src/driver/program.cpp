#include "driver/program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "lang/foreign.h"
#include "lang/read_once.h"

namespace tilewright::driver {
namespace {

/// The text of a file that could not be parsed, for the caret line; empty when it cannot be read.
std::string text_of(const Location& location) {
  if (!location.is_known() || !location.file) return {};
  if (auto text = lang::read_once(*location.file)) return text->value_or("");
  std::ifstream file(*location.file, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::unexpected<ProgramError> refuse(const lang::Source* source, Diagnostic diagnostic) {
  std::string text = source ? source->render(diagnostic) : render(diagnostic, text_of(diagnostic.location));
  return std::unexpected(ProgramError{std::move(diagnostic), std::move(text)});
}

std::string near_or(const std::string& name, const std::vector<std::string>& known, const char* otherwise) {
  const std::string near = lang::closest(name, known);
  if (!near.empty()) return fmt::format("did you mean '{}'? {}: {}", near, otherwise, fmt::join(known, ", "));
  return fmt::format("{}: {}", otherwise, fmt::join(known, ", "));
}

Diagnostic choose_one(const lang::Source& source, const std::vector<std::string>& names) {
  return fail(DiagnosticCode::E1800,
              fmt::format("{} has {} kernels: {}", source.name(), names.size(), fmt::join(names, ", ")),
              "choose one with --kernel NAME")
      .error();
}

Result<std::string> kernel_name(const lang::Source& source, const std::string& asked) {
  const std::vector<std::string> names = source.kernel_names();
  if (!asked.empty()) {
    if (std::find(names.begin(), names.end(), asked) != names.end()) return asked;
    return fail(DiagnosticCode::E1800, fmt::format("{} has no kernel '{}'", source.name(), asked),
                near_or(asked, names, "it has"));
  }
  if (names.size() == 1) return names[0];
  if (names.empty())
    return fail(DiagnosticCode::E1800, fmt::format("{} has no kernel", source.name()),
                "a kernel begins `kernel name(…) -> (…)`");
  return std::unexpected(choose_one(source, names));
}

Result<std::map<std::string, lang::ParamValue>> parse_params(const std::map<std::string, std::string>& texts) {
  std::map<std::string, lang::ParamValue> out;
  for (const auto& [name, text] : texts) {
    const auto value = lang::parse_param_value(text);
    if (!value) {
      return fail(DiagnosticCode::E1803, fmt::format("parameter {}: '{}' is not a value", name, text),
                  "give an integer, true or false, or a dtype such as f16");
    }
    out.emplace(name, *value);
  }
  return out;
}

/// Sizes of the first example for dimensions nobody gave.
void fill_from_example(const lang::KernelInfo& info, std::map<std::string, int64_t>& dims) {
  if (info.examples.empty()) return;
  for (const auto& [name, size] : info.examples.front()) dims.emplace(name, size);
}

Status check_dimension_names(const lang::KernelInfo& info, const std::map<std::string, int64_t>& dims) {
  for (const auto& [name, size] : dims) {
    if (std::find(info.dims.begin(), info.dims.end(), name) == info.dims.end()) {
      return fail(DiagnosticCode::E1801, fmt::format("kernel '{}' has no dimension '{}'", info.name, name),
                  near_or(name, info.dims, "its dimensions are"));
    }
    if (size < 0) {
      return fail(DiagnosticCode::E1801, fmt::format("dimension {} is {}", name, size), "a dimension is 0 or more");
    }
  }
  return {};
}

}  // namespace

namespace {

/// The kernel's name and the configuration asked for, with nothing filled in yet.
Result<std::pair<std::string, lang::Configuration>> configuration_of(const lang::Source& source,
                                                                     const KernelRequest& request) {
  auto name = kernel_name(source, request.kernel);
  if (!name) return std::unexpected(name.error());
  auto params = parse_params(request.params);
  if (!params) return std::unexpected(params.error());
  return std::pair(*name, lang::Configuration{.target = request.target,
                                              .params = std::move(*params),
                                              .dims = request.dims,
                                              .specialise = request.specialise,
                                              .absent = request.absent});
}

}  // namespace

std::expected<Program, ProgramError> load_program(const lang::Source& source, const KernelRequest& request) {
  auto asked = configuration_of(source, request);
  if (!asked) return refuse(&source, asked.error());
  auto& [name, configuration] = *asked;
  auto info = lang::describe(source, name, configuration);
  if (!info) return refuse(&source, info.error());
  if (Status known = check_dimension_names(*info, request.dims); !known) return refuse(&source, known.error());
  if (request.use_example) fill_from_example(*info, configuration.dims);
  info = lang::describe(source, name, configuration);
  if (!info) return refuse(&source, info.error());
  auto kernel = lang::instantiate(source, name, configuration);
  if (!kernel) return refuse(&source, kernel.error());
  return Program{source, std::move(*info), std::move(configuration), std::move(*kernel)};
}

std::expected<Program, ProgramError> load_program(const KernelRequest& request) {
  auto source = lang::load_source(request.path);
  if (!source) return refuse(nullptr, source.error());
  return load_program(*source, request);
}

std::expected<lang::KernelInfo, ProgramError> describe_program(const KernelRequest& request) {
  auto source = lang::load_source(request.path);
  if (!source) return refuse(nullptr, source.error());
  auto asked = configuration_of(*source, request);
  if (!asked) return refuse(&*source, asked.error());
  auto info = lang::describe(*source, asked->first, asked->second);
  if (!info) return refuse(&*source, info.error());
  return std::move(*info);
}

}  // namespace tilewright::driver
