// The CUDA device of the run-time library, on a stand-in for the driver: each case in a process of its own, because a
// process opens the driver once.
#include "runtime/cuda/runtime_device.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>

#include "runtime/cuda/fake_cuda.h"
#include "runtime/plan.h"
#include "runtime/report_layout.h"

extern thread_local int64_t tw_test_allocations;  // counting_new.cpp

namespace tilewright::runtime {
namespace {

/// The stand-in, under the driver's own name from now on.
FakeCuda& fake() {
  void* library = dlopen(TW_FAKE_CUDA, RTLD_NOW | RTLD_GLOBAL);
  if (!library) std::fprintf(stderr, "%s\n", dlerror()), std::exit(99);
  return *reinterpret_cast<FakeCuda* (*)()>(dlsym(library, "fake_cuda"))();
}

/// y[i] = x[i], 128 elements a block, for pitches and addresses that are multiples of 16 bytes.
Artefact copy_artefact() {
  Artefact artefact{.kind = CodeKind::Ptx, .code = "the stand-in does not read it"};
  Recipe& r = artefact.recipe;
  r.kernel = "copy";
  r.target = "cuda:sm_90a";
  const Facts facts = {.alignment = 16, .pitch_alignment = 16};
  r.tensors = {{.name = "x", .axes = {{.binds = 0, .text = "n"}}, .facts = facts},
               {.name = "y", .access = Access::Out, .axes = {{.extent = slot(0), .text = "n"}}, .facts = facts}};
  r.slots = {{.kind = SlotKind::Dim, .name = "n"}};
  r.requirements = {
      {combine(ExpressionOp::Le, {slot(0), constant(int64_t{1} << 30)}), true, "n <= 1073741824 (32-bit indices)"}};
  r.launches = {{.symbol = "tw_copy_0",
                 .target = LaunchTarget::Cuda,
                 .grid = {ceil_div(slot(0), constant(128))},
                 .threads = constant(128),
                 .shared_bytes = constant(4096)}};
  return artefact;
}

struct Call {
  int64_t n;
  tw_tensor tensors[2];
  tw_arguments get() { return {tensors, 2, nullptr, 0}; }
  Call(void* x, void* y, int64_t count) : n(count) {
    tensors[0] = {.data = x, .extents = &n, .dtype = TW_F32, .rank = 1, .device = TW_CUDA};
    tensors[1] = {.data = y, .extents = &n, .dtype = TW_F32, .rank = 1, .device = TW_CUDA};
  }
};

std::string text(const Status& s) {
  return s ? "ok" : std::string(code_text(s.error().code)) + " " + s.error().message;
}

template <typename T>
std::string text_of(const Result<T>& r) {
  return text(r ? Status() : Status(std::unexpected(r.error())));
}

/// Runs `body` in a new process; it says what was wrong.
void alone(const std::function<std::string()>& body) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const std::string problem = body();
        std::fprintf(stderr, "%s\n", problem.c_str());
        std::exit(problem.empty() ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

std::string expect(const std::string& got, const std::string& wanted) {
  return got == wanted ? "" : "got:    " + got + "\nwanted: " + wanted;
}

TEST(CudaDevice, RunsARecipe) {
  alone([]() -> std::string {
    FakeCuda& driver = fake();
    auto device = open_cuda(1, nullptr, nullptr);
    if (!device) return device.error().message;
    auto plan = Plan::load(**device, copy_artefact());
    if (!plan) return plan.error().message;
    driver.kernel = [](void** a) {
      const int64_t n = *static_cast<int64_t*>(a[2]);
      std::memcpy(*static_cast<void**>(a[1]), *static_cast<void**>(a[0]), static_cast<size_t>(n) * 4);
    };
    const int64_t n = 1000;
    std::vector<float> x(n, 2.5f), y(n);
    void* dx = *(*device)->allocate(n * 4);
    void* dy = *(*device)->allocate(n * 4);
    if (auto s = (*device)->copy_in(dx, x.data(), n * 4); !s) return text(s);
    int stream = 0;
    Call call(dx, dy, n);
    if (auto s = plan->execute(call.get(), nullptr, 0, &stream); !s) return text(s);
    if (auto s = (*device)->synchronise(&stream); !s) return text(s);
    if (auto s = (*device)->copy_out(y.data(), dy, n * 4); !s) return text(s);
    if (y != x) return "wrong result";
    if (driver.grid[0] != 8 || driver.shared_bytes != 4096 || driver.stream != &stream) return "wrong launch";
    return expect((*device)->description(), "cuda:1, Fake H200, sm_90");
  });
}

TEST(CudaDevice, ExecuteIsSafeUnderCapture) {
  alone([]() -> std::string {
    FakeCuda& driver = fake();
    auto opened = cuda::Device::open(0);
    auto device = cuda::make_runtime_device(*opened);
    auto plan = Plan::load(*device, copy_artefact());
    auto stream = cuda::Stream::create(*opened);
    Call call(*device->allocate(4096), *device->allocate(4096), 1000);
    auto graph = cuda::Graph::capture(*stream, [&]() -> tilewright::Status {
      for (int i = 0; i < 3; ++i)
        if (auto s = plan->execute(call.get(), nullptr, 0, stream->handle()); !s)
          return tilewright::fail(DiagnosticCode::E9001, s.error().message);
      return {};
    });
    if (!graph) return graph.error().message;
    if (driver.forbidden != 0) return "a call that breaks a capture";
    if (driver.launches != 3) return "launches not recorded";
    return graph->launch(stream->handle()) ? "" : "graph not launched";
  });
}

/// Copies by the fake kernel, whatever the arguments.
void copy_kernel(void** a) {
  const int64_t n = *static_cast<int64_t*>(a[2]);
  std::memcpy(*static_cast<void**>(a[1]), *static_cast<void**>(a[0]), static_cast<size_t>(n) * 4);
}

TEST(CudaDevice, ACallLikeARecentOneAsksTheDriverForNothingButTheLaunchAndAllocatesNothing) {
  alone([]() -> std::string {
    FakeCuda& driver = fake();
    auto device = open_cuda(0, nullptr, nullptr);
    auto plan = Plan::load(**device, copy_artefact());
    driver.kernel = copy_kernel;
    Call call(*(*device)->allocate(4096), *(*device)->allocate(4096), 1000);
    (void)plan->execute(call.get(), nullptr, 0, nullptr);
    const int queries = driver.pointer_queries, launches = driver.launches;
    const int64_t allocations = tw_test_allocations;
    for (int i = 0; i < 5; ++i)
      if (auto s = plan->execute(call.get(), nullptr, 0, nullptr); !s) return text(s);
    if (tw_test_allocations != allocations) return "execute allocated";
    if (driver.pointer_queries != queries) return "asked for the pointers again";
    return driver.launches == launches + 5 ? "" : "wrong number of launches";
  });
}

TEST(CudaDevice, OtherArgumentsAreNeverTakenForRememberedOnes) {
  alone([]() -> std::string {
    FakeCuda& driver = fake();
    auto device = open_cuda(0, nullptr, nullptr);
    auto plan = Plan::load(**device, copy_artefact());
    driver.kernel = copy_kernel;
    std::vector<float*> x, y;  // more than are remembered
    for (int i = 0; i < 7; ++i) {
      x.push_back(static_cast<float*>(*(*device)->allocate(4096)));
      y.push_back(static_cast<float*>(*(*device)->allocate(4096)));
    }
    for (int round = 0; round < 40; ++round) {
      const size_t i = static_cast<size_t>(round * 5 % 7), j = static_cast<size_t>(round * 3 % 7);
      const int64_t n = 1 + round % 3;
      for (int64_t k = 0; k < 3; ++k) x[i][k] = static_cast<float>(100 * round + k), y[j][k] = -1;
      Call call(x[i], y[j], n);
      if (auto s = plan->execute(call.get(), nullptr, 0, nullptr); !s) return text(s);
      for (int64_t k = 0; k < 3; ++k)
        if (y[j][k] != (k < n ? x[i][k] : -1)) return "a remembered call answered for another";
    }
    return "";
  });
}

TEST(CudaDevice, ThreadsOfOnePlanDoNotMeet) {
  alone([]() -> std::string {
    FakeCuda& driver = fake();
    auto device = open_cuda(0, nullptr, nullptr);
    auto plan = Plan::load(**device, copy_artefact());
    driver.kernel = copy_kernel;
    std::vector<std::pair<float*, float*>> buffers;
    for (int i = 0; i < 6; ++i)
      buffers.emplace_back(static_cast<float*>(*(*device)->allocate(4096)),
                           static_cast<float*>(*(*device)->allocate(4096)));
    std::atomic<int> wrong = 0;
    std::vector<std::thread> threads;
    for (const auto& [x, y] : buffers) {
      threads.emplace_back([&, x = x, y = y] {
        for (int round = 0; round < 2000; ++round) {
          x[0] = static_cast<float>(round);
          Call call(x, y, 1 + round % 2);
          if (!plan->execute(call.get(), nullptr, 0, nullptr) || y[0] != x[0]) ++wrong;
        }
      });
    }
    for (std::thread& t : threads) t.join();
    return wrong == 0 ? "" : std::to_string(wrong) + " wrong results";
  });
}

// Prints what a launch costs besides the driver (whose stand-in does nothing); asserts no time.
TEST(CudaDevice, DISABLED_OwnWorkOfALaunch) {
  alone([]() -> std::string {
    fake();
    auto device = open_cuda(0, nullptr, nullptr);
    auto plan = Plan::load(**device, copy_artefact());
    Call call(*(*device)->allocate(4096), *(*device)->allocate(4096), 1000);
    double least = 1e300;
    for (int batch = 0; batch < 51; ++batch) {
      const auto start = std::chrono::steady_clock::now();
      for (int i = 0; i < 2000; ++i) (void)plan->execute(call.get(), nullptr, 0, nullptr);
      least = std::min(
          least, std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / 2000);
    }
    std::printf("own work of a launch: %.0f ns\n", least);
    std::fflush(stdout);
    return "";
  });
}

TEST(CudaDevice, AFailedAssertionComesOutOfSynchronise) {
  alone([]() -> std::string {
    FakeCuda& driver = fake();
    auto device = open_cuda(0, nullptr, nullptr);
    Artefact artefact = copy_artefact();
    artefact.recipe.messages = {{.id = 0, .text = "n > 3", .location = "k.tile:4:3"}};
    (void)Plan::load(**device, artefact);  // its messages come first on this device
    auto plan = Plan::load(**device, artefact);
    driver.kernel = [](void** a) {
      auto* reports = static_cast<char*>(*static_cast<void**>(a[2]));
      const int64_t first = *static_cast<int64_t*>(a[3]);
      const uint32_t claimed = 1;
      const tw_record record = {.id = static_cast<int32_t>(first), .index_count = 2, .block = 5, .indices = {7, 9}};
      std::memcpy(reports + report::kClaimed, &claimed, 4);
      std::memcpy(reports + report::kRecord, &record, sizeof record);
    };
    Call call(*(*device)->allocate(4096), *(*device)->allocate(4096), 1000);
    if (auto s = plan->execute(call.get(), nullptr, 0, nullptr); !s) return text(s);
    const std::string failed = text((*device)->synchronise(nullptr));
    if (const auto e = expect(failed, "E1420 k.tile:4:3: assertion failed: n > 3 (block 5, index 7, 9)"); !e.empty())
      return e;
    return expect(text((*device)->synchronise(nullptr)), "ok");
  });
}

TEST(CudaDevice, PrintedLinesComeOutOfSynchronise) {
  alone([]() -> std::string {
    FakeCuda& driver = fake();
    static std::string lines;
    auto device = open_cuda(
        0,
        [](void*, const char* t, const char* where, const int64_t* v, int32_t n) {
          lines += std::string(t) + "@" + where + ":";
          for (int32_t i = 0; i < n; ++i) lines += std::to_string(v[i]) + ",";
        },
        nullptr);
    Artefact artefact = copy_artefact();
    artefact.recipe.messages = {{.id = 0, .text = "x", .location = "k.tile:1:1"}};
    auto plan = Plan::load(**device, artefact);
    driver.kernel = [](void** a) {
      auto* reports = static_cast<char*>(*static_cast<void**>(a[2]));
      const uint32_t words = report::kPrintCapacity + 7;  // seven more than there is room for
      std::memcpy(reports + report::kPrintedWords, &words, 4);
      const int64_t entry[] = {1 | int64_t{2} << 32, 11, 22};
      std::memcpy(reports + report::kPrints, entry, sizeof entry);
    };
    Call call(*(*device)->allocate(4096), *(*device)->allocate(4096), 1000);
    if (auto s = plan->execute(call.get(), nullptr, 0, nullptr); !s) return text(s);
    if (auto s = (*device)->synchronise(nullptr); !s) return text(s);
    return expect(lines, "x@k.tile:1:1:11,22,(7 words of printing did not fit the buffer of 8192)@:");
  });
}

// ---- what is refused

TEST(CudaRefusals, NoSuchDevice) {
  alone([] {
    fake();
    return expect(text_of(open_cuda(7, nullptr, nullptr)),
                  "E3051 there is no device cuda:7: this machine has 2 CUDA devices");
  });
}

TEST(CudaRefusals, ADriverThatIsTooOld) {
  alone([] {
    fake().version = 11080;
    return expect(text_of(open_cuda(0, nullptr, nullptr)),
                  "E3052 the CUDA driver is too old: it supports CUDA 11.8, 12.0 is needed: update the NVIDIA driver "
                  "(525 or newer)");
  });
}

TEST(CudaRefusals, OutOfDeviceMemory) {
  alone([] {
    fake().memory = 1 << 20;
    auto device = open_cuda(0, nullptr, nullptr);
    return expect(text_of((*device)->allocate(2 << 20)),
                  "E3054 allocating 2097152 bytes: out of device memory (CUDA_ERROR_OUT_OF_MEMORY): free memory or use "
                  "smaller sizes");
  });
}

TEST(CudaRefusals, AStickyFaultIsToldAsSuch) {
  alone([] {
    FakeCuda& driver = fake();
    auto device = open_cuda(0, nullptr, nullptr);
    driver.sync_result = 700;
    return expect(text((*device)->synchronise(nullptr)),
                  "E3053 waiting for the kernel: the device faulted: CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory "
                  "access was encountered): everything this process computed on the device since the last check is "
                  "void; start a new process");
  });
}

TEST(CudaRefusals, ArgumentsAreNamed) {
  alone([]() -> std::string {
    fake();
    auto device = open_cuda(0, nullptr, nullptr);
    auto plan = Plan::load(**device, copy_artefact());
    char* x = static_cast<char*>(*(*device)->allocate(8192));
    char* y = static_cast<char*>(*(*device)->allocate(8192));
    const auto run = [&](void* a, void* b, int64_t n) {
      Call call(a, b, n);
      return text(plan->execute(call.get(), nullptr, 0, nullptr));
    };
    alignas(16) static char host[8192];
    char address[32];
    std::snprintf(address, sizeof address, "%#lx", reinterpret_cast<unsigned long>(host));
    std::string problems;
    problems += expect(run(x + 4, y, 1000).substr(0, 9), "E1407 x: ");  // misaligned
    problems += expect(run(host, y, 1000), std::string("E1413 copy: argument x (") + address +
                                               ") is memory of the host; Fake H200 cannot read it: use a buffer of the "
                                               "device or pinned memory");
    const std::string huge = run(x, y + (int64_t{1} << 34), (int64_t{1} << 31) + 5);
    if (huge.find("n <= 1073741824 (32-bit indices)") == std::string::npos || !huge.starts_with("E1414"))
      problems += huge;
    Call cpu(x, y, 1000);
    cpu.tensors[1].device = TW_CPU;
    problems += expect(text(plan->execute(cpu.get(), nullptr, 0, nullptr)).substr(0, 9), "E1413 y: ");
    return problems;
  });
}

TEST(CudaRefusals, CodeOfAProcessorAndTooMuchSharedMemory) {
  alone([]() -> std::string {
    fake();
    auto device = open_cuda(0, nullptr, nullptr);
    Artefact cpu = copy_artefact();
    cpu.kind = CodeKind::ElfObject;
    Artefact large = copy_artefact();
    large.recipe.launches[0].shared_bytes = constant(300'000);
    const auto load = [&](Artefact a) { return text_of(Plan::load(**device, std::move(a))); };
    return expect(load(cpu), "E1413 copy was built for a CPU, not for Fake H200") +
           expect(load(large),
                  "E2554 kernel tw_copy_0 needs 300000 bytes of shared memory a block; Fake H200 allows 232448: use "
                  "smaller tiles or fewer stages");
  });
}

}  // namespace
}  // namespace tilewright::runtime
