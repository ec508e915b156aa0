// Decision files: what was decided of each row of a transaction file, beside it in done/.
//
//   firstseen-decisions 1 <tab> INBOX_ID
//   line <tab> biz_seq_no <tab> decision <tab> origin <tab> verdict <tab> claim_sequence <tab>
//       set <tab> window <tab> bill_serial <tab> bill_period
//   ...
//   end
//
// One line a row, in the file's order; no names, no ids. `origin` is 0, 5 or empty; `bill_period`
// is the start of the period whose file has the row, in epoch milliseconds, or empty. Inbox ids
// ascend in the order in which files were taken: (inbox id, line) is the order of all decisions.
// Rows that were held and decided later have a file of their own, held-ID.decisions, with line 0.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file.h"
#include "billing/ledger.h"

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
std::string_view DecisionName(DecisionKind kind);

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

std::string FormatDecisionsHeader(int64_t inbox_id);
std::string FormatDecision(const Decision& decision);
// The last line, without which a file is cut.
inline constexpr std::string_view kDecisionsEnd = "end";
// InvalidArgument says what is wrong, not where.
absl::StatusOr<int64_t> ParseDecisionsHeader(std::string_view line);
absl::StatusOr<Decision> ParseDecision(std::string_view line);

// DataLoss names the file and line when it is not a decision file, or cut.
absl::Status ReadDecisions(
    FileSystem* files, const std::string& path,
    const std::function<absl::Status(int64_t inbox_id, const Decision&)>& decision);

// The decisions (bill, duplicate, held, release) on `serials` found in all decision files of
// `directory`, the latest of each. Reads them all: for the rare row that the ledger is too young
// to know.
absl::StatusOr<absl::flat_hash_map<std::string, Decision>> FindDecisions(
    FileSystem* files, const std::string& directory,
    const absl::flat_hash_set<std::string>& serials);

}  // namespace firstseen
