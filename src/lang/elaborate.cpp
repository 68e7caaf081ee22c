#include "lang/elaborate.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "lang/elaborator.h"
#include "lang/foreign.h"
#include "lang/syntax_text.h"

namespace tilewright::lang {
namespace {

using enum DiagnosticCode;

constexpr std::string_view kArgumentsOfPrint = "print(\"text\", x, …)";

Result<const KernelSyntax*> lookup(const Source& source, std::string_view kernel) {
  const std::vector<std::string> names = source.kernel_names();
  if (kernel.empty() && names.size() == 1) return source.find_kernel(names[0]);
  if (const KernelSyntax* found = source.find_kernel(kernel)) return found;
  if (names.empty())
    return fail(E1013, fmt::format("{} holds no kernel", source.name()),
                "write: kernel name(A: f32[M]) -> (C: f32[M]) { … }");
  if (kernel.empty())
    return fail(E1013, fmt::format("{} holds {} kernels", source.name(), names.size()),
                fmt::format("choose one with --kernel: {}", fmt::join(names, ", ")));
  const std::string near = closest(kernel, names);
  return fail(
      E1013, fmt::format("{} holds no kernel `{}`", source.name(), kernel),
      near.empty() ? fmt::format("it holds: {}", fmt::join(names, ", ")) : fmt::format("did you mean `{}`?", near));
}

/// Runs `attempt` again with more constant dimensions until none is missing.
template <typename T>
Result<T> with_constants(const Source& source, const KernelSyntax& syntax, const Configuration& configuration,
                         T (*attempt)(Elaborator&)) {
  std::set<std::string> constant_dims;
  try {
    while (true) {
      Elaborator elaborator(source, syntax, configuration, constant_dims);
      try {
        return attempt(elaborator);
      } catch (const NeedsConstant& needs) {
        const size_t before = constant_dims.size();
        constant_dims.insert(needs.dims.begin(), needs.dims.end());
        for (const std::string& dim : needs.dims) {
          if (configuration.dims.contains(dim) && before < constant_dims.size()) continue;
          return fail_at(E1060, syntax.location,
                         fmt::format("the size of dimension {} must be known at compile time and is not given", dim),
                         fmt::format("pass --dim {}=…, or add it to an `example` line", dim));
        }
      }
    }
  } catch (Diagnostic& d) {
    return std::unexpected(std::move(d));
  }
}

}  // namespace

std::string to_string(const ParamValue& value) {
  if (const auto* v = std::get_if<int64_t>(&value)) return std::to_string(*v);
  if (const auto* v = std::get_if<bool>(&value)) return *v ? "true" : "false";
  return std::string(name(std::get<DType>(value)));
}

std::optional<ParamValue> parse_param_value(std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  if (const auto dtype = parse_dtype(text)) return *dtype;
  int64_t v = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (error != std::errc() || stop != text.data() + text.size() || text.empty()) return std::nullopt;
  return v;
}

Elaborator::Elaborator(const Source& source, const KernelSyntax& syntax, const Configuration& configuration,
                       std::set<std::string> constant_dims)
    : source_(source),
      syntax_(syntax),
      configuration_(configuration),
      constant_dims_(std::move(constant_dims)),
      b_(kernel_) {
  scopes_.emplace_back();
}

Location Elaborator::at(const Location& location) const {
  Location out = location;
  out.caller = caller_;
  return out;
}

void Elaborator::bind(const std::string& name, Binding binding) {
  scopes_.back().insert_or_assign(name, std::move(binding));
}

const Elaborator::Binding* Elaborator::find(const std::string& name) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (const auto found = scope->find(name); found != scope->end()) return &found->second;
  }
  return nullptr;
}

void Elaborator::fail(DiagnosticCode code, const Location& location, std::string message, std::string help) const {
  Diagnostic d;
  d.code = code;
  d.location = at(location);
  d.message = std::move(message);
  d.help = std::move(help);
  throw d;
}

void Elaborator::spend(const Location& location) {
  if (--budget_ < 0) fail(E1005, location, "the kernel is too large after unrolling and inlining", "use serial loops");
}

void Elaborator::need_level(Level level, const Location& location, std::string_view what) {
  if (level_ == level) return;
  static constexpr std::string_view kWanted[] = {"at the top of a kernel, outside every grid",
                                                 "inside a grid and outside `parallel`", "inside `parallel`"};
  static constexpr std::string_view kHere[] = {"outside every grid", "inside a grid", "inside `parallel`"};
  fail(E1050, location,
       fmt::format("{} {}; this is {}", what, kWanted[static_cast<int>(level)], kHere[static_cast<int>(level_)]),
       level_ == Level::Kernel ? "put it into a grid: grid (b: ceildiv(M, block_M)) { … }" : "");
}

int Elaborator::add_text(const std::string& text, const Location& location) {
  kernel_.texts.push_back({text, at(location)});
  return static_cast<int>(kernel_.texts.size()) - 1;
}

