// A shard: all fingerprints that share the first `depth` bits, in groups, under one lock.
//
//   struct Shard {                  // 256 bytes
//     uint32 lock, version, state;  // state: shard_state.h          } one line, all that a
//     uint32 chunks[13];            // numbers, see arena.h          } reader needs
//     prefix, stamp, overflow*, small*, anchor*;
//     bits   full[1092];            // which groups are full: placing a key asks without fetching
//   };
//
// Places. A key lies in its home group (geometry.h) or, when that is full, in its alternate group,
// whose distance from home is a hash of the remainder. When a key is put into its alternate group,
// one of the home group's 6 to 32 overflow marks is set, chosen by the key's tag: a missing lookup
// looks at the alternate group only when that mark is set. When both groups are full, one entry of
// either moves to its own other group, if that has a free slot. That carries a shard beyond load
// 0.97. What still finds no place although the shard can neither grow nor split goes into an
// ordered set beside the groups.
//
// Readers without the lock. Batches use a sequence lock (Boehm, "Can Seqlocks Get Along With
// Programming Language Memory Models?", 2012): a writer, who holds the lock, makes the version odd
// while it writes; a reader who sees the same even version before and after has read a moment's
// true content, else it takes the lock. All that such readers see is atomic, loads acquire and
// stores release, so that they stay between the looks at the version; and chunks stay mapped
// (arena.h). Blocks smaller than a chunk do not, so small shards are read under the lock.
//
// Costs: a lookup touches the header's line, the tag line of one group and, when a tag matches,
// the line of the rest, often the same; when the mark is set, the alternate group's too. A rebuild
// reads and writes each entry once, in streaming order (shard_move.cc).
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
#include "exact/shard_state.h"
#include "keys/fingerprint.h"

namespace firstseen {

// What the shards of one set share.
struct ShardContext {
  Arena* arena = nullptr;
  char* anchor = nullptr;  // the arena's
  int bits = 0;            // fingerprint width
  uint64_t expected = 0;   // keys the set was made for; 0 = unknown
  std::atomic<uint64_t> slot_count{0};
  std::atomic<uint64_t> storage_bytes{0};  // groups and overflow, not headers
};

class alignas(64) Shard {
 public:
  enum class Answer : uint8_t { kNo, kYes, kUndecided };
  enum class Added : uint8_t { kAdded, kPresent, kFull };

  Shard(const ShardContext& context, uint64_t prefix, int depth);
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  void Lock() { lock_.Lock(); }
  void Unlock() { lock_.Unlock(); }

  // Everything down to "Without the lock" needs the lock.

  uint64_t prefix() const { return prefix_; }  // left-aligned; bits beyond the depth are zero
  int depth() const { return state().depth(); }
  uint64_t count() const;
  uint64_t stamp() const { return stamp_; }
  void set_stamp(uint64_t stamp) { stamp_ = stamp; }
  bool Covers(const Fingerprint& fingerprint) const {
    return ((fingerprint.hi ^ prefix_) >> 1) >> (63 - depth()) == 0;
  }
  // True when more than half of the slots are in use. A shard in which an entry finds no place
  // although it is not crowded holds keys made to collide, and growing would not help them.
  bool Crowded(const ShardContext& context) const;
  bool AtMaximum() const { return state().chunks() == ShardShape::kChunksMax; }

  bool Contains(const ShardContext& context, const Fingerprint& fingerprint) const;
  // kFull when the load limit is reached or no slot was found: grow or split, and try again.
  Added Add(const ShardContext& context, const Fingerprint& fingerprint);
  // After Add said kFull: uses any slot left, beyond the load limit. False when there is none.
  bool AddBeyondLimit(const ShardContext& context, const Fingerprint& fingerprint);
  // After that: puts it beside the groups. False when out of memory.
  bool AddToOverflow(ShardContext& context, const Fingerprint& fingerprint);
  bool Remove(ShardContext& context, const Fingerprint& fingerprint);

  // Each of the following changes nothing when it returns false: out of memory.
  bool Grow(ShardContext& context);
  // Moves the upper half of the range into `upper`, a new shard of this range and depth + 1.
  bool SplitInto(ShardContext& context, Shard* upper);
  // Fills an empty shard; all of `fingerprints` are in its range and differ.
  bool Build(ShardContext& context, std::span<const Fingerprint> fingerprints);
  // Entries that Build stores without leaving the shard over its load limit; and those of a shard
  // with chunks of so many units.
  uint64_t BuildMax(const ShardContext& context) const {
    return BuildMaxFor(context, depth(), units());
  }
  static uint64_t BuildMaxFor(const ShardContext& context, int depth, int units);

