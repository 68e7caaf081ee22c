// The elaborator behind elaborate.h: one object makes one kernel. Its methods throw Diagnostic.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/builder.h"
#include "lang/ast.h"
#include "lang/elaborate.h"
#include "lang/function.h"
#include "lang/operand.h"

namespace tilewright::lang {

/// Thrown when a dimension has to become a constant; elaboration starts again with it fixed.
struct NeedsConstant {
  std::set<std::string> dims;
};

/// Values of the parameters in declaration order, and which `config` row gave them.
struct Parameters {
  std::vector<std::pair<std::string, ParamValue>> values;
  int config_row = -1;
};

enum class Level : uint8_t { Kernel, Grid, Iteration };

/// The arguments of a call by slot; missing ones are null.
using Slots = std::vector<const Expr*>;

class Elaborator {
 public:
  Elaborator(const Source& source, const KernelSyntax& syntax, const Configuration& configuration,
             std::set<std::string> constant_dims);

  /// Binds parameters, dimensions and arguments, then the body. Once.
  ir::Kernel run();
  /// Only the parameters (for describe()).
  Parameters resolve_parameters();
  std::vector<ParamValue> domain_of(const ParamSyntax& param);
  std::vector<std::string> dimension_names() const;
  DType dtype_of(const TypeSyntax& type);
  int64_t static_integer(const Expr& expr, std::string_view what);
  bool names_empty_dimension(const Expr& expr) const;
  KernelInfo describe_kernel();
  Reference reference_of(const Expr& expr);
  Reference unplaced_reference_of(const Expr& expr);

 private:
  struct Binding {
    Operand operand;
    Location location;
    bool is_dimension = false;
    bool is_parameter = false;
    bool is_absent = false;  ///< an optional tensor the caller does not pass
    bool is_let = false;
  };
  using Scope = std::unordered_map<std::string, Binding>;
  using Body = std::function<void(const std::vector<ir::Value*>&)>;

  // Header (elaborate_header.cpp).
  ParamValue param_value(const ParamSyntax& param, const std::map<std::string, const Expr*>& row);
  ParamValue as_param(const ParamSyntax& param, const Operand& value, const Location& location);
  void check_domain(const ParamSyntax& param, const ParamValue& value, const Location& location);
  int choose_config_row();
  std::optional<bool> row_applies(const ConfigSyntax& row);
  void bind_params();
  void bind_dimensions();
  void bind_scalar(const ArgumentSyntax& argument);
  void bind_tensor(const ArgumentSyntax& argument);
  void bind_aliases();
  void bind_requirements();

  // Statements (elaborate_statement.cpp).
  void statements(const Block& block);
  void scoped(const Block& block);
  void statement(const Stmt& stmt);
  void let(const Stmt& stmt);
  void declare(const Stmt& stmt);
  void assign(const Stmt& stmt);
  void assign_element(const Stmt& stmt, const TileRef& target);
  void assign_tile(const Stmt& stmt, const TileRef& target);
  Operand assigned_value(const Stmt& stmt, const TileRef& target);
  void loop(const Stmt& stmt);
  void serial_loop(const Stmt& stmt, const std::vector<const Expr*>& bounds);
  void unroll_loop(const Stmt& stmt, const std::vector<const Expr*>& bounds);
  void pipelined_loop(const Stmt& stmt);
  void parallel_loop(const Stmt& stmt);
  void branch(const Stmt& stmt);
  void while_loop(const Stmt& stmt);
  void grid(const Stmt& stmt);
  void bind_variables(const Stmt& stmt, const std::vector<ir::Value*>& values);
  void check_writable(const TileRef& target, const Location& location);

  // Expressions (elaborate_expression.cpp).
  Operand eval(const Expr& expr);
  Operand rvalue(const Expr& expr);
  Operand eval_name(const Expr& expr);
  Operand eval_subscript(const Expr& expr);
  Operand eval_logic(const Expr& expr);
  Operand eval_call(const Expr& expr);
  Operand apply_function(const Function& function, const Expr& call);
  Operand call_fn(const FnSyntax& fn, const Expr& call);
  Operand read(const TileRef& tile, const Location& location, ir::Value* oob = nullptr);
  TileRef tile_of(const Expr& expr, std::string_view what);
  ir::Index eval_index(const Expr& expr);
  Operand eval_static(const Expr& expr, std::string_view what);
  static std::string extent_text(ir::Index extent);
  ir::Value* eval_condition(const Expr& expr);
  void check_bounds(const TileRef& tile, size_t dim, const Location& location);
  [[noreturn]] void unknown_name(const Expr& expr, bool called);

