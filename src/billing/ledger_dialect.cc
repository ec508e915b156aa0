#include "billing/ledger_dialect.h"

#include <soci/soci.h>
#include <soci/sqlite3/soci-sqlite3.h>

#include "base/status.h"

namespace firstseen {
namespace {

constexpr std::string_view kSqlitePrefix = "sqlite3://";

class SqliteDialect : public LedgerDialect {
 public:
  void Connect(std::string_view connection, soci::session* session) const override {
    // The other process that may write at the same time is `bill resend`: it is soon done.
    session->open(soci::sqlite3, fmt::format("db=\"{}\" timeout=30", DatabaseFile(connection)));
    *session << "PRAGMA journal_mode = WAL";
    *session << "PRAGMA synchronous = FULL";
    *session << "PRAGMA temp_store = MEMORY";
    *session << "PRAGMA cache_size = -65536";
    *session << "PRAGMA secure_delete = ON";
  }
  std::string DatabaseFile(std::string_view connection) const override {
    return std::string(connection.substr(kSqlitePrefix.size()));
  }
  // A deferred transaction that writes after it has read fails at once when another one wrote in
  // between; an immediate one waits.
  std::string_view begin() const override { return "BEGIN IMMEDIATE"; }
  std::string_view count_tables() const override {
    return "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name";
  }
  std::string_view text_type() const override { return "TEXT"; }
  std::string_view long_text_type() const override { return "TEXT"; }
};

}  // namespace

absl::StatusOr<const LedgerDialect*> LedgerDialect::Find(std::string_view connection) {
  static const SqliteDialect* const sqlite = new SqliteDialect();
  if (connection.starts_with(kSqlitePrefix)) return sqlite;
  return InvalidArgument("the ledger's connection must begin with {}", kSqlitePrefix);
}

}  // namespace firstseen
