#include "tools/compiler/kernel_services.h"

#include "adapters/tile/kernel_spelling.h"
#include "driver/call.h"
#include "driver/compile.h"
#include "driver/program.h"
#include "measure/clock.h"
#include "measure/flush.h"
#include "measure/stopping.h"

namespace tilewright::tools {
namespace {

/// "tile:FILE.tile:KERNEL" or the same without the kind.
std::string target_of(const std::string& spelling) {
  return spelling.starts_with("tile:") ? spelling.substr(5) : spelling;
}

Result<std::vector<OfferedKernel>> offers_of(const std::string& text, const std::map<std::string, int64_t>& dims) {
  auto spelling = adapters::parse_kernel_spelling(target_of(text));
  if (!spelling) return std::unexpected(spelling.error());
  auto offers = adapters::kernel_offers(*spelling, dims);
  if (!offers) return std::unexpected(offers.error());
  std::vector<OfferedKernel> out;
  for (adapters::KernelOffer& offer : *offers)
    out.push_back({"tile:" + adapters::to_string(offer.spelling), std::move(offer.workload), std::move(offer.why_not)});
  return out;
}

/// The sampled loop of an unchecked kernel.
struct Loop {
  driver::LoadedKernel& kernel;
  const ir::Kernel& program;
  driver::Arrays& arrays;
  measure::FastClock clock;
  measure::CacheFlush caches;

  Result<std::vector<double>> run(bool flush) {
    measure::StopRule rule;
    rule.timeout_ms = 3000;
    measure::StopMachine machine(rule);
    const int64_t start = measure::kernel_ns();
    while (machine.reason() == measure::StopReason::Continue) {
      if (flush) {
        for (const HostTensor& tensor : arrays.tensors) caches.flush(std::as_bytes(std::span(tensor.data)));
        caches.finish();
      }
      const double begin = clock.now_ms();
      if (Status ran = kernel.run(program, arrays); !ran) return std::unexpected(ran.error());
      machine.add(clock.now_ms() - begin, static_cast<double>(measure::kernel_ns() - start) * 1e-6);
    }
    return machine.samples();
  }
};

Result<UncheckedTimes> time_unchecked(const std::string& text, int threads, uint64_t seed) {
  auto spelling = adapters::parse_kernel_spelling(target_of(text));
  if (!spelling) return std::unexpected(spelling.error());
  auto source = adapters::open_kernel_source(*spelling);
  if (!source) return std::unexpected(source.error());
  auto program = driver::load_program(*source, {.kernel = spelling->kernel, .params = spelling->params});
  if (!program) return std::unexpected(program.error().diagnostic);
  UncheckedTimes out;
  auto compiled = driver::compile(program->kernel, {});  // no cache: always cold
  if (!compiled) return std::unexpected(compiled.error());
  out.compile_ms = compiled->times.total_ms();
  const auto device = runtime::open_cpu({.threads = threads});
  auto kernel = driver::LoadedKernel::load(*device, compiled->artefact);
  if (!kernel) return std::unexpected(kernel.error());
  auto arrays = driver::make_arrays(program->kernel, {.dims = program->configuration.dims, .seed = seed});
  if (!arrays) return std::unexpected(arrays.error());
  Loop loop{*kernel, program->kernel, *arrays, {}, measure::CacheFlush{}};
  for (const bool flush : {true, false}) {
    auto samples = loop.run(flush);
    if (!samples) return std::unexpected(samples.error());
    (flush ? out.warm_ms : out.hot_ms) = std::move(*samples);
  }
  return out;
}

}  // namespace

void add_kernel_services(Session& session) {
  session.kernels.offers = offers_of;
  session.kernels.time_unchecked = time_unchecked;
}

}  // namespace tilewright::tools
