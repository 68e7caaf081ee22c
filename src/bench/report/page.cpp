#include "bench/report/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "bench/report/page_style.h"
#include "bench/report/plots.h"
#include "bench/report/svg.h"

namespace tilewright::report {

using bench::Cell;
using bench::Stage;
using bench::State;

namespace {

constexpr std::array kMatrixStages = {Stage::Check, Stage::Import, Stage::Compile, Stage::Load, Stage::FirstCall,
                                      Stage::Warm,  Stage::Tune,   Stage::Model,   Stage::Peak};

std::string link(uint64_t seq, const std::string& text) {
  return seq ? fmt::format("<a href=\"#seq-{}\">{}</a>", seq, text) : text;
}

std::string card(std::string_view title, std::string_view how, const std::string& body, bool is_wide = false) {
  return fmt::format("<section class=\"card{}\"><h2>{}</h2><p class=\"how\">{}</p>{}</section>\n",
                     is_wide ? " wide" : "", title, how, body);
}

std::string drawn(const Drawing& drawing) {
  if (!drawing.svg.empty()) return drawing.svg;
  const std::string command =
      drawing.command.empty() ? "" : fmt::format("<br>To run it: <code>{}</code>", escape(drawing.command));
  return fmt::format("<div class=\"none\"><b>{}</b> · {}{}</div>", drawing.command.empty() ? "nothing" : "not-run",
                     escape(drawing.missing), command);
}

const char* verdict_css(const std::string& verdict) {
  return verdict == "ADOPT" ? "good" : verdict == "REJECT" ? "bad" : "open";
}

/// "1.2–1.3 (50 %)": an interval is worth nothing without the probability it covers.
std::string interval_text(const bench::Interval& ci) {
  return fmt::format("{}–{} ({:.3g} %)", shown(ci.low), shown(ci.high), 100 * ci.level);
}

std::string qualifiers_of(const Cell& cell) {
  std::string text;
  const auto add = [&](bool has, const char* word) {
    if (has) text += fmt::format("{}{}", text.empty() ? "" : ", ", word);
  };
  add(cell.qualifiers.stale, "stale");
  add(cell.qualifiers.simulated, "simulated");
  add(cell.qualifiers.relaxed, "relaxed");
  add(cell.qualifiers.declared, "declared");
  add(cell.stop_reason == "timeout", "timeout");
  add(cell.detail.is_object() && cell.detail.value("budget", "") == "quick", "quick");
  return text;
}

/// The option that leads a command to this record, when it is not where commands look by themselves.
std::string out_words(const std::string& folder) { return folder == "out" ? "" : " --out " + folder; }

std::string header(const ReportView& view) {
  const nlohmann::json& d = view.input.decision;
  std::string pill;
  if (d.is_object()) {
    const std::string verdict = d.value("verdict", "");
    pill =
        fmt::format("<a href=\"#decision\" style=\"text-decoration:none\"><div class=\"pill {}\">{}{}</div></a>",
                    view.stale.empty() ? verdict_css(verdict) : "open", verdict, view.stale.empty() ? "" : " · stale");
  }
  const std::string judged = view.candidates.empty() ? "nothing measured" : view.candidates.front();
  return fmt::format(
      "<div class=\"head\"><div><h1>{}</h1><p class=\"sub\">Is <b>{}</b> worth adopting here? · {} · {} · {}</p>"
      "<p class=\"sub\">{} records · written {}</p></div>{}</div>\n",
      escape(view.input.title), escape(judged), escape(view.subject.shape), escape(view.subject.dtype),
      escape(view.subject.device), view.input.cells.size(), view.input.written_at, pill);
}

/// The last record behind the clause whose name has these words: where a number of the decision comes from.
uint64_t clause_seq(const nlohmann::json& decision, std::string_view words) {
  if (!decision.is_object()) return 0;
  for (const nlohmann::json& c : decision.value("clauses", nlohmann::json::array())) {
    const nlohmann::json seqs = c.value("seqs", nlohmann::json::array());
    if (c.value("name", "").find(words) != std::string::npos && !seqs.empty()) return seqs.back().get<uint64_t>();
  }
  return 0;
}

std::string tile(const std::string& value, const std::string& unit, const std::string& what) {
  return fmt::format("<div class=\"tile\"><b>{} <small>{}</small></b><span>{}</span></div>", value, unit, what);
}

std::string tiles(const ReportView& view) {
  if (view.candidates.empty()) return "";
  const std::string& judged = view.candidates.front();
  std::string html = "<div class=\"tiles\">";
  const Cell* check = view.find(judged, Stage::Check);
  const bool is_right = check && check->state == State::Measured;
  html += tile(check ? link(check->seq, is_right                        ? "✓ right"
                                        : check->state == State::Failed ? "✗ wrong"
                                                                        : "not-run")
                     : "not-run",
               "", "against the oracle");
  const nlohmann::json& d = view.input.decision;
  if (d.is_object() && view.stale.empty() && d.contains("gain") && !d.value("reference", "").empty() &&
      d["gain"]["ci"][0] != d["gain"]["ci"][1]) {
    html += tile(link(clause_seq(d, " gain "), fmt::format("{} %", shown(100 * d["gain"].value("value", 0.0)))), "",
                 fmt::format("[{}, {}] ", shown(100 * d["gain"]["ci"][0].get<double>()),
                             shown(100 * d["gain"]["ci"][1].get<double>())) +
                     "time saved against " + escape(d.value("reference", "")));
  }
  for (const Stage stage : {Stage::Warm, Stage::Compile, Stage::Load, Stage::Model, Stage::Peak}) {
    const Cell* cell = view.measured(judged, stage);
    const bench::StageInfo& row = bench::info(stage);
    html += tile(cell ? link(cell->seq, shown(*cell->value)) : "not-run", cell ? std::string(row.unit) : "",
                 escape(row.words));
  }
  return html + "</div>\n";
}

/// What the first launch took more than the slowest of the next three is often nothing.
std::string value_text(const Cell& cell) {
  if (!cell.value) return "–";
  return cell.stage == Stage::FirstCall && *cell.value == 0 ? "as later" : shown(*cell.value);
}

std::string matrix_cell(const Cell* cell) {
  if (!cell) return "<td class=\"n notrun\">not-run</td>";
  if (cell->state == State::NotRun) {
    return fmt::format("<td class=\"n notrun\" title=\"{} {}\">{}</td>", escape(cell->reason), escape(cell->how_to_run),
                       link(cell->seq, "not-run"));
  }
  if (cell->state == State::Failed) {
    return fmt::format("<td class=\"n failed\">{}<br><small>{}</small></td>", link(cell->seq, "failed"),
                       escape(cell->reason));
  }
  const std::string weak = qualifiers_of(*cell);
  const std::string text = cell->stage == Stage::Check ? "right" : value_text(*cell);
  std::string spread;
  if (cell->ci && cell->stage != Stage::Check) spread = "<br><small>" + interval_text(*cell->ci) + "</small>";
  if (!weak.empty()) spread += fmt::format("<br><small>{}</small>", weak);
  return fmt::format("<td class=\"n{}\">{}{}</td>", weak.empty() ? "" : " weak", link(cell->seq, text), spread);
}

/// The same with the stages below each other, for narrow windows.
std::string tall_matrix(const ReportView& view) {
  std::string html = "<div class=\"scroll tall\"><table><tr><th>stage</th>";
  for (const std::string& candidate : view.candidates)
    html +=
        fmt::format("<th class=\"n\"><span class=\"sw b{}\"></span>{}</th>", view.colour(candidate), escape(candidate));
  html += "</tr>";
  for (const Stage stage : kMatrixStages) {
    html += fmt::format("<tr><td class=\"name\">{}</td>", bench::info(stage).metric);
    for (const std::string& candidate : view.candidates) html += matrix_cell(view.find(candidate, stage));
    html += "</tr>";
  }
  return html + "</table></div>";
}

std::string matrix(const ReportView& view) {
  std::string html = "<div class=\"scroll flat\"><table><tr><th>candidate</th>";
  for (const Stage stage : kMatrixStages) {
    html += fmt::format("<th class=\"n\" title=\"{}\">{}</th>", escape(bench::info(stage).words),
                        bench::info(stage).metric);
  }
  html += "</tr>";
  for (const std::string& candidate : view.candidates) {
    html += fmt::format("<tr><td class=\"name\"><span class=\"sw b{}\"></span><b>{}</b></td>", view.colour(candidate),
                        escape(candidate));
    for (const Stage stage : kMatrixStages) html += matrix_cell(view.find(candidate, stage));
    html += "</tr>";
  }
  return html + "</table></div>";
}

std::string clauses(const nlohmann::json& decision) {
  std::string html = "<ul class=\"clauses\">";
  for (const nlohmann::json& c : decision.value("clauses", nlohmann::json::array())) {
    const std::string finding = c.value("finding", "open");
    const char* css = finding == "holds" ? "good" : finding == "violated" ? "bad" : "open";
    const char* mark = finding == "holds" ? "✓" : finding == "violated" ? "✗" : "?";
    std::string seqs;
    for (const nlohmann::json& seq : c.value("seqs", nlohmann::json::array()))
      seqs += " " + link(seq.get<uint64_t>(), fmt::format("#{}", seq.get<uint64_t>()));
    const std::string command = c.value("command", "");
    html += fmt::format("<li><span class=\"mark {}-t\">{}</span><span>{}<small>{}{}{}</small></span></li>", css, mark,
                        escape(c.value("name", "")), escape(c.value("text", "")), seqs,
                        command.empty() ? "" : fmt::format("<br><code>{}</code>", escape(command)));
  }
  return html + "</ul>";
}

std::string decision_card(const ReportView& view) {
  const nlohmann::json& d = view.input.decision;
  if (!d.is_object()) return card("Decision", "clause by clause, on measured cells alone", drawn(plot_flips(view)));
  const std::string stale =
      view.stale.empty() ? ""
                         : fmt::format(" · stale: {}; take it again: <code>tilewright decide objective.json{}</code>",
                                       escape(view.stale), escape(out_words(view.input.folder)));
  const std::string body =
      fmt::format("<p class=\"{}-t\" style=\"margin:0\"><b>{}</b>{}{}</p>{}",
                  view.stale.empty() ? verdict_css(d.value("verdict", "")) : "open", d.value("verdict", ""), stale,
                  d.value("post_hoc", false) ? " · the objective is post-hoc" : "", clauses(d));
  return "<div id=\"decision\" style=\"display:contents\">" +
         card("Decision", "clause by clause; the numbers lead to their records", body) + "</div>";
}

/// The record behind a number of the three ways; 0 for what replay.json and cost.jsonl hold.
uint64_t source_of(const ReportView& view, const std::string& label) {
  const nlohmann::json& d = view.input.decision;
  if (label == "saved" || label == "forgone") return clause_seq(d, " gain ");
  if (label == "break-even per upgrade") return clause_seq(d, "per toolchain upgrade");
  if (label != "largest gain of the model" || view.candidates.empty()) return 0;
  const Cell* model = view.find(view.candidates.front(), Stage::Model);
  return model ? model->seq : 0;
}

std::string ways(const ReportView& view) {
  const nlohmann::json& d = view.input.decision;
  if (!d.is_object() || !d.contains("options")) return "";
  std::string html = "<div class=\"ways\">";
  for (const nlohmann::json& option : d["options"]) {
    html += fmt::format("<div><h3>{}</h3><p>Best when {}.</p><p class=\"open-t\">Main risk: {}.</p><dl>",
                        escape(option.value("name", "")), escape(option.value("best_when", "")),
                        escape(option.value("main_risk", "")));
    const nlohmann::json numbers = option.value("numbers", nlohmann::json::object());
    for (const auto& [label, value] : numbers.items()) {
      html += fmt::format("<dt>{}</dt><dd>{}</dd>", escape(label),
                          link(source_of(view, label), escape(value.get<std::string>())));
    }
    html += "</dl></div>";
  }
  return card("Keep, pin, or adapt", "three ways to go on, with this case's numbers", html + "</div>", true);
}

/// " · unit_mismatch×1000": what a claim's own arithmetic says against it.
std::string lint_text(const Cell& claim) {
  std::string text;
  for (const nlohmann::json& lint : claim.detail.value("lint", nlohmann::json::array())) {
    if (lint.value("code", "") != "unchecked") text += fmt::format(" · {}", lint.value("code", ""));
  }
  return text;
}

std::string open_list(const ReportView& view) {
  std::string rows;
  for (const Cell& cell : view.latest) {
    if (cell.state != State::NotRun && cell.state != State::Failed) continue;
    rows += fmt::format(
        "<tr><td class=\"name\">{}</td><td>{}</td><td class=\"word\">{}</td><td>{}</td><td>{}</td></tr>",
        link(cell.seq, escape(cell.candidate)), bench::info(cell.stage).metric, bench::name(cell.state),
        escape(cell.reason), cell.how_to_run.empty() ? "" : fmt::format("<code>{}</code>", escape(cell.how_to_run)));
  }
  if (rows.empty()) return "";
  return card(
      "What was not run, and what failed", "a missing number is never an old one or a zero",
      "<div class=\"scroll roomy\"><table><tr><th>candidate</th><th>stage</th><th>state</th><th>why</th><th>how to "
      "run it</th></tr>" +
          rows + "</table></div>",
      true);
}

std::string costs_card(const ReportView& view) {
  if (view.input.costs.empty()) return "";
  std::string rows;
  for (const decision::CostEntry& e : view.input.costs) {
    rows += fmt::format("<tr><td>{}</td><td>{}</td><td class=\"n\">{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
                        e.at.substr(0, 10), decision::name(e.kind),
                        e.is_measured ? shown(e.wall_ms / 1e3) + " s" : shown(e.hours) + " h",
                        e.is_measured ? "measured" : "declared", escape(e.by), escape(e.note));
  }
  return card("What it costs people", "declared hours and measured re-validation, append-only",
              "<div class=\"scroll\"><table><tr><th>on</th><th>kind</th><th "
              "class=\"n\">amount</th><th>state</th><th>by</th><th>note</th></tr>" +
                  rows + "</table></div>",
              true);
}

std::string record_row(const Cell& cell, bool ends_command) {
  std::string command;
  if (ends_command)
    for (const std::string& word : cell.command) command += fmt::format("{}{}", command.empty() ? "" : " ", word);
  const std::string state =
      std::string(bench::name(cell.state)) + (qualifiers_of(cell).empty() ? "" : ", " + qualifiers_of(cell));
  return fmt::format(
      "<tr id=\"seq-{}\"><td class=\"n\">{}</td><td class=\"name\">{}</td><td>{}</td><td>{}</td><td>{}</td>"
      "<td class=\"n value\">{}</td><td "
      "class=\"n\">{}</td><td class=\"n\">{}</td>"
      "<td>{}</td></tr>{}\n",
      cell.seq, cell.seq, escape(cell.candidate), bench::info(cell.stage).metric, escape(cell.subject.shape),
      escape(state), cell.value ? shown(*cell.value) + " " + escape(cell.unit) : escape(cell.reason),
      cell.ci ? interval_text(*cell.ci) : "", cell.n ? fmt::format("{} in {}", cell.n, cell.procs) : "",
      cell.stop_reason,
      command.empty()
          ? ""
          : fmt::format("<tr class=\"cmd\"><td></td><td colspan=\"8\"><code>{}</code></td></tr>", escape(command)));
}

/// Cells of one command stand together, and the command under the last of them.
std::string records(const ReportView& view) {
  std::string rows;
  const std::vector<Cell>& cells = view.input.cells;
  for (size_t i = 0; i < cells.size(); ++i)
    rows += record_row(cells[i], i + 1 == cells.size() || cells[i + 1].command != cells[i].command);
  return card(
      "Records", "every number above leads here; samples and environments are in cells.jsonl",
      "<div class=\"scroll roomy\"><table><tr><th "
      "class=\"n\">seq</th><th>candidate</th><th>stage</th><th>shape</th><th>state</th><th class=\"n\">value</th>"
      "<th class=\"n\">interval</th><th class=\"n\">samples</th><th>stopped by</th></tr>" +
          rows + "</table></div>",
      true);
}

}  // namespace

std::string render_html(const ReportInput& input) {
  const ReportView view(input);
  std::string html =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\">";
  html +=
      fmt::format("<meta name=\"color-scheme\" content=\"light dark\"><title>{}</title><style>{}</style></head><body>",
                  escape(input.title), kStyle);
  html +=
      "<svg width=\"0\" height=\"0\" style=\"position:absolute\"><defs><pattern id=\"hatch\" width=\"7\" height=\"7\" "
      "patternUnits=\"userSpaceOnUse\" "
      "patternTransform=\"rotate(45)\"><line x1=\"0\" y1=\"0\" x2=\"0\" y2=\"7\" "
      "style=\"stroke:var(--soft);stroke-width:2.2\"/></pattern></defs></svg><main>\n";
  html += header(view) + tiles(view) + "<div class=\"grid\">\n";
  html += card("Every stage of every candidate",
               "a fast operator is not a fast service: each cost by itself, with its interval and what that covers",
               matrix(view) + tall_matrix(view), true);
  html += decision_card(view);
  html += "<div style=\"display:grid;gap:18px;align-content:start;min-width:0\">";
  html +=
      card("What would flip it", "each number alone, to the nearest change of the verdict", drawn(plot_flips(view)));
  html += card("When it is repaid", "below 1 the adoption has paid; the veil is the 95 % band of the saving",
               drawn(plot_break_even(view))) +
          "</div>";
  html += ways(view);
  html += card("Cold and cached start", "nothing here is ever mixed with warm times", drawn(plot_waterfall(view)));
  html +=
      card("Side by side", "paired in one process, order drawn by lot; the strip is ±2 %", drawn(plot_forest(view)));
  html += card("Warm samples, process by process",
               "as many of each process as the record keeps; the spread between processes is the honest one",
               drawn(plot_samples(view)));
  html += card("Error against K", "the oracle's shapes: points must stay below their bounds", drawn(plot_error(view)));
  html += card("Tuning", "what the search spent and what it found", drawn(plot_tuning(view)));
  html +=
      card("The whole model", "what the operator's gain becomes when everything else stays", drawn(plot_amdahl(view)));
  html +=
      card("The service", "a first-come first-served server that compiles on demand", drawn(plot_service(view)), true);
  html += card("Shapes of the traffic", "how often each shape is asked for", drawn(plot_shapes(view)));
  html += card("Claims", "other people's numbers: hatched, never compared, never decided on", drawn(plot_claims(view)));
  html += costs_card(view) + open_list(view) + records(view);
  html += fmt::format(
      "</div><footer>Made from <code>{}</code> by <code>tilewright report</code>. One file, no script, no "
      "network.</footer></main></body></html>\n",
      escape(input.folder));
  return html;
}

std::string render_markdown(const ReportInput& input) {
  const ReportView view(input);
  std::string md = fmt::format("# {}\n\n{} · {} · {}\n\n| candidate |", input.title, view.subject.shape,
                               view.subject.dtype, view.subject.device);
  std::string ruler = "|---|";
  for (const Stage stage : kMatrixStages) {
    md += fmt::format(" {} |", bench::info(stage).metric);
    ruler += "---:|";
  }
  md += "\n" + ruler + "\n";
  for (const std::string& candidate : view.candidates) {
    md += fmt::format("| {} |", candidate);
    for (const Stage stage : kMatrixStages) {
      const Cell* cell = view.find(candidate, stage);
      const bool is_measured = cell && cell->state == State::Measured;
      const std::string text = !cell                   ? "not-run"
                               : !is_measured          ? std::string(bench::name(cell->state))
                               : stage == Stage::Check ? "right"
                                                       : value_text(*cell);
      const std::string weak = is_measured ? qualifiers_of(*cell) : "";
      md += fmt::format(" {}{} |", text, weak.empty() ? "" : " (" + weak + ")");
    }
    md += "\n";
  }
  for (const Cell& cell : view.latest) {
    if (cell.stage != Stage::Ratio || !cell.value || !cell.ci) continue;
    md += fmt::format("\n{} takes {} × the time of {} [{}, {}] ({:.3g} %)\n", cell.candidate, shown(*cell.value),
                      cell.detail.value("rival", "itself"), shown(cell.ci->low), shown(cell.ci->high),
                      100 * cell.ci->level);
  }
  if (input.decision.is_object()) {
    md += fmt::format("\n## {}{}\n\n", input.decision.value("verdict", ""), view.stale.empty() ? "" : " (stale)");
    if (!view.stale.empty()) {
      md += fmt::format(
          "This decision is older than the table above: {}. Take it again: `tilewright decide "
          "objective.json{}`\n\n",
          view.stale, out_words(input.folder));
    }
    for (const nlohmann::json& c : input.decision.value("clauses", nlohmann::json::array())) {
      const std::string command = c.value("command", "");
      md += fmt::format("- **{}** {}: {}{}\n", c.value("finding", ""), c.value("name", ""), c.value("text", ""),
                        command.empty() ? "" : fmt::format(" → `{}`", command));
    }
  }
  for (const Cell& cell : view.claims) {
    if (!cell.value) continue;
    md += fmt::format("\nclaimed, not measured: {} {} {} {} ({}, as of {}){}\n", cell.candidate, cell.subject.shape,
                      shown(*cell.value), cell.unit, cell.detail.value("source", ""), cell.detail.value("as_of", ""),
                      lint_text(cell));
  }
  return md;
}

nlohmann::json render_json(const ReportInput& input) {
  const ReportView view(input);
  nlohmann::json cells = nlohmann::json::array(), claims = nlohmann::json::array();
  for (const Cell& cell : view.latest) cells.push_back(to_json(cell));
  for (const Cell& cell : view.claims) claims.push_back(to_json(cell));
  return {{"title", input.title},
          {"written_at", input.written_at},
          {"subject", {{"shape", view.subject.shape}, {"dtype", view.subject.dtype}, {"device", view.subject.device}}},
          {"candidates", view.candidates},
          {"cells", std::move(cells)},
          {"claims", std::move(claims)},
          {"decision", input.decision},
          {"decision_stale", view.stale.empty() ? nlohmann::json() : nlohmann::json(view.stale)}};
}

}  // namespace tilewright::report
