#include "billing/inbox.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "ingest/decompress.h"

namespace firstseen {
namespace {

// What is wrong with the file itself; anything else (a disk that cannot be read) ends the run.
bool IsFilesFault(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsDataLoss(status);
}

constexpr std::string_view kReasonsHeader = "file\tline\tfield\treason\tremedy\n";
constexpr std::string_view kRemedy = "mend it and put it into the inbox again";

// A line of a reasons file, as those of `import` are. A message is "reason; remedy".
std::string ReasonLine(std::string_view file, std::string_view line, std::string_view column,
                       std::string_view message) {
  constexpr std::string_view kBetween = "; ";
  const size_t at = message.find(kBetween);
  const std::string_view remedy =
      at == std::string_view::npos ? kRemedy : message.substr(at + kBetween.size());
  return fmt::format("{}\t{}\t{}\t{}\t{}\n", file, line, column, message.substr(0, at), remedy);
}

}  // namespace

absl::Status Inbox::Recover() {
  const InboxConfig& inbox = context_.config.inbox;
  for (const std::string& directory : {inbox.directory, inbox.done, inbox.failed}) {
    RETURN_IF_ERROR(MakeDirectories(context_.files, directory));
    ASSIGN_OR_RETURN(const uint32_t mode, context_.files->Permissions(directory));
    if ((mode & 07) == 0) continue;
    spdlog::warn("{} holds personal data and is open to everybody (mode {:04o}): run chmod 0700 {}",
                 directory, mode, directory);
  }
  ASSIGN_OR_RETURN(const std::vector<InboxFileRow> open, context_.ledger->OpenFiles());
  for (const InboxFileRow& file : open) {
    // Decisions on held rows; see held.h.
    if (!file.name.empty()) RETURN_IF_ERROR(RecoverFile(file));
  }
  return WarnOfMissingDecisions();
}

absl::Status Inbox::WarnOfMissingDecisions() {
  const std::string& done = context_.config.inbox.done;
  ASSIGN_OR_RETURN(const std::vector<std::string> taken, context_.ledger->DecidedFiles());
  ASSIGN_OR_RETURN(const std::vector<std::string> without,
                   FilesWithoutDecisions(context_.files, done, taken));
  for (const std::string& name : without) {
    spdlog::warn(
        "{}/{}{} is missing: restore it from your backup. Rows that only it can know go to {} "
        "until then",
        done, name, kDecisionsSuffix, context_.config.inbox.failed);
  }
  return absl::OkStatus();
}

absl::Status Inbox::RecoverFile(const InboxFileRow& file) {
  ASSIGN_OR_RETURN(const bool moved,
                   context_.files->Exists(file.failing ? FailedPath(file) : DonePath(file)));
  if (moved) {
    RETURN_IF_ERROR(context_.Step("recover"));
    return context_.ledger->CloseFile(file.id);
  }
  ASSIGN_OR_RETURN(const bool there, context_.files->Exists(InboxPath(file)));
  if (there) return TakeRegistered(file);
  return FailedPrecondition(
      "{} was taken in part when a run stopped, and is gone from the inbox: put it back (an empty "
      "file of this name gives up its other rows)",
      InboxPath(file));
}

absl::StatusOr<std::vector<std::string>> Inbox::ReadyFiles() {
  const std::string& directory = context_.config.inbox.directory;
  ASSIGN_OR_RETURN(std::vector<std::string> names, context_.files->List(directory));
  std::vector<std::string> ready;
  for (std::string& name : names) {
    if (name.starts_with('.') || name.ends_with(".tmp")) continue;
    const std::string path = directory + "/" + name;
    ASSIGN_OR_RETURN(const bool regular, context_.files->IsRegularFile(path));
    if (regular) {
      ready.push_back(std::move(name));
    } else {
      // To open a pipe would wait for its writer, and a link to nothing can never be taken.
      spdlog::warn("{} is no regular file: left alone", path);
    }
  }
  std::ranges::sort(ready);
  return ready;
}

absl::Status Inbox::TakeAll(absl::Time now) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ReadyFiles());
  for (const std::string& name : names) {
    if (context_.options.stop != nullptr && context_.options.stop->load()) break;
    RETURN_IF_ERROR(Take(name, now));
  }
  if (to_close_.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(context_.Step("close files"));
  return context_.ledger->Transact([this] { return CloseMoved(); });
}

