#include <cerrno>
#include <cstdio>
#include <cstring>

#include "runtime/abi/handles.h"
#include "runtime/dlpack.h"

using namespace tilewright::runtime;

namespace {

Result<std::string> read_file(const char* path) {
  errno = 0;
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path, "rbe"), std::fclose);
  std::string bytes;
  char block[1 << 16];
  while (file) {
    const size_t read = std::fread(block, 1, sizeof block, file.get());
    bytes.append(block, read);
    if (read < sizeof block) break;
  }
  if (file && !std::ferror(file.get())) return bytes;
  return fail(FailureCode::unreadable_file, std::string(path) + ": " + std::strerror(errno));
}

tw_status* load_bytes(tw_device& device, std::string_view bytes, tw_plan** plan) {
  Result<Artefact> artefact = parse_artefact(bytes);
  if (!artefact) return make_status(artefact.error());
  Result<Plan> loaded = Plan::load(*device.device, std::move(*artefact));
  if (!loaded) return make_status(loaded.error());
  *plan = new tw_plan{std::move(*loaded)};
  return nullptr;
}

tw_status* no_such(const char* what, size_t index) {
  return make_status(
      Failure{FailureCode::unknown_argument, std::string("there is no ") + what + " " + std::to_string(index)});
}

}  // namespace

extern "C" {

tw_status* tw_plan_load(tw_device* device, const void* bytes, size_t size, tw_plan** plan) {
  return guarded([&]() -> tw_status* {
    if (!plan) return null_handle("plan");
    *plan = nullptr;
    if (!device || !bytes) return null_handle(device ? "bytes" : "device");
    return load_bytes(*device, {static_cast<const char*>(bytes), size}, plan);
  });
}

tw_status* tw_plan_load_file(tw_device* device, const char* path, tw_plan** plan) {
  return guarded([&]() -> tw_status* {
    if (!plan) return null_handle("plan");
    *plan = nullptr;
    if (!device || !path) return null_handle(device ? "path" : "device");
    const Result<std::string> bytes = read_file(path);
    return bytes ? load_bytes(*device, *bytes, plan) : make_status(bytes.error());
  });
}

tw_status* tw_plan_link(tw_device* device, const void* recipe, size_t size, const tw_cpu_entry* entries,
                        size_t entry_count, tw_plan** plan) {
  return guarded([&]() -> tw_status* {
    if (!plan) return null_handle("plan");
    *plan = nullptr;
    if (!device || !recipe || !entries) return null_handle(device ? "recipe" : "device");
    Result<Recipe> parsed = parse_recipe({static_cast<const char*>(recipe), size});
    if (!parsed) return make_status(parsed.error());
    Result<Plan> linked = Plan::link(*device->device, std::move(*parsed), {entries, entry_count});
    if (!linked) return make_status(linked.error());
    *plan = new tw_plan{std::move(*linked)};
    return nullptr;
  });
}

void tw_plan_free(tw_plan* plan) { delete plan; }

const char* tw_plan_kernel(const tw_plan* plan) { return plan ? plan->plan.recipe().kernel.c_str() : ""; }
const char* tw_plan_target(const tw_plan* plan) { return plan ? plan->plan.recipe().target.c_str() : ""; }
const char* tw_plan_description(const tw_plan* plan) { return plan ? plan->plan.recipe().description.c_str() : ""; }
size_t tw_plan_tensor_count(const tw_plan* plan) { return plan ? plan->plan.recipe().tensors.size() : 0; }
size_t tw_plan_scalar_count(const tw_plan* plan) { return plan ? plan->plan.recipe().scalars.size() : 0; }

tw_status* tw_plan_tensor_info(const tw_plan* plan, size_t index, tw_tensor_info* info) {
  if (!plan || !info) return null_handle(plan ? "info" : "plan");
  if (index >= tw_plan_tensor_count(plan)) return no_such("tensor", index);
  const TensorArgument& tensor = plan->plan.recipe().tensors[index];
  *info = {tensor.name.c_str(), tensor.dtype, static_cast<int32_t>(tensor.axes.size()),
           static_cast<int32_t>(tensor.access), tensor.is_absent};
  return nullptr;
}

tw_status* tw_plan_scalar_info(const tw_plan* plan, size_t index, tw_scalar_info* info) {
  if (!plan || !info) return null_handle(plan ? "info" : "plan");
  if (index >= tw_plan_scalar_count(plan)) return no_such("scalar", index);
  const ScalarArgument& scalar = plan->plan.recipe().scalars[index];
  *info = {scalar.name.c_str(), scalar.dtype, scalar.has_default};
  return nullptr;
}

tw_status* tw_plan_check(const tw_plan* plan, const tw_arguments* arguments) {
  if (!plan || !arguments) return null_handle(plan ? "arguments" : "plan");
  return guarded([&] { return make_status(plan->plan.check(*arguments)); });
}

tw_status* tw_plan_workspace_bytes(const tw_plan* plan, const tw_arguments* arguments, size_t* bytes) {
  if (!plan || !arguments || !bytes) return null_handle(plan ? "arguments" : "plan");
  return guarded([&]() -> tw_status* {
    const Result<size_t> needed = plan->plan.workspace_bytes(*arguments);
    if (!needed) return make_status(needed.error());
    *bytes = *needed;
    return nullptr;
  });
}

tw_status* tw_plan_infer_extents(const tw_plan* plan, const tw_arguments* arguments, size_t index, int64_t* extents) {
  if (!plan || !arguments || !extents) return null_handle(plan ? "arguments" : "plan");
  return guarded([&] { return make_status(plan->plan.infer_extents(*arguments, index, extents)); });
}

tw_status* tw_execute(const tw_plan* plan, const tw_arguments* arguments, void* workspace, size_t bytes, void* stream) {
  if (!plan || !arguments) return null_handle(plan ? "arguments" : "plan");
  return guarded([&] { return make_status(plan->plan.execute(*arguments, workspace, bytes, stream)); });
}

tw_status* tw_tensor_from_dlpack(const void* managed_tensor, tw_tensor* tensor) {
  if (!managed_tensor || !tensor) return null_handle("tensor");
  return guarded([&]() -> tw_status* {
    const Result<tw_tensor> view = view_dlpack(*static_cast<const DlpackManaged*>(managed_tensor));
    if (!view) return make_status(view.error());
    *tensor = *view;
    return nullptr;
  });
}

tw_status* tw_tensor_from_dlpack_versioned(const void* managed_tensor, tw_tensor* tensor) {
  if (!managed_tensor || !tensor) return null_handle("tensor");
  return guarded([&]() -> tw_status* {
    const Result<tw_tensor> view = view_dlpack(*static_cast<const DlpackManagedVersioned*>(managed_tensor));
    if (!view) return make_status(view.error());
    *tensor = *view;
    return nullptr;
  });
}
}
