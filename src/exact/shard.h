// A shard: all fingerprints that share the first `depth` bits, in groups, under one lock.
//
// Places. A key lies in its home group (geometry.h) or, when that is full, in its alternate group,
// whose distance from home is a hash of the remainder; one flag bit in the slot says which. When a
// key is put into its alternate group, one of the home group's 4 to 32 overflow marks is set,
// chosen by bits of the key's tag: a missing lookup looks at the alternate group only when that
// mark is set. When both groups are full, one entry of either moves to its own other group, if that
// has a free slot. That carries a shard beyond load 0.97. What still finds no place although the
// shard can neither grow nor split goes into an ordered set beside the groups.
//
// Readers without the lock. Batches of lookups use a sequence lock (Boehm, "Can Seqlocks Get Along
// With Programming Language Memory Models?", 2012): a writer, who holds the lock, makes the version
// odd while it writes; a reader who sees the same even version before and after has read a moment's
// true content, else it takes the lock. All that such readers see is atomic, loads acquire and
// stores release, so that they stay between the looks at the version; and chunks stay mapped
// (arena.h). Blocks smaller than a chunk do not, so small shards are read under the lock.
//
// Costs: a lookup touches one group (its tag line, and the line of the rest when a tag matches),
// two when the mark is set. A rebuild reads and writes each entry once, in streaming order.
#pragma once

