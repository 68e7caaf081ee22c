// The artefact of tests/runtime/objects/add_kernel.c: c[i] = a[i] + scale · b[i], blocks of 1024; fails at a[i] ==
// -12345.
#pragma once

#include <fstream>
#include <sstream>
#include <string>

#include "runtime/artefact.h"

namespace tilewright::runtime {

inline Artefact add_artefact() {
  Artefact artefact;
  std::ifstream in(TW_ADD_KERNEL, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  artefact.code = out.str();
  Recipe& recipe = artefact.recipe;
  recipe.kernel = "add";
  recipe.target = "cpu:x86-64";
  recipe.cpu_features = {"sse2"};
  recipe.tensors = {
      {.name = "a", .axes = {{.binds = 0, .text = "n"}}},
      {.name = "b", .axes = {{.extent = slot(0), .text = "n"}}},
      {.name = "c", .access = Access::Out, .axes = {{.extent = slot(0), .text = "n"}}},
  };
  recipe.scalars = {{.name = "scale", .has_default = true, .default_bits = 0x3f800000}};
  recipe.slots = {{.kind = SlotKind::Dim, .name = "n"}, {.kind = SlotKind::Scalar, .name = "scale"}};
  recipe.launches = {
      {.symbol = "tw_test_add", .grid = {ceil_div(slot(0), constant(1024))}, .scratch_bytes = constant(4096)}};
  recipe.messages = {{.id = 7, .text = "a[i] != -12345", .location = "add.tile:4:7"}};
  return artefact;
}

}  // namespace tilewright::runtime
