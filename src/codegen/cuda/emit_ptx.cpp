#include "codegen/cuda/emit_ptx.h"

#include <fmt/format.h>

#include <optional>
#include <span>

#include "target/gpu_matrix.h"

namespace tilewright::codegen {
namespace {

using namespace ir::thread;

constexpr std::string_view kPolicies[] = {"", "", "0x12F0000000000000", "0x14F0000000000000", ""};

std::string name(Reg r) {
  constexpr std::string_view prefix[] = {"%p", "%h", "%r", "%d"};
  return fmt::format("{}{}", prefix[static_cast<int>(r.width)], r.id);
}

std::string literal(Scalar type, int64_t bits) {
  switch (type) {
    case Scalar::F32:
    case Scalar::TF32: return fmt::format("0f{:08X}", static_cast<uint32_t>(bits));
    case Scalar::F64: return fmt::format("0d{:016X}", static_cast<uint64_t>(bits));
    case Scalar::F16:
    case Scalar::BF16: return fmt::format("0x{:04X}", static_cast<uint16_t>(bits));
    default: return fmt::format("{}", bits);
  }
}

class Emitter {
 public:
  Emitter(const Program& program, int architecture) : program_(program), architecture_(architecture) {}

  Result<std::string> entry() {
    body_.reserve(1 << 16);
    block(program_.body);
    if (problem_) return std::unexpected(*problem_);
    std::string out;
    out += fmt::format(".visible .entry {}(", program_.name);
    for (size_t i = 0; i < program_.params.size(); ++i) out += (i ? ",\n" : "\n") + param(i);
    out += fmt::format(")\n.maxntid {}, 1, 1\n", program_.threads);
    if (program_.max_registers > 0)
      out += fmt::format(".maxnreg {}\n", program_.max_registers);
    else
      out += fmt::format(".minnctapersm {}\n", program_.min_blocks);
    if (program_.cluster > 1) out += fmt::format(".reqnctapercluster {}, 1, 1\n", program_.cluster);
    out += "{\n";
    constexpr std::string_view declared[] = {".reg .pred %p", ".reg .b16 %h", ".reg .b32 %r", ".reg .b64 %d"};
    for (std::string_view d : declared) out += fmt::format("{}<{}>;\n", d, program_.register_count);
    return out + body_ + "ret;\n}\n";
  }

 private:
  std::string param(size_t i) const {
    const Param& p = program_.params[i];
    switch (p.kind) {
      case Param::Kind::Pointer:
      case Param::Kind::I64:
      case Param::Kind::F64: return fmt::format(".param .b64 p{}", i);
      case Param::Kind::I32:
      case Param::Kind::F32: return fmt::format(".param .b32 p{}", i);
      case Param::Kind::TensorMap: return fmt::format(".param .align 64 .b8 p{}[128]", i);
    }
    return {};
  }

  template <typename... A>
  void put(fmt::format_string<A...> format, A&&... args) {
    fmt::format_to(std::back_inserter(body_), format, std::forward<A>(args)...);
    body_ += '\n';
  }

  void block(const std::vector<Inst>& insts) {
    for (const Inst& inst : insts) one(inst);
  }

  std::string in(const Inst& inst, size_t i, Scalar type) const {
    const Value& v = inst.in[i];
    return v.is_constant ? literal(type, v.constant) : name(v.reg);
  }
  std::string in(const Inst& inst, size_t i) const { return in(inst, i, inst.type); }
  std::string address(const Inst& inst, size_t i, int offset = 0) const {
    return offset ? fmt::format("[{}+{}]", in(inst, i, Scalar::B64), offset)
                  : fmt::format("[{}]", in(inst, i, Scalar::B64));
  }
  static std::string list(std::span<const Reg> regs) {
    std::string out = "{";
    for (size_t i = 0; i < regs.size(); ++i) out += (i ? "," : "") + name(regs[i]);
    return out + "}";
  }
  std::string list(const Inst& inst, size_t first, size_t count) const {
    std::string out = "{";
    for (size_t i = 0; i < count; ++i) out += (i ? "," : "") + in(inst, first + i, Scalar::B32);
    return out + "}";
  }

  void require(const Inst& inst, int architecture) {
    if (architecture_ >= architecture || problem_) return;
    problem_ = fail(DiagnosticCode::E2551, fmt::format("kernel {} uses {}, which needs sm_{}; the target is sm_{}",
                                                       program_.name, mnemonic(inst.op), architecture, architecture_))
                   .error();
  }

