// Runs a vector case through the thread interpreter.
#pragma once

#include "device/vector_cases.h"
#include "interp/thread_machine.h"

namespace tilewright::device_cases {

inline Result<std::vector<uint8_t>> interpret(VectorCase c, interp::Moment moment, uint64_t seed = 1) {
  std::vector<uint8_t> storage(c.input.size() + 64), result(c.output_bytes + 64, 0xcd);
  // The copy engine wants 16-byte alignment, as device allocations have it.
  const auto aligned = [](std::vector<uint8_t>& v) {
    return v.data() + (64 - reinterpret_cast<uintptr_t>(v.data()) % 64) % 64;
  };
  uint8_t *in = aligned(storage), *out = aligned(result);
  std::memcpy(in, c.input.data(), c.input.size());
  c.map.address = reinterpret_cast<uint64_t>(c.map_is_output ? out : in);
  std::vector<interp::ThreadArgument> arguments = {{reinterpret_cast<uint64_t>(in), {}},
                                                   {reinterpret_cast<uint64_t>(out), {}}};
  if (c.has_map) arguments.push_back({0, c.map});
  const interp::ThreadBuffer buffers[] = {{in, c.input.size()}, {out, c.output_bytes}};
  auto status = interp::run_threads(c.program, {1, 1, 1}, arguments, buffers, {.moment = moment, .seed = seed});
  if (!status) return std::unexpected(status.error());
  return std::vector<uint8_t>(out, out + c.output_bytes);
}

}  // namespace tilewright::device_cases
