// The recursive-descent parser behind parse.h; its methods throw Diagnostic. docs/grammar.md holds the grammar.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lang/ast.h"
#include "lang/token.h"

namespace tilewright::lang {

class Parser {
 public:
  Parser(std::string_view text, std::string file_name);
  std::shared_ptr<File> run();

 private:
  // Tokens.
  const Token& peek(size_t ahead = 0) const;
  Token take();
  bool accept(std::string_view symbol);
  bool accept_word(std::string_view word);
  Token expect(std::string_view symbol, std::string_view where);
  Token expect_name(std::string_view what);
  void skip_newlines();
  void end_statement();
  Location at(const Token& token) const;
  [[noreturn]] void fail(DiagnosticCode code, const Token& token, std::string message, std::string help = {}) const;
  [[noreturn]] void unexpected(std::string_view wanted, std::string help = {}) const;

  // Expressions (parse_expression.cpp).
  const Expr* expression();
  const Expr* binary(int level);
  const Expr* unary();
  const Expr* postfix();
  [[noreturn]] void foreign_name(Location location, const Token& dot, const Token& member,
                                 const std::string& full) const;
  const Expr* primary();
  const Expr* call(const Token& name);
  const Expr* subscript(const Expr* base);
  const Expr* subscript_item();
  const Expr* values();
  std::string dtype_name();
  Expr* make(ExprKind kind, Location location, std::vector<const Expr*> items = {});

  // Statements (parse_statement.cpp).
  Block block(std::string_view of);
  const Stmt* statement();
  const Stmt* let_statement();
  const Stmt* for_statement();
  const Stmt* if_statement();
  const Stmt* while_statement();
  const Stmt* grid_statement();
  const Stmt* return_statement();
  const Stmt* declaration();
  const Stmt* assignment_or_call();
  [[noreturn]] void misspelled_tile_space(const Token& word) const;
  TypeSyntax type();
  Stmt* make(StmtKind kind, Location location);

  // Files (parse_kernel.cpp).
  void top_level();
  void import_declaration();
  void fn_declaration();
  void kernel_declaration();
  void kernel_clause(KernelSyntax& kernel);
  void arguments(KernelSyntax& kernel, ArgumentKind kind);
  ArgumentSyntax argument(ArgumentKind kind);
  void param_clause(KernelSyntax& kernel);
  void config_clause(KernelSyntax& kernel);
  void alias_clause(KernelSyntax& kernel);
  std::vector<Setting> settings(std::string_view closing);
  std::string doc_above(int line) const;

  /// Bounds the recursion of nested statements and brackets.
  class Nesting {
   public:
    explicit Nesting(Parser& parser);
    ~Nesting() { --parser_.depth_; }

   private:
    Parser& parser_;
  };

  std::shared_ptr<File> file_;
  TokenList list_;
  size_t next_ = 0;
  int depth_ = 0;
};

}  // namespace tilewright::lang
