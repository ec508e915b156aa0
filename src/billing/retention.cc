#include "billing/retention.h"

#include <spdlog/spdlog.h>

#include <string>
#include <vector>

#include "base/status.h"
#include "billing/bill_file.h"
#include "billing/decisions.h"
#include "billing/output_file.h"

namespace firstseen {
namespace {

constexpr int64_t kBatch = 500;

absl::Status PurgeRows(const RunContext& context) {
  const int64_t line_ms = context.book->TooOldBefore();
  if (line_ms <= 0) return absl::OkStatus();
  RETURN_IF_ERROR(context.Step("purge"));
  ASSIGN_OR_RETURN(const int64_t purged, context.ledger->Purge(line_ms));
  if (purged == 0) return absl::OkStatus();
  context.book->set_purge_line(line_ms);
  context.report->purged_rows += purged;
  spdlog::info("{} ledger rows purged", purged);
  return absl::OkStatus();
}

absl::Status RemoveDoneFiles(const RunContext& context, int64_t before_ms) {
  while (true) {
    ASSIGN_OR_RETURN(const std::vector<InboxFileRow> old,
                     context.ledger->ClosedFiles(before_ms, kBatch));
    if (old.empty()) return absl::OkStatus();
    for (const InboxFileRow& file : old) {
      RETURN_IF_ERROR(context.Step("remove done file"));
      const std::string path = context.config.inbox.done + "/" + file.stored_name;
      RETURN_IF_ERROR(RemoveIfThere(context.files, path));
      RETURN_IF_ERROR(RemoveIfThere(context.files, path + std::string(kDecisionsSuffix)));
      RETURN_IF_ERROR(context.ledger->ForgetFile(file.id));
      ++context.report->removed_files;
    }
  }
}

absl::Status RemoveBills(const RunContext& context, int64_t before_ms) {
  RETURN_IF_ERROR(context.ledger->ForgetAdjustments(before_ms));
  while (true) {
    ASSIGN_OR_RETURN(const std::vector<BillRow> old,
                     context.ledger->WrittenBills(before_ms, kBatch));
    if (old.empty()) return absl::OkStatus();
    for (const BillRow& bill : old) {
      RETURN_IF_ERROR(context.Step("remove bill file"));
      const std::string path = context.config.bills.directory + "/" + bill.file;
      // The marker goes first: what is half removed is not there.
      for (const std::string& name :
           {path + std::string(kMarkerSuffix), path + std::string(kSha256Suffix), path}) {
        RETURN_IF_ERROR(RemoveIfThere(context.files, name));
      }
      RETURN_IF_ERROR(context.ledger->ForgetBill(bill.serial));
      ++context.report->removed_files;
    }
  }
}

}  // namespace

absl::Status ApplyRetention(const RunContext& context, absl::Time now) {
  RETURN_IF_ERROR(PurgeRows(context));
  RETURN_IF_ERROR(RemoveDoneFiles(
      context, absl::ToUnixMillis(now - absl::Hours(24 * context.config.inbox.done_keep_days))));
  return RemoveBills(context,
                     absl::ToUnixMillis(now - absl::Hours(24 * context.config.bills.keep_days)));
}

}  // namespace firstseen
