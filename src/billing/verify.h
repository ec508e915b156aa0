// `bill verify`: recomputes the bill from nothing but files, independently of engine, store and
// ledger, and compares.
//
// Read are the history, the transactions (done/, or the warehouse's export of them), the decision
// files beside done/ and the bill files. An external sort by serial joins what is known of each
// transaction; a second one by set, window and full normalised member (not a fingerprint) brings
// the history and the transactions of a member together in the order of their claims, and replays
// them. Memory is bounded by verify.memory_bytes, whatever the input's size; the sort's files are
// mode 0600 and unlinked as soon as they are open.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "billing/config.h"
#include "ingest/row_mapper.h"

namespace firstseen {

struct VerifyOptions {
  std::vector<std::string> history;  // files or Hive directories; as for `import`
  std::string history_set;           // empty = the only set there is in the configuration
  MappingOptions history_mapping;    // as for `import`; accept_windows too
  // Of each of `history`, where they differ; empty = that of history_mapping for all.
  std::vector<TextEncoding> history_encodings;
  // So many rows of the history may be unusable: those that `import` rejected too.
  uint64_t history_rejected_max = 0;
  // Empty = done/. Otherwise files or directories of transactions in the inbox's formats.
  std::vector<std::string> transactions;
  // How these look, where it is not as [inbox] says.
  std::optional<TextEncoding> transactions_encoding;
  std::optional<char> transactions_delimiter;
  // Stands for the clock: what is to be billed by then must be in a file.
  std::optional<absl::Time> now;
  FileSystem* files = FileSystem::Posix();
  std::function<void(std::string_view phase, uint64_t rows)> progress;
};

// A kind of difference: how many, and the serials (or bill file names) of the first of them.
struct VerifyFinding {
  static constexpr size_t kListed = 10'000;
  uint64_t count = 0;
  std::vector<std::string> listed;
};

struct VerifyReport {
  uint64_t history_rows = 0;
  uint64_t history_rejected = 0;
  uint64_t transaction_rows = 0;
  uint64_t transactions = 0;  // distinct serials that count
  uint64_t members = 0;       // distinct members and windows among them
  uint64_t bill_files = 0;
  uint64_t billed = 0;         // in exactly one bill file, and rightly
  uint64_t duplicate = 0;      // rightly left out
  uint64_t pending = 0;        // billable, period not closed yet
  uint64_t held = 0;           // waiting for a closed window
  uint64_t closed_window = 0;  // decided by the policy for closed windows, not by uniqueness
  uint64_t released = 0;
  uint64_t adjusted = 0;
  uint64_t adjustments_pending = 0;  // of them: not in an adjustments file yet
  uint64_t rejected = 0;             // in failed/

  VerifyFinding missing;          // billable by its decision, in no bill file
  VerifyFinding billed_twice;     // in more than one
  VerifyFinding wrongly_billed;   // in a bill file though history, an earlier claim, its status or
                                  // a reversal forbids it
  VerifyFinding wrongly_dropped;  // the first of its member, and marked a duplicate
  VerifyFinding undecided;        // transaction without decision
  VerifyFinding unknown;          // decision or bill row without transaction
  VerifyFinding altered;          // bill row differs from the transaction
  VerifyFinding adjustment_faults;  // adjustment missing, doubled or unasked
  VerifyFinding bad_files;   // no marker, sha256, trailer or order; damaged, missing or doubled
  VerifyFinding unreadable;  // rows of transaction files, and history files, with the reason
  // Rows of the history, likewise; wrong when they are more than history_rejected_max.
  VerifyFinding history_unreadable;
  uint64_t history_rejected_max = 0;

  bool ok() const;
  double seconds = 0;
};

// InvalidArgument: the options do not fit (columns, sets). Any other error means that nothing could
// be said (a disk that cannot be read); differences and unreadable files are in the report.
absl::StatusOr<VerifyReport> VerifyBills(const BillingConfig& config, const VerifyOptions& options);

}  // namespace firstseen