  std::string guard(const Inst& inst) const {
    return inst.guard ? fmt::format("@{}{} ", inst.guard_not ? "!" : "", name(inst.guard)) : std::string();
  }

  // `mnemonic.type out, in...`
  void plain(const Inst& inst, std::string_view mnemonic) {
    std::string text = guard(inst) + std::string(mnemonic);
    bool first = true;
    for (Reg r : inst.out) text += (first ? " " : ", ") + name(r), first = false;
    for (size_t i = 0; i < inst.in.size(); ++i) text += (first ? " " : ", ") + in(inst, i), first = false;
    put("{};", text);
  }
  void typed(const Inst& inst, std::string_view stem) { plain(inst, fmt::format("{}.{}", stem, suffix(inst.type))); }

  static Scalar untyped(Scalar type) {
    constexpr Scalar by_width[] = {Scalar::Pred, Scalar::B16, Scalar::B32, Scalar::B64};
    return by_width[static_cast<int>(width(type))];
  }

  /// cvt knows numbers only: bits count as unsigned.
  static Scalar number_of(Scalar type) {
    if (type < Scalar::B8 || type > Scalar::B64) return type;
    return static_cast<Scalar>(static_cast<int>(type) - static_cast<int>(Scalar::B8) + static_cast<int>(Scalar::U8));
  }

  void one(const Inst& inst) {
    switch (op_class(inst.op)) {
      case OpClass::Alu: alu(inst); break;
      case OpClass::Memory: memory(inst); break;
      case OpClass::Sync: sync(inst); break;
      case OpClass::Matrix: matrix(inst); break;
      case OpClass::Copy: copy(inst); break;
      case OpClass::Control: control(inst); break;
    }
  }

  void alu(const Inst& inst) {
    const bool is_integer = !is_float(inst.type);
    const std::string t(suffix(inst.type));
    const std::string bits(suffix(untyped(inst.type)));
    switch (inst.op) {
      case Op::Mov: return plain(inst, "mov." + bits);
      case Op::Add: return typed(inst, "add");
      case Op::Sub: return typed(inst, "sub");
      case Op::Mul: return typed(inst, is_integer ? "mul.lo" : "mul");
      case Op::MulHi: return typed(inst, "mul.hi");
      case Op::MulWide: return typed(inst, "mul.wide");
      case Op::Mad: return typed(inst, "mad.lo");
      case Op::Fma: return typed(inst, "fma.rn");
      case Op::Div: return typed(inst, is_integer ? "div" : inst.type == Scalar::F32 ? "div.full" : "div.rn");
      case Op::Rem: return typed(inst, "rem");
      case Op::Min:
        return typed(inst, inst.type == Scalar::F32 || inst.type == Scalar::F16 || inst.type == Scalar::BF16 ? "min.NaN"
                                                                                                             : "min");
      case Op::Max:
        return typed(inst, inst.type == Scalar::F32 || inst.type == Scalar::F16 || inst.type == Scalar::BF16 ? "max.NaN"
                                                                                                             : "max");
      case Op::MinNumber: return typed(inst, "min");
      case Op::MaxNumber: return typed(inst, "max");
      case Op::Neg: return typed(inst, "neg");
      case Op::Abs: return typed(inst, "abs");
      case Op::And: return plain(inst, "and." + bits);
      case Op::Or: return plain(inst, "or." + bits);
      case Op::Xor: return plain(inst, "xor." + bits);
      case Op::Not: return plain(inst, "not." + bits);
      case Op::Shl: return plain(inst, "shl." + bits);
      case Op::Shr: return typed(inst, "shr");
      case Op::SetP: return set_predicate(inst);
      case Op::Select: return select(inst);
      case Op::Convert: return convert(inst);
      case Op::PackPair:
        return put("{}cvt.rn{}.{}.f32 {}, {}, {};", guard(inst), bytes(inst.type) == 2 ? ".satfinite" : "", t,
                   name(inst.out[0]), in(inst, 1, Scalar::F32), in(inst, 0, Scalar::F32));
      case Op::UnpackPair: return put("cvt.rn.f16x2.{} {}, {};", t, name(inst.out[0]), in(inst, 0));
      case Op::Join: return put("mov.{} {}, {{{}, {}}};", bits, name(inst.out[0]), in(inst, 0), in(inst, 1));
      case Op::Split: return put("mov.{} {{{}, {}}}, {};", bits, name(inst.out[0]), name(inst.out[1]), in(inst, 0));
      case Op::Exp2: return plain(inst, inst.attr[0] ? "ex2.approx.ftz.f32" : "ex2.approx.f32");
      case Op::Log2: return plain(inst, "lg2.approx.f32");
      case Op::Rcp: return plain(inst, inst.type == Scalar::F64 ? "rcp.rn.f64" : "rcp.approx.f32");
      case Op::Rsqrt: return plain(inst, inst.type == Scalar::F64 ? "rsqrt.approx.f64" : "rsqrt.approx.f32");
      case Op::Sqrt: return typed(inst, "sqrt.rn");
      case Op::Sin: return plain(inst, "sin.approx.f32");
      case Op::Cos: return plain(inst, "cos.approx.f32");
      case Op::Round: {
        constexpr std::string_view how[] = {"rni", "rmi", "rpi", "rzi"};
        return plain(inst, fmt::format("cvt.{}.{}.{}", how[inst.attr[0]], t, t));
      }
      case Op::Undefined: return;
      case Op::Special: return special(inst);
      case Op::MapShared:
        require(inst, 90);
        return put("mapa.shared::cluster.u32 {}, {}, {};", name(inst.out[0]), in(inst, 0, Scalar::B32),
                   in(inst, 1, Scalar::B32));
      case Op::ParamAddress:
        put("mov.b64 {}, p{};", name(inst.out[0]), inst.attr[0]);
        return put("cvta.param.u64 {}, {};", name(inst.out[0]), name(inst.out[0]));
      default: return;
    }
  }

