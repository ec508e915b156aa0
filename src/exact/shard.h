// A shard: all fingerprints that share the first `depth` bits, in groups, under one lock.
//
// A key lies in its home group (geometry.h) or, when that is full, in its alternate group, whose
// distance from home is a hash of the remainder; one flag bit in the slot says which. When a key is
// put into its alternate group, one of the home group's four overflow marks is set, chosen by two
// bits of the key's tag: a missing lookup looks at the alternate group only when that mark is set.
// When both groups are full, one entry of either moves to its own other group, if that has a free
// slot. That carries a shard beyond load 0.97. What still finds no place although the shard can
// neither grow nor split goes into a small ordered set beside the groups.
//
// Costs: a lookup touches one group (its tag line, and the line of the remainder when the tag
// matches), two when the mark is set. A rebuild reads and writes each entry once.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "exact/arena.h"
#include "exact/geometry.h"
#include "exact/group.h"
#include "exact/shard_lock.h"
#include "keys/fingerprint.h"

namespace firstseen {

// What the shards of one set share.
struct ShardContext {
  Arena* arena = nullptr;
  int bits = 0;             // fingerprint width
  int depth_expected = -1;  // shards of this depth get `groups_expected` groups with their first
  int groups_expected = 1;  // entry; others begin with one
  std::atomic<uint64_t> slot_count{0};
  std::atomic<uint64_t> storage_bytes{0};  // groups and overflow, not headers
};

class alignas(64) Shard {
 public:
  static constexpr int kGroupsPerChunk = Arena::kChunkBytes / Group::kBytes;
  static constexpr int kChunksMax = 960 / kGroupsPerChunk;
  static constexpr int kGroupsMax = kChunksMax * kGroupsPerChunk;

  enum class Answer : uint8_t { kNo, kYes, kUndecided };
  enum class Added : uint8_t { kAdded, kPresent, kFull, kUndecided };

  Shard(const ShardContext& context, uint64_t prefix, int depth);
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  void Lock() { lock_.Lock(); }
  void Unlock() { lock_.Unlock(); }

  // Everything below needs the lock, except where it says otherwise.

  uint64_t prefix() const { return prefix_; }  // left-aligned; bits beyond the depth are zero
  int depth() const { return depth_; }
  uint32_t count() const { return count_; }
  int groups() const { return geometry_.groups(); }
  uint64_t stamp() const { return stamp_; }
  void set_stamp(uint64_t stamp) { stamp_ = stamp; }
  bool Covers(const Fingerprint& fingerprint) const {
    return ((fingerprint.hi ^ prefix_) >> 1) >> (63 - depth_) == 0;
  }
  // True when more than half of the slots are in use. A shard in which an entry finds no place
  // although it is not crowded holds keys made to collide, and growing would not help them.
  bool Crowded() const { return 2 * count_ > geometry_.slot_count() || groups() == 0; }
  bool AtMaximum() const { return groups() >= kGroupsMax; }

  bool Contains(const Fingerprint& fingerprint) const;
  // Looks at the home group only; kUndecided when the alternate one must be asked as well.
  Answer ProbeHome(const Fingerprint& fingerprint) const;
  // kFull when the load limit is reached or no slot was found: grow or split, and try again.
  Added Add(const Fingerprint& fingerprint);
  // Adds when the home group alone can tell and hold it; otherwise changes nothing: kUndecided.
  Added AddToHome(const Fingerprint& fingerprint);
  // After Add said kFull: uses any slot left, beyond the load limit. False when there is none.
  bool AddBeyondLimit(const Fingerprint& fingerprint);
  // After that: puts it beside the groups. False when out of memory.
  bool AddToOverflow(ShardContext& context, const Fingerprint& fingerprint);
  bool Remove(ShardContext& context, const Fingerprint& fingerprint);

  // Each of the following changes nothing when it returns false: out of memory.
  bool Grow(ShardContext& context);
  // Moves the upper half of the range into `upper`, a new shard of this range and depth + 1.
  bool SplitInto(ShardContext& context, Shard* upper);
  // Fills an empty shard; all of `fingerprints` are in its range and differ.
  bool Build(ShardContext& context, std::span<const Fingerprint> fingerprints);
  // Entries that Build stores without leaving the shard over its load limit.
  static uint64_t BuildMax(const ShardContext& context, int depth);
  // Groups for a shard of `count` entries; kGroupsMax when even they would be loaded higher.
  static int GroupsFor(const ShardContext& context, int depth, uint64_t count);

