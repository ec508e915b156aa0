// ExactSet: a compact, sharded hash table of keyed fingerprints. (Layout comment: see below.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "exact/arena.h"
#include "keys/fingerprint.h"

namespace firstseen {

enum class AddOutcome : uint8_t { kAdded, kPresent, kNoMemory };

// A shard's content at one moment, for snapshots.
struct ShardImage {
  Fingerprint first;  // lowest fingerprint of the shard's range
  int depth = 0;      // leading bits that every fingerprint of the range shares
  uint64_t stamp = 0;
  std::vector<Fingerprint> fingerprints;  // ascending
};

class ExactSet {
 public:
  struct Options {
    int bits = 96;          // 32 to 128; the product offers 80, 88, 96, 112, 128
    uint64_t expected = 0;  // pre-sizes the table; 0 = grow as needed
  };

  // One locked shard (or, during a split, its two halves). Valid only inside the callback.
  class LockedShard {
   public:
    virtual bool Contains(const Fingerprint& fingerprint) const = 0;
    virtual AddOutcome Add(const Fingerprint& fingerprint) = 0;
    virtual bool Remove(const Fingerprint& fingerprint) = 0;
    // A number the caller keeps with the shard (the engine: sequence number of its last record).
    // A split gives both halves the same stamp.
    virtual uint64_t stamp(const Fingerprint& fingerprint) const = 0;
    virtual void set_stamp(const Fingerprint& fingerprint, uint64_t stamp) = 0;

   protected:
    ~LockedShard() = default;
  };

  // `arena` must outlive the set.
  ExactSet(Arena* arena, Options options);
  ~ExactSet();

  // Single operations and batches; all thread-safe. A batch overlaps its cache misses.
  AddOutcome Add(const Fingerprint& fingerprint);
  bool Contains(const Fingerprint& fingerprint) const;
  bool Remove(const Fingerprint& fingerprint);
  void AddBatch(std::span<const Fingerprint> fingerprints, std::span<AddOutcome> outcomes);
  void ContainsBatch(std::span<const Fingerprint> fingerprints, std::span<bool> present) const;
  uint64_t size() const;

  // Fetches the cache lines that operations on these fingerprints (64 at the most) will touch.
  void Prefetch(std::span<const Fingerprint> fingerprints) const;
  // Runs `f` with the shard of `fingerprint` locked. `f` must not call the set itself.
  void WithShard(const Fingerprint& fingerprint, absl::FunctionRef<void(LockedShard&)> f);
  // Runs `f` with every shard that one of `sorted` (ascending) falls into locked, all at once.
  // Deadlock-free: locks are taken in ascending order of range.
  void WithShards(std::span<const Fingerprint> sorted, absl::FunctionRef<void(LockedShard&)> f);

  // Copies the shard that holds *cursor and moves *cursor to the next range. False, with `image`
  // still filled, when it was the last. Start at {0,0}. Shards may split between two calls; every
  // range is copied exactly once.
  bool CopyShard(Fingerprint* cursor, ShardImage* image) const;
  // Puts a shard image back into a set that has nothing in that range; false when out of memory.
  bool LoadShard(const ShardImage& image);

  int bits() const;
  uint64_t memory_bytes() const;  // of this set: chunks, small blocks, headers, directory
  uint64_t slot_count() const;    // slots allocated; size() / slot_count() is the load factor

 private:
  friend class HeldShards;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace firstseen
