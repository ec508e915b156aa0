// What must hold between the keys of a configuration.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "billing/config.h"

namespace firstseen {

// "year", "month", "day", "none".
absl::Status ParseWindowKind(std::string_view text, WindowKind* kind);
// "fields" (also ""), "concat".
absl::Status ParseMemberEncoding(std::string_view text, MemberEncoding* encoding);

// Columns of a bill that need no place in ledger.keep_columns.
inline constexpr std::string_view kBillColumns[] = {"biz_seq_no", "order_no",      "app_id",
                                                    "event_time", "amount",        "status",
                                                    "window",     "claim_sequence"};

// Checks the whole, makes paths absolute (to the file's directory), and fills what follows from
// others: zone, bills.first_period.
absl::Status CheckBillingConfig(BillingConfig* config);

}  // namespace firstseen