  void set_predicate(const Inst& inst) {
    constexpr std::string_view how[] = {"eq", "ne", "lt", "le", "gt", "ge"};
    std::string_view compare = how[static_cast<int>(inst.compare)];
    if (is_float(inst.type) && inst.compare == Compare::Ne) compare = "neu";
    put("{}setp.{}.{} {}, {}, {};", guard(inst), compare, suffix(inst.type), name(inst.out[0]), in(inst, 0),
        in(inst, 1));
  }
  void select(const Inst& inst) {
    if (inst.type == Scalar::Pred) {
      put("{{\n.reg .b32 a, b;\nselp.u32 a, 1, 0, {0};\nselp.u32 b, 1, 0, {1};\nselp.u32 a, a, b, {2};\nsetp.ne.u32 "
          "{3}, a, 0;\n}}",
          in(inst, 1), in(inst, 2), in(inst, 0), name(inst.out[0]));
      return;
    }
    put("{}selp.{} {}, {}, {}, {};", guard(inst), suffix(untyped(inst.type)), name(inst.out[0]), in(inst, 1),
        in(inst, 2), in(inst, 0));
  }
  void convert(const Inst& inst) {
    const Scalar to = inst.type, from = inst.from;
    const std::string out = name(inst.out[0]), a = in(inst, 0, from);
    if (from == Scalar::Pred) return put("selp.{} {}, 1, 0, {};", suffix(untyped(to)), out, a);
    if (from == Scalar::BF16 && to == Scalar::F32) return put("mov.b32 {}, {{0, {}}};", out, a);
    std::string_view round;
    if (is_float(to) && !(is_float(from) && bytes(from) < bytes(to))) round = ".rn";
    if (!is_float(to) && is_float(from)) round = ".rzi";
    if (to == Scalar::TF32) round = ".rna";
    put("{}cvt{}.{}.{} {}, {};", guard(inst), round, suffix(number_of(to)), suffix(number_of(from)), out, a);
  }
  void special(const Inst& inst) {
    if (static_cast<SpecialRegister>(inst.attr[0]) == SpecialRegister::SharedBase)
      return put("mov.u32 {}, tw_shared;", name(inst.out[0]));
    constexpr std::string_view names[] = {"%tid.x",    "%ctaid.x",  "%ctaid.y", "%ctaid.z",         "%nctaid.x",
                                          "%nctaid.y", "%nctaid.z", "%laneid",  "%cluster_ctarank", "%ntid.x"};
    put("mov.u32 {}, {};", name(inst.out[0]), names[inst.attr[0]]);
  }

