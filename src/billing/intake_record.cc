// The second half of IntakeChunk: claims, ledger, settlement, decisions.
#include <algorithm>
#include <map>
#include <utility>

#include "absl/time/time.h"
#include "base/status.h"
#include "billing/intake_chunk.h"
#include "billing/verdict.h"

namespace firstseen {

absl::Status IntakeChunk::Flush() {
  for (auto& [set, entries] : claims_) {
    if (entries.empty()) continue;
    RETURN_IF_ERROR(ClaimSet(set, entries));
    entries.clear();
  }
  return Release();
}

absl::Status IntakeChunk::Release() {
  std::map<std::string, std::vector<PendingRelease>> by_set;
  for (const PendingRelease& release : releases_) {
    Entry& entry = entries_[release.entry];
    entry.releasing = false;
    if (!entry.status.ok()) {
      Reject(release.row,
             InvalidArgument("the transaction of this serial is a bad row itself; mend that first"),
             context_.config.inbox.serial_column);
      continue;
    }
    const bool owns =
        entry.row.verdict == LedgerVerdict::kFirst || entry.row.verdict == LedgerVerdict::kRepeat;
    if (owns) by_set[entry.row.set].push_back(release);
    entry.row.state = RowState::kReversed;
    judgements_[release.row].kind =
        entry.row.origin == kOriginBillable ? DecisionKind::kRelease : DecisionKind::kUnbilled;
  }
  releases_.clear();
  released_members_.clear();
  for (const auto& [set, releases] : by_set) RETURN_IF_ERROR(ReleaseInSet(set, releases));
  return absl::OkStatus();
}

absl::Status IntakeChunk::ReleaseInSet(const std::string& set,
                                       const std::vector<PendingRelease>& releases) {
  RETURN_IF_ERROR(context_.Step("release"));
  std::vector<std::vector<std::string_view>> fields(releases.size());
  std::vector<MemberRequest> requests(releases.size());
  std::vector<MemberResult> results(releases.size());
  for (size_t i = 0; i < releases.size(); ++i) {
    const LedgerRow& row = entries_[releases[i].entry].row;
    fields[i].assign(releases[i].source->fields.begin(), releases[i].source->fields.end());
    requests[i].fields = fields[i];
    requests[i].window = static_cast<WindowId>(row.window);
    requests[i].token = row.serial;
  }
  RETURN_IF_ERROR(context_.store->Remove(set, requests, results));
  for (const MemberResult& result : results) RETURN_IF_ERROR(result.status);
  return absl::OkStatus();
}

absl::Status IntakeChunk::ClaimSet(const std::string& set, const std::vector<size_t>& entries) {
  RETURN_IF_ERROR(context_.Step("claim"));
  std::vector<std::vector<std::string_view>> fields(entries.size());
  std::vector<MemberRequest> requests(entries.size());
  std::vector<MemberResult> results(entries.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    const Transaction& t = *entries_[entries[i]].transaction;
    fields[i].assign(t.fields.begin(), t.fields.end());
    requests[i].fields = fields[i];
    requests[i].time = t.event_time;
    requests[i].token = t.serial;
  }
  RETURN_IF_ERROR(context_.store->Claim(set, requests, results));
  for (size_t i = 0; i < entries.size(); ++i) {
    Entry& entry = entries_[entries[i]];
    entry.claiming = false;
    if (!results[i].status.ok()) {
      RETURN_IF_ERROR(RunErrorOf(results[i].status));
      entry.status = results[i].status;
      entry.changed = false;
      continue;
    }
    ApplyVerdict(results[i], entry.transaction->rule->closed_window, &entry.row);
  }
  return absl::OkStatus();
}

absl::Status IntakeChunk::RecordEntry(Entry* entry, std::vector<const LedgerRow*>* inserts) {
  LedgerRow& row = entry->row;
  if (row.state == RowState::kDecided && row.origin == kOriginBillable && row.bill_serial == 0) {
    const int64_t period_ms = context_.book->BillPeriod(row.partner, row.event_ms);
    if (period_ms != context_.book->PeriodOf(row.event_ms)) ++context_.report->late;
    ASSIGN_OR_RETURN(row.bill_serial, context_.book->OpenBill(row.partner, period_ms));
  }
  const bool holds = row.state == RowState::kHeld;
  if (holds && !entry->was_held) {
    RETURN_IF_ERROR(
        context_.ledger->HoldMember(row.serial, PackFields(entry->transaction->fields)));
  } else if (!holds && entry->was_held) {
    RETURN_IF_ERROR(context_.ledger->UnholdMember(row.serial));
  }
  if (entry->in_ledger) return context_.ledger->UpdateRow(row);
  inserts->push_back(&row);
  return absl::OkStatus();
}

absl::Status IntakeChunk::Record() {
  const bool changed = std::ranges::any_of(entries_, &Entry::changed) || !adjustments_.empty();
  if (!changed) return absl::OkStatus();
  RETURN_IF_ERROR(context_.Step("record"));
  return context_.ledger->Transact([this]() -> absl::Status {
    std::vector<const LedgerRow*> inserts;
    for (Entry& entry : entries_) {
      if (entry.changed) RETURN_IF_ERROR(RecordEntry(&entry, &inserts));
    }
    RETURN_IF_ERROR(context_.ledger->InsertRows(inserts));
    for (const AdjustmentRow& adjustment : adjustments_) {
      RETURN_IF_ERROR(context_.ledger->InsertAdjustment(adjustment));
    }
    return absl::OkStatus();
  });
}

// All claims of this chunk, also those found in the ledger: a run may have stopped between the two.
absl::Status IntakeChunk::Settle() {
  absl::flat_hash_map<std::string, std::vector<std::string_view>> tokens;
  for (const Entry& entry : entries_) {
    const LedgerRow& row = entry.row;
    if (row.state == RowState::kDecided && row.inbox_id == inbox_id_ &&
        (row.verdict == LedgerVerdict::kFirst || row.verdict == LedgerVerdict::kRepeat)) {
      tokens[row.set].push_back(row.serial);
    }
  }
  for (const auto& [set, list] : tokens) {
    RETURN_IF_ERROR(context_.Step("settle"));
    RETURN_IF_ERROR(context_.store->Settle(set, list).status());
  }
  return absl::OkStatus();
}

absl::Status IntakeChunk::Decide() {
  for (size_t i = 0; i < rows_.size(); ++i) RETURN_IF_ERROR(DecideRow(i));
  return absl::OkStatus();
}

absl::Status IntakeChunk::DecideRow(size_t i) {
  Row& row = rows_[i];
  const Judgement& judgement = judgements_[i];
  Decision& decision = row.decision;
  BillRunReport& report = *context_.report;
  ++report.rows;
  const Entry* entry = judgement.entry == kNoEntry ? nullptr : &entries_[judgement.entry];
  if (row.status.ok() && entry != nullptr && !entry->status.ok()) row.status = entry->status;
  decision.line = row.line;
  decision.serial = row.transaction.serial;
  if (!row.status.ok()) {
    decision.kind = DecisionKind::kFailed;
    ++report.rejected;
    return absl::OkStatus();
  }
  decision.kind = judgement.kind;
  if (entry != nullptr) {
    FillDecision(entry->row, &decision);
    if (!judgement.by_entry) decision.kind = judgement.kind;
  }
  if (decision.bill_serial != 0) {
    ASSIGN_OR_RETURN(decision.bill_period_ms, context_.book->PeriodOfBill(decision.bill_serial));
  }
  if (judgement.again) {
    ++report.again;
  } else {
    CountDecision(decision.kind, &report);
  }
  return absl::OkStatus();
}

}  // namespace firstseen
