// Delimited rows in, one answer for each out, in the order of the input: what `firstseen claim`,
// `check`, `remove` and `settle` do, so that other programs can talk to a set through a pipe.
//
// Rows (see RowParser for their format):
//   claim          token, time, fields...
//   check, remove  time, fields...
//   settle         token
// Blank lines are no rows and get no answer. A row that cannot be used (see RowMapper) is REJECTED
// and the others go on. Where the set has but one window, the time is not looked at.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "firstseen/types.h"
#include "ingest/row_reader.h"
#include "store/store.h"

namespace firstseen {

enum class RowCommand { kClaim, kCheck, kRemove, kSettle };

enum class RowVerdict : uint8_t {
  kFirst,      // claim
  kDuplicate,  // claim
  kRepeat,     // claim
  kClosed,     // claim, check, remove: the window was dropped
  kPresent,    // check
  kAbsent,     // check; remove: was not there
  kRemoved,    // remove
  kSettled,    // settle: whatever the token owned is settled, also if that was nothing
  kRejected,
};
inline constexpr size_t kRowVerdicts = 9;

// "FIRST", "DUPLICATE", ...
std::string_view RowVerdictName(RowVerdict verdict);

struct RowAnswer {
  uint64_t line = 0;  // of the input, from 1
  RowVerdict verdict = RowVerdict::kRejected;
  WindowId window = 0;    // not for kSettled, kRejected
  uint64_t sequence = 0;  // of a claim, see MemberResult::sequence
  std::string reason;     // of kRejected; never holds a value
};

struct AnswerRowsOptions {
  std::string set;
  RowCommand command = RowCommand::kClaim;
  RowFormat format;
};

struct AnswerRowsTotals {
  uint64_t rows = 0;
  uint64_t verdicts[kRowVerdicts] = {};  // by RowVerdict
  uint64_t settled = 0;                  // claims that a settle found
};

// Reads what is there, waiting only when there is nothing; 0 at the end.
using ReadRows = absl::FunctionRef<absl::StatusOr<size_t>(char* out, size_t size)>;
// Gets the answers of the next rows, at least one. To be passed on before it returns.
using TakeAnswers = absl::FunctionRef<absl::Status(std::span<const RowAnswer> answers)>;

// Answers all whole lines of each read before it reads again. An error ends the work: rows without
// an answer may have been claimed, and the same rows with the same tokens can be sent again.
// Memory is bounded by a few MiB.
absl::StatusOr<AnswerRowsTotals> AnswerRows(Store* store, const AnswerRowsOptions& options,
                                            ReadRows read, TakeAnswers take);

}  // namespace firstseen
