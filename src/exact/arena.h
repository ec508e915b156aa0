// Memory for the shards of exact sets: 8 KiB chunks carved from 2 MiB-aligned extents on which
// huge pages are requested, shared by any number of sets, with a limit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace firstseen {

class Arena {
 public:
  struct Options {
    uint64_t bytes_max = ~uint64_t{0};  // chunks beyond it are refused
    bool huge_pages = true;             // madvise(MADV_HUGEPAGE); ignored where not to be had
  };
  static constexpr size_t kChunkBytes = 8192;

  explicit Arena(Options options);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // A chunk of kChunkBytes, aligned to its size, content undefined; nullptr at the limit or when
  // the system has no more. Thread-safe.
  void* Allocate();
  // Thread-safe. The memory of a wholly free extent goes back to the system. Its address space is
  // kept and used again before more is asked for, and nothing is ever written into a free chunk: so
  // a reader that comes too late reads other content, or zeros, but never faults.
  void Free(void* chunk);
  // Chunks have numbers of 32 bits, never 0, so that a shard can list its chunks in one cache line:
  // chunk n lies at anchor() + n * kChunkBytes.
  char* anchor() const;

  // For shards smaller than a chunk: `bytes` is a multiple of 128, the block aligned to 64; counted
  // against the limit. Thread-safe.
  void* AllocateSmall(size_t bytes);
  void FreeSmall(void* block, size_t bytes);
  // Counts memory held elsewhere on the arena's account against the limit; false when it does not
  // fit. Thread-safe.
  bool Charge(size_t bytes);
  void Discharge(size_t bytes);

  uint64_t bytes_used() const;      // chunks, small blocks and charges
  uint64_t bytes_reserved() const;  // extents, small blocks and charges
  uint64_t bytes_max() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace firstseen
