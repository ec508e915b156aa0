#include "billing/intake_chunk.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/time/time.h"
#include "base/check.h"
#include "base/status.h"

namespace firstseen {
void IntakeChunk::Add(InboxRow&& row) {
  raw_bytes_ += row.raw.size();
  rows_.push_back({row.line, std::string(row.raw), std::move(row.status), std::move(row.column),
                   std::move(row.transaction), Decision()});
}

bool IntakeChunk::full() const {
  return rows_.size() >= context_.config.inbox.chunk_rows || raw_bytes_ >= kRawBytesMax;
}

absl::Status IntakeChunk::Process() {
  judgements_.resize(rows_.size());
  entries_.reserve(2 * rows_.size());
  RETURN_IF_ERROR(LoadEntries());
  RETURN_IF_ERROR(LookUpDecisions());
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i].status.ok()) RETURN_IF_ERROR(Judge(i));
  }
  RETURN_IF_ERROR(Flush());
  RETURN_IF_ERROR(Record());
  RETURN_IF_ERROR(Settle());
  return Decide();
}

absl::Status IntakeChunk::LoadEntries() {
  std::vector<std::string> serials;
  for (const Row& row : rows_) {
    if (row.status.ok()) serials.push_back(row.transaction.serial);
  }
  ASSIGN_OR_RETURN(auto found, context_.ledger->FindRows(serials));
  for (auto& [serial, row] : found) {
    by_serial_[serial] = entries_.size();
    Entry& entry = entries_.emplace_back();
    entry.was_held = row.state == RowState::kHeld;
    entry.row = std::move(row);
    entry.in_ledger = true;
  }
  return absl::OkStatus();
}

