// Reads everything that `bill verify` compares and hands it to the two sorts.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "billing/config.h"
#include "billing/external_sort.h"
#include "billing/sha256.h"
#include "billing/transactions.h"
#include "billing/verify.h"
#include "ingest/row_mapper.h"
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
  // Whether the file of the period that begins then must be there by now, written or not.
  bool IsOverdue(int64_t period_ms) const {
    return period_ms + (config_.bills.period_minutes * 60 + config_.bills.grace_seconds) * 1'000 +
               kWritingMs <=
           now_ms_;
  }

 private:
  // What a run may take to write the files of periods that are over.
  static constexpr int64_t kWritingMs = 10 * 60'000;

  // What a decision file says of its transaction file.
  struct DecidedFile {
    int64_t inbox_id = 0;
    FileDigest input;
    absl::flat_hash_set<uint64_t> failed_lines;
  };

  absl::Status ReadBillDirectory(const std::string& directory);
  absl::Status ReadBillFile(const std::string& path);
  absl::Status ReadBillRows(const std::string& path, class BillFileReader* reader);
  void CheckResent();
  absl::Status CheckLedgerBills();
  // Of the transaction file `name` in done/: its decisions, then, without an export, itself.
  absl::Status ReadDoneFile(const std::string& name);
  absl::Status ReadDecisionFile(const std::string& path, DecidedFile* decided);
  // That the file is what its decisions are about.
  absl::Status CheckDigest(const std::string& path, const FileDigest& input);
  // A difference in a file becomes a finding; other errors stay.
  absl::Status NoteFault(const absl::Status& status);
  // `decided`: what its decision file says; nullptr when it has none. Without it, rows have no
  // order, and may look as the options say.
  absl::Status ReadTransactionFile(const InputFile& file, const DecidedFile* decided);
  absl::Status AddTransaction(const InboxRow& row, std::optional<int64_t> inbox_id);
  absl::Status ReadHistoryFile(const InputFile& file, const MappingOptions& mapping,
                               int64_t set_position);
  absl::Status ReadHistoryRows(const InputFile& file, const MappingOptions& mapping,
                               int64_t set_position, RowMapper* mapper);
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
  const int64_t now_ms_;
  TransactionSchema schema_;
  BillingConfig export_config_;  // the configuration with the format of the export
  TransactionSchema export_schema_;
  std::vector<MemberEncoder> encoders_;  // as config.sets
  std::vector<absl::TimeZone> zones_;    // likewise
  std::string member_;
  std::map<std::string, int64_t> closed_until_;
  absl::flat_hash_map<int64_t, uint64_t> row_checksums_;  // of bill files by serial
  std::vector<Resent> resent_;
  std::vector<std::string> taken_;  // files that the ledger says have decisions
};

// Notes one difference; what would disturb a terminal is written as \\xNN.
void AddFinding(std::string_view what, VerifyFinding* finding);

}  // namespace firstseen
