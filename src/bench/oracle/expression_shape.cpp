#include "bench/oracle/expression_shape.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

#include "kernels/reference.h"

namespace tilewright::bench {
namespace {

using lang::Reference;

enum class Rows : uint8_t { Whole, Rows, Mixed };

struct Node {
  std::vector<int64_t> shape;
  Rows rows = Rows::Whole;
  bool is_number = true;
};

int64_t count(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

template <size_t N>
bool is_one_of(const std::string& word, const std::array<const char*, N>& list) {
  return std::ranges::find(list, word) != list.end();
}

class Walk {
 public:
  Walk(const std::map<std::string, ExpressionArgument>& arguments, const std::map<std::string, int64_t>& dims,
       const std::string& sampled)
      : arguments_(arguments), sampled_(sampled) {
    for (const auto& [name, value] : dims) numbers_[name] = kernels::DoubleTensor::scalar(static_cast<double>(value));
  }

  Node visit(const Reference& r) {
    if (r.kind == Reference::Kind::Name) return name(r.name);
    if (r.kind != Reference::Kind::Call) return {};
    std::vector<Node> args;
    for (const Reference& a : r.arguments) args.push_back(visit(a));
    Node out = call(r, args);
    out.is_number = std::ranges::all_of(args, &Node::is_number);
    if (!out.is_number) cost.work += 20 * static_cast<double>(count(out.shape));
    return out;
  }

  ExpressionCost cost;

 private:
  Node name(const std::string& name) {
    cost.names_scalar |= name == sampled_;
    const auto found = arguments_.find(name);
    if (found == arguments_.end()) return {};
    return {found->second.shape, found->second.is_sampled ? Rows::Rows : Rows::Whole, false};
  }

  Node call(const Reference& r, const std::vector<Node>& args) {
    if (args.empty()) return {};
    const Node& x = args[0];
    static constexpr std::array kReductions = {"row_sum",  "row_mean",   "row_max",   "row_min",
                                               "row_prod", "row_argmax", "row_argmin"};
    static constexpr std::array kAlongRows = {"softmax", "log_softmax", "rmsnorm",     "layernorm",
                                              "cumsum",  "topk_values", "topk_indices"};
    if (r.name.starts_with("matmul") || r.name == "gemv") return product(r, args);
    if (r.name == "attention") return attention(args);
    if (r.name == "conv") return convolution(args);
    if (is_one_of(r.name, kReductions)) return reduced(r, along_rows(args));
    if (is_one_of(r.name, kAlongRows)) return along_rows(args);
    if (r.name == "slice" || r.name == "concat") return stretched(r, along_rows(args));
    if (r.name == "reshape" || r.name == "permute" || r.name == "transpose" || r.name == "column_sum" ||
        r.name == "sum")
      return moved(r, x);
    return joined(args);
  }

  static Rows together(const std::vector<Node>& args) {
    Rows out = Rows::Whole;
    for (const Node& a : args) out = std::max(out, a.rows);
    return out;
  }
  static Node joined(const std::vector<Node>& args) {
    Node out =
        *std::ranges::max_element(args, {}, [](const Node& n) { return std::pair(n.shape.size(), count(n.shape)); });
    out.rows = together(args);
    // What has fewer dimensions is aligned at the last one: its rows would not be rows of the result.
    for (const Node& a : args) {
      if (a.rows == Rows::Rows && a.shape.size() != out.shape.size()) out.rows = Rows::Mixed;
    }
    return out;
  }
  static Node along_rows(const std::vector<Node>& args) {
    Node out = args[0];
    for (size_t i = 1; i < args.size(); ++i) {
      if (args[i].rows != Rows::Whole && args[i].rows != args[0].rows) out.rows = Rows::Mixed;
    }
    if (out.rows == Rows::Rows && out.shape.size() < 2) out.rows = Rows::Mixed;
    return out;
  }
  static Node reduced(const Reference& r, Node x) {
    if (x.shape.empty()) return x;
    x.shape.pop_back();
    for (const auto& [label, value] : r.named) {
      if (label == "keep" && value.flag) x.shape.push_back(1);
    }
    return x;
  }
  int64_t number(const Reference& r) const {
    const auto value = kernels::evaluate_reference(r, numbers_);
    return value && !value->data.empty() ? static_cast<int64_t>(value->data[0]) : 0;
  }
  Node stretched(const Reference& r, Node x) {
    if (x.shape.empty()) return x;
    if (r.name == "slice")
      x.shape.back() = r.arguments.size() == 3 ? number(r.arguments[2]) - number(r.arguments[1]) : 0;
    if (r.name == "concat") x.shape.back() *= static_cast<int64_t>(r.arguments.size());
    return x;
  }
  Node moved(const Reference& r, const Node& x) {
    Node out = x;
    if (x.rows != Rows::Whole) out.rows = Rows::Mixed;
    if (r.name == "column_sum" && !x.shape.empty()) out.shape = {x.shape.back()};
    if (r.name == "sum") out.shape = {1};
    if (r.name == "transpose") std::ranges::reverse(out.shape);
    if (r.name == "permute" || r.name == "reshape") {
      out.shape.clear();
      for (size_t i = 1; i < r.arguments.size(); ++i) {
        const int64_t n = number(r.arguments[i]);
        const bool is_axis = n >= 0 && n < static_cast<int64_t>(x.shape.size());
        out.shape.push_back(r.name == "reshape" ? n : is_axis ? x.shape[static_cast<size_t>(n)] : 0);
      }
    }
    return out;
  }

  Node product(const Reference& r, const std::vector<Node>& args) {
    if (args.size() < 2) return {};
    const Node &a = args[0], &b = args[1];
    const auto flag = [&](const char* name) {
      return std::ranges::any_of(r.named, [&](const auto& n) { return n.label == name && n.value.flag; });
    };
    const bool ta = flag("transpose_a"), is_vector = r.name == "gemv";
    const bool tb = flag("transpose_b") || r.name == "matmul_w4" || r.name == "matmul_scaled";
    const size_t rank = a.shape.size();
    if (rank < 2 || b.shape.size() < (is_vector ? 1 : 2)) return {};
    Node out;
    out.shape = a.shape;
    const int64_t k = a.shape[rank - (ta ? 2 : 1)];
    out.shape[rank - 2] = a.shape[rank - (ta ? 1 : 2)];
    out.shape.back() = is_vector ? 1 : b.shape[b.shape.size() - (tb ? 2 : 1)];
    add_product(2.0 * static_cast<double>(count(out.shape)) * static_cast<double>(k));
    if (is_vector) out.shape.pop_back();
    const bool is_batched = rank > 2 && b.shape.size() == rank;
    const bool whole_b = b.rows == Rows::Whole && !is_batched;
    const bool rows = a.rows == Rows::Rows && ((whole_b && (rank > 2 || !ta)) || (is_batched && b.rows == Rows::Rows));
    out.rows = rows ? Rows::Rows : together(args) == Rows::Whole ? Rows::Whole : Rows::Mixed;
    return out;
  }
  Node attention(const std::vector<Node>& args) {
    if (args.size() < 3 || args[0].shape.size() != 4 || args[1].shape.size() != 4) return {};
    Node out = args[0];
    const std::vector<int64_t>& k = args[1].shape;
    // Whichever of the two middle extents of K is the sequence, at least the smaller one is.
    add_product(2.0 * static_cast<double>(count(out.shape)) * static_cast<double>(std::min(k[1], k[2])));
    const bool all = args[0].rows == args[1].rows && args[1].rows == args[2].rows;
    if (!all) out.rows = Rows::Mixed;
    return out;
  }
  Node convolution(const std::vector<Node>& args) {
    if (args.size() < 2 || args[0].shape.size() < 3 || args[1].shape.size() != args[0].shape.size()) return {};
    Node out = args[0];
    out.shape[1] = args[1].shape[0];
    const double taps =
        static_cast<double>(count(args[1].shape)) / static_cast<double>(std::max<int64_t>(1, out.shape[1]));
    add_product(2.0 * static_cast<double>(count(out.shape)) * taps);
    if (args[1].rows != Rows::Whole) out.rows = Rows::Mixed;
    return out;
  }
  void add_product(double flops) {
    cost.flops += flops;
    cost.work += flops;
  }

  const std::map<std::string, ExpressionArgument>& arguments_;
  kernels::NamedTensors numbers_;
  std::string sampled_;
};

}  // namespace

ExpressionCost expression_cost(const Reference& reference, const std::map<std::string, ExpressionArgument>& arguments,
                               const std::map<std::string, int64_t>& dims, const std::string& sampled_dim) {
  Walk walk(arguments, dims, sampled_dim);
  walk.cost.keeps_rows = walk.visit(reference).rows == Rows::Rows && !walk.cost.names_scalar;
  return walk.cost;
}

}  // namespace tilewright::bench
