// The log's writer thread: what it does in a round, and which error means what.
#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "base/status.h"
#include "engine/log_impl.h"

namespace firstseen {

void LogImpl::Wake() {
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
}

void LogImpl::Run() {
  for (bool running = true; running;) {
    running = Do(TakeWork());
    Wake();
  }
}

bool LogImpl::HasWork() const {
  if (closed_ || !broken_.ok()) return closed_;
  return want_space_ || rotate_ == Rotation::kWanted || nudged_ || queue_.size() > 1 ||
         wanted_ > durable_.load(std::memory_order_relaxed);
}

LogImpl::Work LogImpl::TakeWork() {
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

bool LogImpl::Do(const Work& work) {
  absl::Status status = status_of_writer_;
  if (status.ok()) status = WriteBacklog();
  if (status_of_writer_.ok() && work.sync) {
    const absl::Status committed = Commit();
    if (!committed.ok()) status = committed;
  }
  if (work.interval_over) last_sync_nanos_ = clock_->MonotonicNanos();
  if (status.ok() && work.interval_over && segment_.Fits(kFrameHeaderBytes)) {
    status = WriteMarker();
  }
  absl::Status rotated = status;
  if (rotated.ok() && work.rotate) rotated = RotateNow();
  if (!status_of_writer_.ok()) status = status_of_writer_;
  if (status.ok() && (work.prepare || segment_.half_full())) {
    status = Check(segment_.Prepare(0), Needs::kSpace);
  }
  if (work.stop) status = WriteEnd(status);
  Publish(work, status, rotated);
  return !work.stop;
}

absl::Status LogImpl::Check(const absl::Status& status, Needs needs) {
  if (status.ok()) return status;
  if (needs == Needs::kSpace && status.code() == absl::StatusCode::kResourceExhausted) {
    return status;
  }
  status_of_writer_ =
      Annotate(status, "the log has failed and takes nothing until firstseen is started again");
  return status_of_writer_;
}

absl::Status LogImpl::WriteBacklog() {
  uint64_t written_bytes = 0;
  absl::Status status;
  while (!backlog_.empty() && status.ok()) {
    PendingFrame& frame = backlog_.front();
    const uint64_t payload_bytes = frame.payload_bytes();
    const uint64_t frame_bytes = FrameBytes(payload_bytes);
    if (!segment_.Fits(frame_bytes)) status = NextSegment(frame_bytes);
    if (status.ok()) {
      const FrameHeader header = {
          .first_sequence = frame.first_sequence, .durable = durable_.load(), .count = frame.count};
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

absl::Status LogImpl::Commit() {
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

absl::Status LogImpl::NextSegment(uint64_t frame_bytes) {
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
  segments_.push_back({written_ + 1, kSegmentHeaderBytes, segment_.begun_ms()});
  return absl::OkStatus();
}

absl::Status LogImpl::RotateNow() {
  RETURN_IF_ERROR(Commit());
  if (!segment_.has_records()) return absl::OkStatus();
  RETURN_IF_ERROR(NextSegment(0));
  // The segments before it may be removed now: its name must be on disk first.
  return Check(segment_.SyncName(), Needs::kDisk);
}

absl::Status LogImpl::WriteMarker() {
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

absl::Status LogImpl::WriteEnd(absl::Status status) {
  if (status.ok()) status = WriteMarker();
  if (status.ok() && marker_unsynced_) status = Check(segment_.Sync(), Needs::kDisk);
  const absl::Status dropped = segment_.DropPrepared();
  if (status.ok()) status = dropped;
  return status;
}

void LogImpl::Publish(const Work& work, const absl::Status& status, const absl::Status& rotated) {
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

}  // namespace firstseen
