// A libFuzzer target over the two texts people write: `.tile` sources and printed IR. Whatever is accepted must verify,
// print, and read back as itself. scripts/fuzz_readers.sh builds and runs it; lang_test replays the kept corpus.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/verify.h"
#include "lang/elaborate.h"

namespace {

using namespace tilewright;

void require(bool condition) {
  if (!condition) std::abort();
}

/// A damaged kernel may be refused; one that verifies reads back as itself.
void read_ir(std::string_view text) {
  const Result<ir::Kernel> kernel = ir::parse_ir(text);
  if (!kernel) return require(!render(kernel.error(), text).empty());
  if (!ir::verify(*kernel)) return;
  const Result<ir::Kernel> again = ir::parse_ir(ir::to_text(*kernel));
  require(again.has_value() && ir::verify(*again).has_value());
}

void read_source(std::string_view text) {
  const lang::ReadFile read = [](const std::string&) -> Result<std::string> { return "fn relu(x) = max(x, 0)\n"; };
  const Result<lang::Source> source = lang::parse_source(text, "input.tile", read);
  if (!source) return require(!render(source.error(), text).empty());
  for (const std::string& name : source->kernel_names()) {
    lang::Configuration configuration;
    const Result<lang::KernelInfo> info = lang::describe(*source, name, configuration);
    if (info && !info->examples.empty()) configuration.dims = info->examples[0];
    const Result<ir::Kernel> kernel = lang::instantiate(*source, name, configuration);
    if (!kernel) {
      require(!source->render(kernel.error()).empty());
      continue;
    }
    require(ir::verify(*kernel).has_value());
    const std::string printed = ir::to_text(*kernel);
    const Result<ir::Kernel> again = ir::parse_ir(printed);
    require(again.has_value() && ir::to_text(*again) == printed);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.starts_with("kernel ") && text.find(" tile {\n  dim %") != std::string_view::npos) {
    read_ir(text);
  } else {
    read_source(text);
  }
  return 0;
}
