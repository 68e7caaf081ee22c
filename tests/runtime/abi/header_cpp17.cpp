// The C++ header as a C++17 program uses it: compiled as strict C++17 with warnings as errors, run by abi_test.
#include <tilewright/compiler.h>
#include <tilewright/runtime.h>

#include <string>
#include <vector>

std::string cpp17_add(const char* kernel_file, const std::vector<float>& a, const std::vector<float>& b,
                      std::vector<float>& c, float scale) {
  auto device = tilewright::Device::open("cpu");
  if (!device) return std::string(device.error().message());
  auto plan = device->load_file(kernel_file);
  if (!plan) return std::string(plan.error().message());
  const auto n = static_cast<std::int64_t>(a.size());
  const tilewright::Arguments arguments({{a.data(), {n}}, {b.data(), {n}}, {c.data(), {n}}}, {scale});
  auto workspace = plan->make_workspace(arguments);
  if (!workspace) return std::string(workspace.error().message());
  const tilewright::Status status = plan->execute(arguments, *workspace);
  return std::string(status.message());
}

std::string cpp17_read_only_output(const char* kernel_file, const std::vector<float>& a) {
  auto device = tilewright::Device::open("cpu");
  if (!device) return std::string(device.error().message());
  auto plan = device->load_file(kernel_file);
  if (!plan) return std::string(plan.error().message());
  const auto n = static_cast<std::int64_t>(a.size());
  const tilewright::Status status = plan->check({{a.data(), {n}}, {a.data(), {n}}, {a.data(), {n}}});
  return std::string(status.code_text()) + " " + std::string(status.name()) + " " + std::string(status.message());
}
