// The only source of time. Tests and `--now` pass a clock of their own.
#pragma once

#include <cstdint>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace firstseen {

class Clock {
 public:
  virtual ~Clock() = default;
  // Wall-clock time; may jump.
  virtual absl::Time Now() const = 0;
  // Nanoseconds since an arbitrary start; never goes back. Thread-safe.
  virtual int64_t MonotonicNanos() const = 0;

  static const Clock* Real();
};

}  // namespace firstseen
