#include "engine/log.h"

#include <algorithm>
#include <limits>
#include <system_error>

#include "base/bytes.h"
#include "base/check.h"
#include "base/status.h"
#include "engine/log_impl.h"

namespace firstseen {
namespace {

constexpr uint64_t kFramePayloadBytesMax = 1 << 20;  // a longer record has a frame of its own
constexpr uint64_t kReserveBytesMax = 8 << 20;

}  // namespace

LogImpl::LogImpl(Options options, const LogContents& contents)
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
    segments_.push_back({segment.first_sequence, segment.used_bytes, segment.begun_ms});
  }
}

absl::Status LogImpl::Start(const LogContents& contents) {
  if (contents.segments.empty()) {
    RETURN_IF_ERROR(segment_.Prepare(0));
    RETURN_IF_ERROR(segment_.Switch(
        {.first_sequence = written_ + 1, .previous_last = written_, .durable = written_}));
    segments_.push_back({written_ + 1, segment_.used_bytes(), segment_.begun_ms()});
  } else {
    RETURN_IF_ERROR(segment_.Resume(contents));
  }
  marked_ = contents.known_durable;
  last_sync_nanos_ = clock_->MonotonicNanos();
  room_ = segment_.room();
  try {
    thread_ = std::thread([this] { Run(); });
  } catch (const std::system_error& error) {
    return Unavailable(
        "cannot start the log's thread: {}; raise the limit on processes (ulimit -u)",
        error.what());
  }
  return absl::OkStatus();
}

absl::Status LogImpl::Close() {
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

uint64_t LogImpl::Append(std::string_view record) {
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

absl::Status LogImpl::WaitForSpace() {
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

absl::Status LogImpl::WaitDurable(uint64_t sequence) {
  if (sequence != 0 && sequence <= durable_.load(std::memory_order_acquire) &&
      !troubled_.load(std::memory_order_acquire)) {
    return absl::OkStatus();
  }
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
      // It may have become durable since the look above, and only what came after it found no room.
      if (durable_.load(std::memory_order_acquire) >= sequence) return absl::OkStatus();
      if (stuck_ && attempts_ > seen_attempts) return full_;
      if (stopped_) return close_status_;
    }
    epoch_.wait(epoch, std::memory_order_acquire);
  }
}

void LogImpl::Nudge() {
  MutexLock lock(mutex_);
  if (queue_.empty()) return;
  nudged_ = true;
  work_.NotifyOne();
}

absl::Status LogImpl::status() const {
  MutexLock lock(mutex_);
  return broken_;
}

absl::StatusOr<uint64_t> LogImpl::Rotate() {
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
absl::Status LogImpl::RemoveUpTo(uint64_t sequence) {
  MutexLock admin(admin_mutex_);
  while (true) {
    uint64_t first = 0;
    {
      MutexLock lock(mutex_);
      if (segments_.size() < 2 || segments_[1].first_sequence > sequence + 1) break;
      first = segments_.front().first_sequence;
    }
    absl::Status removed = options_.files->Remove(options_.directory + "/" + SegmentName(first));
    if (!removed.ok() && removed.code() != absl::StatusCode::kNotFound) return removed;
    MutexLock lock(mutex_);
    segments_.pop_front();
  }
  return absl::OkStatus();
}

uint64_t LogImpl::bytes() const {
  MutexLock lock(mutex_);
  uint64_t sum = 0;
  for (const Segment& segment : segments_) sum += segment.used_bytes;
  return sum;
}

int64_t LogImpl::begun_ms() const {
  MutexLock lock(mutex_);
  return segments_.front().begun_ms;
}

absl::Status LogImpl::StatusLocked() const {
  if (!broken_.ok()) return broken_;
  if (closed_) return FailedPrecondition("the log in {} is closed", options_.directory);
  return absl::OkStatus();
}

bool LogImpl::HasSpace() const {
  if (queued_bytes_ > options_.queue_bytes_max) return false;
  return full_.ok() || room_ >= queued_bytes_ + reserve_bytes_;
}

void LogImpl::UpdatePressure() {
  pressure_.store(!broken_.ok() || closed_ || !HasSpace(), std::memory_order_release);
}

void LogImpl::UpdateTrouble() {
  troubled_.store(!broken_.ok() || stuck_ || stopped_, std::memory_order_release);
  UpdatePressure();
}

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
