// The fields of every attribute struct, in one place: printing, parsing, cloning and comparing are visitors over it.
//
// `visit_fields(attributes, visitor)` calls visitor("name", field) for each field in declaration order. Field types
// are: bool, int, int64_t, double, std::string, DType, enums of attributes.h, Index, Value*, View, std::vector<Index>,
// std::vector<int>.
#pragma once

#include "ir/attributes.h"

namespace tilewright::ir {

template <typename V>
void visit_fields(NoAttributes&, V&&) {}
template <typename V>
void visit_fields(GridAttributes& a, V&& v) {
  v("extents", a.extents), v("threads", a.threads), v("persistent", a.persistent), v("group", a.group);
}
template <typename V>
void visit_fields(ForAttributes& a, V&& v) {
  v("lo", a.lo), v("hi", a.hi), v("step", a.step);
}
template <typename V>
void visit_fields(PipelinedAttributes& a, V&& v) {
  v("count", a.count), v("stages", a.stages);
}
template <typename V>
void visit_fields(ParallelAttributes& a, V&& v) {
  v("extents", a.extents);
}
template <typename V>
void visit_fields(AllocAttributes& a, V&& v) {
  v("guarded", a.guarded);
}
template <typename V>
void visit_fields(FillAttributes& a, V&& v) {
  v("dst", a.dst);
}
template <typename V>
void visit_fields(CopyAttributes& a, V&& v) {
  v("src", a.src), v("dst", a.dst);
}
template <typename V>
void visit_fields(GemmAttributes& a, V&& v) {
  v("a", a.a), v("b", a.b), v("c", a.c), v("transpose_a", a.transpose_a), v("transpose_b", a.transpose_b),
      v("accumulate", a.accumulate);
}
template <typename V>
void visit_fields(ReduceAttributes& a, V&& v) {
  v("kind", a.kind), v("src", a.src), v("dst", a.dst), v("dim", a.dim), v("accumulate", a.accumulate);
}
template <typename V>
void visit_fields(ReduceArgAttributes& a, V&& v) {
  v("is_max", a.is_max), v("src", a.src), v("value", a.value), v("index", a.index), v("dim", a.dim);
}
template <typename V>
void visit_fields(ScanAttributes& a, V&& v) {
  v("kind", a.kind), v("src", a.src), v("dst", a.dst), v("dim", a.dim);
}
template <typename V>
void visit_fields(AtomicTileAttributes& a, V&& v) {
  v("kind", a.kind), v("src", a.src), v("dst", a.dst);
}
template <typename V>
void visit_fields(ArriveLastAttributes& a, V&& v) {
  v("counter", a.counter), v("n", a.n);
}
template <typename V>
void visit_fields(AccessAttributes& a, V&& v) {
  v("buffer", a.buffer), v("indices", a.indices);
}
template <typename V>
void visit_fields(AtomicAttributes& a, V&& v) {
  v("kind", a.kind), v("buffer", a.buffer), v("indices", a.indices);
}
template <typename V>
void visit_fields(ConstantAttributes& a, V&& v) {
  v("real", a.real), v("integer", a.integer);
}
template <typename V>
void visit_fields(IndexAttributes& a, V&& v) {
  v("index", a.index);
}
template <typename V>
void visit_fields(UnaryAttributes& a, V&& v) {
  v("op", a.op);
}
template <typename V>
void visit_fields(BinaryAttributes& a, V&& v) {
  v("op", a.op);
}
template <typename V>
void visit_fields(CompareAttributes& a, V&& v) {
  v("op", a.op);
}
template <typename V>
void visit_fields(TextAttributes& a, V&& v) {
  v("id", a.id);
}
template <typename V>
void visit_fields(FuncAttributes& a, V&& v) {
  v("symbol", a.symbol), v("blocks", a.blocks), v("threads", a.threads), v("scratch_bytes", a.scratch_bytes);
}
template <typename V>
void visit_fields(SlotAttributes& a, V&& v) {
  v("number", a.number);
}
template <typename V>
void visit_fields(OffsetAttributes& a, V&& v) {
  v("bytes", a.bytes);
}
template <typename V>
void visit_fields(MemoryAttributes& a, V&& v) {
  v("storage", a.storage), v("bytes", a.bytes), v("align", a.align), v("streaming", a.streaming);
}
template <typename V>
void visit_fields(LaneAttributes& a, V&& v) {
  v("lane", a.lane);
}
template <typename V>
void visit_fields(ShuffleAttributes& a, V&& v) {
  v("lanes", a.lanes);
}
template <typename V>
void visit_fields(ReduceLanesAttributes& a, V&& v) {
  v("kind", a.kind);
}
template <typename V>
void visit_fields(AtomicMemoryAttributes& a, V&& v) {
  v("kind", a.kind), v("storage", a.storage);
}

/// Visits the fields of whichever struct the variant holds.
template <typename V>
void visit_fields(Attributes& attributes, V&& v) {
  std::visit([&](auto& a) { visit_fields(a, v); }, attributes);
}

}  // namespace tilewright::ir
