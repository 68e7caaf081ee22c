#include "runtime/failure.h"

#include <utility>

namespace tilewright::runtime {

std::string_view name(FailureCode code) {
  switch (code) {
#define TW_FAILURE(number, text) \
  case FailureCode::text:        \
    return #text;
#include "runtime/failure.def"
#undef TW_FAILURE
  }
  return "unknown";
}

std::string_view code_text(FailureCode code) {
  switch (code) {
#define TW_FAILURE(number, text) \
  case FailureCode::text:        \
    return "E" #number;
#include "runtime/failure.def"
#undef TW_FAILURE
  }
  return "E9001";
}

std::unexpected<Failure> fail(FailureCode code, std::string message) {
  return std::unexpected(Failure{code, std::move(message)});
}

}  // namespace tilewright::runtime
