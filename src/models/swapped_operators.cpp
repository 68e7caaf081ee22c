#include "models/swapped_operators.h"

#include <fmt/format.h>

#include "bench/oracle/check.h"

namespace tilewright::models {
namespace {

const bench::DTypes kF32{DType::F32, DType::F32, DType::F32};

}  // namespace

Result<SwappedOperators::Kernel> SwappedOperators::build(const std::string& key) const {
  auto workload = bench::parse_workload(key, kF32);
  if (!workload) return std::unexpected(workload.error());
  const auto contract = bench::contract_text(*workload, {});
  auto made = options_.make();
  if (!made) return std::unexpected(made.error());
  Kernel kernel{*std::move(made), {}, {}};
  candidate::Candidate& c = *kernel.candidate;
  if (auto ok = c.open(options_.open); !ok) return std::unexpected(ok.error());
  if (auto ok = c.init_device(); !ok) return std::unexpected(ok.error());
  if (c.is_remote()) {
    return fail(DiagnosticCode::E3201, "a model calls its operators in this process; a worker runs in another",
                "use a lib:, rival: or tile: candidate, or --model-cmd");
  }
  auto echo = c.prepare(contract);
  if (!echo) return std::unexpected(echo.error());
  if (auto fair = bench::check_fair(contract, *echo, c.identity().name); !fair) return std::unexpected(fair.error());
  if (auto compiled = c.compile("{}"); !compiled) return std::unexpected(compiled.error());
  auto bytes = c.workspace_bytes();
  if (!bytes) return std::unexpected(bytes.error());
  kernel.workspace.resize(static_cast<size_t>(*bytes) + 64);
  for (const bench::Argument& arg : bench::arguments(*workload)) {
    kernel.tensors.push_back({arg.name, arg.dtype, arg.shape, arg.strides(), arg.is_output(), nullptr});
  }
  return kernel;
}

SwappedOperators::Kernel* SwappedOperators::kernel_for(const std::string& key) {
  if (const auto found = kernels_.find(key); found != kernels_.end()) return &found->second;
  if (!status_ || refused_.contains(key)) return nullptr;
  auto built = build(key);
  if (!built) {
    if (built.error().code == DiagnosticCode::E3201) {
      refused_[key] = built.error().message;
    } else {
      status_ = std::unexpected(built.error());
    }
    return nullptr;
  }
  Kernel& kernel = kernels_.emplace(key, *std::move(built)).first->second;
  if (!options_.check) return &kernel;
  bench::PreparedKernel prepared;
  prepared.launch = [&kernel](std::span<const candidate::Tensor> args) {
    auto address = reinterpret_cast<uintptr_t>(kernel.workspace.data());
    return kernel.candidate->launch(args, reinterpret_cast<void*>((address + 63) / 64 * 64), nullptr);
  };
  const auto report = bench::check_prepared(*bench::parse_workload(key, kF32), prepared, {});
  if (report.state == bench::ShapeReport::State::Accepted) return &kernel;
  status_ = fail(DiagnosticCode::E1609,
                 fmt::format("{} is wrong on {}: {}: {}", kernel.candidate->identity().name, key,
                             report.findings[0].rule, report.findings[0].text),
                 "a wrong operator is never timed inside a model");
  return nullptr;
}

bool SwappedOperators::launch(const std::string& key, std::initializer_list<const void*> data) {
  if (!status_) return true;  // sticky: nothing more is computed
  Kernel* kernel = kernel_for(key);
  if (!kernel) return !status_.has_value();
  size_t next = 0;
  for (const void* pointer : data) {
    if (pointer) kernel->tensors[next++].data = const_cast<void*>(pointer);
  }
  const auto address = reinterpret_cast<uintptr_t>(kernel->workspace.data());
  void* workspace = reinterpret_cast<void*>((address + 63) / 64 * 64);
  if (auto ok = kernel->candidate->launch(kernel->tensors, workspace, nullptr); !ok) status_ = ok;
  return true;
}

void SwappedOperators::gemm(const GemmCall& c) {
  if (!handles("gemm") || !launch(workload_of(c), {c.x, c.w, c.bias, c.y})) base_.gemm(c);
}
void SwappedOperators::attention(const AttentionCall& c) {
  if (!handles("attn") || !launch(workload_of(c), {c.q, c.k, c.v, c.o})) base_.attention(c);
}
void SwappedOperators::norm(const NormCall& c) {
  const bool usual = c.epsilon == static_cast<float>(bench::kNormEpsilon);  // the contract's
  const bool mine = usual && handles(c.bias ? "layernorm" : "rmsnorm");
  if (!mine || !launch(workload_of(c), {c.x, c.weight, c.bias, c.y})) base_.norm(c);
}
void SwappedOperators::swiglu(const SwigluCall& c) {
  if (!handles("swiglu") || !launch(workload_of(c), {c.a, c.b, c.y})) base_.swiglu(c);
}

std::vector<std::string> SwappedOperators::taken() const {
  std::vector<std::string> keys;
  for (const auto& [key, kernel] : kernels_) keys.push_back(key);
  return keys;
}

}  // namespace tilewright::models
