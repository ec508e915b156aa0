#include "ingest/import.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "base/checksum.h"
#include "base/mutex.h"
#include "base/status.h"
#include "ingest/block_mapper.h"
#include "ingest/import_stream.h"
#include "ingest/rejects.h"

namespace firstseen {
namespace {

// See import_stream.h. Part of what is recorded: changing them abandons interrupted imports.
constexpr size_t kStreams = 8;
constexpr size_t kLanes = 8;
constexpr int64_t kProgressNanos = 100'000'000;
// A log of this length takes some seconds to replay.
constexpr uint64_t kSnapshotLogBytes = 128ull << 20;

// A path as a name for the same thing tomorrow, from another directory.
std::string AbsolutePath(const std::string& path) {
  if (path == kStandardInput) return path;
  std::string result = std::filesystem::absolute(path).lexically_normal().string();
  while (result.size() > 1 && result.ends_with('/')) result.pop_back();
  return result;
}

// About the input, not about the options.
absl::Status OfInput(const absl::Status& status) {
  return absl::IsInvalidArgument(status) ? FailedPrecondition("{}", Message(status)) : status;
}

// Stands for "the same import": everything that decides what becomes of a row.
std::string JobId(const ImportOptions& options) {
  const MappingOptions& mapping = options.mapping;
  std::string text = options.set + '\0';
  for (const std::string& path : options.paths) text += AbsolutePath(path) + '\0';
  for (const std::string& column : mapping.columns) text += '\1' + column + '\0';
  text += fmt::format("{} {} {}", static_cast<int>(mapping.format.delimiter),
                      mapping.format.escape.has_value() ? int{*mapping.format.escape} : -1,
                      static_cast<int>(mapping.format.encoding));
  if (mapping.window_of.has_value()) text += fmt::format(" of {}", *mapping.window_of);
  for (const WindowId window : mapping.accept_windows) text += fmt::format(" accept {}", window);
  text += '\0' + mapping.time_column + '\0' + mapping.token_column;
  if (options.settle) text += " settle";
  return fmt::format("{:016x}", Checksum(text));
}

struct Lane {
  Lane(FileSystem* files, std::string source_name, std::string spool_path)
      : source(std::move(source_name)), spool(files, std::move(spool_path)) {}

  const std::string source;
  // Touched by one thread at a time: the one whose turn it is.
  RejectSpool spool;
  ImportPosition sums;  // only the sums are looked at
};

class ImportRun {
 public:
  ImportRun(Store* store, const ImportOptions& options)
      : store_(store), options_(options), job_(JobId(options)) {}

  absl::StatusOr<ImportReport> Run();

 private:
  struct Stream {
    std::unique_ptr<ImportStream> blocks;
    std::deque<Lane> lanes;
  };

  absl::Status Prepare();
  absl::Status PrepareRejects();
  absl::Status CheckFiles();
  absl::Status MakeStreams();
  absl::Status Resume();
  absl::StatusOr<std::string> FindPositions(
      std::vector<std::vector<std::optional<ImportPosition>>>* positions);
  absl::Status StartAgain();

  void Work(size_t thread);
  absl::Status WorkOn(Stream* stream, BlockMapper* mapper, char* buffer);
  absl::Status Apply(Stream* stream, const ImportWork& work, const BlockMapper& mapper,
                     std::vector<absl::Status>* statuses);
  void Fail(const absl::Status& status);
  bool Stopped() const {
    return failed_.load(std::memory_order_relaxed) ||
           (options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed));
  }
  void Tell(bool force);
  absl::Status Outcome();

  absl::Status Finish();
  std::string Prefix() const { return "import/" + job_ + "/"; }

  Store* const store_;
  const ImportOptions& options_;
  const std::string job_;
  SetOptions set_options_;
  InputListing listing_;
  std::vector<RejectSource> reject_sources_;
  std::string rejects_;
  std::vector<Stream> streams_;
  uint64_t bytes_total_ = 0;