#include <array>
#include <atomic>
#include <bit>
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
  static_assert(kGroupsPerChunk <= 64);

  enum class Answer : uint8_t { kNo, kYes, kUndecided };
  enum class Added : uint8_t { kAdded, kPresent, kFull, kUndecided };

  Shard(const ShardContext& context, uint64_t prefix, int depth);
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  void Lock() { lock_.Lock(); }
  void Unlock() { lock_.Unlock(); }

  // Everything down to "Without the lock" needs the lock.

  uint64_t prefix() const { return prefix_; }  // left-aligned; bits beyond the depth are zero
  int depth() const { return geometry().depth(); }
  uint32_t count() const { return count_; }
  int groups() const { return geometry().groups(); }
  uint64_t stamp() const { return stamp_; }
  void set_stamp(uint64_t stamp) { stamp_ = stamp; }
  bool Covers(const Fingerprint& fingerprint) const { return Covers(fingerprint, geometry()); }
  // True when more than half of the slots are in use. A shard in which an entry finds no place
  // although it is not crowded holds keys made to collide, and growing would not help them.
  bool Crowded() const { return 2 * count_ >= geometry().slot_count(); }
  bool AtMaximum() const { return groups() >= kGroupsMax; }

  bool Contains(const Fingerprint& fingerprint) const;
  // kFull when the load limit is reached or no slot was found: grow or split, and try again.
  Added Add(const Fingerprint& fingerprint);
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
    uint64_t stamp = 0;
    Geometry geometry;
    std::vector<Uint128> values;
  };
  void Copy(Raw* raw) const;
  static void Sorted(const Raw& raw, std::vector<Fingerprint>* fingerprints);

  void FreeStorage(ShardContext& context);

  // Without the lock.

  struct Key {
    uint32_t home;
    uint8_t tag;
    Uint128 remainder;
  };
  // What a reader knows of a key between its first and its last look at the shard.
  struct Probe {
    Shard* shard;
    const Group* home;  // nullptr: use the lock
    uint32_t version;
    uint32_t matches;  // slots of the home group with this tag
    int move_slot;     // of the home group: probably the entry that can make room
    Geometry geometry;
    Key key;
  };
  void PrefetchHeader() const {
    const char* const header = reinterpret_cast<const char*>(this);
    __builtin_prefetch(header);
    __builtin_prefetch(header + 64);
  }
  // Computes the place of a key and fetches the second line of the home group: its tags,
  // and the rests of its last slots, where a key is most likely added.
  inline void StartProbe(const Fingerprint& fingerprint, Probe* probe);
  // Looks at the tags and fetches the rest that may be equal.
  static inline void MatchProbe(Probe* probe);
  // kUndecided: the alternate group must be asked, or somebody was writing.
  static inline Answer FinishProbe(const Probe& probe);
  // After kUndecided: fetches the alternate group, and asks it.
  static inline void PrefetchAlternate(const Probe& probe);
  static inline Answer ProbeAlternate(const Probe& probe);

  // With the lock again: adds when the home group alone can tell and hold the key and nobody wrote
  // since the probe; otherwise changes nothing, kUndecided, and fetches what Add will need.
  Added AddProbed(Probe* probe);
  // After that, with the lock: adds to any group, still only when nobody wrote since the probe.
  Added PlaceProbed(const Probe& probe);

 private:
  // Entries that crafted input could not place; values as in the groups.
  struct Overflow {
    std::set<Uint128> values;
    size_t charged = 0;  // of these, how many the arena's limit knows of
  };
  // Makes the version odd for as long as it lives.
  class Writing {
   public:
    explicit Writing(Shard* shard)
        : version_(&shard->version_), value_(version_->load(std::memory_order_relaxed)) {
      version_->store(value_ + 1, std::memory_order_relaxed);
    }
    ~Writing() { version_->store(value_ + 2, std::memory_order_release); }
    Writing(const Writing&) = delete;
    Writing& operator=(const Writing&) = delete;

   private:
    std::atomic<uint32_t>* const version_;
    const uint32_t value_;
  };

  Geometry geometry() const {
    return std::bit_cast<Geometry>(std::array{geometry_words_[0].load(std::memory_order_acquire),
                                              geometry_words_[1].load(std::memory_order_acquire)});
  }
  void set_geometry(const Geometry& geometry) {
    const auto words = std::bit_cast<std::array<uint64_t, 2>>(geometry);
    geometry_words_[0].store(words[0], std::memory_order_release);
    geometry_words_[1].store(words[1], std::memory_order_release);
  }
  bool Covers(const Fingerprint& fingerprint, const Geometry& geometry) const {
    return ((fingerprint.hi ^ prefix_) >> 1) >> (63 - geometry.depth()) == 0;
  }
  static Key KeyOf(const Geometry& geometry, Uint128 value) {
    Key key;
    key.home = geometry.HomeOf(value);
    key.remainder = geometry.RemainderOf(key.home, value);
    key.tag = static_cast<uint8_t>(key.remainder);
    return key;
  }
  Group* Chunk(uint32_t number) const {
    return reinterpret_cast<Group*>(anchor_ + size_t{number} * Arena::kChunkBytes);
  }
  Group* InChunk(uint32_t index) const {
    const uint32_t number = chunks_[index / kGroupsPerChunk].load(std::memory_order_acquire);
    return number == 0 ? nullptr : Chunk(number) + index % kGroupsPerChunk;
  }
  // With the lock.
  Group* GroupAt(uint32_t index) const {
    if (small_ != nullptr) return small_ + index;
    return Chunk(chunks_[index / kGroupsPerChunk].load(std::memory_order_acquire)) +
           index % kGroupsPerChunk;
  }
  static int Find(const Geometry& geometry, const Group& group, const Key& key, Uint128 flag) {
    return group.Find(geometry.slots(), geometry.rest_bits(), key.tag, key.remainder >> 8 | flag);
  }
  void Append(const Geometry& geometry, uint32_t group, uint8_t tag, Uint128 rest) {
    Group* const target = GroupAt(group);
    target->Append(geometry.slots(), geometry.rest_bits(), tag, rest);
    if (target->count() == geometry.slots()) SetFull(group);
  }
  bool Full(uint32_t group) const {
    return (full_[group / kGroupsPerChunk] >> (group % kGroupsPerChunk) & 1) != 0;
  }
  void SetFull(uint32_t group) {
    full_[group / kGroupsPerChunk] |= uint64_t{1} << (group % kGroupsPerChunk);
  }
  void ClearFull(uint32_t group) {
    full_[group / kGroupsPerChunk] &= ~(uint64_t{1} << (group % kGroupsPerChunk));
  }
  static bool Marked(const Geometry& geometry, const Group& home, uint8_t tag) {
    return home.marked(geometry.slots(), geometry.mark_bytes(), tag);
  }
  void Mark(const Geometry& geometry, uint32_t home, uint8_t tag) {
    GroupAt(home)->Mark(geometry.slots(), geometry.mark_bytes(), tag);
  }
  bool OverLimit(const Geometry& geometry) const;
  bool ContainsKey(const Geometry& geometry, const Key& key, Uint128 value) const;
  bool Place(const Geometry& geometry, const Key& key, int first_slot = Group::kSlotsMax);
  bool PlaceByMoving(const Geometry& geometry, const Key& key, uint32_t alternate, int first_slot);
  bool MoveOneAway(const Geometry& geometry, uint32_t from, int first_slot, int* freed);
  struct Move {
    int slot;  // -1: none can move
    uint32_t to;
  };
  Move FindMove(const Geometry& geometry, uint32_t from, int first_slot) const;
  void PrefetchPlacing(Probe* probe) const;

  void Collect(std::vector<Uint128>* values) const;
  void Rebuild(ShardContext& context, int depth, int groups, std::span<const Uint128> values);
  class Unpacked;
  bool GrowStreaming(ShardContext& context, int groups);
  void Publish(ShardContext& context, const Geometry& fresh);
  void Fill(ShardContext& context, std::span<const Uint128> values);
  void PackAll(ShardContext& context, const Unpacked& unpacked);
  void PlaceAll(ShardContext& context, std::span<const Key> keys);
  bool Reserve(ShardContext& context, int old_groups, int groups);
  void InsertOverflow(ShardContext& context, Uint128 value, bool charged);

  // First line.
  ShardLock lock_;
  std::atomic<uint32_t> version_{0};
  std::atomic<uint64_t> geometry_words_[2];
  const uint64_t prefix_;
  char* const anchor_;
  Group* small_ = nullptr;  // a block smaller than a chunk, instead of chunks
  uint32_t count_ = 0;
  std::atomic<bool> has_overflow_{false};
  uint64_t stamp_ = 0;
  // Second line: numbers of the chunks.
  std::array<std::atomic<uint32_t>, kChunksMax> chunks_{};
  // Third and fourth: which groups are full, so that placing a key need not fetch them to know.
  alignas(64) std::array<uint64_t, kChunksMax> full_{};
  std::unique_ptr<Overflow> overflow_;
};
static_assert(sizeof(Shard) == 256);

