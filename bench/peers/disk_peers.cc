// Embedded key-value stores on disk. Each is asked what firstseen is asked, is this key new, so an
// add is a look and, for new keys, a write.
#include <lmdb.h>
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>
#include <sqlite3.h>

#include <cstring>
#include <filesystem>

#include "base/status.h"
#include "peers/peer.h"

namespace firstseen {
namespace {

// Sixteen bytes in the order of the number.
struct KeyBytes {
  explicit KeyBytes(const Fingerprint& key) {
    const uint64_t words[2] = {__builtin_bswap64(key.hi), __builtin_bswap64(key.lo)};
    std::memcpy(bytes, words, sizeof(bytes));
  }
  char bytes[16];
};

class RocksPeer : public Peer {
 public:
  absl::Status Open(const std::string& directory) override {
    rocksdb::BlockBasedTableOptions table;
    table.filter_policy.reset(rocksdb::NewRibbonFilterPolicy(10));
    table.block_cache = rocksdb::NewLRUCache(256 << 20);
    rocksdb::Options options;
    options.create_if_missing = true;
    options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
    options.IncreaseParallelism(2);
    rocksdb::DB* opened = nullptr;
    const absl::Status status = Check(rocksdb::DB::Open(options, directory, &opened));
    db_.reset(opened);
    return status;
  }
  absl::StatusOr<uint64_t> Add(std::span<const Fingerprint> keys) override {
    Look(keys);
    rocksdb::WriteBatch batch;
    uint64_t added = 0;
    for (size_t i = 0; i < keys.size(); ++i) {
      if (found_[i].ok()) continue;
      RETURN_IF_ERROR(CheckFound(found_[i]));
      RETURN_IF_ERROR(Check(batch.Put(slices_[i], rocksdb::Slice())));
      ++added;
    }
    RETURN_IF_ERROR(Check(db_->Write(write_, &batch)));
    return added;
  }
  absl::StatusOr<uint64_t> CountPresent(std::span<const Fingerprint> keys) override {
    Look(keys);
    uint64_t present = 0;
    for (const rocksdb::Status& status : found_) {
      RETURN_IF_ERROR(CheckFound(status));
      present += status.ok() ? 1 : 0;
    }
    return present;
  }
  bool lasting() const override { return true; }
  absl::Status MakeAddsDurable() override {
    write_.sync = true;
    return absl::OkStatus();
  }
  absl::Status Settle() override {
    RETURN_IF_ERROR(Check(db_->Flush(rocksdb::FlushOptions())));
    return Check(db_->CompactRange(rocksdb::CompactRangeOptions(), nullptr, nullptr));
  }
  absl::Status Close() override {
    values_.clear();  // they pin what is in the database's cache
    const absl::Status status = Check(db_->Close());
    db_.reset();
    return status;
  }

 private:
  static absl::Status Check(const rocksdb::Status& status) {
    return status.ok() ? absl::OkStatus() : Internal("RocksDB: {}", status.ToString());
  }
  static absl::Status CheckFound(const rocksdb::Status& status) {
    return status.IsNotFound() ? absl::OkStatus() : Check(status);
  }
  void Look(std::span<const Fingerprint> keys) {
    bytes_.clear();
    for (const Fingerprint& key : keys) bytes_.emplace_back(key);
    slices_.clear();
    for (const KeyBytes& key : bytes_) slices_.emplace_back(key.bytes, sizeof(key.bytes));
    values_.clear();
    values_.resize(keys.size());
    found_.assign(keys.size(), rocksdb::Status());
    db_->MultiGet(rocksdb::ReadOptions(), db_->DefaultColumnFamily(), keys.size(), slices_.data(),
                  values_.data(), found_.data());
  }

  std::unique_ptr<rocksdb::DB> db_;
  rocksdb::WriteOptions write_;
  std::vector<KeyBytes> bytes_;
  std::vector<rocksdb::Slice> slices_;
  std::vector<rocksdb::PinnableSlice> values_;
  std::vector<rocksdb::Status> found_;
};

class LmdbPeer : public Peer {
 public:
  ~LmdbPeer() override { mdb_env_close(env_); }
  absl::Status Open(const std::string& directory) override {
    std::filesystem::create_directories(directory);
    RETURN_IF_ERROR(Check(mdb_env_create(&env_)));
    RETURN_IF_ERROR(Check(mdb_env_set_mapsize(env_, size_t{256} << 30)));
    RETURN_IF_ERROR(Check(mdb_env_open(env_, directory.c_str(), MDB_NOSYNC, 0600)));
    return InTransaction(0,
                         [this](MDB_txn* txn) { return mdb_dbi_open(txn, nullptr, 0, &table_); });
  }
  absl::StatusOr<uint64_t> Add(std::span<const Fingerprint> keys) override {
    uint64_t added = 0;
    RETURN_IF_ERROR(InTransaction(0, [&](MDB_txn* txn) {
      for (const Fingerprint& key : keys) {
        KeyBytes bytes(key);
        MDB_val name{sizeof(bytes.bytes), bytes.bytes};
        MDB_val nothing{0, nullptr};
        const int result = mdb_put(txn, table_, &name, &nothing, MDB_NOOVERWRITE);
        if (result != 0 && result != MDB_KEYEXIST) return result;
        added += result == 0 ? 1 : 0;
      }
      return 0;
    }));
    return added;
  }
  absl::StatusOr<uint64_t> CountPresent(std::span<const Fingerprint> keys) override {
    uint64_t present = 0;
    RETURN_IF_ERROR(InTransaction(MDB_RDONLY, [&](MDB_txn* txn) {
      for (const Fingerprint& key : keys) {
        KeyBytes bytes(key);
        MDB_val name{sizeof(bytes.bytes), bytes.bytes};
        MDB_val value;
        const int result = mdb_get(txn, table_, &name, &value);
        if (result != 0 && result != MDB_NOTFOUND) return result;
        present += result == 0 ? 1 : 0;
      }
      return 0;
    }));
    return present;
  }
  bool lasting() const override { return true; }
  absl::Status MakeAddsDurable() override { return Check(mdb_env_set_flags(env_, MDB_NOSYNC, 0)); }
  absl::Status Close() override {
    RETURN_IF_ERROR(Check(mdb_env_sync(env_, 1)));
    mdb_env_close(env_);
    env_ = nullptr;
    return absl::OkStatus();
  }

