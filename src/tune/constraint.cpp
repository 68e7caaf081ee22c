#include "tune/constraint.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <charconv>

namespace tilewright::tune {

enum class ConstraintOp : uint8_t {
  Literal,
  Name,
  Not,
  Negate,
  Or,
  And,
  Eq,
  Ne,
  Le,
  Ge,
  Lt,
  Gt,
  Add,
  Sub,
  Mul,
  Div,
  Mod,
  Min,
  Max
};

struct ConstraintNode {
  ConstraintOp op = ConstraintOp::Literal;
  Value literal = int64_t{0};
  std::string name;
  std::shared_ptr<const ConstraintNode> left, right;
};

namespace {

using Node = std::shared_ptr<const ConstraintNode>;
using Op = ConstraintOp;

struct Spelling {
  std::string_view text;
  Op op;
  int level;  ///< binding strength; longer spellings stand first
};
constexpr std::array<Spelling, 13> kBinary = {{{"or", Op::Or, 0},
                                               {"and", Op::And, 1},
                                               {"==", Op::Eq, 2},
                                               {"!=", Op::Ne, 2},
                                               {"<=", Op::Le, 2},
                                               {">=", Op::Ge, 2},
                                               {"<", Op::Lt, 2},
                                               {">", Op::Gt, 2},
                                               {"+", Op::Add, 3},
                                               {"-", Op::Sub, 3},
                                               {"*", Op::Mul, 4},
                                               {"//", Op::Div, 4},
                                               {"%", Op::Mod, 4}}};
constexpr int kUnaryLevel = 5;
constexpr int kMaxDepth = 200;

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Node> parse() {
    Result<Node> node = binary(0);
    if (!node) return node;
    skip_space();
    if (at_ < text_.size()) return refuse("an operator");
    return node;
  }

 private:
  std::unexpected<Diagnostic> refuse(std::string_view expected) const {
    const std::string_view rest = text_.substr(std::min(at_, text_.size()));
    return fail(DiagnosticCode::E1650,
                fmt::format("constraint '{}': expected {}, found '{}'", text_, expected,
                            rest.empty() ? "the end" : rest.substr(0, 20)),
                "use + - * // % == != <= >= < > and or not min(a, b) max(a, b)");
  }

  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }

  bool take(std::string_view token) {
    skip_space();
    if (!text_.substr(at_).starts_with(token)) return false;
    const size_t end = at_ + token.size();
    if (is_word(token.back()) && end < text_.size() && is_word(text_[end])) return false;
    at_ = end;
    return true;
  }

  static Node make(Op op, Node left, Node right = nullptr) {
    return std::make_shared<const ConstraintNode>(
        ConstraintNode{op, int64_t{0}, {}, std::move(left), std::move(right)});
  }

  const Spelling* take_binary(int level) {
    for (const Spelling& spelling : kBinary) {
      if (spelling.level == level && take(spelling.text)) return &spelling;
    }
    return nullptr;
  }

  Result<Node> binary(int level) {
    if (level == kUnaryLevel) return unary();
    Result<Node> left = binary(level + 1);
    while (left) {
      const Spelling* spelling = take_binary(level);
      if (!spelling) return left;
      Result<Node> right = binary(level + 1);
      if (!right) return right;
      left = make(spelling->op, *left, *right);
    }
    return left;
  }

  Result<Node> unary() {
    if (++depth_ > kMaxDepth) return refuse("fewer nested operators");
    const Op op = take("not") ? Op::Not : take("-") ? Op::Negate : Op::Literal;
    if (op == Op::Literal) return primary();
    Result<Node> operand = op == Op::Not ? binary(2) : unary();
    if (!operand) return operand;
    return make(op, *operand);
  }

  Result<Node> primary() {
    if (take("(")) {
      Result<Node> inner = binary(0);
      if (inner && !take(")")) return refuse("')'");
      return inner;
    }
    for (const auto& [word, op] : {std::pair<std::string_view, Op>{"min", Op::Min}, {"max", Op::Max}}) {
      if (take(word)) return two_arguments(op);
    }
    skip_space();
    if (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'')) return quoted();
    size_t end = at_;
    while (end < text_.size() && is_word(text_[end])) ++end;
    const std::string word(text_.substr(at_, end - at_));
    if (word.empty()) return refuse("a value");
    ConstraintNode node;
    if (std::isdigit(static_cast<unsigned char>(word[0]))) {
      int64_t number = 0;
      const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), number);
      if (error != std::errc() || stop != word.data() + word.size()) return refuse("a whole number");
      node.literal = number;
    } else {
      node.op = Op::Name;
      node.name = word;
    }
    at_ = end;
    return std::make_shared<const ConstraintNode>(std::move(node));
  }

  Result<Node> quoted() {
    const size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) return refuse("a closing quote");
    ConstraintNode node;
    node.literal = std::string(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return std::make_shared<const ConstraintNode>(std::move(node));
  }

  Result<Node> two_arguments(Op op) {
    if (!take("(")) return refuse("'('");
    Result<Node> left = binary(0);
    if (!left) return left;
    if (!take(",")) return refuse("','");
    Result<Node> right = binary(0);
    if (!right) return right;
    if (!take(")")) return refuse("')'");
    return make(op, *left, *right);
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
};

