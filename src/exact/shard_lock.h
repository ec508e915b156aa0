// A lock of one word, small enough to lie in every shard's header.
#pragma once

#include <atomic>
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/mutex.h"

namespace firstseen {

// Mutual exclusion in four bytes (std::mutex has 40): free, held, or held with waiters. A waiter
// spins for about a microsecond, as long as an operation on a shard takes, and then sleeps in the
// kernel. Not recursive, not fair. The states are those of Drepper, "Futexes Are Tricky" (2011).
class CAPABILITY("mutex") ShardLock {
 public:
  void Lock() ACQUIRE() {
    uint32_t expected = kFree;
    if (!state_.compare_exchange_strong(expected, kHeld, std::memory_order_acquire,
                                        std::memory_order_relaxed)) {
      LockContended();
    }
  }

  void Unlock() RELEASE() {
    if (state_.exchange(kFree, std::memory_order_release) == kHeldWithWaiters) state_.notify_one();
  }

 private:
  static constexpr uint32_t kFree = 0;
  static constexpr uint32_t kHeld = 1;
  static constexpr uint32_t kHeldWithWaiters = 2;
  static constexpr int kSpins = 64;

  static void Pause() {
#if defined(__x86_64__)
    _mm_pause();
#endif
  }

  void LockContended() {
    for (int i = 0; i < kSpins; ++i) {
      Pause();
      uint32_t expected = kFree;
      if (state_.load(std::memory_order_relaxed) == kFree &&
          state_.compare_exchange_strong(expected, kHeld, std::memory_order_acquire,
                                         std::memory_order_relaxed)) {
        return;
      }
    }
    while (state_.exchange(kHeldWithWaiters, std::memory_order_acquire) != kFree) {
      state_.wait(kHeldWithWaiters, std::memory_order_relaxed);
    }
  }

  std::atomic<uint32_t> state_{kFree};
};

}  // namespace firstseen
