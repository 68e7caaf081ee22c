#include "plan/gpu/lowering.h"

namespace tilewright::plan::gpu {

std::optional<ir::thread::Program> Lowering::hopper(runtime::Launch&, std::string& why_not) {
  why_not = "not yet";
  return std::nullopt;
}

}  // namespace tilewright::plan::gpu
