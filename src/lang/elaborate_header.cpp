// The header of a kernel: parameters, configuration rows, dimensions, arguments, requirements.
#include <fmt/format.h>

#include <algorithm>

#include "lang/elaborator.h"
#include "lang/foreign.h"
#include "lang/syntax_text.h"

namespace tilewright::lang {
namespace {

using enum DiagnosticCode;

std::string list_of(const std::vector<ParamValue>& values) {
  std::string out;
  for (const ParamValue& v : values) out += (out.empty() ? "" : ", ") + to_string(v);
  return out;
}

const Expr* for_target(const Expr* expr, Target target) {
  if (!expr || expr->kind != ExprKind::Values) return expr;
  const std::string_view wanted = target == Target::Cpu ? "cpu" : "cuda";
  for (size_t i = 0; i < expr->items.size(); ++i) {
    if (expr->labels[i] == wanted) return expr->items[i];
  }
  return nullptr;
}

}  // namespace

ParamValue Elaborator::as_param(const ParamSyntax& param, const Operand& value, const Location& location) {
  const auto accepts = [&](std::string_view type) { return param.type.empty() || param.type == type; };
  if (const auto* v = value.as<int64_t>(); v && accepts("int")) return *v;
  if (const auto* v = value.as<bool>(); v && accepts("flag")) return *v;
  if (const auto* v = value.as<DType>(); v && accepts("dtype")) return *v;
  fail(E1020, location,
       fmt::format("parameter `{}` is {}, got {}", param.name,
                   param.type.empty() ? "an integer, a flag or a dtype" : "of type " + param.type, describe(value)));
}

std::vector<ParamValue> Elaborator::domain_of(const ParamSyntax& param) {
  std::vector<ParamValue> out;
  for (const Expr* e : param.domain) {
    const Expr* item = e;
    out.push_back(as_param(param, eval_static(*item, "a value of the domain"), item->location));
  }
  return out;
}

void Elaborator::check_domain(const ParamSyntax& param, const ParamValue& value, const Location& location) {
  const std::vector<ParamValue> domain = domain_of(param);
  if (domain.empty() || std::ranges::find(domain, value) != domain.end()) return;
  fail(E2002, location, fmt::format("{} = {} is not among the values of this parameter", param.name, to_string(value)),
       fmt::format("allowed: {}", list_of(domain)));
}

std::optional<bool> Elaborator::row_applies(const ConfigSyntax& row) {
  const std::string_view target = configuration_.target == Target::Cpu ? "cpu" : "cuda";
  if (!row.target.empty() && row.target != target) return false;
  if (!row.when) return true;
  try {
    const Operand condition = eval_static(*row.when, "the condition of a config row");
    if (const auto* v = condition.as<bool>()) return *v;
    fail(E1020, row.when->location, fmt::format("`when` needs a condition, got {}", describe(condition)));
  } catch (const NeedsConstant&) {
    return std::nullopt;
  }
}

/// Conditions see the sizes of the configuration, not the kernel's dimensions; a row over unknown sizes is not taken.
int Elaborator::choose_config_row() {
  scopes_.emplace_back();
  for (const std::string& name : dimension_names()) {
    const auto known = configuration_.dims.find(name);
    ir::Value* unknown = nullptr;
    if (known == configuration_.dims.end()) {
      unknown = b_.kernel().new_value(ir::Type::scalar(DType::I64), name);
      dimension_of_.emplace(unknown, name);
    }
    const Operand size = unknown ? Operand::of_index(b_.symbol(unknown)) : Operand::of(known->second);
    bind(name, {.operand = size, .location = syntax_.location});
  }
  int chosen = -1;
  for (size_t i = 0; i < syntax_.configs.size() && chosen < 0; ++i) {
    if (row_applies(syntax_.configs[i]).value_or(false)) chosen = static_cast<int>(i);
  }
  scopes_.pop_back();
  return chosen;
}

Parameters Elaborator::resolve_parameters() {
  Parameters out;
  for (const auto& [name, value] : configuration_.params) {
    const auto is_it = [&](const ParamSyntax& p) { return p.name == name; };
    if (std::ranges::any_of(syntax_.params, is_it)) continue;
    std::vector<std::string> known;
    for (const ParamSyntax& p : syntax_.params) known.push_back(p.name);
    const std::string near = closest(name, known);
    fail(E1014, syntax_.location, fmt::format("kernel `{}` has no parameter `{}`", syntax_.name, name),
         near.empty() ? (known.empty() ? "it has none" : fmt::format("it has: {}", fmt::join(known, ", ")))
                      : fmt::format("did you mean `{}`?", near));
  }
  scopes_.emplace_back();
  out.config_row = choose_config_row();
  std::map<std::string, const Expr*> row;
  if (out.config_row >= 0) {
    for (const Setting& s : syntax_.configs[static_cast<size_t>(out.config_row)].settings) row.emplace(s.name, s.value);
  }
  for (const ParamSyntax& param : syntax_.params) {
    const ParamValue value = param_value(param, row);
    row.erase(param.name);
    out.values.emplace_back(param.name, value);
    const StaticValue known = std::visit([](const auto& v) -> StaticValue { return v; }, value);
    bind(param.name, {.operand = Operand::of(known), .location = param.location, .is_parameter = true});
  }
  if (!row.empty()) {
    fail(E1014, row.begin()->second->location,
         fmt::format("kernel `{}` has no parameter `{}`", syntax_.name, row.begin()->first));
  }
  return out;
}

ParamValue Elaborator::param_value(const ParamSyntax& param, const std::map<std::string, const Expr*>& row) {
  const auto given = configuration_.params.find(param.name);
  if (given != configuration_.params.end()) {
    const StaticValue known = std::visit([](const auto& v) -> StaticValue { return v; }, given->second);
    const ParamValue value = as_param(param, Operand::of(known), param.location);
    check_domain(param, value, param.location);
    return value;
  }
  const auto set = row.find(param.name);
  const Expr* expr = set != row.end() ? set->second : for_target(param.default_value, configuration_.target);
  if (!expr) {
    fail(E1060, param.location,
         fmt::format("parameter `{}` has no default for this target and none was given", param.name),
         fmt::format("pass --param {}=…", param.name));
  }
  const ParamValue value = as_param(param, eval_static(*expr, "the value of a parameter"), expr->location);
  check_domain(param, value, expr->location);
  return value;
}

std::vector<std::string> Elaborator::dimension_names() const {
  std::vector<std::string> out;
  const auto is_param = [&](const std::string& name) {
    return std::ranges::any_of(syntax_.params, [&](const ParamSyntax& p) { return p.name == name; });
  };
  for (const ArgumentSyntax& a : syntax_.arguments) {
    for (const Expr* extent : a.type.shape) {
      if (extent->kind != ExprKind::Name || is_param(extent->text)) continue;
      if (a.kind == ArgumentKind::Workspace) continue;
      if (std::ranges::find(out, extent->text) == out.end()) out.push_back(extent->text);
    }
  }
  return out;
}

void Elaborator::bind_dimensions() {
  const std::vector<std::string> names = dimension_names();
  for (const auto& [name, size] : configuration_.dims) {
    if (std::ranges::find(names, name) != names.end()) {
      if (size >= 0) continue;
      fail(E1015, syntax_.location, fmt::format("dimension {} = {} is negative", name, size), "sizes are 0 or more");
    }
    const std::string near = closest(name, names);
    fail(E1015, syntax_.location, fmt::format("kernel `{}` has no dimension `{}`", syntax_.name, name),
         near.empty() ? fmt::format("it has: {}", fmt::join(names, ", ")) : fmt::format("did you mean `{}`?", near));
  }
  for (const std::string& name : names) {
    ir::Value* value = kernel_.new_value(ir::Type::scalar(DType::I64), name);
    dimension_of_.emplace(value, name);
    ir::Dimension made{name, value, std::nullopt};
    const auto known = configuration_.dims.find(name);
    if (known != configuration_.dims.end() && (configuration_.specialise || constant_dims_.contains(name))) {
      made.constant = known->second;
    }
    const Operand operand = made.constant ? Operand::of(*made.constant) : Operand::of_index(b_.symbol(value));
    bind(name, {.operand = operand, .location = syntax_.location, .is_dimension = true});
    kernel_.dimensions.push_back(made);
  }
}

DType Elaborator::dtype_of(const TypeSyntax& type) {
  if (const Binding* found = find(type.dtype)) {
    if (const auto* dtype = found->operand.as<DType>()) return *dtype;
    fail(E1020, type.location, fmt::format("`{}` is {}, not a dtype", type.dtype, describe(found->operand)));
  }
  if (const auto dtype = parse_dtype(type.dtype)) return *dtype;
  static const std::vector<std::string> kNames = {"bool", "i8",      "i16",     "i32",     "i64",  "u8",
                                                  "u16",  "u32",     "u64",     "f16",     "bf16", "f32",
                                                  "f64",  "float16", "float32", "bfloat16"};
  static const std::map<std::string, std::string> kElsewhere = {{"float", "f32"}, {"double", "f64"}, {"half", "f16"},
                                                                {"int", "i32"},   {"long", "i64"},   {"char", "i8"}};
  static const std::map<std::string, std::string> kNotYet = {
      {"int4", "pack two in a byte: u8[N, K // 2], then x & 0xf and x >> 4 (kernels/matmul_w4.tile)"},
      {"uint4", "pack two in a byte: u8[N, K // 2], then x & 0xf and x >> 4 (kernels/matmul_w4.tile)"},
      {"fp4", "4-bit floats are not there yet"},
      {"tf32", "tf32 is not a storage type: write f32"}};
  std::string plain = type.dtype;
  if (plain.starts_with("torch.")) plain = plain.substr(6);
  if (const auto not_yet = kNotYet.find(plain); not_yet != kNotYet.end())
    fail(E1024, type.location, fmt::format("`{}` is not a dtype", type.dtype), not_yet->second);
  const auto elsewhere = kElsewhere.find(plain);
  const std::string near = elsewhere != kElsewhere.end() ? elsewhere->second : closest(plain, kNames);
  fail(E1024, type.location, fmt::format("`{}` is not a dtype", type.dtype),
       (near.empty() ? std::string() : fmt::format("did you mean `{}`? ", near)) +
           "dtypes are bool, i8–i64, u8–u64, e4m3, e5m2, f16, bf16, f32, f64, or a parameter of type dtype");
}

void Elaborator::bind_scalar(const ArgumentSyntax& argument) {
  if (argument.kind != ArgumentKind::In || argument.optional || argument.guarded) {
    fail(E1041, argument.location,
         fmt::format("`{}` is a scalar: only inputs may be scalars, without `optional` or `guarded`", argument.name),
         fmt::format("a result is a tensor: {}: {}[1]", argument.name, argument.type.dtype));
  }
  const DType dtype = dtype_of(argument.type);
  if (is_storage_float(dtype)) {
    fail(E1024, argument.type.location, fmt::format("a scalar cannot be {}: it only exists in memory", name(dtype)),
         "use f32");
  }
  ir::Value* value = kernel_.new_value(ir::Type::scalar(dtype), argument.name);
  ir::ScalarArgument made{value, std::nullopt, argument.location};
  if (argument.default_value) {
    const Operand given = eval_static(*argument.default_value, "the default of a scalar");
    ir::ConstantAttributes bits;
    if (const auto* v = given.as<int64_t>())
      bits = is_float(dtype) ? ir::ConstantAttributes{.real = static_cast<double>(*v)}
                             : ir::ConstantAttributes{.integer = *v};
    else if (const auto* r = given.as<double>(); r && is_float(dtype))
      bits.real = *r;
    else if (const auto* f = given.as<bool>(); f && dtype == DType::Bool)
      bits.integer = *f;
    else
      fail(E1020, argument.default_value->location,
           fmt::format("the default of `{}` must be {}, got {}", argument.name, name(dtype), describe(given)));
    made.default_value = bits;
  }
  kernel_.scalars.push_back(made);
  Operand operand = Operand::of(value);
  if (dtype == DType::I64) operand = Operand::of_index(b_.symbol(value));
  bind(argument.name, {.operand = operand, .location = argument.location, .is_let = true});
}

void Elaborator::bind_tensor(const ArgumentSyntax& argument) {
  const DType dtype = dtype_of(argument.type);
  if (argument.default_value)
    fail(E1041, argument.default_value->location, fmt::format("tensor `{}` cannot have a default", argument.name));
  std::vector<ir::Index> shape;
  for (const Expr* extent : argument.type.shape) shape.push_back(eval_index(*extent));
  if (shape.empty() || shape.size() > 8) {
    fail(E1030, argument.type.location,
         fmt::format("tensor `{}` has {} dimensions; 1 to 8 are allowed", argument.name, shape.size()));
  }
  ir::Value* buffer = kernel_.new_value(ir::Type::buffer(ir::MemorySpace::Global, dtype, shape), argument.name);
  static constexpr ir::Direction kDirections[] = {ir::Direction::In, ir::Direction::Out, ir::Direction::InOut,
                                                  ir::Direction::Workspace};
  const bool absent = configuration_.absent.contains(argument.name);
  if (absent && !argument.optional) {
    fail(E1041, argument.location, fmt::format("`{}` is not optional and must be passed", argument.name),
         fmt::format("write `optional {}: …`, and read it under `if present({})`", argument.name, argument.name));
  }
  kernel_.tensors.push_back({.buffer = buffer,
                             .direction = kDirections[static_cast<int>(argument.kind)],
                             .optional = absent,
                             .guarded = argument.guarded,
                             .location = argument.location});
  if (argument.kind == ArgumentKind::In) inputs_.insert(buffer);
  TileRef whole{.view = b_.whole(buffer)};
  for (ir::Slice& s : whole.view.slices) {
    if (s.extent.is_constant(0)) s.extent = b_.constant_index(1);
  }
  for (int i = 0; i < buffer->type.rank(); ++i) whole.axes.push_back(i);
  bind(argument.name, {.operand = Operand::of(std::move(whole)), .location = argument.location, .is_absent = absent});
}

void Elaborator::bind_aliases() {
  const auto position = [&](const Setting& s) {
    for (size_t i = 0; i < kernel_.tensors.size(); ++i) {
      if (kernel_.tensors[i].buffer->name == s.name) return static_cast<int>(i);
    }
    fail(E1010, s.location, fmt::format("`{}` is not a tensor argument of this kernel", s.name));
  };
  for (const auto& [x, y] : syntax_.aliases) kernel_.aliases.emplace_back(position(x), position(y));
}

void Elaborator::bind_requirements() {
  for (const Expr* condition : syntax_.wheres) {
    const Operand holds = rvalue(*condition);
    const std::string text = to_text(*condition);
    if (const auto* known = holds.as<bool>()) {
      if (*known) continue;
      std::string values;
      for_each_name(*condition, [&](const std::string& name) {
        const Binding* found = find(name);
        const auto* v = found ? found->operand.as<int64_t>() : nullptr;
        if (v && values.find(name + " = ") == std::string::npos)
          values += fmt::format("{}{} = {}", values.empty() ? "" : ", ", name, *v);
      });
      fail(E2001, condition->location,
           fmt::format("the kernel requires {}{}", text, values.empty() ? "" : "; here " + values));
    }
    if (holds.kind != Operand::Kind::Index || !holds.index_is_bool) {
      fail(E1020, condition->location,
           fmt::format("`where` needs a condition over parameters and dimensions, got {}", describe(holds)));
    }
    kernel_.requirements.push_back({holds.index, text, condition->location});
  }
}

ir::Kernel Elaborator::run() {
  kernel_.name = syntax_.name;
  for (const std::string& name : configuration_.absent) {
    const auto is_it = [&](const ArgumentSyntax& a) { return a.name == name; };
    if (std::ranges::none_of(syntax_.arguments, is_it)) {
      fail(E1010, syntax_.location, fmt::format("kernel `{}` has no argument `{}`", syntax_.name, name));
    }
  }
  resolve_parameters();
  bind_dimensions();
  for (const ArgumentSyntax& a : syntax_.arguments) {
    if (!a.type.is_tensor) bind_scalar(a);
  }
  for (const ArgumentSyntax& a : syntax_.arguments) {
    if (a.type.is_tensor) bind_tensor(a);
  }
  bind_aliases();
  bind_requirements();
  scoped(syntax_.body);
  return std::move(kernel_);
}

}  // namespace tilewright::lang
