// Locks: std:: ones behind thin wrappers with Clang thread-safety annotations.
//
// Not Abseil's: Debian's build of Abseil is not instrumented, so ThreadSanitizer would report
// false races through it.
#pragma once

#include <condition_variable>
#include <mutex>
#include <shared_mutex>

#if defined(__clang__)
#define FIRSTSEEN_ANNOTATE(x) __attribute__((x))
#else
#define FIRSTSEEN_ANNOTATE(x)
#endif
// Abseil's headers define two of these names, to the same effect.
#undef GUARDED_BY
#undef NO_THREAD_SAFETY_ANALYSIS
#define CAPABILITY(x) FIRSTSEEN_ANNOTATE(capability(x))
#define SCOPED_CAPABILITY FIRSTSEEN_ANNOTATE(scoped_lockable)
#define GUARDED_BY(x) FIRSTSEEN_ANNOTATE(guarded_by(x))
#define REQUIRES(...) FIRSTSEEN_ANNOTATE(requires_capability(__VA_ARGS__))
#define REQUIRES_SHARED(...) FIRSTSEEN_ANNOTATE(requires_shared_capability(__VA_ARGS__))
#define ACQUIRE(...) FIRSTSEEN_ANNOTATE(acquire_capability(__VA_ARGS__))
#define ACQUIRE_SHARED(...) FIRSTSEEN_ANNOTATE(acquire_shared_capability(__VA_ARGS__))
#define RELEASE(...) FIRSTSEEN_ANNOTATE(release_capability(__VA_ARGS__))
#define RELEASE_SHARED(...) FIRSTSEEN_ANNOTATE(release_shared_capability(__VA_ARGS__))
#define EXCLUDES(...) FIRSTSEEN_ANNOTATE(locks_excluded(__VA_ARGS__))
#define NO_THREAD_SAFETY_ANALYSIS FIRSTSEEN_ANNOTATE(no_thread_safety_analysis)

namespace firstseen {

class CAPABILITY("mutex") Mutex {
 public:
  void Lock() ACQUIRE() { mutex_.lock(); }
  void Unlock() RELEASE() { mutex_.unlock(); }
  std::mutex& native() { return mutex_; }

 private:
  std::mutex mutex_;
};

class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : lock_(mutex.native()) {}
  ~MutexLock() RELEASE() {}
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;
  void Unlock() RELEASE() { lock_.unlock(); }
  void Lock() ACQUIRE() { lock_.lock(); }
  std::unique_lock<std::mutex>& native() { return lock_; }

 private:
  std::unique_lock<std::mutex> lock_;
};

// Waits with the MutexLock's lock released; see std::condition_variable.
class CondVar {
 public:
  void Wait(MutexLock& lock) { cv_.wait(lock.native()); }
  template <typename Predicate>
  void Wait(MutexLock& lock, Predicate predicate) {
    cv_.wait(lock.native(), predicate);
  }
  template <typename Duration, typename Predicate>
  bool WaitFor(MutexLock& lock, Duration timeout, Predicate predicate) {
    return cv_.wait_for(lock.native(), timeout, predicate);
  }
  void NotifyOne() { cv_.notify_one(); }
  void NotifyAll() { cv_.notify_all(); }

 private:
  std::condition_variable cv_;
};

class CAPABILITY("mutex") SharedMutex {
 public:
  void Lock() ACQUIRE() { mutex_.lock(); }
  void Unlock() RELEASE() { mutex_.unlock(); }
  void LockShared() ACQUIRE_SHARED() { mutex_.lock_shared(); }
  void UnlockShared() RELEASE_SHARED() { mutex_.unlock_shared(); }

 private:
  std::shared_mutex mutex_;
};

class SCOPED_CAPABILITY WriterLock {
 public:
  explicit WriterLock(SharedMutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.Lock(); }
  ~WriterLock() RELEASE() { mutex_.Unlock(); }
  WriterLock(const WriterLock&) = delete;
  WriterLock& operator=(const WriterLock&) = delete;

 private:
  SharedMutex& mutex_;
};

class SCOPED_CAPABILITY ReaderLock {
 public:
  explicit ReaderLock(SharedMutex& mutex) ACQUIRE_SHARED(mutex) : mutex_(mutex) {
    mutex_.LockShared();
  }
  ~ReaderLock() RELEASE() { mutex_.UnlockShared(); }
  ReaderLock(const ReaderLock&) = delete;
  ReaderLock& operator=(const ReaderLock&) = delete;

 private:
  SharedMutex& mutex_;
};

}  // namespace firstseen
