// Top-level declarations of the grammar: import, fn, kernel.
#include <fmt/format.h>

#include <array>

#include "lang/foreign.h"
#include "lang/parser.h"

namespace tilewright::lang {
namespace {

using enum DiagnosticCode;

std::optional<ArgumentKind> argument_word(const Token& token) {
  if (token.is_word("inout")) return ArgumentKind::InOut;
  if (token.is_word("workspace")) return ArgumentKind::Workspace;
  return std::nullopt;
}

}  // namespace

std::shared_ptr<File> Parser::run() {
  skip_newlines();
  while (peek().kind != TokenKind::End) {
    top_level();
    end_statement();
  }
  return file_;
}

void Parser::top_level() {
  const Token& token = peek();
  if (token.is_word("import")) return import_declaration();
  if (token.is_word("fn")) return fn_declaration();
  if (token.is_word("kernel")) return kernel_declaration();
  if (token.kind == TokenKind::Name) {
    if (const auto hint = foreign_hint(token.text)) {
      fail(E1012, token, fmt::format("`{}` is not part of this language", token.text), *hint);
    }
  }
  unexpected("`kernel`, `fn` or `import`", "a file holds kernels: kernel name(A: f32[M, K]) -> (C: f32[M]) { … }");
}

void Parser::import_declaration() {
  const Token word = take();
  if (peek().kind != TokenKind::Text) unexpected("a path in quotes after `import`", "import \"math.tile\"");
  const Token path = take();
  file_->imports.push_back({at(path), path.text});
  (void)word;
}

void Parser::fn_declaration() {
  take();
  const Token name = expect_name("a name after `fn`");
  FnSyntax made;
  made.location = at(name);
  made.name = name.text;
  expect("(", "after the name of the fn");
  while (!peek().is(")")) {
    made.parameters.push_back(expect_name("a parameter").text);
    if (!accept(",")) break;
  }
  expect(")", "after the parameters");
  if (accept("=")) {
    made.expression = expression();
  } else {
    made.body = block("the fn");
  }
  file_->functions.push_back(std::move(made));
}

void Parser::kernel_declaration() {
  const Token word = take();
  const Token name = expect_name("a name after `kernel`");
  KernelSyntax made;
  made.location = at(name);
  made.name = name.text;
  made.doc = doc_above(word.line);
  arguments(made, ArgumentKind::In);
  if (peek().kind == TokenKind::Newline && peek(1).is("->")) take();
  if (accept("->")) arguments(made, ArgumentKind::Out);
  skip_newlines();
  while (!peek().is("{")) {
    kernel_clause(made);
    if (!peek().is("{")) end_statement();
  }
  made.body = block(fmt::format("kernel `{}`", made.name));
  file_->kernels.push_back(std::move(made));
}

void Parser::arguments(KernelSyntax& kernel, ArgumentKind kind) {
  expect("(", kind == ArgumentKind::Out ? "before the outputs" : "after the name of the kernel");
  while (!peek().is(")")) {
    kernel.arguments.push_back(argument(kind));
    if (!accept(",")) break;
  }
  if (!peek().is(")")) unexpected("`,` or `)` in the arguments");
  take();
}

ArgumentSyntax Parser::argument(ArgumentKind kind) {
  ArgumentSyntax made;
  made.kind = kind;
  while (peek().kind == TokenKind::Name && peek(1).kind == TokenKind::Name) {
    const Token word = take();
    if (const auto direction = argument_word(word)) {
      made.kind = *direction;
    } else if (word.text == "optional") {
      made.optional = true;
    } else if (word.text == "guarded") {
      made.guarded = true;
    } else {
      fail(E1001, word,
           fmt::format("expected `inout`, `workspace`, `optional`, `guarded` or a name, got `{}`", word.text));
    }
  }
  const Token name = expect_name("the name of an argument");
  made.location = at(name);
  made.name = name.text;
  expect(":", fmt::format("between `{}` and its type", name.text));
  made.type = type();
  if (accept("=")) made.default_value = expression();
  return made;
}

void Parser::kernel_clause(KernelSyntax& kernel) {
  const Token word = peek();
  if (accept_word("param")) return param_clause(kernel);
  if (accept_word("config")) return config_clause(kernel);
  if (accept_word("alias")) return alias_clause(kernel);
  if (accept_word("where")) {
    do kernel.wheres.push_back(expression());
    while (accept(","));
    return;
  }
  if (accept_word("reference")) {
    do kernel.references.push_back(expression());
    while (accept(","));
    return;
  }
  if (accept_word("example")) {
    kernel.examples.push_back(settings(""));
    return;
  }
  static const std::array<std::string, 6> kWords = {"param", "config", "alias", "where", "reference", "example"};
  const std::string near = word.kind == TokenKind::Name ? closest(word.text, kWords) : "";
  unexpected("a clause of the kernel (param, config, where, alias, example, reference) or `{`",
             near.empty() ? "" : fmt::format("did you mean `{}`?", near));
}

void Parser::param_clause(KernelSyntax& kernel) {
  const Token name = expect_name("the name of a parameter");
  ParamSyntax made;
  made.location = at(name);
  made.name = name.text;
  if (accept(":")) {
    const Token type = expect_name("`int`, `flag` or `dtype`");
    made.type = type.text == "bool" ? "flag" : type.text;
    if (made.type != "int" && made.type != "flag" && made.type != "dtype") {
      fail(E1001, type, fmt::format("expected `int`, `flag` or `dtype`, got `{}`", type.text),
           foreign_hint(type.text).value_or(parse_dtype(type.text) ? "a value of the call is a scalar argument; a "
                                                                     "parameter is fixed when the kernel is compiled"
                                                                   : ""));
    }
  }
  if (accept("=")) made.default_value = expression();
  if (accept_word("in")) {
    if (!peek().is("{")) unexpected("`{` before the values", "param block_M = 64 in {32, 64, 128}");
    made.domain = values()->items;
  }
  kernel.params.push_back(std::move(made));
}

void Parser::config_clause(KernelSyntax& kernel) {
  ConfigSyntax made;
  made.location = at(peek());
  if (!peek().is_word("when") && peek().kind == TokenKind::Name) {
    const Token target = take();
    if (target.text != "cpu" && target.text != "cuda") {
      fail(E1001, target, fmt::format("expected `cpu`, `cuda` or `when`, got `{}`", target.text));
    }
    made.target = target.text;
  }
  if (accept_word("when")) made.when = expression();
  expect("{", "before the settings of the row");
  made.settings = settings("}");
  kernel.configs.push_back(std::move(made));
}

void Parser::alias_clause(KernelSyntax& kernel) {
  expect("(", "after `alias`");
  const Token x = expect_name("the name of an argument");
  expect(",", "between the two arguments");
  const Token y = expect_name("the name of an argument");
  expect(")", "after the two arguments");
  kernel.aliases.push_back({{at(x), x.text, nullptr}, {at(y), y.text, nullptr}});
}

/// `name = value, …` up to `closing`, or to the end of the statement when it is empty.
std::vector<Setting> Parser::settings(std::string_view closing) {
  std::vector<Setting> out;
  if (!closing.empty()) skip_newlines();
  while (closing.empty() || !peek().is(closing)) {
    const Token name = expect_name("a name");
    expect("=", fmt::format("after `{}`", name.text));
    out.push_back({at(name), name.text, expression()});
    if (!closing.empty()) skip_newlines();
    if (!accept(",")) break;
    if (!closing.empty()) skip_newlines();
  }
  if (!closing.empty()) expect(closing, "after the settings");
  return out;
}

std::string Parser::doc_above(int line) const {
  int first = line;
  while (list_.comments.contains(first - 1)) --first;
  std::string out;
  for (int i = first; i < line; ++i) out += (i > first ? "\n" : "") + list_.comments.at(i);
  return out;
}

}  // namespace tilewright::lang