  void memory(const Inst& inst) {
    const bool is_shared = static_cast<Space>(inst.attr[1]) == Space::Shared;
    const bool is_cluster = static_cast<Space>(inst.attr[1]) == Space::Cluster;
    const std::string_view space = is_cluster ? "shared::cluster" : is_shared ? "shared" : "global";
    const std::string type(suffix(bytes(inst.type) == 1 ? Scalar::B8 : untyped(inst.type)));
    switch (inst.op) {
      case Op::LoadParam:
        return put("ld.param.{} {}, [p{}];", suffix(untyped(inst.type)), name(inst.out[0]), inst.attr[0]);
      case Op::Load: {
        const auto hint = static_cast<CacheHint>(inst.attr[2]);
        const std::string_view cache = is_shared || is_cluster || hint == CacheHint::None ? ""
                                       : hint == CacheHint::Streaming                     ? ".cs"
                                       : hint == CacheHint::EvictFirst                    ? ".nc.L1::evict_first"
                                       : hint == CacheHint::EvictLast                     ? ".L1::evict_last"
                                                                                          : ".nc.L1::no_allocate";
        const std::string vector = inst.out.size() > 1 ? fmt::format(".v{}", inst.out.size()) : "";
        return put("{}ld.{}{}{}.{} {}, {};", guard(inst), space, cache, vector, type,
                   inst.out.size() > 1 ? list(inst.out) : name(inst.out[0]), address(inst, 0, inst.attr[0]));
      }
      case Op::Store: {
        const size_t count = inst.in.size() - 1;
        const std::string vector = count > 1 ? fmt::format(".v{}", count) : "";
        const auto hint = static_cast<CacheHint>(inst.attr[2]);
        const std::string_view cache = is_shared || is_cluster        ? ""
                                       : hint == CacheHint::Streaming ? ".cs"
                                       : hint == CacheHint::EvictLast ? ".L1::evict_last"
                                                                      : "";
        return put("{}st.{}{}{}.{} {}, {};", guard(inst), space, cache, vector, type, address(inst, 0, inst.attr[0]),
                   count > 1 ? list(inst, 1, count) : in(inst, 1));
      }
      case Op::Atomic: {
        constexpr std::string_view kinds[] = {"add", "min", "max", "or", "and", "xor", "exch"};
        std::string t(suffix(inst.type));
        const auto kind = static_cast<AtomicKind>(inst.attr[2]);
        if (kind >= AtomicKind::Or) t = suffix(untyped(inst.type));
        if (kind == AtomicKind::Add && inst.type == Scalar::S64) t = "u64";
        const std::string rounding =
            kind == AtomicKind::Add && (inst.type == Scalar::F16 || inst.type == Scalar::BF16) ? ".noftz" : "";
        const std::string_view stem = inst.out.empty() && kind != AtomicKind::Exchange ? "red" : "atom";
        const std::string out = inst.out.empty() ? "" : name(inst.out[0]) + ", ";
        return put("{}{}.relaxed.gpu.{}.{}{}.{} {}{}, {};", guard(inst), stem, space, kinds[inst.attr[2]], rounding, t,
                   out, address(inst, 0, inst.attr[0]), in(inst, 1));
      }
      default: return;
    }
  }

