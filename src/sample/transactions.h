// The transaction files of a sample and the truth about them. See generate.h.
#pragma once

#include "absl/status/status.h"
#include "sample/generate.h"
#include "sample/people.h"

namespace firstseen::sample {

// Apps of the sample. Both of acme's share the set `kyc` (one year, one bill); beta's every
// transaction is billed.
inline constexpr const char* kApps[] = {"acme-loan", "acme-wallet", "beta-query"};

// Writes transactions/ and truth.csv, and fills the remaining totals. Needs the history_ and gap_
// totals: people below history_members + gap_new_members came in 2023 before all transactions.
absl::Status WriteTransactions(const GenerateOptions& options, const People& people,
                               GenerateProgress progress, GenerateTotals* totals);

}  // namespace firstseen::sample
