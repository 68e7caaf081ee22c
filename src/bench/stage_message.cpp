#include "bench/stage_message.h"

#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace tilewright::bench {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 13> kKinds = {"empty", "import", "check",      "compile", "warm",
                                                     "peak",  "pair",   "roofline",   "contest", "sustained",
                                                     "race",  "rare",   "launch-cost"};

json rule_json(const measure::StopRule& rule) {
  return {{"min_samples", rule.min_samples},
          {"min_total_ms", rule.min_total_ms},
          {"precision", rule.precision},
          {"timeout_ms", rule.timeout_ms},
          {"max_samples", rule.max_samples}};
}

measure::StopRule parse_rule(const json& object) {
  measure::StopRule rule;
  rule.min_samples = object.at("min_samples");
  rule.min_total_ms = object.at("min_total_ms");
  rule.precision = object.at("precision");
  rule.timeout_ms = object.at("timeout_ms");
  rule.max_samples = object.at("max_samples");
  return rule;
}

json contenders_json(const std::vector<Contender>& contenders) {
  json out = json::array();
  for (const Contender& c : contenders) {
    out.push_back({{"candidate", c.candidate}, {"workload", c.workload}, {"dtypes", c.dtypes}, {"config", c.config}});
  }
  return out;
}

std::vector<Contender> parse_contenders(const json& list) {
  std::vector<Contender> out;
  for (const json& c : list) out.push_back({c.at("candidate"), c.at("workload"), c.at("dtypes"), c.at("config")});
  return out;
}

StageRequest parse_fields(const json& j) {
  StageRequest r;
  for (size_t i = 0; i < kKinds.size(); ++i) {
    if (kKinds[i] == j.at("kind").get<std::string>()) r.kind = static_cast<StageKind>(i);
  }
  j.at("candidate").get_to(r.candidate);
  j.at("rival").get_to(r.rival);
  j.at("references").get_to(r.references);
  j.at("workload").get_to(r.workload);
  j.at("dtypes").get_to(r.dtypes);
  for (const json& pair : j.at("lengths")) r.lengths.push_back({pair.at(0), pair.at(1)});
  if (const json& question = j.at("question"); !question.is_null()) {
    auto parsed = parse_question(question);
    if (parsed) r.question = std::move(*parsed);
  }
  j.at("device").get_to(r.device);
  j.at("threads").get_to(r.threads);
  j.at("cache_dir").get_to(r.cache_dir);
  j.at("config").get_to(r.config);
  j.at("seed").get_to(r.seed);
  r.warm = parse_rule(j.at("warm"));
  r.hot = parse_rule(j.at("hot"));
  j.at("check_after").get_to(r.check_after);
  j.at("rounds").get_to(r.rounds);
  j.at("rounds_limit").get_to(r.rounds_limit);
  j.at("delta").get_to(r.delta);
  j.at("fuzz_shapes").get_to(r.fuzz_shapes);
  j.at("timeout_ms").get_to(r.timeout_ms);
  r.contenders = parse_contenders(j.at("contenders"));
  for (const json& race : j.at("races"))
    r.races.push_back(
        {race.at("id"), parse_contenders(race.at("contenders")), race.at("is_flushed"), race.at("in_graphs")});
  j.at("ceiling").get_to(r.ceiling);
  j.at("is_flushed").get_to(r.is_flushed);
  j.at("without_driver_cache").get_to(r.without_driver_cache);
  j.at("token").get_to(r.token);
  return r;
}

}  // namespace

std::string_view name(StageKind kind) { return kKinds[static_cast<size_t>(kind)]; }

json to_json(const StageRequest& r) {
  json lengths = json::array();
  for (const SequenceLengths& l : r.lengths) lengths.push_back({l.q, l.k});
  json races = json::array();
  for (const Race& race : r.races) {
    races.push_back({{"id", race.id},
                     {"contenders", contenders_json(race.contenders)},
                     {"is_flushed", race.is_flushed},
                     {"in_graphs", race.in_graphs}});
  }
  return {{"kind", name(r.kind)},
          {"candidate", r.candidate},
          {"rival", r.rival},
          {"references", r.references},
          {"workload", r.workload},
          {"dtypes", r.dtypes},
          {"lengths", lengths},
          {"question", r.question.is_stated() ? to_json(r.question) : json()},
          {"device", r.device},
          {"threads", r.threads},
          {"cache_dir", r.cache_dir},
          {"config", r.config},
          {"seed", r.seed},
          {"warm", rule_json(r.warm)},
          {"hot", rule_json(r.hot)},
          {"check_after", r.check_after},
          {"rounds", r.rounds},
          {"rounds_limit", r.rounds_limit},
          {"delta", r.delta},
          {"fuzz_shapes", r.fuzz_shapes},
          {"timeout_ms", r.timeout_ms},
          {"contenders", contenders_json(r.contenders)},
          {"races", races},
          {"ceiling", r.ceiling},
          {"is_flushed", r.is_flushed},
          {"without_driver_cache", r.without_driver_cache},
          {"token", r.token}};
}

Result<StageRequest> parse_stage_request(const json& object) {
  try {
    return parse_fields(object);
  } catch (const json::exception& error) {
    return fail(DiagnosticCode::E1602, fmt::format("not a stage request: {}", error.what()));
  }
}

void StageChannel::step(std::string_view step_name) { send({{"event", "step"}, {"name", step_name}}); }
void StageChannel::mark(std::string_view mark_name) { send({{"event", "mark"}, {"name", mark_name}}); }

void StageChannel::part(json fields) {
  fields["event"] = "part";
  send(fields);
}

void StageChannel::result(json fields) {
  fields["event"] = "result";
  send(fields);
}

void StageChannel::error(const Diagnostic& diagnostic) {
  json event = to_json(diagnostic);
  event["event"] = "error";
  send(event);
}

void StageChannel::send(json event) {
  event["token"] = token_;
  const std::string line = event.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  for (size_t done = 0; done < line.size();) {
    const ssize_t written = ::write(fd_, line.data() + done, line.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return;  // the parent is gone; this process is about to be killed
    done += static_cast<size_t>(written);
    sent_bytes_ += written;
  }
}

json to_json(const Diagnostic& d) {
  return {{"code", std::string(code_text(d.code))}, {"message", d.message}, {"help", d.help}};
}

Diagnostic parse_diagnostic(const json& object) {
  Diagnostic out;
  const std::string code = object.value("code", "E9001");
#define TW_DIAGNOSTIC(enumerator, short_name) \
  if (code == #enumerator) out.code = DiagnosticCode::enumerator;
#include "base/diagnostic.def"
#undef TW_DIAGNOSTIC
  out.message = object.value("message", "");
  out.help = object.value("help", "");
  return out;
}

}  // namespace tilewright::bench
