#include "tools/compiler/run_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "analysis/independence.h"
#include "measure/memory.h"

namespace tilewright::tools {
namespace {

using nlohmann::json;

std::string describe_values(const HostTensor& tensor) {
  double low = std::numeric_limits<double>::infinity(), high = -low, sum = 0;
  int64_t nan = 0;
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    const double v = driver::element(tensor, i);
    if (std::isnan(v)) {
      ++nan;
      continue;
    }
    low = std::min(low, v), high = std::max(high, v), sum += v;
  }
  const int64_t n = tensor.numel() - nan;
  if (tensor.numel() == 0) return "empty";
  std::string text =
      n ? fmt::format("min {:.5g}  mean {:.5g}  max {:.5g}", low, sum / static_cast<double>(n), high) : "";
  if (nan) text += fmt::format("  {} NaN", nan);
  return text;
}

/// "C  4092 of 4092 elements within the bound of any correct implementation; largest error 1e-06 (0.3 of its bound)".
void print_output(const driver::OutputCheck& o) {
  std::string apart;
  if (o.tainted)
    apart += fmt::format("; {} undecidable (a condition or cast nearer than rounding), not compared", o.tainted);
  if (o.unwritten) apart += fmt::format("; {} never written, not compared", o.unwritten);
  fmt::print(
      "check: {:<8} {} of {} elements within the bound of any correct implementation; largest error {:.3g} ({:.2g} of "
      "its bound){}\n",
      o.argument, o.decided - o.mismatches, o.decided, o.worst_error, o.worst_ratio, apart);
  if (o.mismatches) fmt::print("  WRONG: {}\n", o.first_mismatch);
  if (!o.passed() && !o.mismatches)
    fmt::print("  UNDECIDED: {} of {} elements are more than one in ten; try other data (--seed, --in)\n", o.tainted,
               o.elements);
}

void print_check(const RunReport& report) {
  for (const Diagnostic& finding : report.check->findings) fmt::print("{}", report.program.source.render(finding));
  if (report.check->inconclusive)
    fmt::print("check: inconclusive: an address or a loop depends on rounding; compare with --expect C=c.npy\n");
  const bool is_defined = std::ranges::none_of(report.check->findings, [](const Diagnostic& finding) {
    return finding.severity == Severity::Error && finding.code != DiagnosticCode::E1213;  // never written: left out
  });
  if (is_defined)
    for (const driver::OutputCheck& o : report.check->outputs) print_output(o);
  else
    fmt::print("check: outputs not compared: what they should be is unspecified until the errors above are gone\n");
  for (const ReferenceCheck& r : report.reference) {
    if (r.differing)
      fmt::print("check: {:<8} WRONG against {}: {} ({} of {} elements differ)\n", r.argument, r.reference, r.first,
                 r.differing, r.compared);
    else
      fmt::print("check: {:<8} agrees with {} in float64; largest difference {:.3g}\n", r.argument, r.reference,
                 r.worst_error);
  }
  fmt::print("check: {}\n", !report.passed()     ? "FAILED"
                            : report.undecided() ? "UNDECIDED: nothing was compared"
                                                 : "passed");
}

void print_compilation(const driver::Compilation& compilation) {
  const driver::CompileTimes& t = compilation.times;
  if (compilation.is_from_cache) {
    fmt::print("  loaded from the cache in {:.2f} ms\n", t.cache_ms);
    return;
  }
  fmt::print(
      "  compiled in {:.1f} ms (plan {:.1f}, LLVM IR or PTX {:.1f}, optimise {:.1f}, emit {:.1f}; opening LLVM {:.1f} "
      "apart)\n",
      t.total_ms(), t.plan_ms, t.lower_ms, t.optimise_ms, t.emit_ms, t.open_module_ms);
}

void print_arguments(const RunReport& report) {
  size_t position = 0;
  for (const ir::TensorArgument& tensor : report.program.kernel.tensors) {
    if (tensor.direction == ir::Direction::Workspace) continue;
    const size_t at = position++;
    const HostTensor& array = report.arrays.tensors[at];
    static constexpr const char* kDirections[] = {"in", "out", "inout", ""};
    fmt::print("  {:<6}{:<10} {:<24} {}\n", kDirections[static_cast<int>(tensor.direction)], tensor.buffer->name,
               to_string(array.dtype, array.shape), report.arrays.present[at] ? describe_values(array) : "absent");
  }
}

void print_facts(const driver::Compilation& compilation) {
  fmt::print("\nwhat was chosen, and why\n");
  for (const plan::cpu::Fact& fact : compilation.facts) {
    fmt::print("  {:<26} {}{}\n", fact.what, fact.why,
               fact.location.is_known() ? fmt::format("  ({})", to_string(fact.location)) : "");
  }
}

void print_expected(const driver::OutputCheck& o) {
  if (o.mismatches)
    fmt::print("expect: WRONG: {} ({} of {} elements differ)\n", o.first_mismatch, o.mismatches, o.elements);
  else
    fmt::print("expect: {} matches, largest error {:.3g}\n", o.argument, o.worst_error);
}

json to_json(const driver::OutputCheck& o) {
  return {{"argument", o.argument},       {"elements", o.elements},       {"decided", o.decided},
          {"never_written", o.unwritten}, {"mismatches", o.mismatches},   {"undecidable", o.tainted},
          {"worst_error", o.worst_error}, {"worst_ratio", o.worst_ratio}, {"first_mismatch", o.first_mismatch}};
}

/// Of this process so far, in MiB.
double peak_mb() {
  const auto memory = measure::read_process_memory();
  return memory ? static_cast<double>(memory->peak_resident) / (1 << 20) : 0;
}

}  // namespace

