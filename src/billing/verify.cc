#include "billing/verify.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "base/clock.h"
#include "base/status.h"
#include "billing/external_sort.h"
#include "billing/output_file.h"
#include "billing/verify_collect.h"
#include "billing/verify_records.h"

namespace firstseen {
namespace {

const DecisionFact* Earliest(const SerialFacts& facts, std::initializer_list<DecisionKind> kinds) {
  const DecisionFact* found = nullptr;
  for (const DecisionFact& fact : facts.decisions) {
    if (std::ranges::count(kinds, fact.decision.kind) == 0) continue;
    if (found == nullptr || std::pair(fact.inbox_id, fact.decision.line) <
                                std::pair(found->inbox_id, found->decision.line)) {
      found = &fact;
    }
  }
  return found;
}

Ordinal OrdinalOf(const DecisionFact& fact) { return {fact.inbox_id, fact.decision.line}; }

// Judges what is known of one serial; what depends on other transactions of the member goes on to
// the second sort.
class SerialJudge {
 public:
  SerialJudge(const BillingConfig& config, const VerifyCollector& collector,
              ExternalSorter* members, VerifyReport* report)
      : config_(config), collector_(collector), members_(members), report_(report) {}

  absl::Status Judge(const SerialFacts& facts) {
    const auto bills = std::ranges::count(facts.billed, BillKind::kBill, &BilledFact::kind);
    if (bills > 1) AddFinding(facts.serial, &report_->billed_twice);
    CheckAdjustments(facts, bills);
    const TransactionFact* transaction = Deciding(facts);
    const DecisionFact* decided = Earliest(facts, {DecisionKind::kBill, DecisionKind::kDuplicate});
    if (transaction == nullptr) {
      if (bills > 0) {
        AddFinding(facts.serial,
                   facts.transactions.empty() ? &report_->unknown : &report_->wrongly_billed);
      } else if (decided != nullptr) {
        AddFinding(facts.serial, &report_->unknown);
      }
      return absl::OkStatus();
    }
    ++report_->transactions;
    if (decided == nullptr) return JudgeUndecided(facts, bills > 0);
    for (const BilledFact& billed : facts.billed) CheckRow(facts, *transaction, *decided, billed);
    return JudgeDecided(facts, *transaction, *decided, bills > 0);
  }

 private:
  // The row of the transaction itself, the one that its decision is about; nullptr when no row
  // counts.
  static const TransactionFact* Deciding(const SerialFacts& facts) {
    const TransactionFact* found = nullptr;
    for (const TransactionFact& fact : facts.transactions) {
      if (fact.status_class != StatusClass::kCounting || IsRejected(facts, fact)) continue;
      if (found == nullptr || (fact.ordinal.has_value() &&
                               (!found->ordinal.has_value() || *fact.ordinal < *found->ordinal))) {
        found = &fact;
      }
    }
    return found;
  }

  static bool IsRejected(const SerialFacts& facts, const TransactionFact& row) {
    if (!row.ordinal.has_value()) return false;
    return std::ranges::any_of(facts.decisions, [&](const DecisionFact& fact) {
      return OrdinalOf(fact) == *row.ordinal && fact.decision.kind == DecisionKind::kFailed;
    });
  }

  void CheckAdjustments(const SerialFacts& facts, int64_t bills) {
    const auto rows = std::ranges::count(facts.billed, BillKind::kAdjustments, &BilledFact::kind);
    const DecisionFact* adjust = Earliest(facts, {DecisionKind::kAdjust});
    if (adjust == nullptr) {
      if (rows > 0) AddFinding(facts.serial, &report_->adjustment_faults);
      return;
    }
    ++report_->adjusted;
    if (bills != 1 || rows > 1) AddFinding(facts.serial, &report_->adjustment_faults);
    if (rows == 0) ++report_->adjustments_pending;
  }

  absl::Status JudgeUndecided(const SerialFacts& facts, bool billed) {
    if (billed) {
      AddFinding(facts.serial, &report_->wrongly_billed);
    } else if (Earliest(facts, {DecisionKind::kReversed}) != nullptr) {
      ++report_->released;
    } else if (Earliest(facts, {DecisionKind::kHeld}) != nullptr) {
      if (Earliest(facts, {DecisionKind::kUnbilled}) != nullptr) {
        ++report_->released;
      } else {
        ++report_->held;
      }
    } else {
      AddFinding(facts.serial, &report_->undecided);
    }
    return absl::OkStatus();
  }

