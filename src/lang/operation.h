// Operations: calls that stand alone as statements (copy, gemm, reduce_max …).
#pragma once

#include <string>
#include <vector>

namespace tilewright::lang {

std::vector<std::string> operation_names();

}  // namespace tilewright::lang
