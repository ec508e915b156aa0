// What is kept how long: ledger rows (ledger.keep_days), done/ (inbox.done_keep_days), bill files
// (bills.keep_days).
#pragma once

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "billing/run_context.h"

namespace firstseen {

// Purges and removes what is over its time at `now`. Ledger rows are counted from the last closed
// period, files from `now`.
absl::Status ApplyRetention(const RunContext& context, absl::Time now);

}  // namespace firstseen