// Transactions that the ledger may have forgotten: decision files still know them.
absl::Status IntakeChunk::LookUpDecisions() {
  const int64_t too_old_ms = context_.book->TooOldBefore();
  absl::flat_hash_set<std::string> wanted;
  absl::flat_hash_set<std::string_view> here;  // the transaction is in this chunk
  for (const Row& row : rows_) {
    const Transaction& t = row.transaction;
    if (!row.status.ok() || by_serial_.contains(t.serial) || here.contains(t.serial)) continue;
    const bool old_accepted = t.status_class == StatusClass::kCounting &&
                              context_.config.ledger.too_old == TooOldPolicy::kAccept &&
                              absl::ToUnixMillis(t.event_time) < too_old_ms;
    const bool reversal = t.status_class == StatusClass::kReversal && context_.book->purged();
    if (old_accepted || reversal) {
      wanted.insert(t.serial);
    } else if (t.status_class == StatusClass::kCounting) {
      here.insert(t.serial);
    }
  }
  if (wanted.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<std::string> taken, context_.ledger->DecidedFiles());
  auto found = FindDecisions(context_.files, context_.config.inbox.done, taken, wanted);
  if (absl::IsDataLoss(found.status())) {
    // To bill these rows might be to bill them again; all others go on.
    unknowable_ = std::move(wanted);
    decisions_fault_ = found.status();
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(found.status());
  old_decisions_ = *std::move(found);
  return absl::OkStatus();
}

bool IntakeChunk::RejectUnknowable(size_t i) {
  if (!unknowable_.contains(rows_[i].transaction.serial)) return false;
  Reject(i, Annotate(decisions_fault_, "only decision files may know this serial"),
         context_.config.inbox.serial_column);
  return true;
}

size_t IntakeChunk::Find(const std::string& serial) const {
  const auto found = by_serial_.find(serial);
  return found == by_serial_.end() ? kNoEntry : found->second;
}

void IntakeChunk::Reject(size_t i, absl::Status status, std::string column) {
  rows_[i].status = std::move(status);
  rows_[i].column = std::move(column);
}

absl::Status IntakeChunk::Judge(size_t i) {
  const Transaction& t = rows_[i].transaction;
  if (t.status_class == StatusClass::kIgnored) return JudgeIgnored(i);
  const absl::StatusOr<std::string> member = context_.hasher->Member(t);
  if (!member.ok()) {
    Reject(i, member.status());
    return absl::OkStatus();
  }
  return t.status_class == StatusClass::kCounting ? JudgeCounting(i, *member)
                                                  : JudgeReversal(i, *member);
}

void IntakeChunk::FillRow(const Transaction& t, const std::string& member, LedgerRow* row) const {
  row->serial = t.serial;
  row->order_no = t.order_no;
  row->app_id = t.app_id;
  row->partner = t.partner->name;
  row->event_ms = absl::ToUnixMillis(t.event_time);
  row->amount = FormatAmount(t.amount, context_.config.bills.amount_decimals);
  row->status = t.status;
  row->set = t.rule->set;
  row->inbox_id = inbox_id_;
  row->content = context_.hasher->Content(t);
  row->member = member;
  nlohmann::json kept = nlohmann::json::object();
  const std::vector<std::string>& columns = context_.config.ledger.keep_columns;
  for (size_t i = 0; i < columns.size(); ++i) kept[columns[i]] = t.kept[i];
  row->kept = kept.dump();
}

size_t IntakeChunk::NewEntry(const Transaction& t, const std::string& member) {
  const size_t index = entries_.size();
  Entry& entry = entries_.emplace_back();
  FillRow(t, member, &entry.row);
  entry.changed = true;
  by_serial_[t.serial] = index;
  return index;
}

absl::Status IntakeChunk::JudgeCounting(size_t i, const std::string& member) {
  const Transaction& t = rows_[i].transaction;
  size_t index = Find(t.serial);
  if (index != kNoEntry && entries_[index].row.state != RowState::kNotCounting &&
      entries_[index].row.state != RowState::kReversedFirst) {
    return JudgeAgain(i, index, member);
  }
  if (index == kNoEntry || entries_[index].row.state == RowState::kNotCounting) {
    if (const auto old = old_decisions_.find(t.serial); old != old_decisions_.end()) {
      rows_[i].decision = old->second;
      judgements_[i].kind =
          old->second.kind == DecisionKind::kRelease ? DecisionKind::kReversed : old->second.kind;
      judgements_[i].again = true;
      return absl::OkStatus();
    }
    if (RejectUnknowable(i)) return absl::OkStatus();
    if (absl::ToUnixMillis(t.event_time) < context_.book->TooOldBefore() &&
        context_.config.ledger.too_old == TooOldPolicy::kFail) {
      Reject(i,
             InvalidArgument("older than ledger.keep_days ({}) before the last closed period; see "
                             "ledger.too_old to bill it all the same",
                             context_.config.ledger.keep_days),
             context_.config.inbox.time_column);
      return absl::OkStatus();
    }
    if (t.event_time > context_.clock->Now() + future_max_) {
      // It would wait for its period, whatever year that is.
      Reject(i,
             InvalidArgument("the event is more than {} in the future; check its time and this "
                             "machine's clock",
                             absl::FormatDuration(future_max_)),
             context_.config.inbox.time_column);
      return absl::OkStatus();
    }
  }
  if (index == kNoEntry) {
    index = NewEntry(t, member);
  } else {
    FillRow(t, member, &entries_[index].row);
    entries_[index].changed = true;
  }
  Entry& entry = entries_[index];
  judgements_[i] = {.entry = index, .by_entry = true};
  if (entry.row.state == RowState::kReversedFirst) {
    entry.row.state = RowState::kReversed;
    return absl::OkStatus();
  }
  entry.row.state = RowState::kDecided;
  entry.transaction = &t;
  if (t.rule->set.empty()) {
    entry.row.origin = kOriginBillable;
    entry.row.verdict = LedgerVerdict::kNoSet;
  } else {
    if (released_members_.contains(member)) RETURN_IF_ERROR(Flush());
    entry.claiming = true;
    claims_[t.rule->set].push_back(index);
  }
  return absl::OkStatus();
}

absl::Status IntakeChunk::JudgeAgain(size_t i, size_t index, const std::string& member) {
  const LedgerRow& known = entries_[index].row;
  // A reversal that came first has no content to compare with.
  if (!known.content.empty() &&
      (known.content != context_.hasher->Content(rows_[i].transaction) || known.member != member)) {
    Reject(
        i,
        InvalidArgument(
            "conflict: this serial was taken before with another order number, app, event time, "
            "amount or member; deliver the same transaction as it was then, in the same encoding, "
            "and another one under a serial of its own"),
        context_.config.inbox.serial_column);
    return absl::OkStatus();
  }
  judgements_[i] = {.entry = index, .by_entry = true, .again = true};
  return absl::OkStatus();
}

absl::Status IntakeChunk::JudgeIgnored(size_t i) {
  const Transaction& t = rows_[i].transaction;
  judgements_[i].kind = DecisionKind::kNotCounting;
  judgements_[i].again = Find(t.serial) != kNoEntry;
  if (!judgements_[i].again) entries_[NewEntry(t, "")].row.state = RowState::kNotCounting;
  return absl::OkStatus();
}

absl::Status IntakeChunk::JudgeReversal(size_t i, const std::string& member) {
  const Transaction& t = rows_[i].transaction;
  const size_t index = Find(t.serial);
  if (index == kNoEntry) return ReverseUnknown(i);
  if (entries_[index].releasing) RETURN_IF_ERROR(Flush());
  Entry& entry = entries_[index];
  if (entry.row.app_id != t.app_id) {
    Reject(i,
           InvalidArgument("conflict: the transaction of this serial is of another app; correct "
                           "the app or the serial"),
           context_.config.inbox.app_column);
    return absl::OkStatus();
  }
  switch (entry.row.state) {
    case RowState::kReversedFirst:
      judgements_[i] = {.kind = DecisionKind::kNote, .again = true};
      return absl::OkStatus();
    case RowState::kReversed:
      judgements_[i] = {.kind = entry.row.origin == kOriginBillable ? DecisionKind::kRelease
                                                                    : DecisionKind::kUnbilled,
                        .again = true};
      return absl::OkStatus();
    case RowState::kNotCounting:
      entry.row.state = RowState::kReversedFirst;
      entry.changed = true;
      judgements_[i].kind = DecisionKind::kNote;
      return absl::OkStatus();
    case RowState::kDecided:
    case RowState::kHeld:
      break;
  }
  return ReleaseOrAdjust(i, index, member);
}

absl::Status IntakeChunk::ReleaseOrAdjust(size_t i, size_t index, const std::string& member) {
  const Transaction& t = rows_[i].transaction;
  Entry& entry = entries_[index];
  if (!entry.status.ok()) {
    Reject(i,
           InvalidArgument("the transaction of this serial is a bad row itself; mend that first"),
           context_.config.inbox.serial_column);
    return absl::OkStatus();
  }
  const bool billable = entry.row.origin == kOriginBillable;
  if (billable && entry.row.bill_serial != 0 && !context_.book->IsOpen(entry.row.bill_serial)) {
    return Adjust(i, entry.row);
  }
  judgements_[i].entry = index;
  entry.changed = true;
  if (!entry.claiming && (!billable || entry.row.verdict == LedgerVerdict::kNoSet)) {
    entry.row.state = RowState::kReversed;
    judgements_[i].kind = billable ? DecisionKind::kRelease : DecisionKind::kUnbilled;
    return absl::OkStatus();
  }
  if (member.empty() && entry.transaction == nullptr) {
    Reject(i, InvalidArgument("the fields of the member are needed to release its claim; fill them "
                              "in as the transaction had them"));
    return absl::OkStatus();
  }
  if (!member.empty() && member != entry.row.member) {
    Reject(i,
           InvalidArgument("conflict: the transaction of this serial has another member; deliver "
                           "the fields as the transaction had them, in the same encoding, or "
                           "leave them empty"));
    return absl::OkStatus();
  }
  entry.releasing = true;
  releases_.push_back({i, index, member.empty() ? entry.transaction : &t});
  released_members_.insert(entry.row.member);
  return absl::OkStatus();
}

absl::Status IntakeChunk::ReverseUnknown(size_t i) {
  const Transaction& t = rows_[i].transaction;
  const auto old = old_decisions_.find(t.serial);
  if (old != old_decisions_.end()) {
    if (old->second.kind == DecisionKind::kBill) {
      LedgerRow billed;
      FillRow(t, "", &billed);
      billed.bill_serial = old->second.bill_serial;
      billed.claim_sequence = old->second.claim_sequence;
      billed.window = old->second.window;
      return Adjust(i, billed);
    }
    judgements_[i].kind = old->second.kind == DecisionKind::kRelease ? DecisionKind::kRelease
                                                                     : DecisionKind::kUnbilled;
    judgements_[i].again = true;
    return absl::OkStatus();
  }
  if (RejectUnknowable(i)) return absl::OkStatus();
  Entry& entry = entries_[NewEntry(t, "")];
  entry.row.state = RowState::kReversedFirst;
  entry.row.content.clear();
  judgements_[i].kind = DecisionKind::kNote;
  return absl::OkStatus();
}

absl::Status IntakeChunk::Adjust(size_t i, const LedgerRow& billed) {
  const Transaction& t = rows_[i].transaction;
  judgements_[i].kind = DecisionKind::kAdjust;
  rows_[i].decision.bill_serial = billed.bill_serial;
  ASSIGN_OR_RETURN(const bool known, context_.ledger->HasAdjustment(t.serial));
  judgements_[i].again = known || !adjusted_.insert(t.serial).second;
  if (!judgements_[i].again) {
    adjustments_.push_back({billed, absl::ToUnixMillis(t.event_time), t.status});
  }
  return absl::OkStatus();
}

}  // namespace firstseen
