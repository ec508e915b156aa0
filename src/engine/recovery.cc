// A data directory: making it, opening it (newest snapshot, then the log), closing it.
#include <algorithm>
#include <utility>

#include "base/checksum.h"
#include "base/status.h"
#include "engine/engine_impl.h"
#include "engine/log_format.h"
#include "engine/records.h"
#include "engine/replay.h"
#include "engine/snapshot_load.h"

namespace firstseen {
namespace {

constexpr std::string_view kMetaTitle = "firstseen data directory, format 1";

std::string EncodeMeta(const EngineOptions& options) {
  std::string text = fmt::format("{}\nkey-check-value {}\n", kMetaTitle, options.key_check_value);
  return text + fmt::format("checksum {:016x}\n", Checksum(text));
}

// What a snapshot or the meta file left behind when the power went away.
absl::Status RemoveTemporaries(FileSystem* files, const std::string& directory) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, files->List(directory));
  for (const std::string& name : names) {
    const bool ours = name.starts_with("snapshot-") || name.starts_with("meta.");
    if (!ours || !name.ends_with(".tmp")) continue;
    RETURN_IF_ERROR(files->Remove(directory + "/" + name));
  }
  return absl::OkStatus();
}

// Log::Open would begin a new log in an empty directory.
absl::Status RequireLog(FileSystem* files, const std::string& directory) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, files->List(directory));
  const bool any = std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return ParseSegmentName(name).has_value();
  });
  if (any) return absl::OkStatus();
  return DataLoss(
      "{}: all log files (*.log) are missing; `firstseen repair` lists what that loses, and goes "
      "on without them when told to",
      directory);
}

}  // namespace

std::string LockPath(const std::string& directory) { return directory + "/lock"; }
std::string MetaPath(const std::string& directory) { return directory + "/meta"; }

Log::Options LogOptions(const EngineOptions& options) {
  return {.files = options.files,
          .directory = options.directory,
          .segment_bytes = options.log_segment_bytes};
}

absl::StatusOr<std::vector<uint64_t>> ListSnapshots(FileSystem* files,
                                                    const std::string& directory) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, files->List(directory));
  std::vector<uint64_t> snapshots;
  for (const std::string& name : names) {
    if (const std::optional<uint64_t> after = ParseSnapshotName(name)) snapshots.push_back(*after);
  }
  std::sort(snapshots.begin(), snapshots.end());
  return snapshots;
}

absl::Status CheckMeta(const EngineOptions& options) {
  const std::string path = MetaPath(options.directory);
  const absl::StatusOr<std::string> text = ReadFile(options.files, path);
  if (text.status().code() == absl::StatusCode::kNotFound) {
    return NotFound("{} is no data directory: it has no file meta", options.directory);
  }
  RETURN_IF_ERROR(text.status());
  if (*text == EncodeMeta(options)) return absl::OkStatus();
  if (!text->starts_with(kMetaTitle)) {
    return DataLoss("{}: damaged, or written by another version of firstseen", path);
  }
  const size_t at = std::min(text->rfind("checksum "), text->size());
  if (text->substr(at) != fmt::format("checksum {:016x}\n", Checksum(text->substr(0, at)))) {
    return DataLoss("{}: the checksum is wrong", path);
  }
  return FailedPrecondition("{} was made with another key; give the key file it was made with",
                            options.directory);
}

absl::Status Engine::Create(const EngineOptions& options) {
  FileSystem* files = options.files;
  const std::string& directory = options.directory;
  if (options.key_check_value.find('\n') != std::string::npos) {
    return InvalidArgument("the key check value has more than one line");
  }
  RETURN_IF_ERROR(files->CreateDirectory(directory));
  RETURN_IF_ERROR(files->SyncDirectory(ParentDirectory(directory)));
  ASSIGN_OR_RETURN(const std::unique_ptr<FileLock> lock,
                   files->Lock(LockPath(directory), options.holder));
  ASSIGN_OR_RETURN(const bool exists, files->Exists(MetaPath(directory)));
  if (exists) return AlreadyExists("{} is a data directory already", directory);

  // The meta file comes last: it says that the rest is there. A log without it may be what an
  // interrupted Create left, but then there is nothing in it.
  const absl::Status in_use =
      FailedPrecondition("{} holds data but no file meta; restore that file", directory);
  ASSIGN_OR_RETURN(const std::vector<uint64_t> snapshots, ListSnapshots(files, directory));
  if (!snapshots.empty()) return in_use;
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Log> log,
      Log::Open(LogOptions(options), 0, [&](uint64_t, std::string_view) { return in_use; }));
  RETURN_IF_ERROR(log->Close());
  return WriteFileAtomically(files, MetaPath(directory), EncodeMeta(options));
}

absl::StatusOr<std::unique_ptr<Engine>> Engine::Open(const EngineOptions& options) {
  auto engine = std::make_unique<EngineImpl>(options);
  RETURN_IF_ERROR(engine->Recover());
  return engine;
}

EngineImpl::EngineImpl(const EngineOptions& options)
    : options_(options), state_(options.memory_bytes_max) {}

EngineImpl::~EngineImpl() {
  // Whoever wants to know whether this worked calls Close before.
  if (log_ != nullptr) Close().IgnoreError();
}

absl::Status EngineImpl::Recover() {
  FileSystem* files = options_.files;
  const std::string& directory = options_.directory;
  RETURN_IF_ERROR(CheckMeta(options_));
  ASSIGN_OR_RETURN(lock_, files->Lock(LockPath(directory), options_.holder));
  RETURN_IF_ERROR(RemoveTemporaries(files, directory));
  opened_nanos_ = options_.clock->MonotonicNanos();

  LoadedSnapshot snapshot;
  ASSIGN_OR_RETURN(const std::vector<uint64_t> snapshots, ListSnapshots(files, directory));
  const uint64_t after = snapshots.empty() ? 0 : snapshots.back();
  if (!snapshots.empty()) {
    const std::string path = directory + "/" + SnapshotName(after);
    ASSIGN_OR_RETURN(snapshot, LoadSnapshot(files, path, &state_));
    if (snapshot.header.after != after) return DataLoss("{}: has another file's name", path);
  }
  RETURN_IF_ERROR(RequireLog(files, directory));
  Replayer replayer(&state_, snapshot.header.open_ms);
  const auto replay = [&](uint64_t sequence, std::string_view record) {
    return replayer.Apply(sequence, record);
  };
  ASSIGN_OR_RETURN(log_, Log::Open(LogOptions(options_), after, replay));
  if (log_->last_appended() < snapshot.footer.durable) {
    return DataLoss(
        "{}: the log ends at record {}, but the snapshot knows record {}; `repair` "
        "goes on without what is missing",
        directory, log_->last_appended(), snapshot.footer.durable);
  }
  open_ms_before_ = replayer.open_ms();
  open_ms_recorded_ = open_ms_before_;
  {
    MutexLock lock(snapshot_mutex_);
    has_snapshot_ = !snapshots.empty();
    snapshot_after_ = after;
  }
  snapshot_bytes_ = snapshot.bytes;
  snapshot_created_ms_ = snapshot.header.created_ms;
  RETURN_IF_ERROR(RemoveReplaced(after));
  StartThreads();
  return absl::OkStatus();
}

absl::Status EngineImpl::Close() {
  if (closed_) return log_->Close();
  closed_ = true;
  StopThreads();
  RecordOpenTime(OpenMs());
  const absl::Status status = log_->Close();
  lock_.reset();
  return status;
}

}  // namespace firstseen
