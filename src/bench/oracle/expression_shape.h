// What the expression of a kernel's `reference` costs, and whether rows of its result can be computed one by one, read
// off the shapes of its arguments without computing anything.
//
// A subexpression is `rows` when its first extent is that of the sampled dimension and its row i needs nothing but rows
// i of the arguments; `whole` when it does not depend on them. What is neither cannot be sampled.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lang/elaborate.h"

namespace tilewright::bench {

struct ExpressionArgument {
  std::vector<int64_t> shape;
  bool is_sampled = false;  ///< only some rows of it are given
};

struct ExpressionCost {
  double flops = 0;           ///< of its products: two for every multiply-add
  double work = 0;            ///< flops, and twenty for every element a word makes
  bool keeps_rows = false;    ///< the result's rows can be computed one by one
  bool names_scalar = false;  ///< the sampled dimension itself is used as a number
};

/// `sampled_dim` is the name of the dimension that is sampled, or empty.
ExpressionCost expression_cost(const lang::Reference& reference,
                               const std::map<std::string, ExpressionArgument>& arguments,
                               const std::map<std::string, int64_t>& dims, const std::string& sampled_dim);

}  // namespace tilewright::bench