  void sync(const Inst& inst) {
    switch (inst.op) {
      case Op::Shuffle: {
        constexpr std::string_view modes[] = {"bfly", "idx", "up", "down"};
        return put("shfl.sync.{}.b32 {}, {}, {}, {}, 0xffffffff;", modes[inst.attr[0]], name(inst.out[0]),
                   in(inst, 0, Scalar::B32), in(inst, 1, Scalar::B32),
                   static_cast<ShuffleMode>(inst.attr[0]) == ShuffleMode::Up ? 0 : 31);
      }
      case Op::Redux: {
        constexpr std::string_view kinds[] = {"add", "min", "max", "or", "and", "xor"};
        const std::string t(inst.attr[0] >= 3 ? "b32" : suffix(inst.type));
        return put("redux.sync.{}.{} {}, {}, 0xffffffff;", kinds[inst.attr[0]], t, name(inst.out[0]), in(inst, 0));
      }
      case Op::Ballot:
        return put("vote.sync.ballot.b32 {}, {}, 0xffffffff;", name(inst.out[0]), in(inst, 0, Scalar::Pred));
      case Op::SyncWarp: return put("bar.warp.sync 0xffffffff;");
      case Op::Barrier:
        if (inst.in[1].is(0)) return put("bar.sync {};", in(inst, 0, Scalar::B32));
        return put("bar.sync {}, {};", in(inst, 0, Scalar::B32), in(inst, 1, Scalar::B32));
      case Op::BarrierArrive: return put("bar.arrive {}, {};", in(inst, 0, Scalar::B32), in(inst, 1, Scalar::B32));
      case Op::ClusterArrive: require(inst, 90); return put("barrier.cluster.arrive.release.aligned;");
      case Op::ClusterWait: require(inst, 90); return put("barrier.cluster.wait.acquire.aligned;");
      case Op::FenceThreads: return put("fence.acq_rel.gpu;");
      case Op::FenceAsync: require(inst, 90); return put("fence.proxy.async.shared::cta;");
      case Op::FenceBarrierInit: require(inst, 90); return put("fence.mbarrier_init.release.cluster;");
      case Op::MbarrierInit:
        return put("{}mbarrier.init.shared::cta.b64 {}, {};", guard(inst), address(inst, 0), in(inst, 1, Scalar::B32));
      case Op::MbarrierArrive: return put("{}mbarrier.arrive.shared::cta.b64 _, {};", guard(inst), address(inst, 0));
      case Op::MbarrierExpect:
        require(inst, 90);
        return put("{}mbarrier.arrive.expect_tx.shared::cta.b64 _, {}, {};", guard(inst), address(inst, 0),
                   in(inst, 1, Scalar::B32));
      case Op::MbarrierWait: {
        require(inst, 90);
        const int label = labels_++;
        return put(
            "{{\n.reg .pred done;\nW{0}:\nmbarrier.try_wait.parity.shared::cta.b64 done, {1}, {2};\n@done bra "
            "D{0};\nbra W{0};\nD{0}:\n}}",
            label, address(inst, 0), in(inst, 1, Scalar::B32));
      }
      case Op::SetMaxRegisters:
        require(inst, 90);
        return put("setmaxnreg.{}.sync.aligned.u32 {};", inst.attr[1] ? "inc" : "dec", inst.attr[0]);
      case Op::GridDependencyWait: require(inst, 90); return put("griddepcontrol.wait;");
      case Op::GridDependencyLaunch: require(inst, 90); return put("griddepcontrol.launch_dependents;");
      default: return;
    }
  }

  std::string coordinates(const Inst& inst, size_t first) const { return list(inst, first, inst.in.size() - first); }

  void copy(const Inst& inst) {
    const auto& a = inst.attr;
    if (inst.op != Op::CpAsync && inst.op != Op::CpAsyncCommit && inst.op != Op::CpAsyncWait) require(inst, 90);
    switch (inst.op) {
      case Op::CpAsync:
        return put("{}cp.async.{}.shared.global {}, {}, {}, {};", guard(inst), a[0] == 16 ? "cg" : "ca",
                   address(inst, 0), address(inst, 1), a[0], in(inst, 2, Scalar::B32));
      case Op::CpAsyncCommit: return put("cp.async.commit_group;");
      case Op::CpAsyncWait: return put("cp.async.wait_group {};", a[0]);
      case Op::TmaLoad: {
        const std::string_view policy = kPolicies[a[0]];
        const int label = labels_++;
        if (!policy.empty()) put("{{\n.reg .b64 policy{};\nmov.b64 policy{}, {};", label, label, policy);
        put("{}cp.async.bulk.tensor.{}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes{} {}, [{}, {}], {}{};",
            guard(inst), inst.in.size() - 3, policy.empty() ? "" : ".L2::cache_hint", address(inst, 0), in(inst, 1),
            coordinates(inst, 3), address(inst, 2), policy.empty() ? "" : fmt::format(", policy{}", label));
        if (!policy.empty()) put("}}");
        return;
      }
      case Op::TmaStore:
        return put("{}cp.async.bulk.tensor.{}d.global.shared::cta.tile.bulk_group [{}, {}], {};", guard(inst),
                   inst.in.size() - 2, in(inst, 1), coordinates(inst, 2), address(inst, 0));
      case Op::BulkLoad:
        return put("{}cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes {}, {}, {}, {};", guard(inst),
                   address(inst, 0), address(inst, 1), in(inst, 2, Scalar::B32), address(inst, 3));
      case Op::BulkCommit: return put("cp.async.bulk.commit_group;");
      case Op::BulkWait: return put("cp.async.bulk.wait_group{} {};", a[1] ? ".read" : "", a[0]);
      case Op::PrefetchMap: return put("{}prefetch.tensormap {};", guard(inst), address(inst, 0));
      default: return;
    }
  }

