// Closes periods and writes their bill files.
//
// Closing is one SQL transaction for a batch of periods: their bills are frozen, bills for empty
// periods made, waiting adjustments assigned, and the partner's next period set. The files are
// written afterwards from the ledger: all contents, then all .sha256, then all markers, each step
// durable before the next. A run that stops in between writes the files of closed bills again,
// byte by byte the same; a file whose marker is there is only looked at.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "billing/ledger.h"
#include "billing/run_context.h"

namespace firstseen {

class Closing {
 public:
  explicit Closing(const RunContext& context) : context_(context) {}

  // Writes the files of bills that an earlier run closed.
  absl::Status Recover();
  // Closes all periods whose end and grace time are over at `now`. Returns how many.
  absl::StatusOr<uint64_t> CloseUntil(absl::Time now);

 private:
  static constexpr size_t kBatch = 64;

  // Of one partner, up to and with period `last_ms`.
  absl::StatusOr<uint64_t> ClosePartner(const std::string& partner, int64_t last_ms);
  // Closes at most kBatch bills from *next_ms on, in one transaction; moves *next_ms.
  absl::StatusOr<std::vector<BillRow>> CloseBatch(const std::string& partner, int64_t last_ms,
                                                  int64_t* next_ms);
  absl::StatusOr<std::vector<BillRow>> PlanBatch(const std::string& partner, int64_t last_ms,
                                                 int64_t* next_ms);
  absl::Status FreezeBill(BillRow* bill, bool is_new);
  absl::Status AddAdjustments(const std::string& partner, int64_t period_ms,
                              std::vector<BillRow>* bills);

  absl::Status WriteFiles(std::vector<BillRow> bills);
  // Content and rename of one file, unless its marker is there already.
  absl::Status WriteContent(BillRow* bill);
  absl::Status ReadBack(BillRow* bill);
  // NAME + suffix for all bills, then their directories synced.
  absl::Status WriteBeside(const std::vector<BillRow>& bills, std::string_view suffix);
  absl::Status SyncDirectories(const std::vector<BillRow>& bills);
  void Count(const BillRow& bill);

  std::string Path(const BillRow& bill) const {
    return context_.config.bills.directory + "/" + bill.file;
  }

  const RunContext& context_;
};

}  // namespace firstseen
