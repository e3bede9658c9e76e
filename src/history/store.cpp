#include "history/store.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

namespace cadans::history {
namespace fs = std::filesystem;
namespace {

constexpr int kVersion = 1;              ///< of the table; PRAGMA user_version
constexpr int kPatienceMs = 2000;        ///< with another process that writes
constexpr uint32_t kPruneEvery = 128;    ///< adds
constexpr uint64_t kMostKept = 200'000;  ///< rows in memory
constexpr int64_t kDayMs = 86'400'000;
constexpr uint32_t kGivenUpShare = 20;  ///< of the records, beyond the size limit: a twentieth at a time

constexpr const char* kTable = R"(
CREATE TABLE IF NOT EXISTS request (
  number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, unix_ms INTEGER NOT NULL, model TEXT NOT NULL, outcome TEXT NOT NULL,
  priority TEXT NOT NULL, client TEXT NOT NULL, cold INTEGER NOT NULL, streamed INTEGER NOT NULL,
  prompt_tokens INTEGER NOT NULL, cached_tokens INTEGER NOT NULL, computed_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL, ttft_ns INTEGER, prompt_ns INTEGER, queue_ns INTEGER NOT NULL, load_ns INTEGER NOT NULL,
  total_ns INTEGER NOT NULL, prompt_rate REAL, output_rate REAL, gap_max_ns INTEGER, stalls INTEGER NOT NULL,
  longest_wait TEXT NOT NULL, gaps TEXT NOT NULL, record TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS request_time ON request (unix_ms);
)";

constexpr const char* kFigures =
    "id, unix_ms, model, outcome, priority, client, cold, streamed, prompt_tokens, cached_tokens, computed_tokens, "
    "output_tokens, ttft_ns, prompt_ns, queue_ns, load_ns, total_ns, prompt_rate, output_rate, gap_max_ns, stalls, "
    "longest_wait, gaps";

/// A prepared statement, bound and read column by column. Lives as long as the database stays open.
class Statement {
  public:
    Statement(sqlite3* database, const std::string& sql) {
        unprepared_ = sqlite3_prepare_v2(database, sql.c_str(), static_cast<int>(sql.size()), &statement_, nullptr);
    }
    ~Statement() { sqlite3_finalize(statement_); }
    Statement(const Statement&) = delete;
    Statement& operator=(const Statement&) = delete;

    Statement& text(std::string_view value) {
        sqlite3_bind_text(statement_, ++bound_, value.data(), static_cast<int>(value.size()), SQLITE_TRANSIENT);
        return *this;
    }
    Statement& number(int64_t value) {
        sqlite3_bind_int64(statement_, ++bound_, value);
        return *this;
    }
    Statement& maybe(std::optional<int64_t> value) {
        if (value) return number(*value);
        sqlite3_bind_null(statement_, ++bound_);
        return *this;
    }
    Statement& maybe_real(std::optional<double> value) {
        ++bound_;
        if (value)
            sqlite3_bind_double(statement_, bound_, *value);
        else
            sqlite3_bind_null(statement_, bound_);
        return *this;
    }

    /// SQLITE_ROW, SQLITE_DONE or what went wrong.
    int step() { return statement_ == nullptr ? unprepared_ : sqlite3_step(statement_); }

    std::string read_text() {
        const int column = read_++;
        const unsigned char* bytes = sqlite3_column_text(statement_, column);
        return bytes == nullptr ? std::string()
                                : std::string(reinterpret_cast<const char*>(bytes),
                                              static_cast<size_t>(sqlite3_column_bytes(statement_, column)));
    }
    int64_t read_number() { return sqlite3_column_int64(statement_, read_++); }
    uint32_t read_count() { return static_cast<uint32_t>(std::max<int64_t>(0, read_number())); }
    std::optional<int64_t> read_maybe() {
        if (sqlite3_column_type(statement_, read_) == SQLITE_NULL) return ++read_, std::nullopt;
        return read_number();
    }
    std::optional<double> read_maybe_real() {
        if (sqlite3_column_type(statement_, read_) == SQLITE_NULL) return ++read_, std::nullopt;
        return sqlite3_column_double(statement_, read_++);
    }

    FinishedRequest read_figures() {
        read_ = 0;
        FinishedRequest r;
        r.id = read_text();
        r.unix_ms = read_number();
        r.model = read_text();
        r.outcome = read_text();
        r.priority = read_text();
        r.client = read_text();
        r.cold = read_number() != 0;
        r.streamed = read_number() != 0;
        r.prompt_tokens = read_count();
        r.cached_tokens = read_count();
        r.computed_tokens = read_count();
        r.output_tokens = read_count();
        r.ttft_ns = read_maybe();
        r.prompt_ns = read_maybe();
        r.queue_ns = read_number();
        r.load_ns = read_number();
        r.total_ns = read_number();
        r.prompt_tokens_per_second = read_maybe_real();
        r.output_tokens_per_second = read_maybe_real();
        r.gap_max_ns = read_maybe();
        r.stalls = read_count();
        r.longest_wait = read_text();
        r.gaps = GapCounts::of(read_text());
        return r;
    }

