// Imports exported files into a set: read, decompressed, decoded, split, fingerprinted and applied
// by several threads in bounded memory, resumed after a crash, and safe to run again.
//
// Order. Each file is read in blocks of whole lines; several threads work on the blocks of one file
// (so a single big file or a pipe uses all of them) and, without a token column, on several files
// at a time. With a token column blocks are applied strictly in the order of files and lines: of
// equal members the first one owns the member, whatever the number of jobs. Without one nobody can
// tell the order, and none is kept.
//
// Resume. Each block is recorded in the set together with the place where it ends (Store::Import).
// The same import started again after it was interrupted (same set, paths, columns and options; the
// number of jobs and the place of the rejects may differ) goes on behind what is recorded, and its
// report is that of an uninterrupted run. Standard input is read again from its beginning, checked
// to be the same, and the part that is in is passed over. When a file that was read has another
// size or time than before, or rejected rows that were set aside are gone, everything is read
// again, with a note: members that are in already are counted as duplicates then. An import that
// ended well leaves no record: the same import again reads everything again, and adds nothing.
//
// Rejects. Rows that cannot be used go to the rejects file, byte for byte as they were (in the
// input's encoding, one '\n' after each), in the order of files and lines, whatever the jobs. A
// second file beside it, `<rejects>.reasons`, has a line for each: file, line, field, reason and
// remedy, separated by tabs, under a header line; never a value. Rows below column=value folders
// that the import uses go to `<rejects>.d/column=value/rejects`, so that the same command imports
// that directory again. All are mode 0600, contain what is in the input, and are written at the
// end, each whole or not at all; until then rejected rows wait in `<rejects>.<job>.<n>.part`.
// Both files are there after every import that ended well, empty if nothing was rejected; those at
// the default place only if something was.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/file.h"
#include "ingest/rejects.h"
#include "ingest/row_mapper.h"
#include "store/store.h"

namespace firstseen {

struct ImportStatus {
  uint64_t rows = 0;
  uint64_t bytes_done = 0;     // of the files as they are on disk
  uint64_t bytes_total = 0;    // 0 when the input is a pipe
  uint64_t resumed_bytes = 0;  // of bytes_done: from an interrupted run, so not of this run's rate
};

struct ImportOptions {
  static constexpr int kJobsMax = 64;

  std::string set;
  std::vector<std::string> paths;  // files, directories, "-"
  MappingOptions mapping;
  // Where rejected rows go; empty = `rejects_directory`/<set>-<16 hexadecimal digits>.rejects,
  // where the digits stand for this import. The directory is made if need be.
  std::string rejects;
  std::string rejects_directory;
  // Owners (mapping.token_column) are settled with the import: see ImportOwners.
  bool settle = false;
  int jobs = 0;  // threads, 1 to kJobsMax; 0 = one for each core
  // Set by a signal handler: the blocks in hand are finished and made durable, then RunImport
  // returns Cancelled.
  const std::atomic<bool>* stop = nullptr;
  // Called from one thread at a time, about ten times a second and at the end.
  std::function<void(const ImportStatus&)> progress;
  FileSystem* files = FileSystem::Posix();
  const Clock* clock = Clock::Real();
};

struct ImportReport {
  uint64_t rows = 0;  // added + duplicates + closed + rejected; blank lines are no rows
  uint64_t added = 0;
  uint64_t duplicates = 0;
  uint64_t closed = 0;  // their window was dropped and not reopened
  uint64_t rejected = 0;
  uint64_t blank = 0;
  uint64_t files = 0;
  uint64_t skipped_files = 0;  // hidden ones (see ListInputs)
  bool resumed = false;
  double seconds = 0;              // of this run
  double rows_per_second = 0;      // of this run: rows that a run before had done do not count
  std::string rejects;             // the path; empty when nothing was rejected at the default place
  CommonReject common_reject;      // why most of the rejected rows were
  std::vector<std::string> notes;  // for the user: what was started again, and why
};

// OK also when rows were rejected. Errors: InvalidArgument (options, nothing else), NotFound (no
// such path or set), DataLoss / Unavailable / FailedPrecondition (a file that cannot be read: names
// it; what was imported before stays, the same command goes on there), Cancelled (`stop`), and
// those of the store.
absl::StatusOr<ImportReport> RunImport(Store* store, const ImportOptions& options);

}  // namespace firstseen