 private:
  static absl::Status Check(int result) {
    return result == 0 ? absl::OkStatus() : Internal("LMDB: {}", mdb_strerror(result));
  }
  template <typename F>
  absl::Status InTransaction(unsigned flags, F f) {
    MDB_txn* txn = nullptr;
    RETURN_IF_ERROR(Check(mdb_txn_begin(env_, nullptr, flags, &txn)));
    const int result = f(txn);
    if (result != 0) {
      mdb_txn_abort(txn);
      return Check(result);
    }
    return Check(mdb_txn_commit(txn));
  }

  MDB_env* env_ = nullptr;
  MDB_dbi table_ = 0;
};

class SqlitePeer : public Peer {
 public:
  ~SqlitePeer() override { Close().IgnoreError(); }
  absl::Status Open(const std::string& directory) override {
    std::filesystem::create_directories(directory);
    RETURN_IF_ERROR(Check(sqlite3_open((directory + "/keys.db").c_str(), &db_)));
    RETURN_IF_ERROR(
        Run("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;"
            "PRAGMA cache_size = -262144;"  // KiB
            "CREATE TABLE IF NOT EXISTS keys(k BLOB PRIMARY KEY) WITHOUT ROWID"));
    RETURN_IF_ERROR(Prepare("INSERT OR IGNORE INTO keys VALUES (?)", &insert_));
    return Prepare("SELECT 1 FROM keys WHERE k = ?", &select_);
  }
  absl::StatusOr<uint64_t> Add(std::span<const Fingerprint> keys) override {
    RETURN_IF_ERROR(Run("BEGIN IMMEDIATE"));
    const int before = sqlite3_total_changes(db_);
    for (const Fingerprint& key : keys) RETURN_IF_ERROR(Step(insert_, key).status());
    RETURN_IF_ERROR(Run("COMMIT"));
    return static_cast<uint64_t>(sqlite3_total_changes(db_) - before);
  }
  absl::StatusOr<uint64_t> CountPresent(std::span<const Fingerprint> keys) override {
    RETURN_IF_ERROR(Run("BEGIN"));
    uint64_t present = 0;
    for (const Fingerprint& key : keys) {
      ASSIGN_OR_RETURN(const bool row, Step(select_, key));
      present += row ? 1 : 0;
    }
    RETURN_IF_ERROR(Run("COMMIT"));
    return present;
  }
  bool lasting() const override { return true; }
  absl::Status MakeAddsDurable() override { return Run("PRAGMA synchronous = FULL"); }
  absl::Status Settle() override { return Run("PRAGMA wal_checkpoint(TRUNCATE)"); }
  absl::Status Close() override {
    sqlite3_finalize(insert_);
    sqlite3_finalize(select_);
    const int result = sqlite3_close(db_);
    insert_ = nullptr;
    select_ = nullptr;
    db_ = nullptr;
    return Check(result);
  }

 private:
  absl::Status Check(int result) const {
    if (result == SQLITE_OK) return absl::OkStatus();
    return Internal("SQLite: {}", db_ != nullptr ? sqlite3_errmsg(db_) : sqlite3_errstr(result));
  }
  absl::Status Run(const char* sql) {
    return Check(sqlite3_exec(db_, sql, nullptr, nullptr, nullptr));
  }
  absl::Status Prepare(const char* sql, sqlite3_stmt** statement) {
    return Check(sqlite3_prepare_v2(db_, sql, -1, statement, nullptr));
  }
  // True when there was a row.
  absl::StatusOr<bool> Step(sqlite3_stmt* statement, const Fingerprint& key) {
    const KeyBytes bytes(key);
    RETURN_IF_ERROR(
        Check(sqlite3_bind_blob(statement, 1, bytes.bytes, sizeof(bytes.bytes), SQLITE_TRANSIENT)));
    const int result = sqlite3_step(statement);
    if (result != SQLITE_ROW && result != SQLITE_DONE) return Check(result);
    RETURN_IF_ERROR(Check(sqlite3_reset(statement)));
    return result == SQLITE_ROW;
  }

  sqlite3* db_ = nullptr;
  sqlite3_stmt* insert_ = nullptr;
  sqlite3_stmt* select_ = nullptr;
};

}  // namespace

std::vector<PeerKind> DiskPeers() {
  return {
      {"RocksDB", "128 bits, ribbon filter, WAL", MakePeer<RocksPeer>},
      {"LMDB", "128 bits", MakePeer<LmdbPeer>},
      {"SQLite WITHOUT ROWID", "128 bits, WAL", MakePeer<SqlitePeer>},
  };
}

}  // namespace firstseen
