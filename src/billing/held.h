// Transactions that wait because their window was dropped: asked again in every run, and decided
// when the window is reopened (or the rule's closed_window says otherwise by now).
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "billing/ledger.h"
#include "billing/run_context.h"

namespace firstseen {

// Decides what can be decided; the decisions go to done/held-ID.decisions.
absl::Status RetryHeldRows(const RunContext& context, absl::Time now);
// Ends what an earlier run left open.
absl::Status RecoverHeldRows(const RunContext& context);

// Writes a decision file of what the ledger says was decided by file `inbox_id`.
absl::Status WriteDecisionsFromLedger(const RunContext& context, int64_t inbox_id,
                                      const std::string& path);

}  // namespace firstseen
