#include "bench/report/history.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include "bench/record/cell_log.h"

namespace tilewright::report {

using bench::Cell;

namespace {

constexpr const char* kSchema =
    "CREATE TABLE IF NOT EXISTS runs(id INTEGER PRIMARY KEY, commit_id TEXT NOT NULL UNIQUE, at TEXT NOT NULL);"
    "CREATE TABLE IF NOT EXISTS points(run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE, shape TEXT, dtype "
    "TEXT, device TEXT,"
    " candidate TEXT, stage TEXT, value REAL, low REAL, high REAL, PRIMARY KEY(run, shape, dtype, device, candidate, "
    "stage));"
    "CREATE INDEX IF NOT EXISTS by_stage ON points(stage, candidate, shape);";

std::unexpected<Diagnostic> refuse(sqlite3* db, std::string_view what) {
  return fail(DiagnosticCode::E1664, fmt::format("{}: {}", what, sqlite3_errmsg(db)), "name another file with --db");
}

/// A prepared statement whose parameters are bound in order.
class Statement {
 public:
  Statement(sqlite3* db, const char* sql) { sqlite3_prepare_v2(db, sql, -1, &handle_, nullptr); }
  ~Statement() { sqlite3_finalize(handle_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(const std::string& text) {
    sqlite3_bind_text(handle_, ++at_, text.c_str(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
    return *this;
  }
  Statement& bind(std::optional<double> value) {
    value ? sqlite3_bind_double(handle_, ++at_, *value) : sqlite3_bind_null(handle_, ++at_);
    return *this;
  }
  Statement& bind(int64_t value) {
    sqlite3_bind_int64(handle_, ++at_, value);
    return *this;
  }
  int step() { return handle_ ? sqlite3_step(handle_) : SQLITE_ERROR; }
  std::string text(int column) const {
    const unsigned char* bytes = sqlite3_column_text(handle_, column);
    return bytes ? reinterpret_cast<const char*>(bytes) : "";
  }
  double number(int column) const { return sqlite3_column_double(handle_, column); }
  std::optional<double> maybe(int column) const {
    return sqlite3_column_type(handle_, column) == SQLITE_NULL ? std::nullopt : std::optional(number(column));
  }

 private:
  sqlite3_stmt* handle_ = nullptr;
  int at_ = 0;
};

bool run(sqlite3* db, const char* sql) { return sqlite3_exec(db, sql, nullptr, nullptr, nullptr) == SQLITE_OK; }

bool add_points(sqlite3* db, const std::string& commit, const std::vector<Cell>& cells) {
  if (Statement(db, "DELETE FROM runs WHERE commit_id = ?").bind(commit).step() != SQLITE_DONE) return false;
  if (Statement(db, "INSERT INTO runs(commit_id, at) VALUES(?, ?)").bind(commit).bind(bench::utc_now()).step() !=
      SQLITE_DONE)
    return false;
  const int64_t id = sqlite3_last_insert_rowid(db);
  for (const Cell& cell : bench::latest_cells(cells)) {
    if (cell.state != bench::State::Measured || !cell.value || cell.qualifiers.simulated) continue;
    Statement insert(db, "INSERT INTO points VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)");
    insert.bind(id).bind(cell.subject.shape).bind(cell.subject.dtype).bind(cell.subject.device).bind(cell.candidate);
    insert.bind(std::string(bench::info(cell.stage).metric)).bind(cell.value);
    insert.bind(cell.ci ? std::optional(cell.ci->low) : std::nullopt)
        .bind(cell.ci ? std::optional(cell.ci->high) : std::nullopt);
    if (insert.step() != SQLITE_DONE) return false;
  }
  return true;
}

}  // namespace

void History::Closer::operator()(void* handle) const { sqlite3_close(static_cast<sqlite3*>(handle)); }

Result<History> History::open(const std::filesystem::path& path) {
  sqlite3* db = nullptr;
  const int code = sqlite3_open(path.c_str(), &db);
  History history(db);
  if (code != SQLITE_OK) return refuse(db, fmt::format("cannot open {}", path.string()));
  sqlite3_busy_timeout(db, 5000);
  if (!run(db, "PRAGMA foreign_keys = ON") || !run(db, kSchema))
    return refuse(db, fmt::format("{} is not a history", path.string()));
  return history;
}

Status History::add(const std::string& commit, const std::vector<Cell>& cells) {
  auto* db = static_cast<sqlite3*>(database_.get());
  if (!run(db, "BEGIN IMMEDIATE")) return refuse(db, "cannot write the history");
  if (add_points(db, commit, cells) && run(db, "COMMIT")) return {};
  const std::unexpected<Diagnostic> error = refuse(db, "cannot write the history");
  run(db, "ROLLBACK");
  return error;
}

Result<std::vector<HistoryPoint>> History::read(const HistoryFilter& filter) const {
  auto* db = static_cast<sqlite3*>(database_.get());
  Statement select(
      db,
      "SELECT commit_id, at, shape, dtype, device, candidate, value, low, high FROM points JOIN runs ON run = runs.id"
      " WHERE stage = ?1 AND (?2 = '' OR shape = ?2) AND (?3 = '' OR candidate = ?3)"
      " AND run IN (SELECT id FROM runs ORDER BY id DESC LIMIT ?4) ORDER BY shape, dtype, device, candidate, run");
  select.bind(std::string(bench::info(filter.stage).metric))
      .bind(filter.shape)
      .bind(filter.candidate)
      .bind(filter.last);
  std::vector<HistoryPoint> points;
  int code = SQLITE_ROW;
  while ((code = select.step()) == SQLITE_ROW) {
    points.push_back({select.text(0),
                      select.text(1),
                      {select.text(2), select.text(3), select.text(4)},
                      select.text(5),
                      filter.stage,
                      select.number(6),
                      select.maybe(7),
                      select.maybe(8)});
  }
  if (code != SQLITE_DONE) return refuse(db, "cannot read the history");
  return points;
}

}  // namespace tilewright::report