  // Arithmetic (elaborate_arithmetic.cpp).
  Operand unary(Operator op, const Operand& x, const Location& location);
  Operand binary(Operator op, Operand x, Operand y, const Location& location);
  Operand index_binary(Operator op, ir::Index x, ir::Index y);
  Operand value_binary(Operator op, const Operand& x, const Operand& y, DType dtype);
  Operand min_max(bool is_max, Operand x, Operand y, const Location& location);
  Operand select(const Operand& condition, Operand yes, Operand no, const Location& location);
  Operand math(ir::UnaryOp op, const Operand& x, const Location& location);
  Operand power(const Operand& x, const Operand& y, const Location& location);
  Operand cast(const Operand& x, DType dtype, const Location& location);
  Operand bitcast(const Operand& x, DType dtype, const Location& location);
  DType common_dtype(const Operand& x, const Operand& y, std::string_view op, const Location& location);
  ir::Value* coerce(const Operand& x, DType dtype, const Location& location);
  ir::Value* constant(const StaticValue& v, DType dtype, const Location& location);
  ir::Value* to_bool(const Operand& x, const Location& location);
  ir::Index to_index(const Operand& x, const Location& location);
  ir::Index to_bool_index(const Operand& x, const Location& location);

  // Operations (elaborate_operation.cpp): one per row of the table there.
  bool call_operation(const Expr& call);
  void do_copy(const Expr& call, const Slots& slots);
  void do_fill(const Expr& call, const Slots& slots);
  void do_clear(const Expr& call, const Slots& slots);
  void do_gemm(const Expr& call, const Slots& slots);
  void do_reduce(const Expr& call, const Slots& slots);
  void do_reduce_arg(const Expr& call, const Slots& slots);
  void do_scan(const Expr& call, const Slots& slots);
  void do_atomic(const Expr& call, const Slots& slots);
  void do_print(const Expr& call);
  void do_assert(const Expr& call, const Slots& slots);
  void do_assume(const Expr& call, const Slots& slots);
  Operand do_arrive_last(const Expr& call, const Slots& slots);
  bool flag(const Expr* expr, bool otherwise, std::string_view what);
  /// A hint by its word: the default when `expr` is null, E1110 when there is no such word.
  template <typename E>
  E hint(const Expr* expr, std::string_view what);
  int vector_hint(const Expr* expr);
  int dimension(const Expr* expr, const TileRef& src, const Location& location);
  void check_reduced(const TileRef& src, const TileRef& dst, int dim, const Location& location);
  void check_same_shape(const TileRef& src, const TileRef& dst, const Location& location);
  void check_on_chip(const TileRef& tile, const Expr& expr, std::string_view op);
  int add_text(const std::string& text, const Location& location);
  Slots bind_slots(const Expr& call, std::string_view signature);

  // Places, scopes, failures.
  Location at(const Location& location) const;
  void bind(const std::string& name, Binding binding);
  const Binding* find(const std::string& name) const;
  void spend(const Location& location);
  void need_level(Level level, const Location& location, std::string_view what);
  [[noreturn]] void fail(DiagnosticCode code, const Location& location, std::string message,
                         std::string help = {}) const;

  const Source& source_;
  const KernelSyntax& syntax_;
  const Configuration& configuration_;
  std::set<std::string> constant_dims_;
  ir::Kernel kernel_;
  ir::Builder b_;
  std::vector<Scope> scopes_;
  std::unordered_map<const ir::Value*, std::string> dimension_of_;
  std::set<const ir::Value*> inputs_;
  Level level_ = Level::Kernel;
  std::shared_ptr<const Location> caller_;
  std::vector<const FnSyntax*> inlining_;
  int64_t budget_ = 2'000'000;                       ///< statements and expressions after unrolling and inlining
  bool in_index_ = false;                            ///< integers are evaluated as 64-bit indices
  std::optional<DType> wanted_;                      ///< what two compile-time branches of a select become
  const std::vector<ir::Index>* element_ = nullptr;  ///< whole-tile expression: the element at hand
  std::vector<ir::Index> element_extents_;
  std::optional<Operand> returned_;
};

}  // namespace tilewright::lang
