#include "billing/ledger.h"

#include <sodium.h>

#include <array>

#include "base/check.h"
#include "base/status.h"
#include "billing/ledger_sql.h"

namespace firstseen {

using soci::into;
using soci::use;

namespace {

constexpr std::string_view kSecretNote = "secret";

std::string RandomHex() {
  std::array<unsigned char, 16> bytes;
  randombytes_buf(bytes.data(), bytes.size());
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

absl::Status NoLedger(std::string_view connection) {
  return NotFound(
      "{}: no ledger there, or an empty one; restore it from your backup, or check "
      "ledger.connection",
      connection);
}

}  // namespace

LedgerRow FlatRow::Row() const {
  LedgerRow row = texts;
  for (size_t i = 0; i < numbers.size(); ++i) row.*kNumbers[i] = numbers[i];
  row.state = static_cast<RowState>(state);
  row.origin = origin_indicator == soci::i_null ? kOriginNone : origin;
  row.verdict = static_cast<LedgerVerdict>(verdict);
  return row;
}

void FlatRow::Set(const LedgerRow& row) {
  texts = row;
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = row.*kNumbers[i];
  state = static_cast<int>(row.state);
  origin = row.origin;
  origin_indicator = row.origin == kOriginNone ? soci::i_null : soci::i_ok;
  verdict = static_cast<int>(row.verdict);
}

absl::Status LedgerError(std::string_view database, std::string_view action,
                         const std::string& text) {
  const auto says = [&](std::string_view part) { return text.find(part) != std::string::npos; };
  const std::string what = fmt::format("{}: {}: {}", database, action, text);
  if (says("is full")) {
    return ResourceExhausted(
        "{}; free space on its disk and start again: nothing that was recorded is lost", what);
  }
  if (says("malformed") || says("not a database")) {
    return DataLoss("{}; restore the ledger from your backup", what);
  }
  if (says("I/O error")) {
    return Unavailable(
        "{}; see whether its disk is full or failing, and start again: nothing that was recorded "
        "is lost",
        what);
  }
  if (says("locked")) {
    return Unavailable("{}; another program has had it for long: end that, and start again", what);
  }
  return Unavailable("{}; check that the file and its directory are there and can be written",
                     what);
}

absl::StatusOr<std::unique_ptr<Ledger>> Ledger::Open(FileSystem* files,
                                                     const std::string& connection,
                                                     LedgerOpen mode) {
  ASSIGN_OR_RETURN(const LedgerDialect* dialect, LedgerDialect::Find(connection));
  const std::string file = dialect->DatabaseFile(connection);
  if (!file.empty()) {
    ASSIGN_OR_RETURN(const bool exists, files->Exists(file));
    if (!exists && mode == LedgerOpen::kExisting) return NoLedger(connection);
    // Made here for its mode, 0600, which SQLite gives to its journal files too.
    if (!exists) RETURN_IF_ERROR(files->Open(file, OpenMode::kCreateNew).status());
  }
  auto ledger = std::make_unique<SqlLedger>(*dialect, connection);
  RETURN_IF_ERROR(ledger->Open(mode));
  return ledger;
}

absl::Status SqlLedger::Open(LedgerOpen mode) {
  RETURN_IF_ERROR(Guard("open", [&] { dialect_.Connect(connection_, &session_); }));
  ASSIGN_OR_RETURN(const bool there, HasSchema());
  if (there) return absl::OkStatus();
  return mode == LedgerOpen::kCreate ? CreateSchema() : NoLedger(connection_);
}

absl::StatusOr<bool> SqlLedger::HasSchema() {
  long long version = 0;
  RETURN_IF_ERROR(Guard("open", [&] {
    int tables = 0;
    session_ << dialect_.count_tables() << " = 'counters'", into(tables);
    if (tables == 0) return;
    session_ << "SELECT value FROM counters WHERE name = 'schema_version'", into(version);
  }));
  if (version == 0 || version == kSchemaVersion) return version != 0;
  return FailedPrecondition(
      "{} has schema version {}; this program knows {}: use the program that it was made with",
      connection_, version, kSchemaVersion);
}

absl::Status SqlLedger::CreateSchema() {
  return Transact([&]() -> absl::Status {
    RETURN_IF_ERROR(Guard("create tables", [&] {
      CreateTables();
      for (const char* counter : {"bill_serial", "inbox_id", "purge_line_ms"}) {
        session_ << "INSERT INTO counters (name, value, note) VALUES ('" << counter << "', 0, '')";
      }
      session_ << "INSERT INTO counters (name, value, note) VALUES ('schema_version', "
               << kSchemaVersion << ", '')";
    }));
    RETURN_IF_ERROR(SetNote(kSecretNote, RandomHex()));
    return SetNote(kLedgerIdNote, RandomHex());
  });
}

void SqlLedger::CreateTables() {
  const std::string_view text = dialect_.text_type();
  const std::string_view longer = dialect_.long_text_type();
  session_ << "CREATE TABLE counters (name VARCHAR(64) NOT NULL PRIMARY KEY, "
              "value BIGINT NOT NULL, note VARCHAR(64) NOT NULL)";
  session_ << fmt::format(
      "CREATE TABLE transactions (biz_seq_no {0} NOT NULL PRIMARY KEY, order_no {0} NOT NULL, "
      "app_id {0} NOT NULL, partner {0} NOT NULL, event_ms BIGINT NOT NULL, "
      "amount VARCHAR(40) NOT NULL, status {0} NOT NULL, state SMALLINT NOT NULL, "
      "origin SMALLINT, verdict SMALLINT NOT NULL, claim_sequence BIGINT NOT NULL, "
      "set_name {0} NOT NULL, window_id BIGINT NOT NULL, bill_serial BIGINT NOT NULL, "
      "inbox_id BIGINT NOT NULL, content {0} NOT NULL, member {0} NOT NULL, kept {1} NOT NULL)",
      text, longer);
  session_ << "CREATE INDEX transactions_by_bill ON transactions (bill_serial)";
  session_ << "CREATE INDEX transactions_by_time ON transactions (event_ms)";
  session_ << fmt::format(
      "CREATE TABLE held_members (biz_seq_no {0} NOT NULL PRIMARY KEY, fields {1} NOT NULL)", text,
      longer);
  session_ << fmt::format(
      "CREATE TABLE inbox_files (id BIGINT NOT NULL PRIMARY KEY, name {0} NOT NULL, "
      "stored_name {0} NOT NULL, seen_ms BIGINT NOT NULL, closed SMALLINT NOT NULL, failing "
      "SMALLINT NOT NULL)",
      text);
  session_ << "CREATE INDEX inbox_files_open ON inbox_files (closed, seen_ms)";
  session_ << fmt::format(
      "CREATE TABLE partners (partner {0} NOT NULL PRIMARY KEY, next_period_ms BIGINT NOT NULL)",
      text);
  session_ << fmt::format(
      "CREATE TABLE bills (serial BIGINT NOT NULL PRIMARY KEY, kind SMALLINT NOT NULL, "
      "partner {0} NOT NULL, period_ms BIGINT NOT NULL, state SMALLINT NOT NULL, "
      "file_name {1} NOT NULL, row_count BIGINT NOT NULL, total VARCHAR(64) NOT NULL, "
      "sha256 VARCHAR(64) NOT NULL, original BIGINT NOT NULL, written_ms BIGINT NOT NULL)",
      text, longer);
  session_ << "CREATE INDEX bills_by_state ON bills (state, period_ms)";
  session_ << "CREATE INDEX bills_by_period ON bills (partner, period_ms)";
  session_ << fmt::format(
      "CREATE TABLE adjustments (biz_seq_no {0} NOT NULL PRIMARY KEY, order_no {0} NOT NULL, "
      "app_id {0} NOT NULL, partner {0} NOT NULL, event_ms BIGINT NOT NULL, "
      "amount VARCHAR(40) NOT NULL, status {0} NOT NULL, bill_serial BIGINT NOT NULL, "
      "window_id BIGINT NOT NULL, claim_sequence BIGINT NOT NULL, kept {1} NOT NULL, "
      "reversed_ms BIGINT NOT NULL, file_serial BIGINT NOT NULL)",
      text, longer);
  session_ << "CREATE INDEX adjustments_by_file ON adjustments (file_serial, partner)";
}

absl::Status SqlLedger::Transact(const std::function<absl::Status()>& body) {
  RETURN_IF_ERROR(Guard("begin", [&] { session_ << dialect_.begin(); }));
  absl::Status status = body();
  if (status.ok()) status = Guard("commit", [&] { session_ << "COMMIT"; });
  if (!status.ok()) {
    // Fails when the database has rolled back by itself; then there is nothing left to do.
    Guard("rollback", [&] { session_ << "ROLLBACK"; }).IgnoreError();
  }
  return status;
}

absl::StatusOr<std::string> SqlLedger::Secret() {
  ASSIGN_OR_RETURN(std::optional<std::string> secret, Note(kSecretNote));
  if (!secret.has_value()) {
    return DataLoss("{}: a part of it is gone; restore it from your backup", connection_);
  }
  return *std::move(secret);
}

absl::StatusOr<std::optional<std::string>> SqlLedger::Note(std::string_view name) {
  std::optional<std::string> note;
  RETURN_IF_ERROR(Guard("read", [&] {
    const std::string key(name);
    std::string text;
    session_ << "SELECT note FROM counters WHERE name = :n", into(text), use(key);
    if (session_.got_data()) note = text;
  }));
  return note;
}

absl::Status SqlLedger::SetNote(std::string_view name, const std::string& text) {
  return Guard("write a note", [&] {
    const std::string key(name);
    soci::statement update =
        (session_.prepare << "UPDATE counters SET note = :t WHERE name = :n", use(text), use(key));
    update.execute(true);
    if (update.get_affected_rows() > 0) return;
    session_ << "INSERT INTO counters (name, value, note) VALUES (:n, 0, :t)", use(key), use(text);
  });
}

absl::StatusOr<bool> SqlLedger::Used() {
  long long used = 0;
  RETURN_IF_ERROR(Guard("read", [&] {
    session_ << "SELECT SUM(value) FROM counters WHERE name IN ('bill_serial', 'inbox_id')",
        into(used);
  }));
  return used > 0;
}

absl::Status SqlLedger::StartBehind(const LedgerStart& start) {
  return Transact([&]() -> absl::Status {
    RETURN_IF_ERROR(Guard("begin behind older bills", [&] {
      const auto set = [&](const char* name, long long value) {
        session_ << "UPDATE counters SET value = :v WHERE name = '" << name << "'", use(value);
      };
      set("bill_serial", start.bill_serial);
      set("inbox_id", start.inbox_id);
      set("purge_line_ms", start.purge_line_ms);
    }));
    for (const auto& [partner, next_ms] : start.next_periods) {
      RETURN_IF_ERROR(SetNextPeriod(partner, next_ms));
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<absl::flat_hash_map<std::string, LedgerRow>> SqlLedger::FindRows(
    std::span<const std::string> serials) {
  absl::flat_hash_map<std::string, LedgerRow> found;
  RETURN_IF_ERROR(Guard("look up transactions", [&] {
    FlatRow row;
    std::string serial;
    auto prepared = (session_.prepare << "SELECT " << kRowColumns
                                      << " FROM transactions WHERE biz_seq_no = :serial",
                     use(serial, "serial"));
    soci::statement statement = IntoRow(prepared, &row);
    for (const std::string& wanted : serials) {
      serial = wanted;
      if (statement.execute(true)) found.try_emplace(wanted, row.Row());
    }
  }));
  return found;
}

absl::Status SqlLedger::InsertRows(std::span<const LedgerRow* const> rows) {
  if (rows.empty()) return absl::OkStatus();
  return Guard("insert transactions", [&] {
    FlatRow row;
    auto prepared =
        (session_.prepare << "INSERT INTO transactions (" << kRowColumns
                          << ") VALUES (:a, :b, :c, :d, :e, :f, :g, :h, :i, :j, :k, :l, :m, :n, "
                             ":o, :p, :q, :r)");
    row.ForEach([&](auto&... place) { prepared, use(place...); });
    soci::statement statement = prepared;
    for (const LedgerRow* next : rows) {
      row.Set(*next);
      statement.execute(true);
    }
  });
}

absl::Status SqlLedger::UpdateRow(const LedgerRow& next) {
  return Guard("update a transaction", [&] {
    FlatRow row;
    row.Set(next);
    auto prepared =
        (session_.prepare << "UPDATE transactions SET biz_seq_no = :a, order_no = :b, app_id = :c, "
                             "partner = :d, event_ms = :e, amount = :f, status = :g, state = :h, "
                             "origin = :i, verdict = :j, claim_sequence = :k, set_name = :l, "
                             "window_id = :m, bill_serial = :n, inbox_id = :o, content = :p, "
                             "member = :q, kept = :r WHERE biz_seq_no = :s");
    row.ForEach([&](auto&... place) { prepared, use(place...); });
    soci::statement statement = (prepared, use(row.texts.serial));
    statement.execute(true);
  });
}

absl::Status SqlLedger::HoldMember(const std::string& serial, const std::string& fields) {
  return Guard("hold a transaction", [&] {
    session_ << "INSERT INTO held_members (biz_seq_no, fields) VALUES (:s, :f)", use(serial),
        use(fields);
  });
}

absl::Status SqlLedger::UnholdMember(const std::string& serial) {
  return Guard("release a held transaction",
               [&] { session_ << "DELETE FROM held_members WHERE biz_seq_no = :s", use(serial); });
}

absl::StatusOr<std::vector<Ledger::HeldRow>> SqlLedger::HeldRows(int64_t after_inbox_id,
                                                                 const std::string& after_serial,
                                                                 int64_t limit) {
  std::vector<HeldRow> held;
  RETURN_IF_ERROR(Guard("look up held transactions", [&] {
    FlatRow row;
    std::string fields;
    const long long id = after_inbox_id;
    auto prepared =
        (session_.prepare
             << "SELECT t.biz_seq_no, order_no, app_id, partner, event_ms, amount, status, state, "
                "origin, verdict, claim_sequence, set_name, window_id, bill_serial, inbox_id, "
                "content, member, kept, h.fields FROM held_members h JOIN transactions t ON "
                "t.biz_seq_no = h.biz_seq_no WHERE inbox_id > :i OR (inbox_id = :j AND "
                "t.biz_seq_no > :s) ORDER BY inbox_id, t.biz_seq_no LIMIT "
             << limit,
         use(id, "i"), use(id, "j"), use(after_serial, "s"));
    soci::statement statement = (IntoRow(prepared, &row), into(fields));
    statement.execute();
    while (statement.fetch()) held.push_back({row.Row(), fields});
  }));
  return held;
}

absl::StatusOr<std::vector<InboxFileRow>> SqlLedger::SelectFiles(const std::string& where) {
  std::vector<InboxFileRow> found;
  RETURN_IF_ERROR(Guard("look up files", [&] {
    InboxFileRow file;
    long long id = 0;
    long long seen_ms = 0;
    int failing = 0;
    soci::statement statement =
        (session_.prepare
             << "SELECT id, name, stored_name, seen_ms, failing FROM inbox_files WHERE " << where,
         into(id), into(file.name), into(file.stored_name), into(seen_ms), into(failing));
    statement.execute();
    while (statement.fetch()) {
      file.id = id;
      file.seen_ms = seen_ms;
      file.failing = failing != 0;
      found.push_back(file);
    }
  }));
  return found;
}

absl::StatusOr<std::vector<InboxFileRow>> SqlLedger::OpenFiles() {
  return SelectFiles("closed = 0 ORDER BY id");
}

absl::StatusOr<std::vector<InboxFileRow>> SqlLedger::ClosedFiles(int64_t before_ms, int64_t limit) {
  return SelectFiles(
      fmt::format("closed = 1 AND seen_ms < {} ORDER BY id LIMIT {}", before_ms, limit));
}

absl::StatusOr<std::vector<std::string>> SqlLedger::DecidedFiles() {
  ASSIGN_OR_RETURN(std::vector<InboxFileRow> files, SelectFiles("closed = 1 AND failing = 0"));
  std::vector<std::string> names;
  names.reserve(files.size());
  for (InboxFileRow& file : files) names.push_back(std::move(file.stored_name));
  return names;
}

absl::StatusOr<int64_t> SqlLedger::RegisterFile(const InboxFileRow& file) {
  long long id = 0;
  RETURN_IF_ERROR(Guard("register a file", [&] {
    session_ << "UPDATE counters SET value = value + 1 WHERE name = 'inbox_id'";
    session_ << "SELECT value FROM counters WHERE name = 'inbox_id'", into(id);
    const long long seen_ms = file.seen_ms;
    session_ << "INSERT INTO inbox_files (id, name, stored_name, seen_ms, closed, "
                "failing) VALUES (:i, :n, :t, :s, 0, 0)",
        use(id), use(file.name), use(file.stored_name), use(seen_ms);
  }));
  return id;
}

absl::Status SqlLedger::SetStoredName(int64_t id, const std::string& stored_name) {
  return Guard("name a file", [&] {
    const long long key = id;
    session_ << "UPDATE inbox_files SET stored_name = :n WHERE id = :i", use(stored_name), use(key);
  });
}

absl::Status SqlLedger::MarkFailing(int64_t id) {
  return Guard("mark a file", [&] {
    const long long key = id;
    session_ << "UPDATE inbox_files SET failing = 1 WHERE id = :i", use(key);
  });
}

absl::Status SqlLedger::CloseFile(int64_t id) {
  return Guard("close a file", [&] {
    const long long key = id;
    session_ << "UPDATE inbox_files SET closed = 1 WHERE id = :i", use(key);
  });
}

absl::Status SqlLedger::ForgetFile(int64_t id) {
  return Guard("forget a file", [&] {
    const long long key = id;
    session_ << "DELETE FROM inbox_files WHERE id = :i", use(key);
  });
}

}  // namespace firstseen