  private:
    sqlite3_stmt* statement_ = nullptr;
    int unprepared_ = SQLITE_OK;  ///< why there is none
    int bound_ = 0, read_ = 0;
};

bool is_damage(int code) { return (code & 0xFF) == SQLITE_NOTADB || (code & 0xFF) == SQLITE_CORRUPT; }

constexpr const char* kCompanions[] = {"", "-wal", "-shm"};  ///< files that make up one database

/// The file gets another name, so that whoever wants to can still look at it. Empty: that did not work.
std::string set_aside(const std::string& path, int64_t now_ms) {
    const std::string aside = fmt::format("{}.damaged-{}", path, now_ms);
    std::error_code trouble;
    fs::rename(path, aside, trouble);
    if (trouble) return {};
    for (const char* companion : kCompanions) {
        if (*companion == 0) continue;
        std::error_code none;  // there may be no such file
        fs::rename(path + companion, aside + companion, none);
    }
    return aside;
}

}  // namespace

struct Store::Database {
    sqlite3* handle = nullptr;

    ~Database() { sqlite3_close_v2(handle); }

    int changes() { return sqlite3_changes(handle); }

    int run(const char* sql) { return sqlite3_exec(handle, sql, nullptr, nullptr, nullptr); }

    int64_t number(const std::string& sql) {
        Statement statement(handle, sql);
        return statement.step() == SQLITE_ROW ? statement.read_number() : 0;
    }

    int check_sound() {
        Statement statement(handle, "PRAGMA quick_check(1)");
        const int code = statement.step();
        if (code != SQLITE_ROW) return code;
        return statement.read_text() == "ok" ? SQLITE_OK : SQLITE_CORRUPT;
    }

    Error trouble(const std::string& path, const char* what) const {
        return {ErrorCode::io, fmt::format("{} {}: {}", path, what, sqlite3_errmsg(handle)), path};
    }

