// The append-only log: outcomes in sequence order, group commit, preallocated segments.
//
// Layout on disk and recovery rules: docs/format.md. Promise: a record at or below durable() is on
// disk; damage at or below a number known durable, or in any segment but the last, is DataLoss.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file.h"

namespace firstseen {

class Log {
 public:
  struct Options {
    FileSystem* files = FileSystem::Posix();
    std::string directory;                   // exists; segments are <20-digit first seq>.log
    uint64_t segment_bytes = 64ull << 20;    // preallocated size of a segment
    uint64_t queue_bytes_max = 64ull << 20;  // Append blocks beyond it
    int64_t interval_ms = 1000;              // background fsync for records nobody waits for
  };

  // Called for each recovered record with seq > `after`, in order.
  using ReplayFunction =
      absl::FunctionRef<absl::Status(uint64_t sequence, std::string_view record)>;

  // Reads every segment, replays, cuts the unsynced tail of the last one, goes on appending.
  static absl::StatusOr<std::unique_ptr<Log>> Open(Options options, uint64_t after,
                                                   ReplayFunction replay);
  // Writes everything out, syncs, leaves a closing record that makes all of it known durable.
  virtual absl::Status Close() = 0;
  virtual ~Log() = default;

  // Assigns the next sequence number (from 1, without holes) and queues the record (up to
  // queue_bytes_max bytes). Call it under the lock that orders the outcome. Never waits for the
  // disk. 0 when the log has failed. `reserve` = number of bytes, see WaitForSpace.
  virtual uint64_t Append(std::string_view record) = 0;
  // Waits until the queue has room. Call it before taking the lock under which you Append.
  virtual absl::Status WaitForSpace() = 0;
  // Returns when `sequence` is on disk (a group commit), or the error that broke the log. After a
  // failed write or fsync every later call fails: an fsync is never retried. ResourceExhausted
  // from creating a segment is no failure of that kind: it is raised by WaitForSpace before
  // anything is queued, and goes away when the disk has room again.
  virtual absl::Status WaitDurable(uint64_t sequence) = 0;
  // For sets with a weaker durability: hands the queue to the operating system soon; no waiting.
  virtual void Nudge() = 0;

  virtual uint64_t last_appended() const = 0;
  virtual uint64_t durable() const = 0;
  virtual absl::Status status() const = 0;  // OK, or why the log has failed

  // Starts a new segment; returns the first sequence number in it.
  virtual absl::StatusOr<uint64_t> Rotate() = 0;
  // Removes segments all of whose records are <= sequence.
  virtual absl::Status RemoveUpTo(uint64_t sequence) = 0;
  virtual uint64_t bytes() const = 0;  // of all segments
  // Wall clock when the oldest segment was begun, milliseconds since 1970; 0 = unknown.
  virtual int64_t begun_ms() const = 0;
};

}  // namespace firstseen
