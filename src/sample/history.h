// The history and gap files of a sample. See generate.h.
#pragma once

#include "absl/status/status.h"
#include "sample/generate.h"
#include "sample/people.h"

namespace firstseen::sample {

// Writes history/ and fills the history_ totals. The people in it are 0 to history_members - 1.
absl::Status WriteHistory(const GenerateOptions& options, const People& people,
                          GenerateProgress progress, GenerateTotals* totals);

// Writes gap/ and fills the gap_ totals. Its new people are the next gap_new_members.
absl::Status WriteGap(const GenerateOptions& options, const People& people, GenerateTotals* totals);

}  // namespace firstseen::sample
