#include "billing/verdict.h"

#include "absl/strings/escaping.h"
#include "base/status.h"

namespace firstseen {

absl::Status RunErrorOf(const absl::Status& claim) {
  return absl::IsInvalidArgument(claim) ? absl::OkStatus() : claim;
}

void ApplyVerdict(const MemberResult& result, ClosedWindowPolicy policy, LedgerRow* row) {
  row->state = RowState::kDecided;
  row->verdict = static_cast<LedgerVerdict>(result.verdict);
  row->claim_sequence = static_cast<int64_t>(result.sequence);
  row->window = result.window;
  switch (result.verdict) {
    case Verdict::kFirst:
    case Verdict::kRepeat:
      row->origin = kOriginBillable;
      return;
    case Verdict::kDuplicate:
      row->origin = kOriginDuplicate;
      return;
    case Verdict::kClosed:
      break;
  }
  switch (policy) {
    case ClosedWindowPolicy::kBill:
      row->origin = kOriginBillable;
      return;
    case ClosedWindowPolicy::kDefault:
      row->origin = kOriginDuplicate;
      return;
    case ClosedWindowPolicy::kHold:
      break;
  }
  row->state = RowState::kHeld;
  row->origin = kOriginNone;
}

void FillDecision(const LedgerRow& row, Decision* decision) {
  if (row.origin == kOriginBillable) {
    decision->kind = DecisionKind::kBill;
  } else if (row.origin == kOriginDuplicate) {
    decision->kind = DecisionKind::kDuplicate;
  } else if (row.state == RowState::kHeld) {
    decision->kind = DecisionKind::kHeld;
  } else if (row.state == RowState::kNotCounting) {
    decision->kind = DecisionKind::kNotCounting;
  } else {
    decision->kind = DecisionKind::kReversed;
  }
  decision->origin = row.origin;
  decision->verdict = row.verdict;
  decision->claim_sequence = row.claim_sequence;
  decision->set = row.set;
  decision->window = row.window;
  decision->bill_serial = row.bill_serial;
}

std::string PackFields(const std::vector<std::string>& fields) {
  std::string packed;
  for (const std::string& field : fields) {
    if (!packed.empty()) packed += ',';
    packed += absl::BytesToHexString(field);
    packed += '.';
  }
  return packed;
}

absl::StatusOr<std::vector<std::string>> UnpackFields(std::string_view packed) {
  std::vector<std::string> fields;
  while (!packed.empty()) {
    const size_t end = packed.find('.');
    if (end == std::string_view::npos || end % 2 != 0) {
      return DataLoss("ledger: the member of a held row cannot be read");
    }
    fields.push_back(absl::HexStringToBytes({packed.data(), end}));
    packed.remove_prefix(end + 1);
    if (packed.starts_with(',')) packed.remove_prefix(1);
  }
  return fields;
}

void CountDecision(DecisionKind kind, BillRunReport* report) {
  switch (kind) {
    case DecisionKind::kBill:
      ++report->billable;
      break;
    case DecisionKind::kDuplicate:
      ++report->duplicates;
      break;
    case DecisionKind::kHeld:
      ++report->held;
      break;
    case DecisionKind::kNotCounting:
      ++report->not_counting;
      break;
    case DecisionKind::kRelease:
      ++report->released;
      break;
    case DecisionKind::kAdjust:
      ++report->adjusted;
      break;
    case DecisionKind::kReversed:
    case DecisionKind::kUnbilled:
    case DecisionKind::kNote:
    case DecisionKind::kFailed:
      break;
  }
}

}  // namespace firstseen
