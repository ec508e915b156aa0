// That a run has the ledger it should have.
//
// The ledger is what keeps a transaction from being billed again after its claim was settled. So a
// ledger that is gone must never be begun anew beside bills that went out: its id is recorded in
// the data directory (file `billing-ledger`: a line "firstseen-billing-ledger 1", a line with the
// id), and a new ledger is made only where neither that file nor anything in done/ and bills/ tells
// of an older one. Settings that the ledger's rows rest on are recorded in it.
#pragma once

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/file.h"
#include "billing/config.h"
#include "billing/ledger.h"

namespace firstseen {

inline constexpr std::string_view kLedgerTieFile = "billing-ledger";

// Opens the ledger for `bill run`. FailedPrecondition, with the remedy: it is missing, empty or
// another than the data directory's. InvalidArgument: the configuration says another
// period_minutes, time_zone or amount_decimals than the ledger was begun with. With `accept` these
// are taken as they are, with a warning: a new ledger then goes on behind the serials, periods and
// times that bill and decision files tell, so that nothing that may have been billed is billed
// again unasked. The caller holds the lock of data directory and ledger.
absl::StatusOr<std::unique_ptr<Ledger>> OpenRunLedger(const BillingConfig& config,
                                                      FileSystem* files, bool accept);

}  // namespace firstseen
