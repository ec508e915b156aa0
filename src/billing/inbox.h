// From the inbox to done/ or failed/: which files are ready, and that each is taken once.
//
// A file is registered (ledger), its rows taken chunk by chunk, then in this order, each durable
// before the next: bad rows and their reasons in failed/, the decision file in done/, the file
// itself renamed to done/, the registration closed. A run that stops in between finds the file
// still in the inbox and takes it again from the start, or in done/ and closes it. A file that is
// unreadable as a whole is marked, its reason written, and it is renamed to failed/.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "billing/decisions.h"
#include "billing/intake_chunk.h"
#include "billing/ledger.h"
#include "billing/output_file.h"
#include "billing/run_context.h"
#include "billing/sha256.h"

namespace firstseen {

inline constexpr std::string_view kReasonsSuffix = ".reasons";

class Inbox {
 public:
  explicit Inbox(const RunContext& context) : context_(context) {}

  // Makes the directories, and ends or continues what an earlier run left open. Call it before all
  // else. FailedPrecondition: a file that was taken in part is gone.
  absl::Status Recover();
  // Takes the files that are ready, in name order, until all are done or `stop` is set.
  absl::Status TakeAll(absl::Time now);

 private:
  absl::StatusOr<std::vector<std::string>> ReadyFiles();
  absl::Status Take(const std::string& name, absl::Time now);
  absl::Status TakeRegistered(const InboxFileRow& file);
  absl::Status TakeRows(const InboxFileRow& file, TransactionReader* reader);
  absl::Status WriteRows(const IntakeChunk& chunk, const TransactionReader& reader);
  absl::Status WriteBadRow(const IntakeChunk::Row& row, const TransactionReader& reader);
  // FailedPrecondition: the file is not what it was when it was begun.
  absl::Status CheckUnchanged(const InboxFileRow& file);
  // Says which files in done/ lack their decisions: some rows cannot be decided until they are
  // back.
  absl::Status WarnOfMissingDecisions();
  absl::Status FinishDone(const InboxFileRow& file);
  absl::Status FinishFailed(const InboxFileRow& file, const absl::Status& reason);
  absl::Status RecoverFile(const InboxFileRow& file);
  // OK when the file can be read to its end, InvalidArgument or DataLoss when it cannot be used.
  absl::Status CheckReadable(const std::string& path);
  // Closes the registrations of files that were moved: in the SQL transaction that registers the
  // next file, to save one.
  absl::Status CloseMoved();
  absl::StatusOr<std::string> StoredName(const std::string& name, int64_t id);

  std::string InboxPath(const InboxFileRow& file) const {
    return context_.config.inbox.directory + "/" + file.name;
  }
  std::string DonePath(const InboxFileRow& file) const {
    return context_.config.inbox.done + "/" + file.stored_name;
  }
  // Bad rows are written plain, whatever the file was.
  std::string BadRowsPath(const InboxFileRow& file) const {
    return context_.config.inbox.failed + "/" + std::string(WithoutCompression(file.stored_name));
  }
  std::string FailedPath(const InboxFileRow& file) const {
    return context_.config.inbox.failed + "/" + file.stored_name;
  }

  const RunContext& context_;
  InboxFileRow file_;  // in hand
  FileDigest digest_;  // of it, when it was begun
  std::unique_ptr<DecisionsWriter> decisions_;
  std::unique_ptr<OutputFile> bad_rows_;
  std::unique_ptr<OutputFile> reasons_;
  std::vector<int64_t> to_close_;
};

}  // namespace firstseen