namespace {

/// The words of a `print`: places for values as base/print_text.h reads them.
std::string escaped(const std::string& words) {
  std::string out;
  for (const char c : words) out += c == '{' ? "{{" : std::string(1, c);
  return out;
}
std::string_view place_of(DType dtype) {
  if (dtype == DType::Bool) return "{b}";
  if (is_float(dtype)) return "{f}";
  return is_signed_int(dtype) ? "{i}" : "{u}";
}

}  // namespace

/// Items are separated by a space, as in Python; a text that ends in one is not given another.
void Elaborator::do_print(const Expr& call) {
  if (level_ == Level::Kernel) fail(E1050, call.location, "`print` runs inside a grid");
  std::string text;
  std::vector<ir::Value*> values;
  for (const Expr* item : call.items) {
    if (!text.empty() && text.back() != ' ') text += ' ';
    if (item->kind == ExprKind::Text) {
      text += escaped(item->text);
      continue;
    }
    const Operand value = rvalue(*item);
    if (value.is_static() && !std::holds_alternative<bool>(value.constant)) {
      const auto* v = value.as<int64_t>();
      const auto* r = value.as<double>();
      if (!v && !r)
        fail(E1020, item->location, fmt::format("cannot print {}", describe(value)), std::string(kArgumentsOfPrint));
      text += v ? std::to_string(*v) : fmt::format("{}", *r);
      continue;
    }
    if (value.is_bool_like())
      values.push_back(to_bool(value, item->location));
    else if (value.kind == Operand::Kind::Index)
      values.push_back(b_.index_value(value.index));
    else
      values.push_back(value.value);
    text += place_of(values.back()->type.dtype);
  }
  b_.set_location(at(call.location));
  b_.op(ir::OpKind::Print, std::move(values), ir::TextAttributes{add_text(text, call.location)});
}

void Elaborator::do_assert(const Expr& call, const Slots& slots) {
  if (level_ == Level::Kernel)
    fail(E1050, call.location, "`assert` runs inside a grid", "write `where condition` in the kernel's header");
  std::string text = to_text(*slots[0]);
  if (slots[1]) {
    const Operand said = eval(*slots[1]);
    const auto* given = said.as<std::string>();
    if (!given)
      fail(E1020, slots[1]->location,
           fmt::format("the second argument of assert is a text, got {}", tilewright::lang::describe(said)));
    text = *given;
  }
  ir::Value* holds = eval_condition(*slots[0]);
  b_.set_location(at(call.location));
  b_.op(ir::OpKind::Assert, {holds}, ir::TextAttributes{add_text(text, call.location)});
}

void Elaborator::do_assume(const Expr& call, const Slots& slots) {
  const bool outer = std::exchange(in_index_, true);
  const Operand condition = rvalue(*slots[0]);
  in_index_ = outer;
  const ir::Index holds = to_bool_index(condition, slots[0]->location);
  if (holds.is_constant(1)) return;
  b_.op(ir::OpKind::Assume, {}, ir::IndexAttributes{holds});
  (void)call;
}

Operand Elaborator::do_arrive_last(const Expr& call, const Slots& slots) {
  need_level(Level::Grid, call.location, "`arrive_last` runs");
  const TileRef counter = tile_of(*slots[0], "the counter");
  check_writable(counter, slots[0]->location);
  if (counter.rank() != 0 || counter.type().dtype != DType::I32 || counter.type().space != ir::MemorySpace::Global) {
    fail(E1022, slots[0]->location,
         fmt::format("the counter is one i32 element of a tensor or workspace, got {}",
                     tilewright::lang::describe(Operand::of(counter))),
         "workspace count: i32[n], cleared by an earlier grid; arrive_last(count[i], n)");
  }
  const ir::Index n = eval_index(*slots[1]);
  b_.set_location(at(call.location));
  return Operand::of(
      b_.op(ir::OpKind::ArriveLast, {}, ir::ArriveLastAttributes{counter.view, n}, {ir::Type::scalar(DType::Bool)})
          ->result());
}

Result<ir::Kernel> instantiate(const Source& source, std::string_view kernel, const Configuration& configuration) {
  const Result<const KernelSyntax*> syntax = lookup(source, kernel);
  if (!syntax) return std::unexpected(syntax.error());
  return with_constants<ir::Kernel>(source, **syntax, configuration, [](Elaborator& e) { return e.run(); });
}

Result<KernelInfo> describe(const Source& source, std::string_view kernel, const Configuration& configuration) {
  const Result<const KernelSyntax*> syntax = lookup(source, kernel);
  if (!syntax) return std::unexpected(syntax.error());
  return with_constants<KernelInfo>(source, **syntax, configuration, [](Elaborator& e) { return e.describe_kernel(); });
}

}  // namespace tilewright::lang