  void CheckRow(const SerialFacts& facts, const TransactionFact& transaction,
                const DecisionFact& decided, const BilledFact& billed) {
    const PartnerConfig* partner = config_.PartnerOf(transaction.app_id);
    const bool same =
        billed.amount == transaction.amount &&
        billed.app_id.value_or(transaction.app_id) == transaction.app_id && partner != nullptr &&
        billed.partner == partner->name &&
        // An adjustment may rest on the reversal's row alone, which has a time of its own.
        (billed.kind == BillKind::kAdjustments ||
         (billed.order_no.value_or(transaction.order_no) == transaction.order_no &&
          billed.event_ms.value_or(transaction.event_ms) == transaction.event_ms &&
          billed.bill_serial == decided.decision.bill_serial));
    if (!same) AddFinding(facts.serial, &report_->altered);
  }

  bool IsPending(const TransactionFact& transaction, const Decision& decision) const {
    const PartnerConfig* partner = config_.PartnerOf(transaction.app_id);
    return partner != nullptr && decision.bill_serial != 0 &&
           decision.bill_period_ms >= collector_.ClosedUntil(partner->name) &&
           !collector_.IsOverdue(decision.bill_period_ms);
  }

  absl::Status JudgeDecided(const SerialFacts& facts, const TransactionFact& transaction,
                            const DecisionFact& decided, bool billed) {
    const Decision& decision = decided.decision;
    // A run that was interrupted between the release and the ledger finds, when it takes the rows
    // again, the next transaction of the member as owner, and has nothing left to release.
    const DecisionFact* release =
        Earliest(facts, {DecisionKind::kRelease, DecisionKind::kUnbilled});
    if (release != nullptr) {
      ++report_->released;
      if (billed) AddFinding(facts.serial, &report_->wrongly_billed);
    }
    const bool pending = !billed && IsPending(transaction, decision);
    if (decision.verdict == LedgerVerdict::kClosed || transaction.set < 0) {
      if (decision.verdict == LedgerVerdict::kClosed) ++report_->closed_window;
      if (release == nullptr) {
        Settle(facts.serial, decision.origin == kOriginBillable || transaction.set < 0, billed,
               decision.origin == kOriginDuplicate, pending);
      }
      return absl::OkStatus();
    }
    MemberEvent event;
    event.ordinal = OrdinalOf(decided);
    event.kind = MemberEvent::Kind::kClaim;
    event.serial = facts.serial;
    event.claim_sequence = decision.claim_sequence;
    event.billed = billed;
    event.duplicate = decision.origin == kOriginDuplicate;
    event.pending = pending;
    RETURN_IF_ERROR(
        members_->Add(PackEvent(transaction.set, transaction.window, transaction.member, event)));
    if (release == nullptr) return absl::OkStatus();
    event.ordinal = OrdinalOf(*release);
    event.kind = MemberEvent::Kind::kRelease;
    return members_->Add(PackEvent(transaction.set, transaction.window, transaction.member, event));
  }

 public:
  // Compares what must be with what is.
  void Settle(const std::string& serial, bool expected, bool billed, bool duplicate, bool pending) {
    if (expected && billed) {
      ++report_->billed;
    } else if (expected && duplicate) {
      AddFinding(serial, &report_->wrongly_dropped);
    } else if (expected && pending) {
      ++report_->pending;
    } else if (expected) {
      AddFinding(serial, &report_->missing);
    } else if (billed || !duplicate) {
      AddFinding(serial, &report_->wrongly_billed);
    } else {
      ++report_->duplicate;
    }
  }

 private:
  const BillingConfig& config_;
  const VerifyCollector& collector_;
  ExternalSorter* members_;
  VerifyReport* report_;
};

// Replays the events of one member in one window.
class MemberReplay {
 public:
  MemberReplay(SerialJudge* judge, VerifyReport* report) : judge_(judge), report_(report) {}

  void Begin() { *this = MemberReplay(judge_, report_); }