  // Copies the content as it lies; Sorted() puts it in order without the lock.
  struct Raw {
    uint64_t prefix = 0;
    int depth = 0;
    uint64_t stamp = 0;
    Geometry geometry;
    std::vector<Uint128> values;
  };
  void Copy(Raw* raw) const;
  static void Sorted(const Raw& raw, std::vector<Fingerprint>* fingerprints);

  void FreeStorage(ShardContext& context);

  // No lock needed: guesses from what may be changing and only prefetches.
  void PrefetchHome(const Fingerprint& fingerprint) const {
    const uint32_t hint = hint_.load(std::memory_order_relaxed);
    const uint64_t top = (fingerprint.hi << (hint >> 16)) >> 32;
    const uint32_t home = static_cast<uint32_t>((top * (hint & 0xffff)) >> 32);
    PrefetchGroup(home);
  }
  void PrefetchHeader() const {
    __builtin_prefetch(this);
    __builtin_prefetch(reinterpret_cast<const char*>(this) + 64);
  }
  void PrefetchAlternate(const Fingerprint& fingerprint) const;

 private:
  struct Key {
    uint32_t home;
    uint8_t tag;
    Uint128 remainder;
    Uint128 rest;
  };
  // Entries that crafted input could not place; values as in the groups.
  struct Overflow {
    std::set<Uint128> values;
    size_t charged = 0;  // of these, how many the arena's limit knows of
  };

  Uint128 ValueOf(const Fingerprint& fingerprint) const {
    return (ToUint128(fingerprint) << depth_) >> (128 - geometry_.value_bits());
  }
  Key KeyOf(Uint128 value) const {
    Key key;
    key.home = geometry_.HomeOf(value);
    key.remainder = value - geometry_.LowerBound(key.home);
    key.tag = static_cast<uint8_t>(key.remainder);
    key.rest = key.remainder >> 8;
    return key;
  }
  Group* GroupAt(uint32_t index) const {
    return chunks_[index / kGroupsPerChunk].load(std::memory_order_relaxed) +
           index % kGroupsPerChunk;
  }
  void PrefetchGroup(uint32_t index) const {
    const char* group = reinterpret_cast<const char*>(
        chunks_[index / kGroupsPerChunk].load(std::memory_order_relaxed));
    group += size_t{index % kGroupsPerChunk} * Group::kBytes;
    __builtin_prefetch(group);
    __builtin_prefetch(group + 64);
  }
  int Find(const Group& group, const Key& key, Uint128 flag) const {
    return group.Find(geometry_.slots(), geometry_.rest_bits(), key.tag, key.rest | flag);
  }
  void Append(Group* group, const Key& key, Uint128 flag) {
    group->Append(geometry_.slots(), geometry_.rest_bits(), key.tag, key.rest | flag);
  }
  bool HasRoom(const Group& group) const { return group.count() < geometry_.slots(); }
  bool OverLimit() const;

  bool ContainsKey(const Key& key, Uint128 value) const;
  bool Place(const Key& key);
  bool PlaceByMoving(const Key& key, uint32_t alternate);
  bool MoveOneAway(uint32_t from, int* freed);
  void Collect(std::vector<Uint128>* values) const;
  void Rebuild(ShardContext& context, int depth, int groups, std::span<const Uint128> values);
  bool Reserve(ShardContext& context, int old_groups, int groups);
  void InsertOverflow(ShardContext& context, Uint128 value, bool charged);

  ShardLock lock_;
  std::atomic<uint32_t> hint_{0};  // groups in the low 16 bits, depth above: for PrefetchHome
  uint64_t prefix_;
  Geometry geometry_;
  int depth_;
  uint32_t count_ = 0;
  uint64_t stamp_ = 0;
  std::unique_ptr<Overflow> overflow_;
  // Whole chunks; or, below one chunk, a single small block in chunks_[0].
  std::array<std::atomic<Group*>, kChunksMax> chunks_{};
};

}  // namespace firstseen