  std::atomic<bool> failed_ = false;
  Mutex mutex_;
  absl::Status status_ GUARDED_BY(mutex_);
  ImportReport report_ GUARDED_BY(mutex_);
  uint64_t resumed_rows_ = 0;  // of report_.rows: from runs before
  Mutex progress_mutex_;
  int64_t progress_nanos_ GUARDED_BY(progress_mutex_) = 0;
};

absl::StatusOr<ImportReport> ImportRun::Run() {
  const int64_t start = options_.clock->MonotonicNanos();
  RETURN_IF_ERROR(Prepare());
  RETURN_IF_ERROR(Resume());
  int jobs = options_.jobs;
  if (jobs == 0) jobs = static_cast<int>(std::thread::hardware_concurrency());
  jobs = std::clamp(jobs, 1, ImportOptions::kJobsMax);
  std::vector<std::thread> threads;
  for (int i = 1; i < jobs; ++i) threads.emplace_back([this, i] { Work(static_cast<size_t>(i)); });
  Work(0);
  for (std::thread& thread : threads) thread.join();
  Tell(/*force=*/true);
  RETURN_IF_ERROR(Outcome());
  RETURN_IF_ERROR(Finish());
  const int64_t end = options_.clock->MonotonicNanos();
  // The rows are safe in the log by now; the snapshot is for the next start, which reads it many
  // times faster.
  if (store_->Stats().log_bytes >= kSnapshotLogBytes) RETURN_IF_ERROR(store_->Snapshot());
  MutexLock lock(mutex_);
  report_.seconds = static_cast<double>(end - start) / 1'000'000'000.0;
  const auto rows = static_cast<double>(report_.rows - resumed_rows_);
  report_.rows_per_second = report_.seconds > 0 ? rows / report_.seconds : 0;
  return report_;
}

// How the threads ended.
absl::Status ImportRun::Outcome() {
  absl::Status status;
  {
    MutexLock lock(mutex_);
    status = status_;
  }
  if (status.ok() && Stopped()) {
    // What is in shall stay in.
    RETURN_IF_ERROR(store_->ImportSync());
    return absl::CancelledError("the import was stopped; the same command goes on from here");
  }
  if (absl::IsAborted(status)) RETURN_IF_ERROR(StartAgain());
  return OfInput(status);
}

// ---- Before the first row.

absl::Status ImportRun::Prepare() {
  if (options_.jobs < 0 || options_.jobs > ImportOptions::kJobsMax) {
    return InvalidArgument("{} jobs; the limit is {}", options_.jobs, ImportOptions::kJobsMax);
  }
  if (options_.settle && options_.mapping.token_column.empty()) {
    return InvalidArgument("without a token column there are no owners to settle; name it");
  }
  ASSIGN_OR_RETURN(set_options_, store_->Options(options_.set));
  if (options_.mapping.window_of.has_value()) {
    RETURN_IF_ERROR(store_->AcceptsWindow(options_.set, *options_.mapping.window_of));
  }
  absl::StatusOr<InputListing> listing = ListInputs(options_.files, options_.paths);
  if (!listing.ok()) return OfInput(listing.status());
  listing_ = *std::move(listing);
  RETURN_IF_ERROR(CheckFiles());
  RETURN_IF_ERROR(PrepareRejects());
  bool pipe = false;
  for (const InputFile& file : listing_.files) {
    bytes_total_ += file.size_bytes;
    pipe = pipe || file.stream;
  }
  if (pipe) bytes_total_ = 0;
  {
    MutexLock lock(mutex_);
    report_.files = listing_.files.size();
    report_.skipped_files = listing_.skipped_files;
  }
  return MakeStreams();
}

// Every file can be opened, is what its name says and has the columns: better to know before the
// first row is in.
absl::Status ImportRun::CheckFiles() {
  for (const InputFile& file : listing_.files) {
    ASSIGN_OR_RETURN(const RowMapper mapper,
                     RowMapper::Create(set_options_, options_.mapping, file));
    if (!file.stream) {
      RETURN_IF_ERROR(OfInput(OpenByteStream(options_.files, file).status()));
    }
    RejectSource source{.path = file.path, .folder = {}};
    if (mapper.uses_folders()) {
      for (const PartitionValue& value : file.partition) {
        source.folder += (source.folder.empty() ? "" : "/") + value.folder;
      }
    }
    reject_sources_.push_back(std::move(source));
  }
  return absl::OkStatus();
}

absl::Status ImportRun::PrepareRejects() {
  if (options_.rejects.empty()) {
    RETURN_IF_ERROR(options_.files->CreateDirectory(options_.rejects_directory));
    rejects_ = fmt::format("{}/{}-{}.rejects", options_.rejects_directory, options_.set, job_);
    return absl::OkStatus();
  }
  rejects_ = options_.rejects;
  ASSIGN_OR_RETURN(const bool exists, options_.files->Exists(ParentDirectory(rejects_)));
  if (!exists) {
    return InvalidArgument("{}: the directory for the rejects file does not exist; make it",
                           ParentDirectory(rejects_));
  }
  const std::string absolute = AbsolutePath(rejects_);
  for (const std::string& path : options_.paths) {
    const std::string input = AbsolutePath(path);
    for (const char* suffix : {"", ".reasons", ".d"}) {
      if (absolute + suffix == input || (absolute + suffix).starts_with(input + "/")) {
        return InvalidArgument(
            "{}: the rejects file would lie where the input is read from; name another place",
            rejects_);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status ImportRun::MakeStreams() {
  const bool ordered = !options_.mapping.token_column.empty();
  const size_t streams = ordered ? 1 : kStreams;
  const size_t lanes = ordered ? 1 : kLanes;
  streams_.resize(streams);
  for (size_t s = 0; s < streams; ++s) {
    streams_[s].blocks =
        std::make_unique<ImportStream>(options_.files, listing_.files, s, streams, lanes);
    for (size_t l = 0; l < lanes; ++l) {
      streams_[s].lanes.emplace_back(options_.files, fmt::format("{}{}.{}", Prefix(), s, l),
                                     fmt::format("{}.{}.{}.part", rejects_, job_, s * lanes + l));
    }
  }
  return absl::OkStatus();
}

// Fills in what the set has recorded. Returns why none of it can be used, or nothing.
absl::StatusOr<std::string> ImportRun::FindPositions(
    std::vector<std::vector<std::optional<ImportPosition>>>* positions) {
  std::string obstacle;
  for (Stream& stream : streams_) {
    auto& of_stream = positions->emplace_back(stream.lanes.size());
    for (size_t l = 0; l < stream.lanes.size(); ++l) {
      Lane& lane = stream.lanes[l];
      const std::optional<ImportState> state = store_->FindImport(options_.set, lane.source);
      if (!state.has_value()) {
        RETURN_IF_ERROR(lane.spool.Remove());
        continue;
      }
      const std::optional<ImportPosition> position = ParsePosition(state->position);
      if (!position.has_value() || !stream.blocks->Matches(l, *position)) {
        obstacle = "the input has changed (files added, removed or rewritten)";
        continue;
      }
      const absl::Status spool = lane.spool.Resume(position->rejects_bytes);
      if (!spool.ok() && !absl::IsDataLoss(spool)) return spool;
      if (!spool.ok()) obstacle = Message(spool);
      lane.sums = *position;
      of_stream[l] = position;
      MutexLock lock(mutex_);
      report_.resumed = true;
      report_.rows += position->rows;
      report_.rejected += position->rejected;
      report_.blank += position->blank;
      report_.added += state->totals.added;
      report_.duplicates += state->totals.duplicates;
      report_.closed += state->totals.closed;
    }
  }
  return obstacle;
}

absl::Status ImportRun::Resume() {
  std::vector<std::vector<std::optional<ImportPosition>>> positions;
  ASSIGN_OR_RETURN(const std::string obstacle, FindPositions(&positions));
  if (!obstacle.empty()) {
    RETURN_IF_ERROR(StartAgain());
    MutexLock lock(mutex_);
    report_.notes.push_back(fmt::format(
        "this import was interrupted before, but {}: everything is read again, and what is in the "
        "set already counts as duplicate",
        obstacle));
    return absl::OkStatus();
  }
  for (size_t s = 0; s < streams_.size(); ++s) streams_[s].blocks->Resume(positions[s]);
  MutexLock lock(mutex_);
  resumed_rows_ = report_.rows;
  return absl::OkStatus();
}

absl::Status ImportRun::StartAgain() {
  RETURN_IF_ERROR(store_->ForgetImports(options_.set, Prefix()));
  for (Stream& stream : streams_) {
    for (Lane& lane : stream.lanes) {
      RETURN_IF_ERROR(lane.spool.Remove());
      lane.sums = {};
    }
  }
  MutexLock lock(mutex_);
  ImportReport fresh;
  fresh.files = report_.files;
  fresh.skipped_files = report_.skipped_files;
  report_ = std::move(fresh);
  return absl::OkStatus();
}

// ---- The work.

void ImportRun::Work(size_t thread) {
  BlockMapper mapper(store_, options_.set, set_options_, options_.mapping, listing_.files);
  const auto buffer = std::make_unique_for_overwrite<char[]>(kBlockBytes);
  for (size_t i = 0; i < streams_.size() && !Stopped(); ++i) {
    const absl::Status status =
        WorkOn(&streams_[(thread + i) % streams_.size()], &mapper, buffer.get());
    if (!status.ok()) Fail(status);
  }
}

absl::Status ImportRun::WorkOn(Stream* stream, BlockMapper* mapper, char* buffer) {
  ImportWork work;
  std::vector<absl::Status> statuses;
  while (!Stopped()) {
    ASSIGN_OR_RETURN(const bool more, stream->blocks->Next(buffer, &work));
    if (!more) return absl::OkStatus();
    RETURN_IF_ERROR(mapper->Map(work));
    if (!stream->blocks->WaitTurn(work.position.block)) return absl::OkStatus();
    RETURN_IF_ERROR(Apply(stream, work, *mapper, &statuses));
    stream->blocks->Done(work.position.block);
    Tell(/*force=*/false);
  }
  return absl::OkStatus();
}

absl::Status ImportRun::Apply(Stream* stream, const ImportWork& work, const BlockMapper& mapper,
                              std::vector<absl::Status>* statuses) {
  Lane& lane = stream->lanes[work.position.block % stream->lanes.size()];
  // On disk before the position that counts them.
  if (!mapper.reject_frames().empty()) RETURN_IF_ERROR(lane.spool.Append(mapper.reject_frames()));
  const uint64_t rows = mapper.rows().size() + mapper.rejected();
  ImportPosition position = work.position;
  position.rows = lane.sums.rows + rows;
  position.rejected = lane.sums.rejected + mapper.rejected();
  position.blank = lane.sums.blank + mapper.blank();
  position.rejects_bytes = lane.spool.bytes();
  const ImportOwners owners = options_.settle ? ImportOwners::kSettled : ImportOwners::kUnsettled;
  statuses->assign(mapper.rows().size(), absl::OkStatus());
  ASSIGN_OR_RETURN(const ImportTotals totals,
                   store_->Import(options_.set, lane.source, FormatPosition(position),
                                  mapper.rows(), owners, *statuses));
  lane.sums = position;
  for (size_t i = 0; i < statuses->size(); ++i) {
    if (!(*statuses)[i].ok()) {
      return Annotate((*statuses)[i], fmt::format("{}, line {}: not taken by the set",
                                                  listing_.files[work.file].path, mapper.line(i)));
    }
  }
  MutexLock lock(mutex_);
  report_.rows += rows;
  report_.added += totals.added;
  report_.duplicates += totals.duplicates;
  report_.closed += totals.closed;
  report_.rejected += mapper.rejected();
  report_.blank += mapper.blank();
  return absl::OkStatus();
}

void ImportRun::Fail(const absl::Status& status) {
  {
    MutexLock lock(mutex_);
    if (status_.ok()) status_ = status;
  }
  failed_.store(true, std::memory_order_relaxed);
  for (Stream& stream : streams_) stream.blocks->Abort();
}

void ImportRun::Tell(bool force) {
  if (options_.progress == nullptr) return;
  MutexLock lock(progress_mutex_);
  const int64_t now = options_.clock->MonotonicNanos();
  if (!force && now - progress_nanos_ < kProgressNanos) return;
  progress_nanos_ = now;
  ImportStatus status;
  status.bytes_total = bytes_total_;
  for (const Stream& stream : streams_) {
    status.bytes_done += stream.blocks->consumed_bytes();
    status.resumed_bytes += stream.blocks->resumed_bytes();
  }
  {
    MutexLock report_lock(mutex_);
    status.rows = report_.rows;
  }
  options_.progress(status);
}

// ---- After the last row. Until the positions are forgotten, all of it can be done again.

absl::Status ImportRun::Finish() {
  RETURN_IF_ERROR(store_->ImportSync());
  std::vector<const RejectSpool*> spools;
  for (const Stream& stream : streams_) {
    for (const Lane& lane : stream.lanes) spools.push_back(&lane.spool);
  }
  const bool keep_empty = !options_.rejects.empty();
  ASSIGN_OR_RETURN(CommonReject common,
                   WriteRejects(options_.files, spools, reject_sources_, rejects_, keep_empty));
  RETURN_IF_ERROR(store_->ForgetImports(options_.set, Prefix()));
  RETURN_IF_ERROR(store_->ImportSync());
  MutexLock lock(mutex_);
  for (Stream& stream : streams_) {
    for (Lane& lane : stream.lanes) {
      const absl::Status removed = lane.spool.Remove();
      if (!removed.ok()) report_.notes.push_back(std::string(Message(removed)));
    }
  }
  report_.common_reject = std::move(common);
  if (keep_empty || report_.rejected > 0) report_.rejects = rejects_;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ImportReport> RunImport(Store* store, const ImportOptions& options) {
  return ImportRun(store, options).Run();
}

}  // namespace firstseen
