// The directory of extendible hashing: from the top bits of a fingerprint to its shard.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "exact/shard.h"
#include "keys/fingerprint.h"

namespace firstseen {

// 2^depth pointers; a shard of depth d fills 2^(depth-d) neighbouring ones. A directory that has
// been replaced by one twice its size stays readable until the set is destroyed (all the old ones
// together are as large as the newest), because a reader may be in it; its pointers are no longer
// kept up to date, so a reader checks under the shard's lock whether it has the right shard.
class Directory {
 public:
  Directory(int depth, std::unique_ptr<Directory> previous)
      : depth_(depth),
        previous_(std::move(previous)),
        shards_(new std::atomic<Shard*>[size_t{1} << depth]()) {}

  int depth() const { return depth_; }
  uint64_t size() const { return uint64_t{1} << depth_; }
  uint64_t bytes() const { return sizeof(*this) + size() * sizeof(std::atomic<Shard*>); }
  const Directory* previous() const { return previous_.get(); }

  Shard* Find(uint64_t hi) const { return at(IndexOf(hi)); }
  Shard* at(uint64_t index) const { return shards_[index].load(std::memory_order_acquire); }

  // Lets all pointers of the range point to `shard`. Precondition: depth() >= the shard's depth.
  void Set(uint64_t prefix, int shard_depth, Shard* shard) {
    const uint64_t first = IndexOf(prefix);
    const uint64_t count = uint64_t{1} << (depth_ - shard_depth);
    for (uint64_t i = 0; i < count; ++i) {
      shards_[first + i].store(shard, std::memory_order_release);
    }
  }

 private:
  uint64_t IndexOf(uint64_t hi) const { return (hi >> 1) >> (63 - depth_); }

  const int depth_;
  const std::unique_ptr<Directory> previous_;
  const std::unique_ptr<std::atomic<Shard*>[]> shards_;
};

}  // namespace firstseen
