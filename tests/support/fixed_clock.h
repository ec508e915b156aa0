// A wall clock that stands still until it is moved.
#pragma once

#include <atomic>

#include "base/clock.h"

namespace firstseen {

// Thread-safe.
class FixedClock : public Clock {
 public:
  explicit FixedClock(absl::Time now) : nanos_(absl::ToUnixNanos(now)) {}

  absl::Time Now() const override { return absl::FromUnixNanos(nanos_); }
  int64_t MonotonicNanos() const override { return Clock::Real()->MonotonicNanos(); }
  void Set(absl::Time now) { nanos_ = absl::ToUnixNanos(now); }

 private:
  std::atomic<int64_t> nanos_;
};

}  // namespace firstseen
