#include "runtime/abi/handles.h"

namespace tilewright::runtime {

tw_status* make_status(const Failure& failure) {
  return new tw_status{static_cast<int32_t>(failure.code), std::string(code_text(failure.code)),
                       std::string(name(failure.code)), failure.message, failure.is_class_fact};
}

tw_status* make_status(int32_t code, std::string name, std::string message) {
  return new tw_status{code, "E" + std::to_string(code), std::move(name), std::move(message)};
}

tw_status* null_handle(const char* what) {
  return make_status(Failure{FailureCode::invalid_handle, std::string(what) + " is null"});
}

tw_status* refuse_struct_size(const char* what, size_t given, size_t least, size_t own) {
  if (given >= least) return nullptr;
  return make_status(Failure{FailureCode::invalid_handle, std::string(what) + ": struct_size is " +
                                                              std::to_string(given) + ", set it to sizeof(" + what +
                                                              "), here " + std::to_string(own)});
}

}  // namespace tilewright::runtime

extern "C" {

int32_t tw_status_code(const tw_status* status) { return status ? status->code : 0; }
const char* tw_status_code_text(const tw_status* status) { return status ? status->code_text.c_str() : "ok"; }
const char* tw_status_name(const tw_status* status) { return status ? status->name.c_str() : "ok"; }
const char* tw_status_message(const tw_status* status) { return status ? status->message.c_str() : ""; }
int32_t tw_status_is_wrong_class(const tw_status* status) { return status && status->is_wrong_class; }
void tw_status_free(tw_status* status) { delete status; }

uint32_t tw_abi_version(void) { return TW_ABI_VERSION; }
const char* tw_version(void) { return TW_VERSION_TEXT; }
}
