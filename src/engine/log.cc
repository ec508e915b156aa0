#include "engine/log.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <limits>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "engine/log_format.h"
#include "engine/log_reader.h"
#include "engine/log_segment.h"

namespace firstseen {
namespace {

constexpr uint64_t kFramePayloadBytesMax = 1 << 20;  // a longer record has a frame of its own
constexpr uint64_t kReserveBytesMax = 8 << 20;

// Records that are written and checksummed together.
struct PendingFrame {
  std::string bytes = std::string(kFrameHeaderBytes, '\0');  // room for the header, then payload
  uint64_t first_sequence = 0;
  uint32_t count = 0;

  uint64_t payload_bytes() const { return bytes.size() - kFrameHeaderBytes; }
  uint64_t last_sequence() const { return first_sequence + count - 1; }
};

// One thread writes. Appenders fill `queue_` under `mutex_`; the writer takes the queue out, writes
// and syncs it without the lock, publishes `durable_` and wakes the waiters by a new `epoch_`.
//
// Two ways of failing. Broken: log data could not be written or synced; for good. Full: the disk
// had no room for the next segment; the frames wait in `backlog_`, every call to WaitForSpace or
// WaitDurable has the writer try once more.
class LogImpl : public Log {
 public:
  LogImpl(Options options, const LogContents& contents)
      : options_(std::move(options)),
        reserve_bytes_(std::min(options_.segment_bytes / 4, kReserveBytesMax)),
        frame_payload_bytes_max_(
            std::min(kFramePayloadBytesMax,
                     options_.segment_bytes - kSegmentHeaderBytes - 2 * kFrameHeaderBytes)),
        segment_(options_.files, options_.directory, options_.segment_bytes),
        written_(contents.last_sequence),
        appended_(contents.last_sequence),
        durable_(contents.last_sequence) {
    for (const LogSegment& segment : contents.segments) {
      segments_.push_back({segment.first_sequence, segment.used_bytes});
    }
  }

  // Whoever wants to know whether this worked calls Close before.
  ~LogImpl() override { Close().IgnoreError(); }

  absl::Status Start(const LogContents& contents) {
    if (contents.segments.empty()) {
      RETURN_IF_ERROR(segment_.Prepare(0));
      RETURN_IF_ERROR(segment_.Switch(
          {.first_sequence = written_ + 1, .previous_last = written_, .durable = written_}));
      segments_.push_back({written_ + 1, segment_.used_bytes()});
    } else {
      RETURN_IF_ERROR(segment_.Resume(contents));
    }
    marked_ = contents.known_durable;
    last_sync_nanos_ = clock_->MonotonicNanos();
    room_ = segment_.room();
    thread_ = std::thread([this] { Run(); });
    return absl::OkStatus();
  }

  absl::Status Close() override {
    MutexLock admin(admin_mutex_);
    {
      MutexLock lock(mutex_);
      if (closed_) return close_status_;
      closed_ = true;
      pressure_.store(true, std::memory_order_release);
      work_.NotifyOne();
    }
    if (thread_.joinable()) thread_.join();
    MutexLock lock(mutex_);
    return close_status_;
  }

  uint64_t Append(std::string_view record) override {
    FIRSTSEEN_CHECK(record.size() <= options_.queue_bytes_max &&
                    record.size() <= std::numeric_limits<uint32_t>::max());
    MutexLock lock(mutex_);
    if (!broken_.ok() || closed_) return 0;
    const uint64_t bytes = kRecordHeaderBytes + record.size();
    if (queue_.empty() || queue_.back().payload_bytes() + bytes > frame_payload_bytes_max_) {
      // The frame before is complete: the writer can have it.
      if (!queue_.empty()) work_.NotifyOne();
      queue_.emplace_back();
      queue_.back().first_sequence = appended_.load(std::memory_order_relaxed) + 1;
    }
    PendingFrame& frame = queue_.back();
    AppendLittle<uint32_t>(&frame.bytes, static_cast<uint32_t>(record.size()));
    frame.bytes.append(record);
    ++frame.count;
    queued_bytes_ += bytes;
    UpdatePressure();
    const uint64_t sequence = frame.last_sequence();
    appended_.store(sequence, std::memory_order_release);
    return sequence;
  }

