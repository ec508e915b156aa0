// The directory of extendible hashing: from the top bits of a fingerprint to its shard.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "exact/shard.h"
#include "keys/fingerprint.h"

namespace firstseen {

// 2^depth entries; a shard of depth d fills 2^(depth-d) neighbouring ones. An entry is the shard's
// address, a multiple of 64, plus d: a reader who finds the shard at that depth still knows without
// looking at its prefix that it has the right one. A directory that has been replaced by one twice
// its size stays readable until the set is destroyed (all the old ones together are as large as the
// newest), because a reader may be in it; its entries are no longer kept up to date.
class Directory {
 public:
  struct Entry {
    Shard* shard;
    int depth;
  };

  Directory(int depth, std::unique_ptr<Directory> previous)
      : depth_(depth),
        previous_(std::move(previous)),
        entries_(new std::atomic<uintptr_t>[size_t{1} << depth]()) {}

  int depth() const { return depth_; }
  uint64_t size() const { return uint64_t{1} << depth_; }
  static uint64_t BytesOf(int depth) {
    return sizeof(Directory) + (sizeof(std::atomic<uintptr_t>) << depth);
  }
  uint64_t bytes() const { return BytesOf(depth_); }
  const Directory* previous() const { return previous_.get(); }

  Entry Find(uint64_t hi) const { return at(IndexOf(hi)); }
  Entry at(uint64_t index) const {
    const uintptr_t entry = entries_[index].load(std::memory_order_acquire);
    return {reinterpret_cast<Shard*>(entry & ~kDepthMask), static_cast<int>(entry & kDepthMask)};
  }

  // Lets all entries of the range lead to `shard`. Precondition: depth() >= the shard's depth.
  void Set(uint64_t prefix, int shard_depth, Shard* shard) {
    const uint64_t first = IndexOf(prefix);
    const uint64_t count = uint64_t{1} << (depth_ - shard_depth);
    const uintptr_t entry =
        reinterpret_cast<uintptr_t>(shard) | static_cast<uintptr_t>(shard_depth);
    for (uint64_t i = 0; i < count; ++i) {
      entries_[first + i].store(entry, std::memory_order_release);
    }
  }
  // Fills it from the previous one, half its size.
  void CopyFromPrevious() {
    for (uint64_t i = 0; i < size(); ++i) {
      entries_[i].store(previous_->entries_[i / 2].load(std::memory_order_acquire),
                        std::memory_order_release);
    }
  }

 private:
  static constexpr uintptr_t kDepthMask = 63;

  uint64_t IndexOf(uint64_t hi) const { return (hi >> 1) >> (63 - depth_); }

  const int depth_;
  const std::unique_ptr<Directory> previous_;
  const std::unique_ptr<std::atomic<uintptr_t>[]> entries_;
};

}  // namespace firstseen
