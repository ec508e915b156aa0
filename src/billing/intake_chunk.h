// Some thousands of rows of one inbox file: judged, claimed, recorded, settled.
//
//   rows --> classified against the ledger --> claimed (Store) --> recorded (ledger, one SQL
//   transaction) --> settled (Store)
//
// Rows take effect in the order of the file. Claims are collected, and releases (reversals) behind
// them; both are done together, claims first, before a row that claims a member to be released.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "billing/decisions.h"
#include "billing/ledger.h"
#include "billing/run_context.h"
#include "billing/transactions.h"
#include "store/embedded_store.h"

namespace firstseen {

class IntakeChunk {
 public:
  struct Row {
    uint64_t line = 0;
    std::string raw;
    absl::Status status;  // once processed: why the row goes to failed/
    std::string column;
    Transaction transaction;
    Decision decision;  // once processed
  };

  IntakeChunk(const RunContext& context, int64_t inbox_id)
      : context_(context), inbox_id_(inbox_id) {}

  void Add(InboxRow&& row);
  size_t size() const { return rows_.size(); }
  bool full() const;

  // An error is the run's (disk, store, ledger), never a row's.
  absl::Status Process();
  const std::vector<Row>& rows() const { return rows_; }

 private:
  static constexpr size_t kNoEntry = ~size_t{0};
  static constexpr size_t kRawBytesMax = 16 << 20;

  // A transaction met in this chunk.
  struct Entry {
    LedgerRow row;
    bool in_ledger = false;
    bool changed = false;
    bool claiming = false;                     // in claims_, no answer yet
    bool releasing = false;                    // in releases_
    bool was_held = false;                     // its member is in held_members
    const Transaction* transaction = nullptr;  // of the row it was first met in, or nullptr
    absl::Status status;                       // why the claim was refused
    std::string column;
  };
  // A reversal that waits for the claims before it.
  struct PendingRelease {
    size_t row;
    size_t entry;
    const Transaction* source;  // of the member's fields
  };
  // What a row's decision is made from, when all claims are answered.
  struct Judgement {
    size_t entry = kNoEntry;
    DecisionKind kind = DecisionKind::kFailed;
    bool by_entry = false;  // the kind follows from the entry
    bool again = false;
  };

  absl::Status LoadEntries();
  absl::Status LookUpDecisions();
  size_t Find(const std::string& serial) const;
  // Rejects row `i` when decision files that may know its serial cannot be read.
  bool RejectUnknowable(size_t i);
  absl::Status Judge(size_t i);
  absl::Status JudgeCounting(size_t i, const std::string& member);
  absl::Status JudgeAgain(size_t i, size_t entry, const std::string& member);
  absl::Status JudgeIgnored(size_t i);
  absl::Status JudgeReversal(size_t i, const std::string& member);
  absl::Status ReverseUnknown(size_t i);
  absl::Status ReleaseOrAdjust(size_t i, size_t entry, const std::string& member);
  absl::Status Adjust(size_t i, const LedgerRow& billed);
  size_t NewEntry(const Transaction& transaction, const std::string& member);
  void FillRow(const Transaction& transaction, const std::string& member, LedgerRow* row) const;
  void Reject(size_t i, absl::Status status, std::string column = {});

  // Claims, then releases, all that is collected.
  absl::Status Flush();
  absl::Status Release();
  absl::Status ReleaseInSet(const std::string& set, const std::vector<PendingRelease>& releases);
  absl::Status ClaimSet(const std::string& set, const std::vector<size_t>& entries);
  void TakeVerdict(const MemberResult& result, Entry* entry);
  absl::Status Record();
  absl::Status RecordEntry(Entry* entry, std::vector<const LedgerRow*>* inserts);
  absl::Status Settle();
  absl::Status Decide();
  absl::Status DecideRow(size_t i);

  const RunContext& context_;
  const int64_t inbox_id_;
  // As sets have it for their windows.
  const absl::Duration future_max_ = EmbeddedStoreOptions().future_max;
  std::vector<Row> rows_;
  size_t raw_bytes_ = 0;
  std::vector<Judgement> judgements_;
  std::vector<Entry> entries_;
  absl::flat_hash_map<std::string, size_t> by_serial_;
  absl::flat_hash_map<std::string, std::vector<size_t>> claims_;  // entries by set
  std::vector<PendingRelease> releases_;
  absl::flat_hash_set<std::string> released_members_;  // of releases_
  absl::flat_hash_map<std::string, Decision> old_decisions_;
  // Serials that only decision files can know, and why these could not be read.
  absl::flat_hash_set<std::string> unknowable_;
  absl::Status decisions_fault_;
  std::vector<AdjustmentRow> adjustments_;
  absl::flat_hash_set<std::string> adjusted_;
};

}  // namespace firstseen