  absl::Status WaitForSpace() override {
    if (!pressure_.load(std::memory_order_acquire)) return absl::OkStatus();
    uint64_t seen_attempts = 0;
    bool asked = false;
    while (true) {
      const uint32_t epoch = epoch_.load(std::memory_order_acquire);
      {
        MutexLock lock(mutex_);
        if (absl::Status status = StatusLocked(); !status.ok()) return status;
        if (HasSpace()) return absl::OkStatus();
        if (asked && !full_.ok() && attempts_ > seen_attempts) return full_;
        if (!asked) seen_attempts = attempts_;
        asked = true;
        want_space_ = true;
        work_.NotifyOne();
      }
      epoch_.wait(epoch, std::memory_order_acquire);
    }
  }

  absl::Status WaitDurable(uint64_t sequence) override {
    uint64_t seen_attempts = 0;
    {
      MutexLock lock(mutex_);
      if (!broken_.ok()) return broken_;
      if (sequence == 0) return StatusLocked();
      FIRSTSEEN_CHECK(sequence <= appended_.load(std::memory_order_relaxed));
      if (durable_.load(std::memory_order_acquire) >= sequence) return absl::OkStatus();
      if (wanted_ < sequence) {
        wanted_ = sequence;
        work_.NotifyOne();
      }
      seen_attempts = attempts_;
    }
    while (true) {
      const uint32_t epoch = epoch_.load(std::memory_order_acquire);
      if (durable_.load(std::memory_order_acquire) >= sequence) return absl::OkStatus();
      if (troubled_.load(std::memory_order_acquire)) {
        MutexLock lock(mutex_);
        if (!broken_.ok()) return broken_;
        if (stuck_ && attempts_ > seen_attempts) return full_;
        if (stopped_) return close_status_;
      }
      epoch_.wait(epoch, std::memory_order_acquire);
    }
  }

  void Nudge() override {
    MutexLock lock(mutex_);
    if (queue_.empty()) return;
    nudged_ = true;
    work_.NotifyOne();
  }

  uint64_t last_appended() const override { return appended_.load(std::memory_order_acquire); }
  uint64_t durable() const override { return durable_.load(std::memory_order_acquire); }
  absl::Status status() const override {
    MutexLock lock(mutex_);
    return broken_;
  }

  absl::StatusOr<uint64_t> Rotate() override {
    MutexLock admin(admin_mutex_);
    while (true) {
      const uint32_t epoch = epoch_.load(std::memory_order_acquire);
      {
        MutexLock lock(mutex_);
        if (absl::Status status = StatusLocked(); !status.ok()) return status;
        if (rotate_ == Rotation::kDone) {
          rotate_ = Rotation::kNone;
          RETURN_IF_ERROR(rotate_status_);
          return segments_.back().first_sequence;
        }
        if (rotate_ == Rotation::kNone) {
          rotate_ = Rotation::kWanted;
          work_.NotifyOne();
        }
      }
      epoch_.wait(epoch, std::memory_order_acquire);
    }
  }

  // No directory fsync: segments that a power loss brings back are below `after` of the next Open
  // and are not looked at.
  absl::Status RemoveUpTo(uint64_t sequence) override {
    MutexLock admin(admin_mutex_);
    while (true) {
      uint64_t first = 0;
      {
        MutexLock lock(mutex_);
        if (segments_.size() < 2 || segments_[1].first_sequence > sequence + 1) break;
        first = segments_.front().first_sequence;
      }
      const absl::Status removed =
          options_.files->Remove(options_.directory + "/" + SegmentName(first));
      if (!removed.ok() && removed.code() != absl::StatusCode::kNotFound) return removed;
      MutexLock lock(mutex_);
      segments_.pop_front();
    }
    return absl::OkStatus();
  }

