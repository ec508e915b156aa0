// From what the store answers to what the ledger and the decision files say.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "billing/bill_run.h"
#include "billing/config.h"
#include "billing/decisions.h"
#include "billing/ledger.h"
#include "store/store.h"

namespace firstseen {

// Of the status of one claim: OK when it is the row's fault (it goes to failed/), otherwise the
// error, which ends the run: limits and disks are no reason to refuse a transaction.
absl::Status RunErrorOf(const absl::Status& claim);

// Fills state, origin, verdict, claim sequence and window of a row that was claimed.
void ApplyVerdict(const MemberResult& result, ClosedWindowPolicy policy, LedgerRow* row);

// The decision on a transaction that the ledger's row tells; not line, serial and bill period.
void FillDecision(const LedgerRow& row, Decision* decision);

// The fields of a held row's member as a text, whatever bytes they are, and back.
std::string PackFields(const std::vector<std::string>& fields);
absl::StatusOr<std::vector<std::string>> UnpackFields(std::string_view packed);

void CountDecision(DecisionKind kind, BillRunReport* report);

}  // namespace firstseen
