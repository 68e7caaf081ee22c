#include "adapters/tile/kernel_spelling.h"

#include <fmt/format.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "adapters/tile/kernel_workload.h"
#include "kernels/catalogue.h"

namespace tilewright::adapters {
namespace {

lang::Configuration configuration_of(const KernelSpelling& spelling) {
  lang::Configuration out;
  for (const auto& [name, text] : spelling.params) {
    if (auto value = lang::parse_param_value(text)) out.params[name] = *value;
  }
  return out;
}

KernelOffer offer_of(const lang::KernelInfo& info, KernelSpelling spelling,
                     const std::map<std::string, int64_t>& given) {
  spelling.kernel = info.name;
  KernelOffer offer{std::move(spelling), std::nullopt, ""};
  std::map<std::string, int64_t> dims = given;
  if (!info.examples.empty()) dims.insert(info.examples.front().begin(), info.examples.front().end());
  const auto is_open = [&](const std::string& dim) { return !dims.contains(dim); };
  if (const auto open = std::ranges::find_if(info.dims, is_open); open != info.dims.end()) {
    offer.why_not = fmt::format("kernel '{}' has no `example` line to take the size of {} from; give --dim {}=N",
                                info.name, *open, *open);
    return offer;
  }
  auto workload = workload_of_kernel(info, dims);
  if (workload)
    offer.workload = std::move(*workload);
  else
    offer.why_not = workload.error().message;
  return offer;
}

}  // namespace

Result<KernelSpelling> parse_kernel_spelling(std::string text) {
  KernelSpelling out;
  if (const size_t question = text.find('?'); question != std::string::npos) {
    std::string rest = text.substr(question + 1);
    text.resize(question);
    while (!rest.empty()) {
      const std::string piece = rest.substr(0, rest.find(','));
      rest.erase(0, std::min(rest.size(), piece.size() + 1));
      const size_t equals = piece.find('=');
      if (equals == std::string::npos) {
        return fail(DiagnosticCode::E1804, fmt::format("'{}' is not PARAM=VALUE", piece),
                    "write tile:FILE.tile?block_M=96,T=f16");
      }
      out.params[piece.substr(0, equals)] = piece.substr(equals + 1);
    }
  }
  const size_t end = text.find(".tile");
  const size_t colon = end == std::string::npos ? std::string::npos : text.find(':', end);
  out.path = text.substr(0, colon);
  if (colon != std::string::npos) out.kernel = text.substr(colon + 1);
  return out;
}

std::string to_string(const KernelSpelling& spelling) {
  std::string out = spelling.path;
  if (!spelling.kernel.empty()) out += ":" + spelling.kernel;
  char separator = '?';
  for (const auto& [name, value] : spelling.params) {
    out += fmt::format("{}{}={}", separator, name, value);
    separator = ',';
  }
  return out;
}

Result<lang::Source> open_kernel_source(const KernelSpelling& spelling) {
  std::error_code error;
  if (!std::filesystem::exists(spelling.path, error)) {
    if (auto built_in = kernels::load(spelling.path)) return built_in;
  }
  return lang::load_source(spelling.path);
}

namespace {

/// E1801 when nobody has the dimension.
Status check_dims(const std::map<std::string, int64_t>& dims, const std::set<std::string>& known,
                  const KernelSpelling& spelling) {
  for (const auto& [name, size] : dims) {
    if (!known.contains(name))
      return fail(DiagnosticCode::E1801, fmt::format("{} has no dimension '{}'", to_string(spelling), name),
                  fmt::format("its dimensions are: {}", fmt::join(known, ", ")));
  }
  return {};
}

}  // namespace

Result<std::vector<KernelOffer>> kernel_offers(const KernelSpelling& spelling,
                                               const std::map<std::string, int64_t>& dims) {
  auto source = open_kernel_source(spelling);
  if (!source) return std::unexpected(source.error());
  const lang::Configuration configuration = configuration_of(spelling);
  std::vector<KernelOffer> out;
  std::set<std::string> known;
  for (const std::string& name : source->kernel_names()) {
    if (!spelling.kernel.empty() && name != spelling.kernel) continue;
    auto info = lang::describe(*source, name, configuration);
    if (!info) return std::unexpected(info.error());
    const bool is_imported = info->location.file != nullptr && *info->location.file != source->name();
    if (spelling.kernel.empty() && is_imported) continue;
    known.insert(info->dims.begin(), info->dims.end());
    out.push_back(offer_of(*info, spelling, dims));
  }
  if (out.empty())
    return fail(DiagnosticCode::E1800, spelling.kernel.empty()
                                           ? fmt::format("{} has no kernel", spelling.path)
                                           : fmt::format("{} has no kernel '{}'", spelling.path, spelling.kernel));
  if (Status named = check_dims(dims, known, spelling); !named) return std::unexpected(named.error());
  return out;
}

}  // namespace tilewright::adapters