absl::Status Inbox::CloseMoved() {
  for (const int64_t id : to_close_) RETURN_IF_ERROR(context_.ledger->CloseFile(id));
  to_close_.clear();
  return absl::OkStatus();
}

// The name in done/ and failed/: that of the file, with its number before it if it was there
// before.
absl::StatusOr<std::string> Inbox::StoredName(const std::string& name, int64_t id) {
  const InboxConfig& inbox = context_.config.inbox;
  const std::string_view plain = WithoutCompression(name);
  for (const std::string& path :
       {fmt::format("{}/{}", inbox.done, name),
        fmt::format("{}/{}{}", inbox.done, name, kDecisionsSuffix),
        fmt::format("{}/{}", inbox.failed, name), fmt::format("{}/{}", inbox.failed, plain),
        fmt::format("{}/{}{}", inbox.failed, name, kReasonsSuffix),
        fmt::format("{}/{}{}", inbox.failed, plain, kReasonsSuffix)}) {
    ASSIGN_OR_RETURN(const bool taken, context_.files->Exists(path));
    if (taken) return fmt::format("{}.{}", id, name);
  }
  return name;
}

absl::Status Inbox::Take(const std::string& name, absl::Time now) {
  RETURN_IF_ERROR(context_.Step("register"));
  InboxFileRow file;
  file.name = name;
  file.seen_ms = absl::ToUnixMillis(now);
  RETURN_IF_ERROR(context_.ledger->Transact([&]() -> absl::Status {
    RETURN_IF_ERROR(CloseMoved());
    ASSIGN_OR_RETURN(file.id, context_.ledger->RegisterFile(file));
    ASSIGN_OR_RETURN(file.stored_name, StoredName(name, file.id));
    return context_.ledger->SetStoredName(file.id, file.stored_name);
  }));
  return TakeRegistered(file);
}

absl::Status Inbox::CheckReadable(const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<TransactionReader> reader,
                   TransactionReader::Open(context_.files, PlainInput(path), *context_.schema));
  ASSIGN_OR_RETURN(const Compression compression, CompressionOf(path));
  if (compression == Compression::kNone) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::unique_ptr<LineReader> lines, LineReader::Open(context_.files, path));
  Line line;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, lines->Next(&line));
    if (!more) return absl::OkStatus();
  }
}

absl::Status Inbox::TakeRegistered(const InboxFileRow& file) {
  const std::string path = InboxPath(file);
  absl::Status readable = CheckReadable(path);
  if (file.failing && readable.ok()) {
    // Somebody has mended it meanwhile; its fate was sealed, under a new name it is welcome.
    readable = InvalidArgument("{}: could not be read; put it into the inbox again", path);
  }
  if (!readable.ok()) {
    return IsFilesFault(readable) ? FinishFailed(file, readable) : readable;
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<TransactionReader> reader,
                   TransactionReader::Open(context_.files, PlainInput(path), *context_.schema));
  file_ = file;
  ASSIGN_OR_RETURN(digest_, DigestFile(context_.files, path));
  bad_rows_.reset();
  reasons_.reset();
  RETURN_IF_ERROR(context_.Step("begin decisions"));
  ASSIGN_OR_RETURN(decisions_, DecisionsWriter::Create(context_.files, DonePath(file), file.id));
  RETURN_IF_ERROR(TakeRows(file, reader.get()));
  return FinishDone(file);
}

absl::Status Inbox::TakeRows(const InboxFileRow& file, TransactionReader* reader) {
  bool more = true;
  InboxRow row;
  while (more) {
    IntakeChunk chunk(context_, file.id);
    while (!chunk.full()) {
      ASSIGN_OR_RETURN(more, reader->Next(&row));
      if (!more) break;
      chunk.Add(std::move(row));
    }
    RETURN_IF_ERROR(chunk.Process());
    RETURN_IF_ERROR(WriteRows(chunk, *reader));
  }
  return absl::OkStatus();
}

absl::Status Inbox::WriteRows(const IntakeChunk& chunk, const TransactionReader& reader) {
  for (const IntakeChunk::Row& row : chunk.rows()) {
    if (!row.status.ok()) RETURN_IF_ERROR(WriteBadRow(row, reader));
    RETURN_IF_ERROR(decisions_->Append(row.decision));
  }
  return absl::OkStatus();
}