class Evaluator {
 public:
  Evaluator(const Config& config, const std::string& text) : config_(config), text_(text) {}

  Result<Value> value(const ConstraintNode& node) const {
    if (node.op == Op::Literal) return node.literal;
    if (node.op == Op::Name) {
      const Value* found = config_.find(node.name);
      if (!found) return refuse(fmt::format("'{}' is neither a parameter nor a dimension", node.name));
      return *found;
    }
    if (node.op == Op::Eq || node.op == Op::Ne) return equality(node);
    Result<int64_t> left = number(*node.left);
    if (!left) return std::unexpected(left.error());
    if (node.op == Op::Not) return int64_t{!*left};
    if (node.op == Op::Negate) return wrap(0, *left, Op::Sub);
    if (node.op == Op::And && !*left) return int64_t{0};
    if (node.op == Op::Or && *left) return int64_t{1};
    Result<int64_t> right = number(*node.right);
    if (!right) return std::unexpected(right.error());
    return apply(node.op, *left, *right);
  }

  Result<int64_t> number(const ConstraintNode& node) const {
    Result<Value> result = value(node);
    if (!result) return std::unexpected(result.error());
    const int64_t* number = std::get_if<int64_t>(&*result);
    if (!number) return refuse(fmt::format("the word '{}' is used as a number", to_string(*result)));
    return *number;
  }

 private:
  std::unexpected<Diagnostic> refuse(const std::string& what) const {
    return fail(DiagnosticCode::E1650, fmt::format("constraint '{}': {}", text_, what));
  }

  Result<Value> equality(const ConstraintNode& node) const {
    Result<Value> left = value(*node.left);
    if (!left) return left;
    Result<Value> right = value(*node.right);
    if (!right) return right;
    return int64_t{(*left == *right) == (node.op == Op::Eq)};
  }

  static int64_t wrap(int64_t a, int64_t b, Op op) {
    const uint64_t x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    return static_cast<int64_t>(op == Op::Add ? x + y : op == Op::Sub ? x - y : x * y);
  }

  Result<Value> apply(Op op, int64_t a, int64_t b) const {
    switch (op) {
      case Op::Add:
      case Op::Sub:
      case Op::Mul: return wrap(a, b, op);
      case Op::Div:
      case Op::Mod: {
        if (b == 0) return refuse("division by zero");
        if (b == -1) return op == Op::Div ? wrap(0, a, Op::Sub) : 0;
        const int64_t quotient = a / b - ((a % b != 0) && ((a < 0) != (b < 0)));
        return op == Op::Div ? quotient : a - quotient * b;
      }
      case Op::Min: return std::min(a, b);
      case Op::Max: return std::max(a, b);
      case Op::Le: return int64_t{a <= b};
      case Op::Ge: return int64_t{a >= b};
      case Op::Lt: return int64_t{a < b};
      case Op::Gt: return int64_t{a > b};
      case Op::And:
      case Op::Or: return int64_t{b != 0};
      case Op::Literal:
      case Op::Name:
      case Op::Not:
      case Op::Negate:
      case Op::Eq:
      case Op::Ne: break;
    }
    return refuse("not a binary operator");
  }

  const Config& config_;
  const std::string& text_;
};

}  // namespace

Result<Constraint> Constraint::parse(const std::string& text, std::string reason) {
  Result<Node> root = Parser(text).parse();
  if (!root) return std::unexpected(root.error());
  Constraint constraint;
  constraint.text_ = text;
  constraint.reason_ = reason.empty() ? text : std::move(reason);
  constraint.root_ = *root;
  return constraint;
}

Result<bool> Constraint::holds(const Config& config) const {
  const Result<int64_t> result = Evaluator(config, text_).number(*root_);
  if (!result) return std::unexpected(result.error());
  return *result != 0;
}

}  // namespace tilewright::tune
