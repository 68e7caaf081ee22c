// One artefact on a CUDA device: its kernels, and what its last calls passed to them.
//
// Guarantees: run() allocates nothing unless it fails, takes no lock, waits for nothing, and makes only calls that a
// stream capture allows. A call whose pointers and slots are those of a recent one costs a comparison and the launch
// itself: its checks, grid and tensor maps are kept.
#pragma once

#include <memory>

#include "runtime/cuda/device.h"
#include "runtime/cuda/reports.h"
#include "runtime/device.h"

namespace tilewright::cuda {

runtime::Result<std::unique_ptr<runtime::Code>> load_code(const Device& device, Reports& reports,
                                                          const runtime::Artefact& artefact);

}  // namespace tilewright::cuda
