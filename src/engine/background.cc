// The engine's two threads. The janitor frees dropped windows, forgets settled owners and records
// the open time; the snapshotter writes snapshots when the log has grown.
#include <chrono>

#include "base/status.h"
#include "engine/engine_impl.h"
#include "engine/records.h"

namespace firstseen {
namespace {

constexpr std::chrono::seconds kPoll(1);
// Settled owners are looked for this many times in the time they are kept.
constexpr int64_t kSweepsPerKeep = 64;
constexpr int64_t kOpenTimeRecordMs = 3600 * 1000;
// A snapshot that failed is tried again when the log has grown by this part of the trigger.
constexpr uint64_t kRetryFraction = 8;

}  // namespace

int64_t EngineImpl::OpenMs() const {
  return open_ms_before_ + (options_.clock->MonotonicNanos() - opened_nanos_) / 1'000'000;
}

void EngineImpl::StartThreads() {
  janitor_ = std::thread([this] { RunJanitor(); });
  snapshotter_ = std::thread([this] { RunSnapshotter(); });
}

void EngineImpl::StopThreads() {
  {
    MutexLock lock(background_mutex_);
    stopping_ = true;
    background_work_.NotifyAll();
  }
  if (janitor_.joinable()) janitor_.join();
  if (snapshotter_.joinable()) snapshotter_.join();
}

void EngineImpl::Discard(Trash trash) {
  if (trash.members == nullptr && trash.owners == nullptr) return;
  MutexLock lock(background_mutex_);
  trash_.push_back(std::move(trash));
  background_work_.NotifyAll();
}

void EngineImpl::RunJanitor() {
  int64_t swept_ms = open_ms_before_;
  bool stopping = false;
  while (!stopping) {
    std::vector<Trash> trash;
    {
      MutexLock lock(background_mutex_);
      background_work_.WaitFor(lock, kPoll, [this] { return stopping_ || !trash_.empty(); });
      trash.swap(trash_);
      stopping = stopping_;
    }
    trash.clear();
    const int64_t open_ms = OpenMs();
    if (open_ms - swept_ms >= options_.owner_keep_open_ms / kSweepsPerKeep) {
      ExpireOwners(open_ms);
      swept_ms = open_ms;
    }
    if (open_ms - open_ms_recorded_.load() >= kOpenTimeRecordMs) RecordOpenTime(open_ms);
  }
}

void EngineImpl::ExpireOwners(int64_t open_ms) {
  for (Set* set : state_.All()) {
    SetReader lock(state_.gate(), *set);
    for (const auto& window : set->windows()) {
      if (window->owners != nullptr) window->owners->Expire(open_ms - options_.owner_keep_open_ms);
    }
  }
}

// Without owners nothing depends on the open time.
void EngineImpl::RecordOpenTime(int64_t open_ms) {
  if (state_.owner_bytes() == 0) return;
  // A failed log is reported to whoever claims next.
  if (!log_->WaitForSpace().ok()) return;
  if (log_->Append(EncodeRecord(OpenTimeRecord{open_ms}, 0)) != 0) open_ms_recorded_ = open_ms;
}

void EngineImpl::RunSnapshotter() {
  const uint64_t trigger = options_.snapshot_log_bytes;
  if (trigger == 0) return;
  uint64_t failed_at = 0;  // size of the log when the last snapshot failed
  while (true) {
    {
      MutexLock lock(background_mutex_);
      if (background_work_.WaitFor(lock, kPoll, [this] { return stopping_; })) return;
    }
    const uint64_t bytes = log_->bytes();
    if (bytes < log_bytes_base_.load() + trigger) continue;
    if (failed_at != 0 && bytes < failed_at + trigger / kRetryFraction) continue;
    const absl::Status status = Snapshot();
    failed_at = status.ok() ? 0 : bytes;
    MutexLock lock(background_mutex_);
    snapshot_status_ = status;
  }
}

}  // namespace firstseen