  uint64_t bytes() const override {
    MutexLock lock(mutex_);
    uint64_t sum = 0;
    for (const Segment& segment : segments_) sum += segment.used_bytes;
    return sum;
  }

 private:
  struct Segment {
    uint64_t first_sequence = 0;
    uint64_t used_bytes = 0;
  };
  enum class Rotation { kNone, kWanted, kDone };
  // What the writer has been asked to do, taken out under the lock.
  struct Work {
    bool sync = false;
    bool interval_over = false;
    bool rotate = false;
    bool prepare = false;  // try again to make the next segment
    bool stop = false;
  };

  // ---- Under mutex_.

  absl::Status StatusLocked() const REQUIRES(mutex_) {
    if (!broken_.ok()) return broken_;
    if (closed_) return FailedPrecondition("the log in {} is closed", options_.directory);
    return absl::OkStatus();
  }

  bool HasSpace() const REQUIRES(mutex_) {
    if (queued_bytes_ > options_.queue_bytes_max) return false;
    return full_.ok() || room_ >= queued_bytes_ + reserve_bytes_;
  }

  void UpdatePressure() REQUIRES(mutex_) {
    pressure_.store(!broken_.ok() || closed_ || !HasSpace(), std::memory_order_release);
  }

  void UpdateTrouble() REQUIRES(mutex_) {
    troubled_.store(!broken_.ok() || stuck_ || stopped_, std::memory_order_release);
    UpdatePressure();
  }

  bool HasWork() const REQUIRES(mutex_) {
    if (closed_ || !broken_.ok()) return closed_;
    return want_space_ || rotate_ == Rotation::kWanted || nudged_ || queue_.size() > 1 ||
           wanted_ > durable_.load(std::memory_order_relaxed);
  }

  // ---- The writer thread.

  void Wake() {
    epoch_.fetch_add(1, std::memory_order_release);
    epoch_.notify_all();
  }

  void Run() {
    for (bool running = true; running;) {
      running = Do(TakeWork());
      Wake();
    }
  }

  // Sleeps until there is something to do or the interval is over; takes the queue out.
  Work TakeWork() {
    MutexLock lock(mutex_);
    const int64_t due_nanos = last_sync_nanos_ + options_.interval_ms * 1'000'000;
    const int64_t wait_nanos = std::max<int64_t>(due_nanos - clock_->MonotonicNanos(), 0);
    const bool asked =
        work_.WaitFor(lock, std::chrono::nanoseconds(wait_nanos), [this] { return HasWork(); });
    Work work;
    work.interval_over = !asked || clock_->MonotonicNanos() >= due_nanos;
    work.sync = work.interval_over || closed_ || wanted_ > durable_.load();
    work.rotate = rotate_ == Rotation::kWanted;
    work.stop = closed_;
    work.prepare = !full_.ok();
    nudged_ = false;
    want_space_ = false;
    if (broken_.ok()) {
      backlog_.insert(backlog_.end(), std::make_move_iterator(queue_.begin()),
                      std::make_move_iterator(queue_.end()));
      queue_.clear();
    }
    return work;
  }

  // Returns whether to go on.
  bool Do(const Work& work) {
    absl::Status status = status_of_writer_;
    if (status.ok()) status = WriteBacklog();
    if (status_of_writer_.ok() && work.sync) {
      const absl::Status committed = Commit();
      if (!committed.ok()) status = committed;
      if (work.interval_over) last_sync_nanos_ = clock_->MonotonicNanos();
    }
    if (status.ok() && work.interval_over && segment_.Fits(kFrameHeaderBytes)) {
      status = WriteMarker();
    }
    absl::Status rotated = status;
    if (rotated.ok() && work.rotate) rotated = RotateNow();
    if (status.ok() && (work.prepare || segment_.half_full())) {
      status = Check(segment_.Prepare(0), Needs::kSpace);
    }
    if (work.stop) status = WriteEnd(status);
    Publish(work, status, rotated);
    return !work.stop;
  }