  // `released`: serials that a later reversal takes back.
  void Take(const MemberEvent& event, bool released) {
    switch (event.kind) {
      case MemberEvent::Kind::kHistory:
        if (!taken_) {
          taken_ = true;
          owner_ = event.serial;
          from_history_ = true;
        }
        return;
      case MemberEvent::Kind::kRelease:
        if (taken_ && !from_history_ && owner_ == event.serial) taken_ = false;
        return;
      case MemberEvent::Kind::kClaim:
        break;
    }
    if (!std::exchange(counted_, true)) ++report_->members;
    const bool expected =
        !taken_ || (from_history_ && !event.serial.empty() && owner_ == event.serial);
    if (expected) {
      taken_ = true;
      from_history_ = false;
      owner_ = event.serial;
      sequence_ = event.claim_sequence;
    } else if (!from_history_ && event.claim_sequence != 0 && event.claim_sequence < sequence_) {
      // The order of the files and that of the claims disagree: the later row claimed first.
      AddFinding(owner_, &report_->wrongly_billed);
    }
    if (!released) {
      judge_->Settle(event.serial, expected, event.billed, event.duplicate, event.pending);
    }
  }

 private:
  SerialJudge* judge_;
  VerifyReport* report_;
  bool taken_ = false;
  bool from_history_ = false;
  bool counted_ = false;
  std::string owner_;
  int64_t sequence_ = 0;
};

absl::Status JoinSerials(ExternalSorter* serials, SerialJudge* judge) {
  RETURN_IF_ERROR(serials->Sort());
  SerialFacts facts;
  std::string key;
  std::string_view record;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, serials->Next(&record));
    if (!more || SerialKey(record) != key) {
      if (!key.empty()) RETURN_IF_ERROR(judge->Judge(facts));
      if (!more) return absl::OkStatus();
      facts = SerialFacts();
      key = SerialKey(record);
    }
    UnpackFact(record, &facts);
  }
}

void ReplayMember(const std::vector<MemberEvent>& events, MemberReplay* replay) {
  absl::flat_hash_set<std::string_view> released;
  for (const MemberEvent& event : events) {
    if (event.kind == MemberEvent::Kind::kRelease) released.insert(event.serial);
  }
  replay->Begin();
  for (const MemberEvent& event : events) replay->Take(event, released.contains(event.serial));
}

absl::Status ReplayMembers(ExternalSorter* members, SerialJudge* judge, VerifyReport* report) {
  RETURN_IF_ERROR(members->Sort());
  MemberReplay replay(judge, report);
  std::vector<MemberEvent> events;
  std::string key;
  std::string_view record;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, members->Next(&record));
    if (!more || MemberKey(record) != key) {
      ReplayMember(events, &replay);
      if (!more) return absl::OkStatus();
      events.clear();
      key = MemberKey(record);
    }
    MemberEvent event = UnpackEvent(record);
    // Of the history only the first row of a member says anything.
    if (event.kind != MemberEvent::Kind::kHistory || events.empty()) {
      events.push_back(std::move(event));
    }
  }
}

}  // namespace

bool VerifyReport::ok() const {
  for (const VerifyFinding* finding :
       {&missing, &billed_twice, &wrongly_billed, &wrongly_dropped, &undecided, &unknown, &altered,
        &adjustment_faults, &bad_files, &unreadable}) {
    if (finding->count > 0) return false;
  }
  return history_unreadable.count <= history_rejected_max;
}

absl::StatusOr<VerifyReport> VerifyBills(const BillingConfig& config,
                                         const VerifyOptions& options) {
  const int64_t start_ns = Clock::Real()->MonotonicNanos();
  RETURN_IF_ERROR(MakeDirectories(options.files, config.verify.temp_directory));
  VerifyReport report;
  report.history_rejected_max = options.history_rejected_max;
  ExternalSorter serials(options.files, config.verify.temp_directory,
                         config.verify.memory_bytes / 2, false);
  ExternalSorter members(options.files, config.verify.temp_directory,
                         config.verify.memory_bytes / 2, true);
  VerifyCollector collector(config, options, &serials, &members, &report);
  RETURN_IF_ERROR(collector.ReadBills());
  RETURN_IF_ERROR(collector.ReadTransactions());
  SerialJudge judge(config, collector, &members, &report);
  RETURN_IF_ERROR(JoinSerials(&serials, &judge));
  RETURN_IF_ERROR(collector.ReadHistory());
  RETURN_IF_ERROR(ReplayMembers(&members, &judge, &report));
  report.seconds = static_cast<double>(Clock::Real()->MonotonicNanos() - start_ns) / 1e9;
  return report;
}

}  // namespace firstseen
