// Decision files: what was decided of each row of a transaction file, beside it in done/.
//
//   firstseen-decisions 2 <tab> INBOX_ID
//   line <tab> biz_seq_no <tab> decision <tab> origin <tab> verdict <tab> claim_sequence <tab>
//       set <tab> window <tab> bill_serial <tab> bill_period
//   ...
//   end <tab> ROWS <tab> INPUT_BYTES <tab> INPUT_SHA256 <tab> SHA256
//
// INPUT_* are of the transaction file as it is in done/ (0 and '-' when there is none), SHA256 is
// of all bytes of this file before it.
//
// One line a row, in the file's order; no names, no ids. `origin` is 0, 5 or empty; `bill_period`
// is the start of the period whose file has the row, in epoch milliseconds, or empty. Inbox ids
// ascend in the order in which files were taken: (inbox id, line) is the order of all decisions.
// Rows that were held and decided later have a file of their own, held-ID.decisions, with line 0.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file.h"
#include "billing/ledger.h"
#include "billing/output_file.h"
#include "billing/sha256.h"

namespace firstseen {

enum class DecisionKind {
  kBill,         // origin 0
  kDuplicate,    // origin 5
  kHeld,         // waits for a closed window
  kNotCounting,  // by its status
  kReversed,     // a transaction whose reversal came before it
  kRelease,      // a reversal: the transaction is in no bill file, its claim released
  kUnbilled,     // a reversal of a transaction that was not to be billed anyway
  kAdjust,       // a reversal of a transaction that is in a bill file: goes to an adjustments file
  kNote,         // a reversal whose transaction has not come yet
  kFailed,       // a bad row: in failed/
};

struct Decision {
  uint64_t line = 0;
  std::string serial;  // empty for some bad rows
  DecisionKind kind = DecisionKind::kFailed;
  int origin = kOriginNone;
  LedgerVerdict verdict = LedgerVerdict::kNone;
  int64_t claim_sequence = 0;
  std::string set;
  int64_t window = 0;
  int64_t bill_serial = 0;
  int64_t bill_period_ms = 0;  // only with bill_serial
};

inline constexpr std::string_view kDecisionsSuffix = ".decisions";

std::string FormatDecision(const Decision& decision);

// Writes one decision file, whole or not at all.
class DecisionsWriter {
 public:
  // `path` without the suffix: that of the transaction file in done/.
  static absl::StatusOr<std::unique_ptr<DecisionsWriter>> Create(FileSystem* files,
                                                                 const std::string& path,
                                                                 int64_t inbox_id);
  absl::Status Append(const Decision& decision);
  // `input`: of the transaction file; of a file of held rows, which has none, as it is by default.
  // The directory is left to be synced.
  absl::Status Commit(const FileDigest& input);

 private:
  explicit DecisionsWriter(std::unique_ptr<OutputFile> file) : file_(std::move(file)) {}
  absl::Status Put(std::string_view text);

  std::unique_ptr<OutputFile> file_;
  Sha256 sha256_;
  uint64_t rows_ = 0;
};

// InvalidArgument says what is wrong, not where.
absl::StatusOr<int64_t> ParseDecisionsHeader(std::string_view line);
absl::StatusOr<Decision> ParseDecision(std::string_view line);

// Calls `decision` for each line and returns what the file says of its transaction file. DataLoss
// names the file, the line and the remedy when it is not a decision file, or not whole: what
// `decision` was told until then must not be used.
absl::StatusOr<FileDigest> ReadDecisions(
    FileSystem* files, const std::string& path,
    const std::function<absl::Status(int64_t inbox_id, const Decision&)>& decision);

// The transaction files in `directory` (done/) without a decision file beside them, and decision
// files of `expected` (names of transaction files) that are not there; names without the suffix,
// sorted.
absl::StatusOr<std::vector<std::string>> FilesWithoutDecisions(
    FileSystem* files, const std::string& directory, std::span<const std::string> expected);

// The decisions (bill, duplicate, held, release) on `serials` found in all decision files of
// `directory`, the latest of each. Reads them all: for the rare row that the ledger is too young
// to know. DataLoss, with the remedy, when one of them is damaged or missing (`expected` as above):
// then nothing is known of any serial.
absl::StatusOr<absl::flat_hash_map<std::string, Decision>> FindDecisions(
    FileSystem* files, const std::string& directory, std::span<const std::string> expected,
    const absl::flat_hash_set<std::string>& serials);

}  // namespace firstseen
