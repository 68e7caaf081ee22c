// device_runner: runs cases on a CUDA device, ~50 to a child process under a watchdog, and records what came out.
//
//   device_runner vectors OUT_FILE     every instruction row; compares with the thread interpreter, writes the outputs
//
// Exit status: 0 all agree, 1 some differ or crashed, 2 no device.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "codegen/cuda/assemble.h"
#include "codegen/cuda/emit_ptx.h"
#include "device/export_plan.h"
#include "device/interpret_case.h"
#include "device/record_file.h"
#include "runtime/cuda/device.h"

namespace tilewright::device_cases {
namespace {

constexpr size_t kCasesPerChild = 50;
constexpr int kWatchdogSeconds = 60;

/// Runs `body` in a child process; true when it exits with 0 in time.
bool in_child(const std::function<int()>& body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    const int status = body();
    std::fflush(nullptr);
    _exit(status);
  }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(kWatchdogSeconds);
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > deadline) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      std::printf("watchdog: child killed after %d s\n", kWatchdogSeconds);
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

#define TW_TRY(expression) \
  if (auto status_ = (expression); !status_) return std::unexpected(status_.error())

Result<std::vector<uint8_t>> run_on_device(const VectorCase& c, const cuda::Device& device,
                                           const codegen::Assembler& assembler) {
  const int architecture = device.facts().architecture;
  auto ptx = codegen::emit_ptx(c.program, {.architecture = architecture});
  if (!ptx) return std::unexpected(ptx.error());
  auto cubin = assembler.assemble(*ptx, "sm_" + std::to_string(architecture) + (c.program.needs_sm90a ? "a" : ""));
  if (!cubin) return std::unexpected(cubin.error());
  auto module = cuda::Module::load(device, cubin->image);
  if (!module) return std::unexpected(module.error());
  auto kernel = module->kernel(c.program.name, c.program.shared_bytes);
  if (!kernel) return std::unexpected(kernel.error());
  auto in = cuda::DeviceBuffer::allocate(device, c.input.size()),
       out = cuda::DeviceBuffer::allocate(device, c.output_bytes);
  if (!in) return std::unexpected(in.error());
  if (!out) return std::unexpected(out.error());
  TW_TRY(in->upload(c.input.data(), c.input.size()));
  TW_TRY(out->fill_bytes(0xcd));
  uint64_t in_address = in->address(), out_address = out->address();
  cuda::EncodedTensorMap encoded{};
  if (c.has_map) {
    TensorMap map = c.map;
    map.address = c.map_is_output ? out_address : in_address;
    auto result = cuda::encode(device.driver(), map);
    if (!result) return std::unexpected(result.error());
    encoded = *result;
  }
  void* arguments[] = {&in_address, &out_address, &encoded};
  TW_TRY(kernel->launch({.threads = static_cast<unsigned>(c.program.threads),
                         .shared_bytes = static_cast<unsigned>(c.program.shared_bytes)},
                        std::span(arguments, c.has_map ? 3u : 2u), nullptr));
  TW_TRY(device.synchronize());
  std::vector<uint8_t> bytes(c.output_bytes);
  TW_TRY(out->download(bytes.data(), bytes.size()));
  return bytes;
}

int vectors_child(const std::vector<VectorCase>& cases, size_t first, size_t last, const std::string& file) {
  auto device = cuda::Device::open();
  auto assembler = codegen::Assembler::open();
  if (!device || !assembler) {
    std::printf("%s\n", (device ? assembler.error() : device.error()).message.c_str());
    return 2;
  }
  Recording recording;
  int bad = 0;
  for (size_t i = first; i < last; ++i) {
    const VectorCase& c = cases[i];
    auto got = run_on_device(c, *device, *assembler);
    if (!got) {
      std::printf("%s: %s\n", c.name.c_str(), got.error().message.c_str());
      ++bad;
      if (got.error().code == DiagnosticCode::E3053) break;
      continue;
    }
    const auto expected = interpret(c, interp::Moment::Latest);
    const std::string text = expected ? difference(c, *got, *expected) : c.name + ": " + expected.error().message;
    if (!text.empty()) std::printf("differs (expected = hardware) %s\n", text.c_str()), ++bad;
    recording[c.name] = std::move(*got);
  }
  write_recording(file, recording);
  return bad ? 1 : 0;
}

int vectors(const std::string& file) {
  const std::vector<VectorCase> cases = vector_cases();
  bool good = true;
  Recording all;
  for (size_t first = 0; first < cases.size(); first += kCasesPerChild) {
    const std::string part = file + ".part";
    std::remove(part.c_str());
    good &= in_child([&] { return vectors_child(cases, first, std::min(first + kCasesPerChild, cases.size()), part); });
    all.merge(read_recording(part));
    std::remove(part.c_str());
  }
  write_recording(file, all);
  std::printf("%zu cases, %zu recorded, %s\n", cases.size(), all.size(), good ? "all agree" : "SOME DIFFER");
  return good ? 0 : 1;
}

}  // namespace
}  // namespace tilewright::device_cases

int main(int argc, char** argv) {
  using namespace tilewright::device_cases;
  if (argc == 3 && std::string(argv[1]) == "vectors") return vectors(argv[2]);
  if (argc >= 5 && std::string(argv[1]) == "export") return export_plan(argc - 2, argv + 2);
  std::fprintf(stderr, "usage: device_runner vectors OUT_FILE\n");
  return 2;
}
