// Why the run-time library refused something: a code of failure.def and one sentence. Needs only the standard library.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace tilewright::runtime {

enum class FailureCode : int32_t {
#define TW_FAILURE(code, name) name = code,
#include "runtime/failure.def"
#undef TW_FAILURE
};

std::string_view name(FailureCode code);       ///< "wrong_dtype"
std::string_view code_text(FailureCode code);  ///< "E1403"

struct Failure {
  FailureCode code = FailureCode::bad_artefact;
  std::string message;
  bool is_class_fact =
      false;  ///< the arguments are valid, but belong to another shape class: another plan may take them
};

template <typename T>
using Result = std::expected<T, Failure>;
using Status = Result<void>;

std::unexpected<Failure> fail(FailureCode code, std::string message);

}  // namespace tilewright::runtime
