#include "aot/kernel_header.h"

#include <fmt/format.h>

#include <cctype>
#include <set>

#include "runtime/element.h"

namespace tilewright::aot {
namespace {

using runtime::Recipe;

/// A name of the kernel's language as a C parameter that cannot meet a keyword or a macro.
std::string parameter(const std::string& name) { return c_name(name) + "_"; }

std::string comment_safe(std::string text) {
  for (size_t at = text.find("*/"); at != std::string::npos; at = text.find("*/", at)) text[at + 1] = ' ';
  return text;
}

std::string describe_arguments(const Recipe& recipe) {
  constexpr const char* kAccess[] = {"in", "out", "inout"};
  std::string out;
  for (const runtime::TensorArgument& tensor : recipe.tensors) {
    std::string axes;
    for (const runtime::Axis& axis : tensor.axes)
      axes += (axes.empty() ? "" : ", ") + (axis.text.empty() ? "?" : axis.text);
    out +=
        fmt::format(" *   {}: {}[{}], {}{}\n", tensor.name, runtime::name(tensor.dtype), axes,
                    kAccess[static_cast<int>(tensor.access)], tensor.is_absent ? ", absent: compiled without it" : "");
  }
  for (const runtime::ScalarArgument& scalar : recipe.scalars) {
    out += fmt::format(" *   {}: {} by value\n", scalar.name, runtime::name(scalar.dtype));
  }
  for (const runtime::Requirement& requirement : recipe.requirements) {
    if (!requirement.text.empty()) out += fmt::format(" *   where {}\n", requirement.text);
  }
  return comment_safe(out);
}

std::string byte_array(const std::string& bytes) {
  std::string out;
  for (size_t i = 0; i < bytes.size(); ++i) {
    out +=
        fmt::format("{}{},", i % 24 == 0 ? "\n    " : "", static_cast<unsigned>(static_cast<unsigned char>(bytes[i])));
  }
  return out;
}

std::string entry_declarations(const Recipe& recipe) {
  std::string out;
  std::set<std::string> seen;
  for (const runtime::Launch& launch : recipe.launches) {
    if (!seen.insert(launch.symbol).second) continue;
    out += fmt::format("int32_t {}(const tw_launch* launch, int64_t first_block, int64_t last_block, void* scratch);\n",
                       launch.symbol);
  }
  return out;
}

std::string parameters(const Recipe& recipe) {
  std::string out = "const tw_plan* plan_";
  for (const runtime::TensorArgument& tensor : recipe.tensors)
    out += fmt::format(", tw_tensor {}", parameter(tensor.name));
  for (const runtime::ScalarArgument& scalar : recipe.scalars) {
    out += fmt::format(", {} {}", runtime::is_float(scalar.dtype) ? "double" : "int64_t", parameter(scalar.name));
  }
  return out;
}

/// The body's first lines: `arguments` from the parameters.
std::string pack_arguments(const Recipe& recipe) {
  std::string out;
  if (recipe.tensors.empty()) {
    out += "  const tw_tensor* tensors = 0;\n";
  } else {
    out += fmt::format("  tw_tensor tensors[{}];\n", recipe.tensors.size());
  }
  if (recipe.scalars.empty()) {
    out += "  const tw_scalar* scalars = 0;\n";
  } else {
    out += fmt::format("  tw_scalar scalars[{}];\n", recipe.scalars.size());
  }
  out += "  tw_arguments arguments;\n";
  for (size_t i = 0; i < recipe.tensors.size(); ++i)
    out += fmt::format("  tensors[{}] = {};\n", i, parameter(recipe.tensors[i].name));
  for (size_t i = 0; i < recipe.scalars.size(); ++i) {
    const bool is_float = runtime::is_float(recipe.scalars[i].dtype);
    out += fmt::format("  scalars[{0}].kind = {1};\n  scalars[{0}].reserved = 0;\n  scalars[{0}].value.{2} = {3};\n", i,
                       is_float ? "TW_SCALAR_FLOAT" : "TW_SCALAR_INTEGER", is_float ? "floating" : "integer",
                       parameter(recipe.scalars[i].name));
  }
  return out + fmt::format(
                   "  arguments.tensors = tensors;\n  arguments.tensor_count = {};\n  arguments.scalars = scalars;\n"
                   "  arguments.scalar_count = {};\n",
                   recipe.tensors.size(), recipe.scalars.size());
}

}  // namespace

std::string c_name(const std::string& kernel) {
  std::string out = kernel;
  for (char& c : out) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0]))) out.insert(out.begin(), '_');
  return out;
}

std::string kernel_header(const Recipe& recipe, const std::string& source) {
  const std::string kernel = c_name(recipe.kernel);
  std::string entries;
  for (const runtime::Launch& launch : recipe.launches) entries += (entries.empty() ? "" : ", ") + launch.symbol;
  std::string out = fmt::format("/* {}, built from {} for {}{}\n{} */\n", kernel, comment_safe(source), recipe.target,
                                recipe.description.empty() ? "" : ": " + comment_safe(recipe.description),
                                describe_arguments(recipe));
  out += fmt::format("#ifndef TW_KERNEL_{0}_H_\n#define TW_KERNEL_{0}_H_\n\n#include <tilewright/tilewright.h>\n\n",
                     kernel);
  out += "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n" + entry_declarations(recipe);
  out += fmt::format("\nstatic const unsigned char {}_recipe[] = {{{}\n}};\n\n", kernel,
                     byte_array(runtime::serialise(recipe)));
  out += fmt::format(
      "/* The plan: once per device, used from any thread. */\n"
      "static inline tw_status* {0}_load(tw_device* device_, tw_plan** plan_) {{\n"
      "  static const tw_cpu_entry entries[] = {{{1}}};\n"
      "  return tw_plan_link(device_, {0}_recipe, sizeof {0}_recipe, entries, {2}, plan_);\n}}\n\n",
      kernel, entries, recipe.launches.size());
  out += fmt::format(
      "/* Bytes of workspace for these shapes; data pointers are not looked at. */\n"
      "static inline tw_status* {}_workspace_bytes({}, size_t* bytes_) {{\n{}"
      "  return tw_plan_workspace_bytes(plan_, &arguments, bytes_);\n}}\n\n",
      kernel, parameters(recipe), pack_arguments(recipe));
  out += fmt::format(
      "/* Checks the arguments and runs; see tw_execute(). */\n"
      "static inline tw_status* {}_run({}, void* workspace_, size_t workspace_bytes_, void* stream_) {{\n{}"
      "  return tw_execute(plan_, &arguments, workspace_, workspace_bytes_, stream_);\n}}\n\n",
      kernel, parameters(recipe), pack_arguments(recipe));
  return out + "#ifdef __cplusplus\n}\n#endif\n\n#endif\n";
}

}  // namespace tilewright::aot
