// The log's one implementation: log.cc has what callers do, log_writer.cc what the writer thread
// does.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"
#include "engine/log.h"
#include "engine/log_format.h"
#include "engine/log_reader.h"
#include "engine/log_segment.h"

namespace firstseen {

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
class LogImpl final : public Log {
 public:
  LogImpl(Options options, const LogContents& contents);
  // Whoever wants to know whether this worked calls Close before.
  ~LogImpl() override { Close().IgnoreError(); }

  // Goes on behind `contents`, or begins a log, and starts the writer.
  absl::Status Start(const LogContents& contents);

  absl::Status Close() override;
  uint64_t Append(std::string_view record) override;
  absl::Status WaitForSpace() override;
  absl::Status WaitDurable(uint64_t sequence) override;
  void Nudge() override;
  uint64_t last_appended() const override { return appended_.load(std::memory_order_acquire); }
  uint64_t durable() const override { return durable_.load(std::memory_order_acquire); }
  absl::Status status() const override;
  absl::StatusOr<uint64_t> Rotate() override;
  absl::Status RemoveUpTo(uint64_t sequence) override;
  uint64_t bytes() const override;
  int64_t begun_ms() const override;

 private:
  struct Segment {
    uint64_t first_sequence = 0;
    uint64_t used_bytes = 0;
    int64_t begun_ms = 0;
  };
  enum class Rotation { kNone, kWanted, kDone };
  // What a step of the writer needs: room on the disk for a new segment, or a disk that works.
  enum class Needs { kSpace, kDisk };
  // What the writer has been asked to do, taken out under the lock.
  struct Work {
    bool sync = false;
    bool interval_over = false;
    bool rotate = false;
    bool prepare = false;  // try again to make the next segment
    bool stop = false;
  };

  absl::Status StatusLocked() const REQUIRES(mutex_);
  bool HasSpace() const REQUIRES(mutex_);
  bool HasWork() const REQUIRES(mutex_);
  void UpdatePressure() REQUIRES(mutex_);
  void UpdateTrouble() REQUIRES(mutex_);
  // Lets everybody who waits look again.
  void Wake();

  // The writer thread.
  void Run();
  // Sleeps until there is something to do or the interval is over; takes the queue out.
  Work TakeWork();
  // Returns whether to go on.
  bool Do(const Work& work);
  // An error of writing or syncing log data breaks the log for good. A full disk does not while
  // the next segment is made: nothing has been promised of what would go there.
  absl::Status Check(const absl::Status& status, Needs needs);
  absl::Status WriteBacklog();
  // Makes everything written durable and says so.
  absl::Status Commit();
  absl::Status NextSegment(uint64_t frame_bytes);
  absl::Status RotateNow();
  // Says on disk what is durable, when the last frame does not: damage to it will be noticed.
  absl::Status WriteMarker();
  absl::Status WriteEnd(absl::Status status);
  void Publish(const Work& work, const absl::Status& status, const absl::Status& rotated);

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

}  // namespace firstseen
