// A libFuzzer target over everything that reads records from files others may have damaged: launch recipes, artefacts,
// ELF objects, cache entries. The first byte chooses the reader. What is accepted must be safe to use: recipes are
// evaluated and bound, objects are loaded (their code is not run). scripts/fuzz_readers.sh builds and runs it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "cache/entry.h"
#include "runtime/artefact.h"
#include "runtime/binding.h"
#include "runtime/object_loader.h"

namespace {

using namespace tilewright;
using namespace tilewright::runtime;

void require(bool condition) {
  if (!condition) std::abort();
}

/// Binds arguments of the right number and ranks with small odd extents; whatever comes out, nothing may be overrun.
void use_recipe(const Recipe& recipe) {
  int64_t extents[TW_MAX_RANK] = {3, 1, 4, 1, 5, 9, 2, 6};
  alignas(64) static char memory[64];
  tw_tensor tensors[kMaxTensors];
  for (size_t i = 0; i < recipe.tensors.size(); ++i) {
    const TensorArgument& tensor = recipe.tensors[i];
    tensors[i] = {memory, extents, nullptr, tensor.dtype, static_cast<int32_t>(tensor.axes.size()), 0, TW_CPU};
  }
  tw_scalar scalars[kMaxScalars] = {};
  for (tw_scalar& scalar : scalars) scalar = {TW_SCALAR_INTEGER, 0, {1}};
  const tw_arguments arguments = {tensors, recipe.tensors.size(), scalars, recipe.scalars.size()};
  static Binding binding;
  static_cast<void>(bind(recipe, arguments, TW_CPU, binding));
  if (!bind_shapes(recipe, arguments, binding)) return;
  const auto slots = binding.slot_span(recipe);
  int64_t sum = 0;
  for (const Launch& launch : recipe.launches) {
    for (const Expression& extent : launch.grid) sum ^= evaluate(extent, slots);
    sum ^= evaluate(launch.scratch_bytes, slots) ^ evaluate(launch.cost_ns, slots);
  }
  for (size_t i = 0; i < recipe.tensors.size(); ++i) tensor_extents(recipe, i, binding, extents);
  [[maybe_unused]] static volatile int64_t sink;
  sink = sum;
}

void read_recipe(std::string_view bytes) {
  const Result<Recipe> recipe = parse_recipe(bytes);
  if (!recipe) return;
  require(serialise(*recipe) == bytes);
  use_recipe(*recipe);
}

/// With the digest put right, so that the fuzzer reaches what is behind it.
void read_artefact(std::string_view bytes) {
  std::string repaired(bytes);
  constexpr size_t kDigestAt = 12, kBodyAt = 20;
  if (repaired.size() > kBodyAt) {
    const uint64_t digest = digest64(std::string_view(repaired).substr(kBodyAt));
    std::memcpy(repaired.data() + kDigestAt, &digest, sizeof digest);
  }
  const Result<Artefact> artefact = parse_artefact(repaired);
  if (!artefact) return;
  require(serialise(*artefact) == repaired);
  use_recipe(artefact->recipe);
}

void read_entry(std::string_view bytes) {
  const Key128 key = hash128("fuzz");
  if (const auto payload = cache::unpack(key, bytes)) require(cache::pack(key, *payload) == bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0: read_recipe(bytes); break;
    case 1: read_artefact(bytes); break;
    case 2: static_cast<void>(LoadedObject::load(bytes)); break;
    case 3: read_entry(bytes); break;
  }
  return 0;
}
