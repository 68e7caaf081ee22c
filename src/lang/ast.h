// The syntax tree of `.tile` text, as written: nothing is resolved.
//
// Nodes live in the arenas of one File and are referred to by plain pointers, so that neither copying nor destroying a
// tree recurses. `Expr::depth` is bounded (kDeepest), so that walking one does not overflow the stack.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/diagnostic.h"

namespace tilewright::lang {

enum class ExprKind : uint8_t {
  Integer,    ///< integer
  Real,       ///< real
  Flag,       ///< integer is 0 or 1
  Text,       ///< text
  Name,       ///< text
  Unary,      ///< op items[0]
  Binary,     ///< items[0] op items[1]
  Call,       ///< text(items…), labels[i] names a keyword argument
  Subscript,  ///< items[0][items[1…]]
  Slice,      ///< items[0] :+ items[1]
  All,        ///< `:` in a subscript
  NewAxis,    ///< `*` in a subscript
  Values      ///< { items… } or { label: item, … }
};

enum class Operator : uint8_t {
  None,
  Add,
  Sub,
  Mul,
  Div,
  FloorDiv,
  FloorMod,
  Lt,
  Le,
  Gt,
  Ge,
  Eq,
  Ne,
  And,
  Or,
  Not,
  BitAnd,
  BitOr,
  BitXor,
  BitNot,
  Shl,
  Shr,
  Neg
};
std::string_view spelling(Operator op);

inline constexpr int kDeepest = 200;

struct Expr {
  ExprKind kind = ExprKind::Integer;
  Operator op = Operator::None;
  int depth = 1;
  Location location;  ///< of the operator, name or literal
  std::string text;
  int64_t integer = 0;
  double real = 0;
  std::vector<const Expr*> items;
  std::vector<std::string> labels;
};

/// `dtype[shape…]` as written; a scalar has no shape and `is_tensor` is false.
struct TypeSyntax {
  Location location;
  std::string dtype;
  bool is_tensor = false;
  std::vector<const Expr*> shape;
};

enum class StmtKind : uint8_t { Let, Declare, Assign, Call, For, If, While, Grid, Return };
enum class TileSpace : uint8_t { Shared, Fragment, Local, Var };

struct Stmt;
using Block = std::vector<const Stmt*>;

struct Stmt {
  StmtKind kind = StmtKind::Call;
  Location location;
  std::string name;                ///< Let, Declare
  std::vector<std::string> names;  ///< For, Grid: variables
  std::vector<Location> places;    ///< For, Grid: where they are
  const Expr* target = nullptr;    ///< Assign
  const Expr* value = nullptr;     ///< Let, Assign, Call, For (the call), If, While, Return; Declare: initial value
  Operator op = Operator::None;    ///< Assign: `target op= value`
  TileSpace space = TileSpace::Shared;  ///< Declare
  bool guarded = false;                 ///< Declare
  TypeSyntax type;                      ///< Declare
  const Expr* layout = nullptr;         ///< Declare: the hint
  std::vector<const Expr*> extents;     ///< Grid
  const Expr* threads = nullptr;        ///< Grid
  bool persistent = false;              ///< Grid
  const Expr* group = nullptr;          ///< Grid
  Block body;
  Block otherwise;
};

enum class ArgumentKind : uint8_t { In, Out, InOut, Workspace };

struct ArgumentSyntax {
  ArgumentKind kind = ArgumentKind::In;
  bool optional = false;
  bool guarded = false;
  Location location;
  std::string name;
  TypeSyntax type;
  const Expr* default_value = nullptr;
};

/// `param name[: type] [= default] [in {…}]`.
struct ParamSyntax {
  Location location;
  std::string name;
  std::string type;  ///< "", "int", "flag" or "dtype"
  const Expr* default_value = nullptr;
  std::vector<const Expr*> domain;
};

struct Setting {
  Location location;
  std::string name;
  const Expr* value = nullptr;
};

/// `config [cpu|cuda] [when condition] { name = value, … }`.
struct ConfigSyntax {
  Location location;
  std::string target;
  const Expr* when = nullptr;
  std::vector<Setting> settings;
};

struct KernelSyntax {
  Location location;
  std::string name;
  std::string doc;  ///< the comment lines right above
  std::vector<ArgumentSyntax> arguments;
  std::vector<ParamSyntax> params;
  std::vector<ConfigSyntax> configs;
  std::vector<std::vector<Setting>> examples;
  std::vector<const Expr*> wheres;
  std::vector<const Expr*> references;  ///< one per output
  std::vector<std::pair<Setting, Setting>> aliases;
  Block body;
};

/// `fn name(parameters) = expression` or `fn name(parameters) { … return e }`: always inlined, tiles by reference.
struct FnSyntax {
  Location location;
  std::string name;
  std::vector<std::string> parameters;
  const Expr* expression = nullptr;
  Block body;
};

struct ImportSyntax {
  Location location;
  std::string path;
};

struct File {
  std::shared_ptr<const std::string> name;
  std::string text;
  std::vector<ImportSyntax> imports;
  std::vector<FnSyntax> functions;
  std::vector<KernelSyntax> kernels;
  std::deque<Expr> exprs;
  std::deque<Stmt> stmts;
};

}  // namespace tilewright::lang
