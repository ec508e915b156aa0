// A whole invented year to try firstseen on: history as Hive exports it, the transactions of the
// turn of the year as they arrive, and the truth about which of them must be billed.
//
// The truth comes from the numbers of the invented people, never from comparing fields, and knows
// nothing of the engine: an independent answer to test against.
//
// Files below GenerateOptions::out, all of them '|'-separated UTF-8 unless said otherwise:
//
//   history/000000_0 ...         name|id_no|ds|biz_seq_no, first occurrences of 2023 until
//                                December 30, with what real exports carry: other notations of the
//                                same person, a few repeated people, one file with a BOM, one
//                                with CRLF, blank lines, a prose line, rows with too few or too
//                                many fields, names to skip (_SUCCESS, .000000_0.crc)
//   gap/000000_0                 the last week exported again, with some new people
//   transactions/2023-12-31/     one file for each 5-minute period from noon to noon, with a
//   transactions/2024-01-01/     header, or NDJSON at every second hour; one period has none
//   truth.csv                    biz_seq_no,app_id,window,outcome,adjusted,amount, a row a serial
//   truth.json                   the totals (see GenerateTotals)
#pragma once

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file.h"

namespace firstseen::sample {

struct GenerateOptions {
  uint64_t seed = 1;
  uint64_t history_rows = 0;  // 1000 or more, and at most 500 million; repeated people included
  uint64_t transactions = 0;  // rows in the inbox files; 1000 or more, at most 20 million
  int history_files = 8;      // 4 to 1000
  std::string encoding = "utf-8";  // of history/ and gap/; or gb18030 (without a BOM)
  std::string out;                 // directory; made, and must be empty
  FileSystem* files = FileSystem::Posix();
};

struct GenerateTotals {
  uint64_t history_rows = 0;      // neither blank nor a BOM
  uint64_t history_rejected = 0;  // of them: wrong number of fields
  uint64_t history_members = 0;   // distinct people in history/
  uint64_t gap_rows = 0;
  uint64_t gap_new_members = 0;  // people in gap/ and not in history/
  uint64_t transaction_files = 0;
  uint64_t transaction_rows = 0;  // retries and reversals included
  uint64_t serials = 0;           // distinct transactions
  uint64_t billable = 0;          // transactions that must be in a bill file, each once
  uint64_t duplicates = 0;        // origin 5
  uint64_t not_counting = 0;      // failed
  uint64_t reversed = 0;          // reversed in the file they came in: not billed
  uint64_t adjustments = 0;       // of the billable: reversed a long time after
  int64_t billable_cents = 0;
  uint64_t members_2023 = 0;  // in set kyc at the end, history, gap and transactions
  uint64_t members_2024 = 0;
};

// Told the rows written so far of all rows, some times a second.
using GenerateProgress = absl::FunctionRef<void(uint64_t done, uint64_t total)>;

// Deterministic: the same options give the same bytes. About two seconds for five million history
// rows; memory for about 200 bytes a transaction. InvalidArgument for numbers out of range,
// AlreadyExists when the directory is not empty.
absl::StatusOr<GenerateTotals> Generate(const GenerateOptions& options, GenerateProgress progress);

}  // namespace firstseen::sample
