#include "bench/oracle/kernel_question.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/hash.h"

namespace tilewright::bench {
namespace {

using Json = nlohmann::json;

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

/// Recursive descent over an extent; nothing once something did not fit.
class Extent {
 public:
  Extent(std::string_view text, const std::map<std::string, int64_t>& dims) : rest_(text), dims_(dims) {}

  std::optional<int64_t> whole() {
    const auto value = sum();
    skip();
    return rest_.empty() ? value : std::nullopt;
  }

 private:
  void skip() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
  }
  bool take(std::string_view symbol) {
    skip();
    if (!rest_.starts_with(symbol)) return false;
    rest_.remove_prefix(symbol.size());
    return true;
  }
  std::optional<int64_t> sum() {
    auto left = product();
    while (left) {
      const int sign = take("+") ? 1 : take("-") ? -1 : 0;
      if (sign == 0) break;
      const auto right = product();
      left = right ? std::optional(*left + sign * *right) : std::nullopt;
    }
    return left;
  }
  std::optional<int64_t> product() {
    auto left = primary();
    while (left) {
      const char op = take("//") ? '/' : take("*") ? '*' : take("%") ? '%' : ' ';
      if (op == ' ') break;
      const auto right = primary();
      if (!right || (op != '*' && *right == 0)) return std::nullopt;
      left = op == '*'   ? *left * *right
             : op == '/' ? floor_div(*left, *right)
                         : *left - *right * floor_div(*left, *right);
    }
    return left;
  }
  std::optional<int64_t> primary() {
    if (take("(")) {
      const auto inner = sum();
      return inner && take(")") ? inner : std::nullopt;
    }
    skip();
    size_t length = 0;
    while (length < rest_.size() && (std::isalnum(static_cast<unsigned char>(rest_[length])) || rest_[length] == '_'))
      ++length;
    const std::string word(rest_.substr(0, length));
    rest_.remove_prefix(length);
    int64_t number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (!word.empty() && error == std::errc() && end == word.data() + word.size()) return number;
    if (take("(")) return call(word);
    const auto found = dims_.find(word);
    return found == dims_.end() ? std::nullopt : std::optional(found->second);
  }
  std::optional<int64_t> call(const std::string& function) {
    const auto a = sum();
    if (!a || !take(",")) return std::nullopt;
    const auto b = sum();
    if (!b || !take(")")) return std::nullopt;
    if (function == "min") return std::min(*a, *b);
    if (function == "max") return std::max(*a, *b);
    if (function == "ceildiv" && *b > 0) return -floor_div(-*a, *b);
    return std::nullopt;
  }

  std::string_view rest_;
  const std::map<std::string, int64_t>& dims_;
};

Json content_json(const KernelQuestion& question) {
  Json tensors = Json::array(), scalars = Json::array();
  for (const QuestionTensor& t : question.tensors) {
    tensors.push_back(
        {{"name", t.name}, {"dtype", name(t.dtype)}, {"shape", t.shape}, {"role", t.is_output ? "out" : "in"}});
  }
  for (const QuestionScalar& s : question.scalars)
    scalars.push_back({{"name", s.name}, {"dtype", name(s.dtype)}, {"value", s.value}});
  return {{"tensors", tensors}, {"scalars", scalars}, {"references", question.references}};
}

DType dtype_at(const Json& json) {
  const auto dtype = parse_dtype(json.at("dtype").get<std::string>());
  if (!dtype) throw fail(DiagnosticCode::E1605, fmt::format("{} is no dtype", json.at("dtype").dump())).error();
  return *dtype;
}

}  // namespace

Json to_json(const KernelQuestion& question) {
  Json out = content_json(question);
  out["name"] = question.kernel;
  return out;
}

Result<KernelQuestion> parse_question(const Json& json) {
  try {
    KernelQuestion out;
    json.at("name").get_to(out.kernel);
    json.at("references").get_to(out.references);
    for (const Json& t : json.at("tensors"))
      out.tensors.push_back({t.at("name"), dtype_at(t), t.at("shape"), t.at("role") == "out"});
    for (const Json& s : json.at("scalars")) out.scalars.push_back({s.at("name"), dtype_at(s), s.at("value")});
    return out;
  } catch (const Json::exception& error) {
    return fail(DiagnosticCode::E1605, fmt::format("not a kernel's question: {}", error.what()));
  } catch (Diagnostic& error) {
    return std::unexpected(std::move(error));
  }
}

std::string question_digest(const KernelQuestion& question) {
  return sha256_hex(content_json(question).dump()).substr(0, 8);
}

std::optional<int64_t> extent_value(std::string_view text, const std::map<std::string, int64_t>& dims) {
  return Extent(text, dims).whole();
}

}  // namespace tilewright::bench