    /// The result code of SQLite; on SQLITE_OK the table is there and sound.
    int open(const std::string& path) {
        int code = sqlite3_open_v2(path.c_str(), &handle,
                                   SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
        if (code != SQLITE_OK) return code;
        sqlite3_busy_timeout(handle, kPatienceMs);
        // Only a new file takes auto_vacuum. A write goes to the log beside the file and is not waited for: it
        // survives this process; the machine's crash may take the last few records, never the file.
        for (const char* setting : {"PRAGMA auto_vacuum = INCREMENTAL", "PRAGMA journal_mode = WAL",
                                    "PRAGMA synchronous = NORMAL", "PRAGMA journal_size_limit = 4194304"}) {
            if ((code = run(setting)) != SQLITE_OK) return code;
        }
        if ((code = check_sound()) != SQLITE_OK) return code;
        if (number("PRAGMA user_version") > kVersion) return SQLITE_OK;
        if ((code = run(kTable)) != SQLITE_OK) return code;
        return run(fmt::format("PRAGMA user_version = {}", kVersion).c_str());
    }
};

Store::Store(std::string path, StoreLimits limits, std::unique_ptr<Database> database)
    : path_(std::move(path)), limits_(limits), database_(std::move(database)) {}

Store::~Store() = default;

Result<std::unique_ptr<Store>> Store::open(const std::string& path, StoreLimits limits, int64_t now_ms) {
    std::error_code trouble;
    if (const fs::path folder = fs::path(path).parent_path(); !folder.empty()) fs::create_directories(folder, trouble);
    if (trouble) return Error{ErrorCode::io, fmt::format("{}: {}", path, trouble.message()), path};
    std::string note;
    for (int attempt = 0;; attempt++) {
        auto database = std::make_unique<Database>();
        const mode_t before = ::umask(0077);
        const int code = database->open(path);
        ::umask(before);
        if (code == SQLITE_OK) {
            if (const int64_t version = database->number("PRAGMA user_version"); version > kVersion)
                return Error{ErrorCode::unsupported,
                             fmt::format("{} was written by a newer Cadans (version {} of its table; this one knows "
                                         "{}): it is left as it is, and no history is kept",
                                         path, version, kVersion),
                             path};
            std::unique_ptr<Store> store(new Store(path, limits, std::move(database)));
            store->note_ = note;
            if (Status pruned = store->prune(now_ms); !pruned) return std::move(pruned).error();
            return store;
        }
        Error error = database->trouble(path, "cannot be used");
        database.reset();
        if (!is_damage(code) || attempt > 0) return error;
        const std::string aside = set_aside(path, now_ms);
        if (aside.empty()) return error;
        note = fmt::format("{} was damaged ({}); it was set aside as {}, and a new history is begun", path,
                           sqlite3_errstr(code), aside);
    }
}

Status Store::add(const FinishedRequest& r) {
    {
        Statement insert(
            database_->handle,
            fmt::format(
                "INSERT OR REPLACE INTO request ({}, record) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                kFigures));
        insert.text(r.id).number(r.unix_ms).text(r.model).text(r.outcome).text(r.priority).text(r.client);
        insert.number(r.cold).number(r.streamed).number(r.prompt_tokens).number(r.cached_tokens);
        insert.number(r.computed_tokens).number(r.output_tokens).maybe(r.ttft_ns).maybe(r.prompt_ns);
        insert.number(r.queue_ns).number(r.load_ns).number(r.total_ns).maybe_real(r.prompt_tokens_per_second);
        insert.maybe_real(r.output_tokens_per_second).maybe(r.gap_max_ns).number(r.stalls).text(r.longest_wait);
        insert.text(r.gaps.text()).text(r.record);
        if (insert.step() != SQLITE_DONE) return database_->trouble(path_, "could not take a record");
    }
    kept_.add(r);
    if (++adds_ % kPruneEvery == 0) return prune(r.unix_ms);
    return Ok{};
}

Result<std::string> Store::find(const std::string& id) {
    Statement select(database_->handle, "SELECT record FROM request WHERE id = ?");
    const int code = select.text(id).step();
    if (code == SQLITE_ROW) return select.read_text();
    if (code == SQLITE_DONE) return Error{ErrorCode::not_found, "no finished request of this id is remembered", "id"};
    return database_->trouble(path_, "could not be read");
}

Result<std::string> Store::newest() {
    Statement select(database_->handle, "SELECT record FROM request ORDER BY number DESC LIMIT 1");
    const int code = select.step();
    if (code == SQLITE_ROW) return select.read_text();
    if (code == SQLITE_DONE) return Error{ErrorCode::not_found, "no request has finished yet", "id"};
    return database_->trouble(path_, "could not be read");
}

Result<std::vector<FinishedRequest>> Store::newest_rows(uint64_t most) {
    Statement select(database_->handle,
                     fmt::format("SELECT {} FROM request ORDER BY unix_ms DESC, number DESC LIMIT ?", kFigures));
    select.number(static_cast<int64_t>(std::min<uint64_t>(most, INT64_MAX)));
    std::vector<FinishedRequest> rows;
    int code = SQLITE_ROW;
    while ((code = select.step()) == SQLITE_ROW) rows.push_back(select.read_figures());
    if (code != SQLITE_DONE) return database_->trouble(path_, "could not be read");
    return rows;
}

Result<std::span<const FinishedRequest>> Store::rows(const Span& span, uint64_t most) {
    // It changes when another process has written.
    const int64_t version = database_->number("PRAGMA data_version");
    if (!kept_.loaded() || version != version_) {
        auto all = newest_rows(kMostKept);
        if (!all) return std::move(all).error();
        std::ranges::reverse(*all);
        kept_.load(*std::move(all));
        version_ = version;
    }
    return kept_.of(span, most);
}

Result<std::optional<int64_t>> Store::kept_since() {
    Statement select(database_->handle, "SELECT MIN(unix_ms) FROM request");
    if (select.step() != SQLITE_ROW) return database_->trouble(path_, "could not be read");
    return select.read_maybe();
}

Status Store::prune(int64_t now_ms) {
    {
        Statement old(database_->handle, "DELETE FROM request WHERE unix_ms < ?");
        if (old.number(now_ms - int64_t{limits_.most_days} * kDayMs).step() != SQLITE_DONE)
            return database_->trouble(path_, "could not let go of old records");
        if (database_->changes() > 0) kept_.forget();
    }
    const auto bytes_used = [&] {
        return static_cast<uint64_t>(
            (database_->number("PRAGMA page_count") - database_->number("PRAGMA freelist_count")) *
            database_->number("PRAGMA page_size"));
    };
    for (int64_t count = 0; bytes_used() > limits_.most_bytes;) {
        count = database_->number("SELECT COUNT(*) FROM request");
        if (count == 0) break;
        Statement oldest(
            database_->handle,
            "DELETE FROM request WHERE number IN (SELECT number FROM request ORDER BY unix_ms, number LIMIT ?)");
        if (oldest.number(std::max<int64_t>(1, count / kGivenUpShare)).step() != SQLITE_DONE)
            return database_->trouble(path_, "could not let go of old records");
        kept_.forget();
    }
    if (database_->run("PRAGMA incremental_vacuum") != SQLITE_OK)
        return database_->trouble(path_, "could not give back room");
    return Ok{};
}

}  // namespace cadans::history
