// Bill files, adjustments files and resent files: how they look, and how they are read back.
//
//   H|KIND|PARTNER|PERIOD_START|PERIOD_END|SERIAL|ORIGINAL_SERIAL
//   column|column|...
//   value|value|...          rows in the order of event time, then serial
//   T|ROWS|TOTAL
//
// UTF-8, '\n' after every line, '|' stands for bills.delimiter, no quoting: values that hold the
// delimiter or a control character are refused when they come in. KIND is bill, adjustments or
// resend; ORIGINAL_SERIAL is 0 but for resend. Times are RFC 3339. TOTAL is the exact sum of the
// column `amount`.
//
// Beside NAME stand NAME.sha256 ("<hex>  <file name>", as sha256sum prints it) and, written last,
// NAME.ok: without it the file is not there yet.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file.h"
#include "billing/amount.h"
#include "billing/config.h"
#include "billing/ledger.h"
#include "billing/output_file.h"
#include "billing/sha256.h"
#include "ingest/row_reader.h"

namespace firstseen {

inline constexpr std::string_view kSha256Suffix = ".sha256";
inline constexpr std::string_view kMarkerSuffix = ".ok";
inline constexpr std::string_view kMarkerContent = "ok\n";

std::string_view BillKindName(BillKind kind);

// Whether a name below bills.directory is of something beside a bill file (.ok, .sha256,
// unfinished).
bool IsBesideBill(std::string_view name);

// The name of a bill's file below bills.directory.
std::string BillFileName(const BillsConfig& bills, absl::TimeZone zone, const BillRow& bill);

// Writes one file; the columns are bills.columns, for adjustments followed by reversal_time and
// billed_serial.
class BillFileWriter {
 public:
  static absl::StatusOr<std::unique_ptr<BillFileWriter>> Create(FileSystem* files,
                                                                const BillingConfig& config,
                                                                const BillRow& bill,
                                                                std::optional<char> delimiter = {});
  absl::Status Append(const LedgerRow& row);
  absl::Status Append(const AdjustmentRow& row);
  // A row of another file, as it is there (resend).
  absl::Status AppendRaw(std::string_view line, AmountUnits amount);
  // The column line of another file, with its delimiter, instead of the configuration's; before any
  // row.
  absl::Status SetColumns(std::string_view line);

  // Writes the trailer, syncs and renames; fills rows, total and sha256 of *bill.
  absl::Status Commit(BillRow* bill);

 private:
  BillFileWriter(const BillingConfig& config, char delimiter, std::unique_ptr<OutputFile> file)
      : config_(config), delimiter_(delimiter), file_(std::move(file)) {}
  absl::Status Put(std::string_view text);
  absl::Status BeginRows();
  absl::Status AppendValues(const LedgerRow& row);

  const BillingConfig& config_;
  const char delimiter_;
  std::unique_ptr<OutputFile> file_;
  Sha256 sha256_;
  std::string columns_;  // the line, until it is written
  std::string line_;
  uint64_t rows_ = 0;
  AmountUnits total_ = 0;
};

// The content of NAME.sha256.
std::string Sha256Line(const std::string& path, std::string_view sha256);

struct BillFileHeader {
  BillKind kind = BillKind::kBill;
  std::string partner;
  int64_t period_ms = 0;
  int64_t period_end_ms = 0;
  int64_t serial = 0;
  int64_t original = 0;
  std::string columns_line;
  std::vector<std::string> columns;
};

// Reads a file back and checks all that it says of itself.
class BillFileReader {
 public:
  // DataLoss: not a bill file; NotFound: no file.
  static absl::StatusOr<std::unique_ptr<BillFileReader>> Open(FileSystem* files,
                                                              const std::string& path,
                                                              absl::TimeZone zone, int decimals);
  const BillFileHeader& header() const { return header_; }
  char delimiter() const { return delimiter_; }
  // Position of a column; the number of columns when there is none.
  size_t Column(std::string_view name) const;

  // False at the trailer, when it and the end of the file are as they should be. DataLoss
  // otherwise, naming file and line.
  absl::StatusOr<bool> Next();
  const std::vector<std::string_view>& values() const { return values_; }
  std::string_view line() const { return current_; }
  AmountUnits amount() const { return amount_; }

  // After Next gave false.
  uint64_t rows() const { return rows_; }
  AmountUnits total() const { return total_; }
  const std::string& sha256() const { return sha256_; }

 private:
  BillFileReader(FileSystem* files, std::string path, int decimals)
      : files_(files), path_(std::move(path)), decimals_(decimals) {}
  absl::Status ReadHeader(absl::TimeZone zone);
  // Moves on by one line: current_ is the line before, next_ the one after it, if any.
  absl::StatusOr<bool> Advance();
  absl::Status CheckTrailer();

  FileSystem* files_;
  std::string path_;
  int decimals_;
  std::unique_ptr<LineReader> lines_;
  std::string current_;
  uint64_t current_number_ = 0;
  std::optional<std::string> next_;  // the last line of all is the trailer
  char delimiter_ = '|';
  BillFileHeader header_;
  std::vector<std::string_view> values_;
  AmountUnits amount_ = 0;
  AmountUnits total_ = 0;
  uint64_t rows_ = 0;
  std::string sha256_;
};

// FailedPrecondition: no marker; DataLoss: the marker or NAME.sha256 is not what was written.
absl::Status CheckSha256(FileSystem* files, const std::string& path, std::string_view sha256);

}  // namespace firstseen
