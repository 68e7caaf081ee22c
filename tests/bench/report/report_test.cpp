#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <set>

#include "bench/report/history.h"
#include "bench/report/page.h"
#include "bench/report/svg.h"
#include "sample_record.h"

namespace tilewright::report {
namespace {

std::filesystem::path folder_of(const std::string& name) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / ("report_" + name);
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

class Page : public testing::Test {
 protected:
  void SetUp() override {
    folder = folder_of("page");
    record.write(folder);
    input = load_report_input(folder).value();
    html = render_html(input);
  }
  std::filesystem::path folder;
  SampleRecord record;
  ReportInput input;
  std::string html;
};

TEST_F(Page, NeedsNothingFromOutside) {
  for (const char* outside : {"<script", "<link", "<img", "@import", "url(http", "src="})
    EXPECT_EQ(html.find(outside), std::string::npos) << outside;
  EXPECT_TRUE(html.starts_with("<!doctype html>"));
  EXPECT_NE(html.find("prefers-color-scheme:dark"), std::string::npos);
}

TEST_F(Page, EveryNumberLeadsToARecordThatIsThere) {
  const std::regex link("href=\"#seq-([0-9]+)\""), anchor("id=\"seq-([0-9]+)\"");
  std::set<std::string> linked, anchors;
  for (std::sregex_iterator it(html.begin(), html.end(), anchor), end; it != end; ++it)
    EXPECT_TRUE(anchors.insert((*it)[1]).second);
  for (std::sregex_iterator it(html.begin(), html.end(), link), end; it != end; ++it) linked.insert((*it)[1]);
  EXPECT_EQ(anchors.size(), record.cells.size());
  EXPECT_GT(linked.size(), 20u);
  for (const std::string& seq : linked) EXPECT_TRUE(anchors.contains(seq)) << seq;
}

TEST_F(Page, ShowsEveryPlotWhenItsDataAreThere) {
  for (const char* label : {"cold and cached start", "warm samples", "paired ratios", "error against K",
                            "best time against time spent", "rank and frequency", "service latency", "relative cost",
                            "predicted and measured", "what would flip", "claims, not measurements"}) {
    EXPECT_NE(html.find(std::string("aria-label=\"") + label), std::string::npos) << label;
  }
  EXPECT_EQ(html.find("nan"), std::string::npos);
  EXPECT_NE(html.find("ADOPT"), std::string::npos);
}

TEST_F(Page, AClaimNeverEntersTheMatrix) {
  const size_t matrix = html.find("Every stage of every candidate"), end = html.find("</section>", matrix);
  EXPECT_EQ(html.substr(matrix, end - matrix).find("vendor-a"), std::string::npos);
  EXPECT_NE(html.find("vendor-a"), std::string::npos);
}

TEST_F(Page, SaysNotRunAndHow) {
  const std::filesystem::path bare = folder_of("bare");
  std::ofstream lines(bare / "cells.jsonl");
  lines << bench::to_json(record.cells[0]).dump() << "\n";
  lines.close();
  const std::string page = render_html(load_report_input(bare).value());
  EXPECT_NE(page.find("<b>not-run</b> · nothing was compared side by side"), std::string::npos);
  EXPECT_NE(page.find("tilewright traffic simulate trace.csv"), std::string::npos);
  EXPECT_EQ(page.find(">0</a>"), std::string::npos);
}

TEST_F(Page, MarkdownAndJsonSayTheSame) {
  const std::string markdown = render_markdown(input);
  EXPECT_NE(markdown.find("| candidate | check |"), std::string::npos);
  EXPECT_NE(markdown.find("## ADOPT"), std::string::npos);
  EXPECT_NE(markdown.find("claimed, not measured: vendor-a"), std::string::npos);
  const nlohmann::json json = render_json(input);
  EXPECT_EQ(json["candidates"][0], "tile");
  EXPECT_EQ(json["claims"].size(), 2u);
  EXPECT_EQ(json["decision"]["verdict"], "ADOPT");
}

TEST_F(Page, ADecisionOlderThanTheCellsIsStale) {
  EXPECT_EQ(ReportView(input).stale, "");
  bench::Cell slower = record.cells.front();
  slower.seq = record.cells.size() + 1;
  slower.state = bench::State::Failed;
  slower.value.reset();
  input.cells.push_back(slower);
  EXPECT_EQ(ReportView(input).stale, "1 cells were recorded after it");
  const std::string markdown = render_markdown(input), page = render_html(input);
  EXPECT_NE(markdown.find("## ADOPT (stale)"), std::string::npos);
  EXPECT_NE(page.find("ADOPT · stale"), std::string::npos);
  EXPECT_EQ(page.find("pill good"), std::string::npos);
  EXPECT_EQ(render_json(input)["decision_stale"], "1 cells were recorded after it");
  input.cells.back().state = bench::State::Claimed;  // a claim is no news to a decision
  EXPECT_EQ(ReportView(input).stale, "");
}

// References are measured first; the page asks about the candidate all the same.
TEST_F(Page, AsksAboutTheCandidateNotItsReference) {
  input.decision = nullptr;
  for (bench::Cell& cell : input.cells) {
    if (cell.candidate == "tile" && cell.stage == bench::Stage::Warm) {
      cell.value = 9;
      cell.samples.clear();
    }
  }
  std::ranges::stable_sort(input.cells, {}, [](const bench::Cell& cell) { return cell.candidate == "tile"; });
  EXPECT_EQ(ReportView(input).candidates.front(), "tile");
  EXPECT_NE(render_html(input).find("Is <b>tile</b> worth adopting here?"), std::string::npos);
}

TEST_F(Page, EveryIntervalSaysWhatItCovers) {
  for (bench::Cell& cell : input.cells) {
    if (cell.ci) cell.ci->level = 0.5;
  }
  const std::string page = render_html(input);
  EXPECT_NE(page.find("(50 %)"), std::string::npos);
  EXPECT_EQ(page.find(">95 %<"), std::string::npos);
  EXPECT_NE(render_markdown(input).find("tile takes 0.917 × the time of openblas"), std::string::npos);
  EXPECT_NE(render_markdown(input).find("unit_mismatch×1000"), std::string::npos);
}

TEST_F(Page, RefusesADamagedRecordAndEscapesItsTexts) {
  std::ofstream(folder / "decision.json") << "{";
  EXPECT_EQ(code_text(load_report_input(folder).error().code), "E1643");
  EXPECT_FALSE(load_report_input(folder_of("missing")).has_value());
  input.title = "<script>alert(1)</script>";
  EXPECT_EQ(render_html(input).find("<script"), std::string::npos);
}

// Looks at the page in a browser. TILEWRIGHT_SCREENSHOT names a file to keep the picture (docs/report.png was made so).
TEST_F(Page, IsSeenInABrowser) {
  if (std::system("command -v chromium >/dev/null 2>&1") != 0) GTEST_SKIP() << "chromium is not installed";
  const std::filesystem::path page = folder / "report.html", picture = folder / "report.png";
  std::ofstream(page) << html;
  const std::string command =
      "timeout 90 chromium --headless=new --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir=" +
      (folder / "profile").string() + " --window-size=1400,4300 --screenshot=" + picture.string() + " file://" +
      page.string() + " >/dev/null 2>&1";
  const int status = std::system(command.c_str());
  if (status != 0 && !std::filesystem::exists(picture))
    GTEST_SKIP() << "chromium does not start here: status " << status;
  std::ifstream png(picture, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(png), std::istreambuf_iterator<char>()};
  ASSERT_TRUE(bytes.starts_with("\x89PNG"));
  EXPECT_GT(bytes.size(), 100'000u) << "a page with text and plots does not compress to less";
  if (const char* keep = std::getenv("TILEWRIGHT_SCREENSHOT"))
    std::filesystem::copy_file(picture, keep, std::filesystem::copy_options::overwrite_existing);
}

TEST(Svg, ScalesAndTicks) {
  const Scale linear{0, 10, 100, 200};
  EXPECT_DOUBLE_EQ(linear(5), 150);
  EXPECT_DOUBLE_EQ(linear(-5), 100);
  EXPECT_EQ(linear.ticks(5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  const Scale log{1, 1000, 0, 300, true};
  EXPECT_NEAR(log(10), 100, 1e-9);
  EXPECT_EQ(log.ticks(5).size(), 4u);
  EXPECT_DOUBLE_EQ(log(0), 0);
}

TEST(Svg, NumbersAreShort) {
  EXPECT_EQ(shown(0), "0");
  EXPECT_EQ(shown(2.3456), "2.35");
  EXPECT_EQ(shown(0.012), "0.012");
  EXPECT_EQ(shown(-1.5), "−1.5");
  EXPECT_EQ(shown(1234567), "1\u2009234\u2009567");
  EXPECT_EQ(shown(1e-7), "1e-07");
  EXPECT_EQ(shown(INFINITY), "∞");
  EXPECT_EQ(escape("<a&\"b\">"), "&lt;a&amp;&quot;b&quot;&gt;");
}

TEST(HistoryFile, RepeatsReplaceAndReadInOrder) {
  const std::filesystem::path path = folder_of("history") / "history.db";
  SampleRecord record;
  {
    History history = History::open(path).value();
    ASSERT_TRUE(history.add("aaa", record.cells).has_value());
    ASSERT_TRUE(history.add("bbb", record.cells).has_value());
    ASSERT_TRUE(history.add("aaa", record.cells).has_value());
  }
  const History history = History::open(path).value();
  const std::vector<HistoryPoint> points = history.read({.candidate = "tile"}).value();
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[0].commit, "bbb");
  EXPECT_EQ(points[1].commit, "aaa");
  EXPECT_NEAR(points[0].value, 2.31, 0.1);
  EXPECT_EQ(history.read({.candidate = "tile", .last = 1}).value().size(), 1u);
  EXPECT_TRUE(history.read({.candidate = "vendor-a"}).value().empty());  // claims never enter
}

TEST(HistoryFile, RefusesAnotherFile) {
  const std::filesystem::path path = folder_of("history2") / "text.db";
  std::ofstream(path) << std::string(4096, 'x');
  EXPECT_EQ(code_text(History::open(path).error().code), "E1664");
  EXPECT_EQ(code_text(History::open("/proc/none/h.db").error().code), "E1664");
}

}  // namespace
}  // namespace tilewright::report
