// The checks of bind() compiled once into flat tables, for arguments as they nearly always are: not empty,
// strides not negative, sizes far below 2^63. One call costs tens of nanoseconds.
//
// bind() stays the definition: where the table says yes, the binding is the one that bind() makes; where it says no,
// nothing is known, and bind() decides and finds the words.
#pragma once

#include "runtime/binding.h"
#include "runtime/formula.h"

namespace tilewright::runtime {

class ArgumentTable {
 public:
  /// `recipe` has passed check().
  explicit ArgumentTable(const Recipe& recipe);

  /// True: `binding` holds what bind() would have put there. False: ask bind().
  bool bind(const tw_arguments& arguments, tw_device_kind device, Binding& binding) const;

 private:
  /// A tensor's values lie in one array: its extents, its strides, its address modulo 64.
  struct Tensor {
    int32_t dtype = 0;
    int32_t rank = 0;
    uint32_t refused_flags = 0;
    uint32_t first = 0;         ///< place of its values
    uint64_t address_mask = 0;  ///< bits of the address that must be 0
    uint64_t pitch_mask = 0;    ///< bits of a pitch in bytes that must be 0
    uint64_t max_bytes = 0;     ///< above every size when there is no limit
    uint32_t shift = 0;         ///< log2 of the bytes of an element
    bool is_written = false;
    bool has_unit_inner_stride = false;
    bool is_absent = false;
  };
  struct Copy {
    uint32_t slot, value;
  };
  struct Scalar {
    uint32_t slot, scalar;
    ScalarArgument expected;
  };
  struct Computed {
    uint32_t slot;
    Formula formula;
  };
  struct Extent {
    uint32_t value;
    Formula wanted;
  };
  struct Pair {
    uint32_t a, b;
  };

  void add_tensor(const TensorArgument& tensor);
  void add_slot(const Slot& slot, uint32_t index, const Recipe& recipe);
  void add_pairs(const Recipe& recipe);
  static bool read_tensor(const Tensor& expected, const tw_tensor& tensor, int64_t* values, Binding::Range& range);
  static bool read_scalar(const Scalar& scalar, const tw_arguments& arguments, int64_t& bits);
  bool check_values(const int64_t* values, std::span<const int64_t> slots) const;

  size_t slot_count_ = 0, scalar_count_ = 0;
  uint32_t value_count_ = 0;
  std::vector<Tensor> tensors_;
  std::vector<Copy> copies_;
  std::vector<Copy> present_;  ///< slots that say whether a tensor is there: `value` is 0 or 1
  std::vector<Scalar> scalars_;
  std::vector<Computed> computed_;
  std::vector<Extent> extents_;
  std::vector<Formula> requirements_;
  std::vector<Pair> apart_;  ///< tensors that must not overlap
};

}  // namespace tilewright::runtime
