// Reads everything that `bill verify` compares and hands it to the two sorts.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "billing/config.h"
#include "billing/external_sort.h"
#include "billing/transactions.h"
#include "billing/verify.h"
#include "keys/member.h"

namespace firstseen {

class VerifyCollector {
 public:
  VerifyCollector(const BillingConfig& config, const VerifyOptions& options,
                  ExternalSorter* serials, ExternalSorter* members, VerifyReport* report);

  // Bill files into `serials`; checks each file as such.
  absl::Status ReadBills();
  // Decision files, and the transaction files in done/ or the export of them, into `serials`.
  absl::Status ReadTransactions();
  // History into `members`.
  absl::Status ReadHistory();

  // End of the last period that the partner has a bill file of, epoch milliseconds; 0 = none.
  int64_t ClosedUntil(const std::string& partner) const;

 private:
  absl::Status ReadBillDirectory(const std::string& directory);
  absl::Status ReadBillFile(const std::string& path);
  absl::Status ReadBillRows(const std::string& path, class BillFileReader* reader);
  void CheckResent();
  absl::Status CheckLedgerBills();
  absl::Status ReadDoneFile(const std::string& name, bool with_decisions);
  absl::Status ReadDecisionFile(const std::string& path, int64_t* inbox_id);
  absl::Status ReadTransactionFile(const InputFile& file, std::optional<int64_t> inbox_id);
  absl::Status AddTransaction(const InboxRow& row, std::optional<int64_t> inbox_id);
  absl::Status ReadHistoryFile(const InputFile& file, const SetConfig& set, int64_t set_position);
  absl::StatusOr<int64_t> HistorySet() const;
  void Progress(std::string_view phase, uint64_t rows);

  struct Resent {
    std::string path;
    int64_t original;
    uint64_t checksum;
  };

  const BillingConfig& config_;
  const VerifyOptions& options_;
  ExternalSorter* serials_;
  ExternalSorter* members_;
  VerifyReport* report_;
  TransactionSchema schema_;
  std::vector<MemberEncoder> encoders_;  // as config.sets
  std::vector<absl::TimeZone> zones_;    // likewise
  std::string member_;
  std::map<std::string, int64_t> closed_until_;
  absl::flat_hash_map<int64_t, uint64_t> row_checksums_;  // of bill files by serial
  std::vector<Resent> resent_;
};

// Notes one difference.
void AddFinding(std::string_view what, VerifyFinding* finding);

}  // namespace firstseen