inline void Shard::StartProbe(const Fingerprint& fingerprint, Probe* probe) {
  probe->shard = this;
  probe->home = nullptr;
  probe->move_slot = Group::kSlotsMax;
  probe->version = version_.load(std::memory_order_acquire);
  const Geometry geometry = this->geometry();
  probe->geometry = geometry;
  if (!Covers(fingerprint, geometry)) return;
  probe->key = KeyOf(geometry, geometry.ValueOf(fingerprint));
  if ((probe->version & 1) != 0 || geometry.groups() < kGroupsPerChunk) return;
  probe->home = InChunk(probe->key.home);
  __builtin_prefetch(reinterpret_cast<const char*>(probe->home) + 64);
}

inline void Shard::MatchProbe(Probe* probe) {
  if (probe->home == nullptr) return;
  const Geometry& geometry = probe->geometry;
  probe->matches = probe->home->Match(geometry.slots(), probe->key.tag);
  if (probe->matches != 0) {
    probe->home->PrefetchRest(geometry.rest_bits(), std::countr_zero(probe->matches));
  }
}

inline Shard::Answer Shard::FinishProbe(const Probe& probe) {
  if (probe.home == nullptr) return Answer::kUndecided;
  Answer answer = Answer::kYes;
  if (probe.home->FindIn(probe.matches, probe.geometry.rest_bits(), probe.key.remainder >> 8) < 0) {
    answer = Marked(probe.geometry, *probe.home, probe.key.tag) ||
                     probe.shard->has_overflow_.load(std::memory_order_acquire)
                 ? Answer::kUndecided
                 : Answer::kNo;
  }
  return probe.shard->version_.load(std::memory_order_relaxed) == probe.version
             ? answer
             : Answer::kUndecided;
}

inline void Shard::PrefetchAlternate(const Probe& probe) {
  if (probe.home == nullptr) return;
  const uint32_t alternate = probe.geometry.Alternate(probe.key.home, probe.key.remainder);
  const Group* const group = probe.shard->InChunk(alternate);
  __builtin_prefetch(reinterpret_cast<const char*>(group) + 64);
  __builtin_prefetch(group);
}

inline Shard::Answer Shard::ProbeAlternate(const Probe& probe) {
  if (probe.home == nullptr) return Answer::kUndecided;
  const Geometry& geometry = probe.geometry;
  const Group* const alternate =
      probe.shard->InChunk(geometry.Alternate(probe.key.home, probe.key.remainder));
  if (alternate == nullptr || probe.shard->has_overflow_.load(std::memory_order_acquire)) {
    return Answer::kUndecided;
  }
  const bool found = Find(geometry, *alternate, probe.key, geometry.alternate_flag()) >= 0;
  if (probe.shard->version_.load(std::memory_order_relaxed) != probe.version) {
    return Answer::kUndecided;
  }
  return found ? Answer::kYes : Answer::kNo;
}

}  // namespace firstseen
