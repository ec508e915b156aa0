// `bill run`: from transaction files to bill files, each billable transaction in exactly one.
//
// A pass takes all files of the inbox in name order, then closes every period whose end and grace
// time are over, writes its bill files, and purges what has been kept long enough.
//
// What makes a bill exact, whatever crashes when:
//   - a file of the inbox is registered in the ledger before it is touched, and taken again from
//   its
//     first row if it was not finished; rows whose serial is in the ledger keep the result there,
//     rows claimed but not yet in the ledger get REPEAT, the same result again;
//   - a transaction gets the serial of its bill file (the open one of its own period, or, when that
//     is closed, the next one) in the SQL transaction that records it;
//   - closing a period freezes the rows of its serial in one SQL transaction; the file is then
//     written from the ledger, and written again, byte by byte the same, until its marker is there;
//   - the age of a transaction is counted from the last closed period, not from the clock, so files
//     that waited through an outage are billed as ever; rows are purged by that same line, so a
//     transaction older than it, which the ledger can no longer know, is never billed unasked.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "billing/config.h"

namespace firstseen {

struct BillRunOptions {
  bool once = false;              // one pass, instead of a service
  std::optional<absl::Time> now;  // stands for the clock; only with `once`
  // Take ledger, data directory and configuration as they are; see ledger_tie.h.
  bool accept_ledger = false;
  // Set by the handler of SIGTERM: the file in hand is finished, then RunBilling returns OK.
  const std::atomic<bool>* stop = nullptr;
  // Called before each step that changes anything outside of memory, with its name; an error stops
  // the run as if the machine had stopped there. For tests and for progress.
  std::function<absl::Status(std::string_view step)> step_hook;
  FileSystem* files = FileSystem::Posix();
};

struct BillRunReport {
  uint64_t files_done = 0;
  uint64_t files_failed = 0;  // unreadable as a whole
  uint64_t rows = 0;
  uint64_t rejected = 0;      // rows in failed/
  uint64_t billable = 0;      // origin 0
  uint64_t duplicates = 0;    // origin 5
  uint64_t again = 0;         // serials met before: retries and files taken again
  uint64_t not_counting = 0;  // by their status
  uint64_t held = 0;          // window closed, waiting
  uint64_t released = 0;      // reversed before their bill file
  uint64_t adjusted = 0;      // reversed after it
  uint64_t late = 0;          // of the billable: their own period's file was closed already
  uint64_t bill_files = 0;
  uint64_t empty_bill_files = 0;  // of them
  uint64_t adjustment_files = 0;
  uint64_t billed_rows = 0;  // in these files
  uint64_t empty_periods_left_out = 0;
  uint64_t purged_rows = 0;
  uint64_t removed_files = 0;  // over their retention, in done/ and bills/
  double seconds = 0;
};

// InvalidArgument: options or configuration do not fit: a set is missing or differs, a setting that
// the ledger rests on was changed. FailedPrecondition: another process runs on the same data (names
// it), the ledger or a file taken in part is gone. A bad row or file is no error: see the report
// and failed/.
absl::StatusOr<BillRunReport> RunBilling(const BillingConfig& config,
                                         const BillRunOptions& options);

struct ResendOptions {
  std::string partner;
  std::string period;  // its start: any accepted event time, or yyyyMMddHHmm
  FileSystem* files = FileSystem::Posix();
};
struct ResendReport {
  std::string file;  // path of the new file
  int64_t serial = 0;
  int64_t original_serial = 0;
  uint64_t rows = 0;
  std::string total;
};
// Writes the archived rows of a period's bill file again under a new serial. May run beside the
// service. InvalidArgument: no such partner, no period; NotFound: no such file (any more);
// DataLoss: the archived file is not what was written; FailedPrecondition: another one is at it.
absl::StatusOr<ResendReport> ResendBill(const BillingConfig& config, const ResendOptions& options);

}  // namespace firstseen