absl::Status Inbox::WriteBadRow(const IntakeChunk::Row& row, const TransactionReader& reader) {
  if (bad_rows_ == nullptr) {
    RETURN_IF_ERROR(context_.Step("begin bad rows"));
    const std::string path = BadRowsPath(file_);
    ASSIGN_OR_RETURN(bad_rows_, OutputFile::Create(context_.files, path));
    ASSIGN_OR_RETURN(reasons_,
                     OutputFile::Create(context_.files, path + std::string(kReasonsSuffix)));
    RETURN_IF_ERROR(bad_rows_->Append(reader.header()));
    RETURN_IF_ERROR(reasons_->Append(kReasonsHeader));
  }
  RETURN_IF_ERROR(bad_rows_->Append(row.raw));
  RETURN_IF_ERROR(bad_rows_->Append("\n"));
  return reasons_->Append(
      ReasonLine(DonePath(file_), fmt::format("{}", row.line), row.column, Message(row.status)));
}

absl::Status Inbox::CheckUnchanged(const InboxFileRow& file) {
  ASSIGN_OR_RETURN(const FileDigest now, DigestFile(context_.files, InboxPath(file)));
  if (now == digest_) return absl::OkStatus();
  return FailedPrecondition(
      "{} was changed while it was taken: write under a name that ends in .tmp, then rename; the "
      "next run takes the file again from its first row",
      InboxPath(file));
}

absl::Status Inbox::FinishDone(const InboxFileRow& file) {
  const InboxConfig& inbox = context_.config.inbox;
  RETURN_IF_ERROR(CheckUnchanged(file));
  if (bad_rows_ != nullptr) {
    RETURN_IF_ERROR(context_.Step("write bad rows"));
    RETURN_IF_ERROR(reasons_->Commit());
    RETURN_IF_ERROR(bad_rows_->Commit());
    RETURN_IF_ERROR(context_.files->SyncDirectory(inbox.failed));
    spdlog::warn("{}: bad rows in {}", file.name, BadRowsPath(file));
  }
  RETURN_IF_ERROR(context_.Step("write decisions"));
  RETURN_IF_ERROR(decisions_->Commit(digest_));
  RETURN_IF_ERROR(context_.files->SyncDirectory(inbox.done));
  RETURN_IF_ERROR(context_.Step("move to done"));
  RETURN_IF_ERROR(context_.files->Rename(InboxPath(file), DonePath(file)));
  RETURN_IF_ERROR(context_.Step("sync move to done"));
  RETURN_IF_ERROR(context_.files->SyncDirectory(inbox.done));
  RETURN_IF_ERROR(context_.files->SyncDirectory(inbox.directory));
  to_close_.push_back(file.id);
  ++context_.report->files_done;
  spdlog::debug("{}: done", file.name);
  return absl::OkStatus();
}

absl::Status Inbox::FinishFailed(const InboxFileRow& file, const absl::Status& reason) {
  const InboxConfig& inbox = context_.config.inbox;
  RETURN_IF_ERROR(context_.Step("mark as failing"));
  RETURN_IF_ERROR(context_.ledger->MarkFailing(file.id));
  RETURN_IF_ERROR(context_.Step("write reason"));
  ASSIGN_OR_RETURN(
      const std::unique_ptr<OutputFile> reasons,
      OutputFile::Create(context_.files, FailedPath(file) + std::string(kReasonsSuffix)));
  RETURN_IF_ERROR(reasons->Append(kReasonsHeader));
  RETURN_IF_ERROR(reasons->Append(ReasonLine(FailedPath(file), "", "", Message(reason))));
  RETURN_IF_ERROR(reasons->Commit());
  RETURN_IF_ERROR(context_.files->SyncDirectory(inbox.failed));
  RETURN_IF_ERROR(context_.Step("move to failed"));
  RETURN_IF_ERROR(context_.files->Rename(InboxPath(file), FailedPath(file)));
  RETURN_IF_ERROR(context_.files->SyncDirectory(inbox.failed));
  RETURN_IF_ERROR(context_.files->SyncDirectory(inbox.directory));
  to_close_.push_back(file.id);
  ++context_.report->files_failed;
  spdlog::warn("{}: cannot be used; moved to {}, with the reason beside it", file.name,
               inbox.failed);
  return absl::OkStatus();
}

}  // namespace firstseen
