// What the compiler would emit for c[i] = a[i] + scale * b[i], one block of 1024 elements; slot 0 is n, slot 1 scale.
#include <string.h>

#include "tilewright/tilewright.h"

static const float kTable[4] = {0.0f, 1.0f, 2.0f, 3.0f};

float tw_test_table(int64_t i) { return kTable[i & 3]; }

int32_t tw_test_add(const tw_launch* launch, int64_t first, int64_t last, void* scratch) {
  const float* a = launch->pointers[0];
  const float* b = launch->pointers[1];
  float* c = launch->pointers[2];
  float scale;
  memcpy(&scale, &launch->slots[1], sizeof scale);
  const int64_t n = launch->slots[0];
  for (int64_t block = first; block < last; ++block) {
    const int64_t begin = block * 1024;
    const int64_t end = begin + 1024 < n ? begin + 1024 : n;
    float* row = scratch;
    memcpy(row, b + begin, (size_t)(end - begin) * sizeof(float));
    for (int64_t i = begin; i < end; ++i) {
      if (a[i] == -12345.0f) {  // stands for a failing assert
        launch->record->index_count = 1;
        launch->record->indices[0] = i - begin;
        launch->record->block = block;
        launch->record->id = 7;
        return 7;
      }
      c[i] = a[i] + scale * row[i - begin];
    }
  }
  return 0;
}