  // Copies the content as it lies; Sorted() puts it in order without the lock.
  struct Raw {
    uint64_t prefix = 0;
    uint64_t stamp = 0;
    Geometry geometry;
    std::vector<Uint128> values;
  };
  void Copy(const ShardContext& context, Raw* raw) const;
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
    int depth;  // by the directory
    uint32_t version;
    Group* home;       // nullptr: use the lock
    Group* alternate;  // set when it must be looked at
    uint32_t alternate_index;
    char* anchor;
    uint32_t matches;  // slots of the group looked at that hold the key's tag
    int move_slot;     // of the home group: probably the entry that can make room
    Geometry geometry;
    Key key;
  };
  void PrefetchHeader() const { __builtin_prefetch(this); }
  // Computes the place of a key and fetches the home group's tags.
  inline void StartProbe(const ShardContext& context, const Fingerprint& fingerprint,
                         Probe* probe) const;
  // Looks at the tags and fetches the rest that may be equal or, when the key may lie in its
  // alternate group, that one's tags.
  inline void MatchProbe(Probe* probe) const;
  // kUndecided: the alternate group must be asked, or somebody was writing.
  static inline Answer FinishProbe(Probe* probe);
  // After kUndecided: the same two steps for the alternate group.
  static inline void MatchAlternate(Probe* probe);
  static inline Answer FinishAlternate(const Probe& probe);

  // For adding: as MatchProbe, but fetches what will be written to.
  void MatchForAdd(Probe* probe) const;
  // After that: chooses the place of a key whose home group is full, and fetches it.
  void PlanPlacing(Probe* probe) const;
  // With the lock: adds by what the probe has found if nobody wrote since, else as Add does. kFull
  // also when the shard does not hold the key's range any more.
  Added AddProbed(const ShardContext& context, const Fingerprint& fingerprint, const Probe& probe);

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
  struct Move {
    int slot;  // -1: none can move
    uint32_t to;
  };
  class Mover;

  static constexpr int kGroupsMax =
      ShardShape::kChunksMax * ShardShape::GroupsPerChunk(Arena::kUnitsMax, 2);

  ShardState state() const { return ShardState(state_.load(std::memory_order_acquire)); }
  void set_state(ShardState state) { state_.store(state.word(), std::memory_order_release); }
  void AddToCount(int change) {
    ShardState state = this->state();
    state.set_count(state.count() + static_cast<uint32_t>(change));
    set_state(state);
  }
  // Units of the shard's chunks, also of those it may have later.
  int units() const {
    return units_ != 0 ? units_ : ShardShape::kUnitsMin + static_cast<int>(prefix_ >> 61);
  }
  ShardShape shape() const { return state().shape(units()); }
  Geometry geometry(const ShardContext& context) const { return state().geometry(context.bits); }

