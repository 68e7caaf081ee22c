// What an author asks for beyond meaning: which instruction, how wide, how laid out, what to keep in cache.
//
// Guarantees: a hint never changes a result. A planner follows it, says in a fact that it did not and why, or refuses
// the kernel (E2xxx); the default of every field is "the planner's choice". Does not do: check that an operation can
// have the hint (lang does), or that a target can follow it (the planners do).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tilewright::ir {

/// gemm(…, instruction = "mma"), gemm(…, avoid = "wgmma").
#define TW_MATRIX_UNITS(X) X(Any, "any") X(Fma, "fma") X(Dot, "dot") X(Mma, "mma") X(Wgmma, "wgmma")
/// copy(…, cache = "stream"): used once, keep it out of the caches; "keep": will be read again.
#define TW_CACHE_HINTS(X) X(Default, "default") X(Stream, "stream") X(Keep, "keep")
/// t = shared f16[m, n] layout("rows").
#define TW_LAYOUT_HINTS(X) X(Inferred, "inferred") X(Rows, "rows") X(Padded, "padded") X(Swizzled, "swizzled")

#define TW_HINT_ENTRY(enumerator, text) enumerator,
enum class MatrixUnit : uint8_t { TW_MATRIX_UNITS(TW_HINT_ENTRY) };
enum class CacheHint : uint8_t { TW_CACHE_HINTS(TW_HINT_ENTRY) };
enum class LayoutHint : uint8_t { TW_LAYOUT_HINTS(TW_HINT_ENTRY) };
#undef TW_HINT_ENTRY

std::string_view name(MatrixUnit unit);
std::string_view name(CacheHint hint);
std::string_view name(LayoutHint hint);

struct Hints {
  MatrixUnit instruction = MatrixUnit::Any;  ///< gemm: this one or none
  MatrixUnit avoid = MatrixUnit::Any;        ///< gemm: not this one
  CacheHint cache = CacheHint::Default;      ///< copy
  int vector = 0;                            ///< copy: at most this many elements an access; 0: any
  LayoutHint layout = LayoutHint::Inferred;  ///< alloc of a shared tile
  friend bool operator==(const Hints&, const Hints&) = default;
};

template <typename V>
void visit_fields(Hints& h, V&& v) {
  v("instruction", h.instruction), v("avoid", h.avoid), v("cache", h.cache), v("vector", h.vector),
      v("layout", h.layout);
}

/// `instruction = "mma", vector = 4` without the defaults; empty when there is none.
std::string to_text(const Hints& hints);

}  // namespace tilewright::ir
