#include "billing/held.h"

#include <spdlog/spdlog.h>

#include <map>
#include <memory>
#include <utility>

#include "absl/time/time.h"
#include "base/status.h"
#include "billing/decisions.h"
#include "billing/verdict.h"

namespace firstseen {
namespace {

class HeldRetry {
 public:
  HeldRetry(const RunContext& context, absl::Time now) : context_(context), now_(now) {}

  absl::Status Run() {
    int64_t after_id = 0;
    std::string after_serial;
    const auto limit = static_cast<int64_t>(context_.config.inbox.chunk_rows);
    while (true) {
      ASSIGN_OR_RETURN(std::vector<Ledger::HeldRow> held,
                       context_.ledger->HeldRows(after_id, after_serial, limit));
      if (held.empty()) break;
      after_id = held.back().row.inbox_id;
      after_serial = held.back().row.serial;
      RETURN_IF_ERROR(RetryBatch(&held));
    }
    if (file_id_ == 0) return absl::OkStatus();
    spdlog::info("transactions that waited for a closed window were decided");
    return FinishHeldFile();
  }

 private:
  absl::Status RetryBatch(std::vector<Ledger::HeldRow>* held) {
    std::map<std::string, std::vector<LedgerRow*>> by_set;
    std::map<std::string, std::vector<std::string>> packed_by_set;
    for (Ledger::HeldRow& next : *held) {
      const RuleConfig* rule = context_.config.RuleOf(next.row.app_id);
      // A rule that is gone, or has another set by now, cannot decide it.
      if (rule == nullptr || rule->set != next.row.set) continue;
      by_set[next.row.set].push_back(&next.row);
      packed_by_set[next.row.set].push_back(next.fields);
    }
    for (const auto& [set, rows] : by_set) {
      RETURN_IF_ERROR(Claim(set, rows, packed_by_set[set]));
    }
    std::map<std::string, std::vector<LedgerRow*>> decided;
    for (const auto& [set, rows] : by_set) {
      for (LedgerRow* row : rows) {
        if (row->state != RowState::kHeld) decided[set].push_back(row);
      }
    }
    if (decided.empty()) return absl::OkStatus();
    RETURN_IF_ERROR(RecordAll(decided));
    for (const auto& [set, rows] : decided) {
      RETURN_IF_ERROR(context_.Step("settle held"));
      std::vector<std::string_view> tokens;
      for (const LedgerRow* row : rows) tokens.push_back(row->serial);
      RETURN_IF_ERROR(context_.store->Settle(set, tokens).status());
    }
    return absl::OkStatus();
  }

  absl::Status Claim(const std::string& set, const std::vector<LedgerRow*>& rows,
                     const std::vector<std::string>& packed) {
    RETURN_IF_ERROR(context_.Step("claim held"));
    std::vector<std::vector<std::string>> fields(rows.size());
    std::vector<std::vector<std::string_view>> views(rows.size());
    std::vector<MemberRequest> requests(rows.size());
    std::vector<MemberResult> results(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      ASSIGN_OR_RETURN(fields[i], UnpackFields(packed[i]));
      views[i].assign(fields[i].begin(), fields[i].end());
      requests[i].fields = views[i];
      requests[i].window = static_cast<WindowId>(rows[i]->window);
      requests[i].token = rows[i]->serial;
    }
    RETURN_IF_ERROR(context_.store->Claim(set, requests, results));
    for (size_t i = 0; i < rows.size(); ++i) {
      RETURN_IF_ERROR(results[i].status);
      ApplyVerdict(results[i], context_.config.RuleOf(rows[i]->app_id)->closed_window, rows[i]);
    }
    return absl::OkStatus();
  }

  absl::Status RecordAll(const std::map<std::string, std::vector<LedgerRow*>>& decided) {
    RETURN_IF_ERROR(context_.Step("record held"));
    return context_.ledger->Transact([&]() -> absl::Status {
      if (file_id_ == 0) {
        InboxFileRow file;
        file.seen_ms = absl::ToUnixMillis(now_);
        ASSIGN_OR_RETURN(file_id_, context_.ledger->RegisterFile(file));
        RETURN_IF_ERROR(context_.ledger->SetStoredName(file_id_, HeldName(file_id_)));
      }
      for (const auto& [set, rows] : decided) {
        for (LedgerRow* row : rows) RETURN_IF_ERROR(Record(row));
      }
      return absl::OkStatus();
    });
  }

  absl::Status Record(LedgerRow* row) {
    row->inbox_id = file_id_;
    if (row->origin == kOriginBillable) {
      const int64_t period_ms = context_.book->BillPeriod(row->partner, row->event_ms);
      ASSIGN_OR_RETURN(row->bill_serial, context_.book->OpenBill(row->partner, period_ms));
    }
    CountDecision(row->origin == kOriginBillable ? DecisionKind::kBill : DecisionKind::kDuplicate,
                  context_.report);
    RETURN_IF_ERROR(context_.ledger->UnholdMember(row->serial));
    return context_.ledger->UpdateRow(*row);
  }

  absl::Status FinishHeldFile() {
    RETURN_IF_ERROR(WriteDecisionsFromLedger(
        context_, file_id_, context_.config.inbox.done + "/" + HeldName(file_id_)));
    RETURN_IF_ERROR(context_.Step("close held"));
    return context_.ledger->CloseFile(file_id_);
  }

 public:
  static std::string HeldName(int64_t id) { return fmt::format("held-{}", id); }

 private:
  const RunContext& context_;
  const absl::Time now_;
  int64_t file_id_ = 0;  // of the decision file; 0 = nothing decided yet
};

}  // namespace

absl::Status WriteDecisionsFromLedger(const RunContext& context, int64_t inbox_id,
                                      const std::string& path) {
  RETURN_IF_ERROR(context.Step("write held decisions"));
  ASSIGN_OR_RETURN(const std::unique_ptr<DecisionsWriter> file,
                   DecisionsWriter::Create(context.files, path, inbox_id));
  RETURN_IF_ERROR(context.ledger->ForFileRows(inbox_id, [&](const LedgerRow& row) -> absl::Status {
    Decision decision;
    decision.serial = row.serial;
    FillDecision(row, &decision);
    if (decision.bill_serial != 0) {
      ASSIGN_OR_RETURN(const std::optional<BillRow> bill,
                       context.ledger->FindBill(decision.bill_serial));
      if (bill.has_value()) decision.bill_period_ms = bill->period_ms;
    }
    return file->Append(decision);
  }));
  RETURN_IF_ERROR(file->Commit(FileDigest()));
  return context.files->SyncDirectory(ParentDirectory(path));
}

absl::Status RetryHeldRows(const RunContext& context, absl::Time now) {
  return HeldRetry(context, now).Run();
}

absl::Status RecoverHeldRows(const RunContext& context) {
  ASSIGN_OR_RETURN(const std::vector<InboxFileRow> open, context.ledger->OpenFiles());
  for (const InboxFileRow& file : open) {
    if (!file.name.empty()) continue;
    RETURN_IF_ERROR(context.ledger->ForFileRows(file.id, [&](const LedgerRow& row) {
      // The run may have stopped before it settled them.
      const std::string_view token = row.serial;
      return context.store->Settle(row.set, {&token, 1}).status();
    }));
    RETURN_IF_ERROR(WriteDecisionsFromLedger(
        context, file.id, context.config.inbox.done + "/" + HeldRetry::HeldName(file.id)));
    RETURN_IF_ERROR(context.ledger->CloseFile(file.id));
  }
  return absl::OkStatus();
}

}  // namespace firstseen