  static Key KeyOf(const Geometry& geometry, Uint128 value) {
    Key key;
    key.home = geometry.HomeOf(value);
    key.remainder = geometry.RemainderOf(key.home, value);
    key.tag = static_cast<uint8_t>(key.remainder);
    return key;
  }
  // A group of a shard with chunks; nullptr when it has them no more. Safe without the lock.
  Group* InChunk(const Geometry& geometry, uint32_t index) const {
    return InChunk(anchor_, geometry, index);
  }
  // The arena's anchor comes from outside so that a reader need not fetch the header's second line.
  Group* InChunk(char* anchor, const Geometry& geometry, uint32_t index) const {
    const GroupCount& count = geometry.count();
    const uint32_t chunk = count.ChunkOf(index);
    const uint32_t number = chunks_[chunk].load(std::memory_order_acquire);
    const size_t offset =
        size_t{index - chunk * count.per_chunk} * static_cast<size_t>(geometry.layout().bytes());
    return number == 0
               ? nullptr
               : reinterpret_cast<Group*>(anchor + size_t{number} * Arena::kNumberBytes + offset);
  }
  // With the lock.
  Group* GroupAt(const Geometry& geometry, uint32_t index) const {
    if (small_ != nullptr) {
      return reinterpret_cast<Group*>(small_ + size_t{index} * Group::kBytesMin);
    }
    return InChunk(geometry, index);
  }
  bool Full(uint32_t group) const {
    return (full_[group / 64].load(std::memory_order_relaxed) >> (group % 64) & 1) != 0;
  }
  void SetFull(uint32_t group, bool full) {
    const uint64_t bit = uint64_t{1} << (group % 64);
    const uint64_t word = full_[group / 64].load(std::memory_order_relaxed);
    full_[group / 64].store(full ? word | bit : word & ~bit, std::memory_order_relaxed);
  }
  void AppendHome(const Geometry& geometry, Group* group, uint32_t index, const Key& key) {
    group->AppendHome(geometry.layout(), key.tag, key.remainder >> 8);
    if (group->full(geometry.layout())) SetFull(index, true);
  }
  void AppendForeign(const Geometry& geometry, Group* group, uint32_t index, const Key& key) {
    group->AppendForeign(geometry.layout(), key.tag, key.remainder >> 8);
    if (group->full(geometry.layout())) SetFull(index, true);
  }
  static int FindHome(const Geometry& geometry, const Group& group, const Key& key) {
    return group.FindIn(group.MatchHome(geometry.layout(), key.tag), geometry.layout(),
                        key.remainder >> 8);
  }
  static int FindForeign(const Geometry& geometry, const Group& group, const Key& key) {
    return group.FindIn(group.MatchForeign(geometry.layout(), key.tag), geometry.layout(),
                        key.remainder >> 8);
  }
  inline void FindAlternate(Probe* probe) const;
  bool SameVersion(const Probe& probe) const {
    return version_.load(std::memory_order_relaxed) == probe.version;
  }
  bool ContainsKey(const Geometry& geometry, const Key& key, Uint128 value) const;
  bool OverLimit(const Geometry& geometry) const;
  bool Place(const Geometry& geometry, const Key& key, int first_slot = Group::Layout::kSlotsMax);
  bool PlaceByMoving(const Geometry& geometry, const Key& key, uint32_t alternate, int first_slot);
  bool MoveOneAway(const Geometry& geometry, uint32_t from, int first_slot);
  Move FindMove(const Geometry& geometry, const Group& group, uint32_t from, int first_slot) const;

  void Collect(const ShardContext& context, std::vector<Uint128>* values) const;
  ShardShape FirstShape(const ShardContext& context) const;
  // The smallest shape that `count` keys fill to `load_per_mille` or less.
  ShardShape ShapeFor(const ShardContext& context, int depth, uint64_t count,
                      uint64_t load_per_mille) const;
  static Geometry GeometryOf(const ShardContext& context, int depth, const ShardShape& shape) {
    return ShardState(shape, depth).geometry(context.bits);
  }
  static void ChooseLines(const ShardContext& context, int depth, ShardShape* shape);
  bool AddStorage(ShardContext& context, const ShardShape& fresh);
  void DropStorage(ShardContext& context, const ShardShape& fresh);
  void Publish(ShardContext& context, const ShardShape& fresh, int depth, uint32_t count);
  void Fill(ShardContext& context, const ShardShape& shape, int depth,
            std::span<const Uint128> values);
  void PlaceAll(ShardContext& context, std::span<const Key> keys);
  void InsertOverflow(ShardContext& context, Uint128 value, bool charged);
  void DropOverflow(ShardContext& context);
  bool CanMove(const ShardContext& context, const ShardShape& fresh, int depth) const;
  bool GrowMoving(ShardContext& context, const ShardShape& fresh);
  bool SplitMoving(ShardContext& context, Shard* upper, bool* done);
  bool SplitAnew(ShardContext& context, Shard* upper);

  // First line.
  ShardLock lock_;
  std::atomic<uint32_t> version_{0};
  std::atomic<uint32_t> state_;
  std::array<std::atomic<uint32_t>, ShardShape::kChunksMax> chunks_{};  // numbers
  // Only with the lock, but for `anchor_`, which never changes, and `full_`.
  const uint64_t prefix_;
  char* const anchor_;
  uint64_t stamp_ = 0;
  std::unique_ptr<Overflow> overflow_;
  uint8_t units_ = 0;  // of chunks, chosen with the first one; readers rely on its never changing
  char* small_ = nullptr;  // a block smaller than a chunk, instead of chunks
  std::array<std::atomic<uint64_t>, (kGroupsMax + 63) / 64> full_{};
};
static_assert(sizeof(Shard) == 256);

