// Reads transaction files: a line of column names and delimited rows, or NDJSON (.ndjson, .jsonl,
// also compressed: .ndjson.gz).
//
// A bad row is told by InboxRow::status, with the column and the remedy and never the value; the
// reader goes on with the next. An error of Open or Next is about the whole file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "billing/amount.h"
#include "billing/config.h"
#include "ingest/row_reader.h"

namespace firstseen {

enum class StatusClass { kCounting, kReversal, kIgnored };

struct Transaction {
  std::string serial;
  std::string order_no;
  std::string app_id;
  absl::Time event_time;
  AmountUnits amount = 0;
  std::string status;
  StatusClass status_class = StatusClass::kIgnored;
  const RuleConfig* rule = nullptr;        // in the BillingConfig
  const PartnerConfig* partner = nullptr;  // likewise
  // Of the member, in the set's order; none without a set. All there when the row counts; any may
  // be empty otherwise.
  std::vector<std::string> fields;
  std::vector<std::string> kept;  // ledger.keep_columns, in that order
};

struct InboxRow {
  uint64_t line = 0;
  std::string_view raw;  // as in the file, without the line end; valid until the next call
  absl::Status status;
  std::string column;  // that the status is about; empty = the row as a whole
  Transaction transaction;
};

// What a row must look like, made once from the configuration. Thread-safe after construction.
class TransactionSchema {
 public:
  // `config` must outlive the schema and the transactions read with it.
  explicit TransactionSchema(const BillingConfig& config);

  // Columns that are looked for in a file: the six of [inbox], then members' fields and kept ones.
  const std::vector<std::string>& columns() const { return columns_; }
  static constexpr size_t kRequired = 6;

  // Fills row->transaction, row->status and row->column from the values of columns(), which are
  // empty where the row has none.
  void Interpret(const std::vector<std::string_view>& values, InboxRow* row) const;
  const BillingConfig& config() const { return config_; }

 private:
  struct App {
    const RuleConfig* rule = nullptr;
    const PartnerConfig* partner = nullptr;
    std::vector<size_t> fields;  // positions in columns()
    bool opaque = true;          // fields are bytes, not text
  };

  size_t AddColumn(const std::string& name);
  absl::Status InterpretRow(const std::vector<std::string_view>& values, Transaction* out,
                            std::string* column) const;
  absl::Status CheckText(std::string_view value, size_t bytes_max) const;

  const BillingConfig& config_;
  std::vector<std::string> columns_;
  absl::flat_hash_map<std::string, App> apps_;
  absl::flat_hash_map<std::string, StatusClass> statuses_;
  std::vector<size_t> kept_;
};

class TransactionReader {
 public:
  virtual ~TransactionReader() = default;

  // InvalidArgument: no header, a required column missing or doubled, unreadable as text.
  static absl::StatusOr<std::unique_ptr<TransactionReader>> Open(FileSystem* files,
                                                                 const InputFile& file,
                                                                 const TransactionSchema& schema);
  // False at the end of the file.
  virtual absl::StatusOr<bool> Next(InboxRow* row) = 0;
  // The header line as it is in the file, with '\n'; empty for NDJSON. A file of bad rows begins
  // with it.
  virtual std::string_view header() const = 0;
};

// The name without .gz, .zst, .bz2 or .deflate.
std::string_view WithoutCompression(std::string_view name);

// The input file `path` alone, for Open.
InputFile PlainInput(const std::string& path);

}  // namespace firstseen
