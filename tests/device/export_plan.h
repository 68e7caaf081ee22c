// Writes a planned kernel for one call as files another program can launch: PREFIX.<n>.cubin, PREFIX.<n>.ptx and
// PREFIX.json (grid, threads, shared bytes, slots, tensor maps). Needs no GPU.
#pragma once

#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>

#include "codegen/cuda/assemble.h"
#include "codegen/cuda/emit_ptx.h"
#include "device/plan_call.h"
#include "lang/elaborate.h"
#include "runtime/cuda/driver.h"

namespace tilewright::device_cases {

inline std::vector<int64_t> parse_shape(const std::string& text) {
  std::vector<int64_t> out;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('x', at), text.size());
    out.push_back(std::stoll(text.substr(at, end - at)));
    at = end + 1;
  }
  return out;
}

/// Arguments: FILE KERNEL PREFIX [param=value | dim:NAME=value | tensor=AxBxC (in order) | scalar=bits | arch=sm_90a |
/// off=hopper | off=overlap | cluster=N | walkers=N |
/// driver=1 (cuInit before anything is timed)]...
inline int export_plan(int count, char** words) {
  const auto now = [] {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
  const std::string file = words[0], name = words[1], prefix = words[2];
  lang::Configuration configuration;
  configuration.target = lang::Target::Cuda;
  std::vector<Array> arrays;
  std::vector<int64_t> scalars;
  std::string arch = "sm_90a";
  plan::gpu::Options options;
  bool starts_driver = false;
  for (int i = 3; i < count; ++i) {
    const std::string word = words[i];
    const size_t eq = word.find('=');
    const std::string key = word.substr(0, eq), value = word.substr(eq + 1);
    if (key == "tensor")
      arrays.push_back({1024 * (arrays.size() + 1), parse_shape(value)});
    else if (key == "scalar")
      scalars.push_back(static_cast<int64_t>(std::bit_cast<uint32_t>(std::stof(value))));
    else if (key == "arch")
      arch = value;
    else if (key == "off" && value == "hopper")
      options.hopper = false;
    else if (key == "off" && value == "overlap")
      options.overlap_products = false;
    else if (key == "driver")
      starts_driver = value == "1";
    else if (key == "cluster")
      options.cluster = std::stoi(value);
    else if (key == "walkers")
      options.row_walkers = std::stoi(value);
    else if (key.starts_with("dim:"))
      configuration.dims[key.substr(4)] = std::stoll(value);
    else if (const auto v = lang::parse_param_value(value))
      configuration.params[key] = *v;
  }
  const auto complain = [&](const Diagnostic& d) {
    std::printf("%s: %s\n", prefix.c_str(), render(d).c_str());
    return 1;
  };
  // The driver's own start is not the compiler's time; nvJitLink would otherwise hide it in its first call.
  if (starts_driver)
    if (auto driver = cuda::Driver::open(); !driver) return complain(driver.error());
  const double t0 = now();
  auto source = lang::load_source(file);
  if (!source) return complain(source.error());
  auto kernel = lang::instantiate(*source, name, configuration);
  if (!kernel) return complain(kernel.error());
  const double t1 = now();
  auto planned = plan::gpu::plan(*kernel, *target::parse_gpu(arch), options);
  if (!planned) return complain(planned.error());
  const double t2 = now();
  auto assembler = codegen::Assembler::open();
  if (!assembler) return complain(assembler.error());
  const PlanCall call = begin_call(planned->recipe, arrays, scalars);
  if (!call.problem.empty()) std::printf("requirement does not hold: %s\n", call.problem.c_str());
  std::ofstream json(prefix + ".json");
  json << "{\"pointers\": " << planned->recipe.tensors.size() << ", \"slots\": [";
  for (size_t i = 0; i < call.slots.size(); ++i) json << (i ? ", " : "") << call.slots[i];
  json << "], \"workspaces\": [";
  for (size_t i = 0; i < call.workspace_bytes.size(); ++i) json << (i ? ", " : "") << call.workspace_bytes[i];
  json << "], \"zeroed\": [";
  for (size_t i = 0; i < call.workspace_zeroed.size(); ++i) json << (i ? ", " : "") << call.workspace_zeroed[i];
  json << "], \"launches\": [";
  for (size_t l = 0; l < planned->programs.size(); ++l) {
    const auto& program = planned->programs[l];
    const auto& launch = planned->recipe.launches[l];
    const double t3 = now();
    auto ptx = codegen::emit_ptx(program, {.architecture = target::parse_gpu(arch)->architecture});
    if (!ptx) return complain(ptx.error());
    const double t4 = now();
    std::ofstream(prefix + "." + std::to_string(l) + ".ptx") << *ptx;
    // What reallocates registers is the driver's to assemble: its text stands in for the machine code.
    Result<codegen::Cubin> cubin = codegen::Cubin{*ptx + '\0', {}};
    if (!program.whole_program) cubin = assembler->assemble(*ptx, arch);
    if (!cubin) return complain(cubin.error());
    const double t5 = now();
    std::ofstream(prefix + "." + std::to_string(l) + ".cubin", std::ios::binary) << cubin->image;
    std::printf(
        "%s: %s: %d registers, %d bytes of stack, %d shared bytes; front end %.1f ms, plan %.1f ms, PTX %.1f ms, "
        "assemble %.1f ms\n",
        prefix.c_str(), program.name.c_str(), cubin->resources.registers, cubin->resources.stack_bytes,
        program.shared_bytes, t1 - t0, t2 - t1, t4 - t3, t5 - t4);
    for (const auto& w : cubin->resources.warnings) std::printf("  %s\n", w.c_str());
    const auto grid = grid_of(launch, call);
    json << (l ? ", " : "") << "{\"name\": \"" << program.name << "\", \"grid\": [" << grid[0] << ", " << grid[1]
         << ", " << grid[2] << "], \"threads\": " << program.threads << ", \"shared\": " << program.shared_bytes
         << ", \"registers\": " << cubin->resources.registers << ", \"maps\": [";
    for (size_t m = 0; m < launch.tensor_maps.size(); ++m) {
      const auto& spec = launch.tensor_maps[m];
      const TensorMap map = map_of(spec, call);
      json << (m ? ", " : "") << "{\"pointer\": " << spec.pointer << ", \"type\": " << spec.data_type
           << ", \"swizzle\": " << spec.swizzle << ", \"extents\": [";
      for (int d = 0; d < map.rank; ++d) json << (d ? ", " : "") << map.extent[static_cast<size_t>(d)];
      json << "], \"strides\": [";
      for (int d = 1; d < map.rank; ++d) json << (d > 1 ? ", " : "") << map.stride[static_cast<size_t>(d)];
      json << "], \"box\": [";
      for (int d = 0; d < map.rank; ++d) json << (d ? ", " : "") << map.box[static_cast<size_t>(d)];
      json << "]}";
    }
    json << "]}";
  }
  json << "]}\n";
  for (const auto& f : planned->facts) std::printf("  %s: %s\n", f.what.c_str(), f.why.c_str());
  return 0;
}

}  // namespace tilewright::device_cases