bool RunReport::passed() const {
  if (check && !check->passed()) return false;
  for (const ReferenceCheck& r : reference) {
    if (r.differing > 0) return false;
  }
  for (const driver::OutputCheck& output : expected) {
    if (output.mismatches > 0) return false;
  }
  return true;
}

void print_report(const RunReport& report, bool explain) {
  fmt::print("{}", report.printed);
  fmt::print("kernel {} on {}\n", report.program.info.name, report.compilation.artefact.recipe.target);
  std::vector<std::string> params;
  for (const lang::ParamInfo& p : report.program.info.params)
    params.push_back(fmt::format("{}={}", p.name, lang::to_string(p.value)));
  if (!params.empty()) fmt::print("  parameters  {}\n", fmt::join(params, " "));
  print_arguments(report);
  print_compilation(report.compilation);
  fmt::print("  first call {:.3f} ms (one call is not a measurement: use `tilewright bench`)\n", report.run_ms);
  if (explain) print_facts(report.compilation);
  for (const driver::OutputCheck& o : report.expected) print_expected(o);
  if (report.check) return print_check(report);
  for (const Diagnostic& note : analysis::independence_notes(report.program.kernel))
    fmt::print("{}", report.program.source.render(note));
}

void print_json(const RunReport& report) {
  const driver::CompileTimes& t = report.compilation.times;
  json out = {{"kernel", report.program.info.name},
              {"target", report.compilation.artefact.recipe.target},
              {"from_cache", report.compilation.is_from_cache},
              {"compile_ms", t.total_ms()},
              {"phases",
               {{"plan_ms", t.plan_ms},
                {"open_module_ms", t.open_module_ms},
                {"lower_ms", t.lower_ms},
                {"optimise_ms", t.optimise_ms},
                {"emit_ms", t.emit_ms},
                {"cache_ms", t.cache_ms}}},
              {"peak_mb", peak_mb()},
              {"first_call_ms", report.run_ms},
              {"passed", report.passed() && !report.undecided()}};
  for (const lang::ParamInfo& p : report.program.info.params) out["parameters"][p.name] = lang::to_string(p.value);
  for (const plan::cpu::Fact& fact : report.compilation.facts)
    out["explain"].push_back({{"what", fact.what}, {"why", fact.why}, {"where", to_string(fact.location)}});
  if (report.check) {
    for (const Diagnostic& f : report.check->findings)
      out["findings"].push_back(
          {{"code", code_text(f.code)}, {"where", to_string(f.location)}, {"message", f.message}});
    for (const driver::OutputCheck& o : report.check->outputs) out["check"].push_back(to_json(o));
    out["inconclusive"] = report.check->inconclusive;
    for (const ReferenceCheck& r : report.reference)
      out["reference"].push_back({{"argument", r.argument},
                                  {"reference", r.reference},
                                  {"compared", r.compared},
                                  {"differing", r.differing},
                                  {"worst_error", r.worst_error},
                                  {"first", r.first}});
  }
  if (!report.printed.empty()) out["printed"] = report.printed;
  for (const driver::OutputCheck& o : report.expected) out["expect"].push_back(to_json(o));
  fmt::print("{}\n", out.dump(2));
}

}  // namespace tilewright::tools