  enum class Needs { kSpace, kDisk };
  // An error of writing or syncing log data breaks the log for good. A full disk does not while
  // the next segment is made: nothing has been promised of what would go there.
  absl::Status Check(const absl::Status& status, Needs needs) {
    if (status.ok()) return status;
    if (needs == Needs::kSpace && status.code() == absl::StatusCode::kResourceExhausted) {
      return status;
    }
    status_of_writer_ =
        Annotate(status, "the log has failed and takes nothing until firstseen is started again");
    return status_of_writer_;
  }

  absl::Status WriteBacklog() {
    uint64_t written_bytes = 0;
    absl::Status status;
    while (!backlog_.empty() && status.ok()) {
      PendingFrame& frame = backlog_.front();
      const uint64_t payload_bytes = frame.payload_bytes();
      const uint64_t frame_bytes = FrameBytes(payload_bytes);
      if (!segment_.Fits(frame_bytes)) status = NextSegment(frame_bytes);
      if (status.ok()) {
        const FrameHeader header = {.first_sequence = frame.first_sequence,
                                    .durable = durable_.load(),
                                    .count = frame.count};
        status = Check(segment_.Write(header, &frame.bytes), Needs::kDisk);
      }
      if (status.ok()) {
        marked_ = durable_.load();
        written_ = frame.last_sequence();
        written_bytes += payload_bytes;
        backlog_.pop_front();
      }
    }
    MutexLock lock(mutex_);
    queued_bytes_ -= written_bytes;
    return status;
  }

  // Makes everything written durable and says so.
  absl::Status Commit() {
    if (written_ > durable_.load()) {
      RETURN_IF_ERROR(Check(segment_.Sync(), Needs::kDisk));
      marker_unsynced_ = false;
    }
    RETURN_IF_ERROR(Check(segment_.SyncName(), Needs::kDisk));
    if (written_ > durable_.load()) {
      durable_.store(written_, std::memory_order_release);
      last_sync_nanos_ = clock_->MonotonicNanos();
      Wake();
    }
    return absl::OkStatus();
  }

  absl::Status NextSegment(uint64_t frame_bytes) {
    RETURN_IF_ERROR(Commit());
    RETURN_IF_ERROR(Check(segment_.Prepare(frame_bytes), Needs::kSpace));
    const uint64_t used_bytes = segment_.used_bytes();
    RETURN_IF_ERROR(
        Check(segment_.Switch(
                  {.first_sequence = written_ + 1, .previous_last = written_, .durable = written_}),
              Needs::kSpace));
    MutexLock lock(mutex_);
    segments_.back().used_bytes = used_bytes;
    // A segment without records has the same name, and has just been replaced.
    if (segments_.back().first_sequence == written_ + 1) segments_.pop_back();
    segments_.push_back({written_ + 1, kSegmentHeaderBytes});
    return absl::OkStatus();
  }

  absl::Status RotateNow() {
    RETURN_IF_ERROR(Commit());
    if (!segment_.has_records()) return absl::OkStatus();
    RETURN_IF_ERROR(NextSegment(0));
    // The segments before it may be removed now: its name must be on disk first.
    return Check(segment_.SyncName(), Needs::kDisk);
  }

  // Says on disk what is durable, when the last frame does not: damage to it will be noticed.
  absl::Status WriteMarker() {
    const uint64_t durable = durable_.load();
    if (marked_ >= durable || written_ != durable) return absl::OkStatus();
    std::string marker(kFrameHeaderBytes, '\0');
    RETURN_IF_ERROR(
        Check(segment_.Write(
                  {.kind = FrameKind::kMarker, .first_sequence = written_ + 1, .durable = durable},
                  &marker),
              Needs::kDisk));
    marked_ = durable;
    marker_unsynced_ = true;
    return absl::OkStatus();
  }

  absl::Status WriteEnd(absl::Status status) {
    if (status.ok()) status = WriteMarker();
    if (status.ok() && marker_unsynced_) status = Check(segment_.Sync(), Needs::kDisk);
    const absl::Status dropped = segment_.DropPrepared();
    if (status.ok()) status = dropped;
    return status;
  }