  void matrix(const Inst& inst) {
    const auto& a = inst.attr;
    switch (inst.op) {
      case Op::LdMatrix:
        return put("ldmatrix.sync.aligned.m8n8.x{}{}.shared.b16 {}, {};", a[0], a[1] ? ".trans" : "", list(inst.out),
                   address(inst, 0));
      case Op::StMatrix:
        require(inst, 90);
        return put("stmatrix.sync.aligned.m8n8.x{}{}.shared.b16 {}, {};", a[0], a[1] ? ".trans" : "", address(inst, 0),
                   list(inst, 1, inst.in.size() - 1));
      case Op::Mma: return mma(inst);
      case Op::WgmmaFence: return put("wgmma.fence.sync.aligned;");
      case Op::WgmmaCommit: return put("wgmma.commit_group.sync.aligned;");
      case Op::WgmmaWait: return put("wgmma.wait_group.sync.aligned {};", a[0]);
      case Op::Wgmma: return wgmma(inst);
      default: return;
    }
  }
  void mma(const Inst& inst) {
    const target::MmaRow& r = target::row(static_cast<target::Mma>(inst.attr[0]));
    require(inst, r.least_architecture);
    const auto na = static_cast<size_t>(r.a_registers), nb = static_cast<size_t>(r.b_registers),
               nc = static_cast<size_t>(r.c_registers);
    put("mma.sync.aligned.m{}n{}k{}.row.col.{}.{}.{}.{} {}, {}, {}, {};", r.m, r.n, r.k, suffix(r.accumulator),
        suffix(r.a), suffix(r.b), suffix(r.accumulator), list(inst.out), list(inst, 0, na), list(inst, na, nb),
        list(inst, na + nb, nc));
  }
  void wgmma(const Inst& inst) {
    const target::WgmmaRow& r = target::row(static_cast<target::Wgmma>(inst.attr[0]));
    require(inst, 90);
    const bool from_registers = inst.attr[2];
    std::string text = fmt::format("wgmma.mma_async.sync.aligned.m64n{}k{}.{}.{}.{} {}, ", inst.attr[1], r.k,
                                   suffix(r.accumulator), suffix(r.a), suffix(r.b), list(inst.out));
    const size_t b = from_registers ? 5 : 2;
    text += from_registers ? list(inst, 1, 4) : in(inst, 1);
    text += fmt::format(", {}, {}", in(inst, b), in(inst, 0, Scalar::Pred));
    if (is_float(r.accumulator)) text += ", 1, 1";
    if (r.transposable)
      text += from_registers ? fmt::format(", {}", inst.attr[4]) : fmt::format(", {}, {}", inst.attr[3], inst.attr[4]);
    put("{};", text);
  }

  void control(const Inst& inst) {
    switch (inst.op) {
      case Op::If: {
        const int label = labels_++;
        const bool has_else = !inst.orelse.empty();
        put("@!{} bra {}{};", in(inst, 0, Scalar::Pred), has_else ? "E" : "F", label);
        block(inst.body);
        if (has_else) {
          put("bra F{0};\nE{0}:", label);
          block(inst.orelse);
        }
        return put("F{}:", label);
      }
      case Op::Loop: {
        const int label = labels_++;
        loops_.push_back(label);
        put("L{}:\n.pragma \"nounroll\";", label);
        block(inst.body);
        put("bra L{0};\nX{0}:", label);
        loops_.pop_back();
        return;
      }
      case Op::BreakIf: return put("@{} bra X{};", in(inst, 0, Scalar::Pred), loops_.back());
      case Op::Return: return put("{}ret;", guard(inst));
      case Op::Trap: return put("{}trap;", guard(inst));
      default: return;
    }
  }

  const Program& program_;
  int architecture_;
  std::string body_;
  int labels_ = 0;
  std::vector<int> loops_;
  std::optional<Diagnostic> problem_;
};

}  // namespace

Result<std::string> emit_ptx(std::span<const Program> programs, const PtxOptions& options) {
  bool needs_sm90a = false, has_shared = false;
  std::string entries;
  for (const Program& program : programs) {
    needs_sm90a |= program.needs_sm90a;
    has_shared |= program.shared_bytes > 0;
    auto text = Emitter(program, options.architecture).entry();
    if (!text) return text;
    entries += *text;
  }
  std::string out =
      fmt::format(".version 8.0\n.target sm_{}{}\n.address_size 64\n", options.architecture, needs_sm90a ? "a" : "");
  if (has_shared) out += ".extern .shared .align 1024 .b8 tw_shared[];\n";
  return out + entries;
}

Result<std::string> emit_ptx(const Program& program, const PtxOptions& options) {
  return emit_ptx(std::span(&program, 1), options);
}

}  // namespace tilewright::codegen
