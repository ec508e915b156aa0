#include "billing/ledger.h"

#include <sodium.h>

#include <array>

#include "base/check.h"
#include "base/status.h"
#include "billing/ledger_sql.h"

namespace firstseen {

using soci::into;
using soci::use;

LedgerRow FlatRow::Row() const {
  LedgerRow row;
  row.serial = serial;
  row.order_no = order_no;
  row.app_id = app_id;
  row.partner = partner;
  row.event_ms = event_ms;
  row.amount = amount;
  row.status = status;
  row.state = static_cast<RowState>(state);
  row.origin = origin_indicator == soci::i_null ? kOriginNone : origin;
  row.verdict = static_cast<LedgerVerdict>(verdict);
  row.claim_sequence = claim_sequence;
  row.set = set;
  row.window = window;
  row.bill_serial = bill_serial;
  row.inbox_id = inbox_id;
  row.content = content;
  row.member = member;
  row.kept = kept;
  return row;
}

void FlatRow::Set(const LedgerRow& row) {
  serial = row.serial;
  order_no = row.order_no;
  app_id = row.app_id;
  partner = row.partner;
  event_ms = row.event_ms;
  amount = row.amount;
  status = row.status;
  state = static_cast<int>(row.state);
  origin = row.origin;
  origin_indicator = row.origin == kOriginNone ? soci::i_null : soci::i_ok;
  verdict = static_cast<int>(row.verdict);
  claim_sequence = row.claim_sequence;
  set = row.set;
  window = row.window;
  bill_serial = row.bill_serial;
  inbox_id = row.inbox_id;
  content = row.content;
  member = row.member;
  kept = row.kept;
}

absl::StatusOr<std::unique_ptr<Ledger>> Ledger::Open(FileSystem* files,
                                                     const std::string& connection) {
  ASSIGN_OR_RETURN(const LedgerDialect* dialect, LedgerDialect::Find(connection));
  const std::string file = dialect->DatabaseFile(connection);
  if (!file.empty()) {
    // Made here for its mode, 0600, which SQLite gives to its journal files too.
    ASSIGN_OR_RETURN(const bool exists, files->Exists(file));
    if (!exists) RETURN_IF_ERROR(files->Open(file, OpenMode::kCreateNew).status());
  }
  auto ledger = std::make_unique<SqlLedger>(*dialect);
  RETURN_IF_ERROR(ledger->Open(connection));
  return ledger;
}

absl::Status SqlLedger::Open(const std::string& connection) {
  RETURN_IF_ERROR(Guard("open", [&] { dialect_.Connect(connection, &session_); }));
  return CreateSchema();
}

absl::Status SqlLedger::CreateSchema() {
  long long version = 0;
  RETURN_IF_ERROR(Guard("open", [&] {
    session_ << "CREATE TABLE IF NOT EXISTS counters (name VARCHAR(64) NOT NULL PRIMARY KEY, "
                "value BIGINT NOT NULL, note VARCHAR(64) NOT NULL)";
    session_ << "SELECT value FROM counters WHERE name = 'schema_version'", into(version);
  }));
  if (version > kSchemaVersion) {
    return FailedPrecondition("the ledger has schema version {}; this program knows {}: upgrade it",
                              version, kSchemaVersion);
  }
  if (version == kSchemaVersion) return absl::OkStatus();
  std::array<unsigned char, 16> secret;
  randombytes_buf(secret.data(), secret.size());
  const std::string secret_text =
      fmt::format("{:02x}", fmt::join(secret.begin(), secret.end(), ""));
  return Transact([&] {
    return Guard("create tables", [&] {
      CreateTables();
      session_ << "INSERT INTO counters (name, value, note) VALUES ('schema_version', 1, '')";
      session_ << "INSERT INTO counters (name, value, note) VALUES ('bill_serial', 0, '')";
      session_ << "INSERT INTO counters (name, value, note) VALUES ('inbox_id', 0, '')";
      session_ << "INSERT INTO counters (name, value, note) VALUES ('purge_line_ms', 0, '')";
      session_ << "INSERT INTO counters (name, value, note) VALUES ('secret', 0, :s)",
          use(secret_text);
    });
  });
}

void SqlLedger::CreateTables() {
  const std::string_view text = dialect_.text_type();
  const std::string_view longer = dialect_.long_text_type();
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
  std::string secret;
  RETURN_IF_ERROR(Guard("read", [&] {
    session_ << "SELECT note FROM counters WHERE name = 'secret'", into(secret);
  }));
  return secret;
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
    soci::statement statement =
        (session_.prepare << "INSERT INTO transactions (" << kRowColumns
                          << ") VALUES (:a, :b, :c, :d, :e, :f, :g, :h, :i, :j, :k, :l, :m, :n, "
                             ":o, :p, :q, :r)",
         use(row.serial), use(row.order_no), use(row.app_id), use(row.partner), use(row.event_ms),
         use(row.amount), use(row.status), use(row.state), use(row.origin, row.origin_indicator),
         use(row.verdict), use(row.claim_sequence), use(row.set), use(row.window),
         use(row.bill_serial), use(row.inbox_id), use(row.content), use(row.member), use(row.kept));
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
    session_ << "UPDATE transactions SET order_no = :b, app_id = :c, partner = :d, event_ms = :e, "
                "amount = :f, status = :g, state = :h, origin = :i, verdict = :j, "
                "claim_sequence = :k, set_name = :l, window_id = :m, bill_serial = :n, "
                "inbox_id = :o, content = :p, member = :q, kept = :r WHERE biz_seq_no = :a",
        use(row.order_no), use(row.app_id), use(row.partner), use(row.event_ms), use(row.amount),
        use(row.status), use(row.state), use(row.origin, row.origin_indicator), use(row.verdict),
        use(row.claim_sequence), use(row.set), use(row.window), use(row.bill_serial),
        use(row.inbox_id), use(row.content), use(row.member), use(row.kept), use(row.serial);
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
