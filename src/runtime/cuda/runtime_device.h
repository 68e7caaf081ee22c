// A CUDA device as the run-time library's Device: loads artefacts, launches recipes, reads what assert and print left.
//
// execute() on it allocates nothing, takes no lock and waits for nothing, and a stream under capture records the
// launches. A call like a recent one passes on what was worked out then: checks, grid, tensor maps. A failed assertion
// and printed lines come out of synchronise().
#pragma once

#include <memory>

#include "runtime/cuda/device.h"
#include "runtime/device.h"

namespace tilewright::cuda {

struct ReportOptions {
  tw_print print = nullptr;
  void* print_context = nullptr;
};

std::unique_ptr<runtime::Device> make_runtime_device(Device device, const ReportOptions& options = {});

/// The same refusal with the run-time library's code.
runtime::Failure to_failure(const Diagnostic& diagnostic);
runtime::Status to_status(const Status& status);

}  // namespace tilewright::cuda
