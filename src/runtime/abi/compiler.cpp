#include <algorithm>
#include <cstddef>
#include <cstring>

#include "runtime/abi/handles.h"
#include "runtime/compiler_door.h"

using namespace tilewright::runtime;

struct tw_compiler {
  std::unique_ptr<CompilerDoor> door;
};

namespace {

tw_compile_request read_request(const tw_compile_request& given) {
  tw_compile_request request = {};
  std::memcpy(&request, &given, std::min(given.struct_size, sizeof request));
  return request;
}

std::string text(const char* given) { return given ? given : ""; }

tw_status* give(std::expected<CompilerOutput, CompilerFailure> output, tw_compiled** out) {
  if (!output) {
    const CompilerFailure& failure = output.error();
    return make_status(failure.code, failure.name, failure.message);
  }
  *out = new tw_compiled{std::move(output->bytes), output->is_from_cache};
  return nullptr;
}

}  // namespace

extern "C" {

tw_status* tw_compiler_open(tw_compiler** compiler) {
  return guarded([&]() -> tw_status* {
    if (!compiler) return null_handle("compiler");
    *compiler = nullptr;
    std::unique_ptr<CompilerDoor> door = &open_compiler ? open_compiler() : nullptr;
    if (!door) {
      return make_status(
          Failure{FailureCode::no_compiler,
                  "this is the run-time library, which has no compiler: load libtilewright.so instead, or "
                  "compile ahead of time with `tilewright build`"});
    }
    *compiler = new tw_compiler{std::move(door)};
    return nullptr;
  });
}

void tw_compiler_close(tw_compiler* compiler) { delete compiler; }

tw_status* tw_compiler_describe(tw_compiler* compiler, const char* path, tw_compiled** description) {
  if (!compiler || !path || !description) return null_handle(compiler ? "path" : "compiler");
  return guarded([&] { return give(compiler->door->describe(path), description); });
}

tw_status* tw_compiler_compile(tw_compiler* compiler, const tw_compile_request* given, tw_compiled** compiled) {
  if (!compiler || !given || !compiled) return null_handle(compiler ? "request" : "compiler");
  return guarded([&] {
    if (tw_status* refused = refuse_struct_size("tw_compile_request", given->struct_size,
                                                offsetof(tw_compile_request, cache_folder), sizeof(tw_compile_request)))
      return refused;
    const tw_compile_request from = read_request(*given);
    if (!from.parameters && from.parameter_count > 0) return null_handle("the array of parameters");
    if (const tw_arguments* a = from.arguments)
      if ((!a->tensors && a->tensor_count > 0) || (!a->scalars && a->scalar_count > 0))
        return null_handle("the array of arguments");
    CompilerRequest request;
    request.path = text(from.path);
    request.source = text(from.source);
    request.has_source = from.source != nullptr;
    request.kernel = text(from.kernel);
    request.target = text(from.target);
    for (size_t i = 0; i < from.parameter_count; ++i) request.parameters.emplace_back(text(from.parameters[i]));
    request.arguments = from.arguments;
    request.cache_folder = text(from.cache_folder);
    request.has_cache_folder = from.cache_folder != nullptr;
    return give(compiler->door->compile(request), compiled);
  });
}

const void* tw_compiled_data(const tw_compiled* compiled) { return compiled ? compiled->bytes.data() : nullptr; }
size_t tw_compiled_size(const tw_compiled* compiled) { return compiled ? compiled->bytes.size() : 0; }
int32_t tw_compiled_is_from_cache(const tw_compiled* compiled) { return compiled && compiled->is_from_cache; }
void tw_compiled_free(tw_compiled* compiled) { delete compiled; }
}
