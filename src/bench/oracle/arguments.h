// The tensors of a workload, in the order every candidate gets them (inputs first), and what the work costs at least.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/oracle/workload.h"

namespace tilewright::bench {

enum class Role : uint8_t {
  Data,     ///< drawn from the contract's distribution
  Weight,   ///< a norm's weight: near 1
  Scale,    ///< positive quantisation scales
  Packed,   ///< uniform bits
  Output,   ///< compared by the rules
  Indices,  ///< an output of indices: compared by the values they select
};

struct Argument {
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  Role role = Role::Data;

  bool is_output() const { return role == Role::Output || role == Role::Indices; }
  int64_t numel() const;
  int64_t byte_count() const { return numel() * bytes(dtype); }
  std::vector<int64_t> strides() const;  ///< row-major, in elements
};

std::vector<Argument> arguments(const Workload& workload);

/// A lower bound of what any implementation does: multiply-adds count 2, only pairs the mask allows count; bytes are
/// each used input row read once and each output written once.
struct Cost {
  double flops = 0;
  double bytes = 0;
};
Cost minimal_cost(const Workload& workload);

}  // namespace tilewright::bench