inline void Shard::StartProbe(const ShardContext& context, const Fingerprint& fingerprint,
                              Probe* probe) const {
  probe->home = nullptr;
  probe->version = version_.load(std::memory_order_acquire);
  const ShardState state = this->state();
  if ((probe->version & 1) != 0 || state.depth() != probe->depth || state.chunks() == 0 ||
      state.overflow()) {
    return;
  }
  // First what the fetch needs, by the shortest way; what waits for it is computed meanwhile.
  const GroupCount& count = state.groups();
  const Uint128 value = ShiftLeft(ToUint128(fingerprint), state.depth());
  const uint32_t home = count.HomeOfUpper(static_cast<uint64_t>(value >> 64));
  const uint32_t chunk = count.ChunkOf(home);
  const uint32_t number = chunks_[chunk].load(std::memory_order_acquire);
  if (number == 0) return;
  const size_t group_bytes = size_t{count.lines} * 64;
  char* const group = context.anchor + size_t{number} * Arena::kNumberBytes +
                      (home - chunk * count.per_chunk) * group_bytes;
  __builtin_prefetch(group + group_bytes - 64);
  // In place: copying what was just written in smaller parts would stall the processor.
  const Geometry& geometry =
      *std::construct_at(&probe->geometry, context.bits, state.depth(), count);
  probe->home = reinterpret_cast<Group*>(group);
  probe->anchor = context.anchor;
  probe->key.home = home;
  probe->key.remainder = geometry.RemainderOf(home, value);
  probe->key.tag = static_cast<uint8_t>(probe->key.remainder);
}

inline void Shard::FindAlternate(Probe* probe) const {
  probe->alternate_index = probe->geometry.Alternate(probe->key.home, probe->key.remainder);
  probe->alternate = InChunk(probe->anchor, probe->geometry, probe->alternate_index);
  if (probe->alternate != nullptr) probe->alternate->PrefetchTags(probe->geometry.layout());
}

inline void Shard::MatchProbe(Probe* probe) const {
  if (probe->home == nullptr) return;
  const Group::Layout& layout = probe->geometry.layout();
  probe->alternate = nullptr;
  probe->matches = probe->home->MatchHome(layout, probe->key.tag);
  if (probe->matches != 0) {
    probe->home->PrefetchRest(layout, std::countr_zero(probe->matches));
  } else if (probe->home->marked(layout, probe->key.tag)) {
    FindAlternate(probe);
  }
}

inline Shard::Answer Shard::FinishProbe(Probe* probe) {
  if (probe->home == nullptr) return Answer::kUndecided;
  const Group::Layout& layout = probe->geometry.layout();
  Answer answer = Answer::kYes;
  if (probe->home->FindIn(probe->matches, layout, probe->key.remainder >> 8) < 0) {
    // Where no tag matched, MatchProbe has asked for the mark already.
    if (probe->matches != 0 && probe->home->marked(layout, probe->key.tag)) {
      probe->shard->FindAlternate(probe);
    }
    if (probe->alternate != nullptr) return Answer::kUndecided;
    answer = Answer::kNo;
  }
  return probe->shard->SameVersion(*probe) ? answer : Answer::kUndecided;
}

inline void Shard::MatchAlternate(Probe* probe) {
  if (probe->home == nullptr || probe->alternate == nullptr) return;
  const Group::Layout& layout = probe->geometry.layout();
  probe->matches = probe->alternate->MatchForeign(layout, probe->key.tag);
  if (probe->matches != 0) {
    probe->alternate->PrefetchRest(layout, std::countr_zero(probe->matches));
  }
}

inline Shard::Answer Shard::FinishAlternate(const Probe& probe) {
  if (probe.home == nullptr || probe.alternate == nullptr) return Answer::kUndecided;
  const int found =
      probe.alternate->FindIn(probe.matches, probe.geometry.layout(), probe.key.remainder >> 8);
  if (!probe.shard->SameVersion(probe)) return Answer::kUndecided;
  return found >= 0 ? Answer::kYes : Answer::kNo;
}

}  // namespace firstseen