  void Publish(const Work& work, const absl::Status& status, const absl::Status& rotated) {
    MutexLock lock(mutex_);
    broken_ = status_of_writer_;
    full_ = broken_.ok() ? status : absl::OkStatus();
    ++attempts_;
    stuck_ = broken_.ok() && !backlog_.empty();
    // Whoever waits is told; it may ask again.
    if (stuck_) wanted_ = durable_.load();
    room_ = segment_.room();
    segments_.back().used_bytes = segment_.used_bytes();
    if (work.rotate) {
      rotate_ = Rotation::kDone;
      rotate_status_ = rotated;
    }
    if (work.stop) {
      stopped_ = true;
      close_status_ = status;
    }
    UpdateTrouble();
  }

  const Options options_;
  const Clock* const clock_ = Clock::Real();
  const uint64_t reserve_bytes_;  // left in the segment for appends that are under way
  const uint64_t frame_payload_bytes_max_;
  Mutex admin_mutex_;  // before mutex_: one Rotate, RemoveUpTo or Close at a time

  // Of the writer thread.
  SegmentWriter segment_;
  std::deque<PendingFrame> backlog_;
  uint64_t written_;     // last sequence number handed to the operating system
  uint64_t marked_ = 0;  // highest durable number that the files tell
  bool marker_unsynced_ = false;
  int64_t last_sync_nanos_ = 0;
  absl::Status status_of_writer_;

  mutable Mutex mutex_;
  CondVar work_;
  std::deque<PendingFrame> queue_ GUARDED_BY(mutex_);
  uint64_t queued_bytes_ GUARDED_BY(mutex_) = 0;  // also of the backlog
  uint64_t wanted_ GUARDED_BY(mutex_) = 0;        // highest number somebody waits for
  bool nudged_ GUARDED_BY(mutex_) = false;
  bool want_space_ GUARDED_BY(mutex_) = false;
  bool closed_ GUARDED_BY(mutex_) = false;
  bool stopped_ GUARDED_BY(mutex_) = false;
  absl::Status close_status_ GUARDED_BY(mutex_);
  absl::Status broken_ GUARDED_BY(mutex_);
  absl::Status full_ GUARDED_BY(mutex_);      // why there was no room at the last attempt
  bool stuck_ GUARDED_BY(mutex_) = false;     // full, and frames wait for that room
  uint64_t attempts_ GUARDED_BY(mutex_) = 0;  // rounds of the writer
  uint64_t room_ GUARDED_BY(mutex_) = 0;      // left in the current segment
  Rotation rotate_ GUARDED_BY(mutex_) = Rotation::kNone;
  absl::Status rotate_status_ GUARDED_BY(mutex_);
  std::deque<Segment> segments_ GUARDED_BY(mutex_);

  std::atomic<uint64_t> appended_;
  std::atomic<uint64_t> durable_;
  std::atomic<bool> pressure_ = false;  // WaitForSpace has to look closer
  std::atomic<bool> troubled_ = false;  // broken, stuck or stopped
  std::atomic<uint32_t> epoch_ = 0;     // changes whenever the writer has done something

  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Log>> Log::Open(Options options, uint64_t after,
                                               ReplayFunction replay) {
  if (options.segment_bytes < kSegmentBytesMin || options.segment_bytes % kLogAlignment != 0) {
    return InvalidArgument("log segments must have a multiple of {} bytes, and at least {}",
                           kLogAlignment, kSegmentBytesMin);
  }
  ASSIGN_OR_RETURN(const LogContents contents,
                   ReadLog(options.files, options.directory, after, replay));
  if (!contents.damages.empty()) return DamageStatus(contents.damages.back());
  auto log = std::make_unique<LogImpl>(std::move(options), contents);
  RETURN_IF_ERROR(log->Start(contents));
  return log;
}

}  // namespace firstseen
