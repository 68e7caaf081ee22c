// A kernel that is not there: every configuration behaves as its parameters say, with times that are planned, not
// measured.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>

#include "base/hash.h"
#include "tune/runner.h"

namespace tilewright::tune {

class ToyTrial : public LoadedTrial {
 public:
  ToyTrial(Config config, double ms) : config_(std::move(config)), ms_(ms) {}

  std::string artefact_digest() const override { return sha256_hex(to_string(config_)); }

  Result<std::string> check(uint64_t seed) override {
    const std::string kind = text("kind");
    if (kind == "wrong") return fail(DiagnosticCode::E9001, "max error 3.2e-1, bound 1.0e-5");
    if (kind == "wrong-later" && launches_ > 0) return fail(DiagnosticCode::E9001, "stale result");
    if (kind == "crash") raise(SIGKILL);
    if (kind == "hang") pause();
    return sha256_hex("bits" + std::to_string(seed));
  }

  Result<double> launch_ms() override {
    ++launches_;
    // A planned wobble of ±0.1 %, the same in every run.
    return ms_ * (1 + 0.001 * ((launches_ % 3) - 1));
  }

 private:
  std::string text(std::string_view name) const {
    const Value* value = config_.find(name);
    return value ? to_string(*value) : "";
  }

  Config config_;
  double ms_;
  int launches_ = 0;
};

class ToyRunner : public TrialRunner {
 public:
  Identity here{.source = "s1",
                .workload = "toy:1",
                .toolchain = "t1",
                .arch = "a1",
                .device = "d1",
                .driver = "v1",
                .harness = "h1"};
  std::function<void(const Config&)> on_load;  ///< runs in the child

  Identity identity() const override { return here; }

  Result<std::unique_ptr<LoadedTrial>> load(const Config& config) override {
    if (on_load) on_load(config);
    const Value* kind = config.find("kind");
    if (kind && to_string(*kind) == "refuse") return fail(DiagnosticCode::E1654, "registers");
    if (kind && to_string(*kind) == "die") {
      fprintf(stderr, "assertion failed: layout\n");
      _exit(7);
    }
    return std::make_unique<ToyTrial>(config, static_cast<double>(config.number("us", 1000)) / 1e3);
  }
};

}  // namespace tilewright::tune
