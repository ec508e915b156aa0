// ExactSet: a compact, sharded hash table of keyed fingerprints.
//
//   struct ExactSet {
//     Directory*  directory;      // 2^D pointers, chosen by the first D bits of a fingerprint
//   };
//   struct Shard {                // 256 bytes; all fingerprints with the same first `depth` bits
//     lock, version;              // one word each
//     prefix, depth, stamp, count;
//     geometry;                   // 16 bytes: number of groups, slots a group, widths
//     uint32  chunks[15];         // 8 KiB each, from the arena; or one block smaller than that
//     bits    full[960];          // which groups are full
//     Overflow* overflow;         // what crafted input could not place; normally null
//   };
//   struct Group {                // 128 bytes, two cache lines; a chunk has 64
//     bits  rest[K]; uint8 marks[]; uint8 tag[K]; uint8 meta;
//   };                            // K = 13 from 6 million 96-bit fingerprints on, 14 from 400
//   million
//
// A slot leaves out what its place says: the shard's prefix and the number of the group
// (geometry.h). At 50 million fingerprints of 96 bits that is 22 bits; what is left is a tag of 8
// bits in the group's last 16 bytes, compared all at once, and a rest of 67 bits.
//
// Growth: a shard at load 0.94 takes one or two chunks more and moves its entries to their new
// groups in place, in one streaming pass; at 15 chunks (about 12 000 slots) it splits in two. All
// happens under one shard's lock. The directory doubles when a shard outgrows it; old directories
// stay readable. Shards are freed only with the set. Nothing shrinks; freed slots are used again.
//
// Invariants:
// - A fingerprint is in its home group, or its alternate group (then its mark is set in the home
//   group), or the shard's overflow; in one place only.
// - A shard's entries all share its prefix; the pointers of the current directory in that range
//   all lead to it. Who finds a shard in an old directory checks the prefix under its lock.
// - After an add that failed for want of memory the set is as it was before.
// - The directory never has more than 16 pointers a shard (and 1024), so that fingerprints made to
//   share long prefixes cannot blow it up; their shards then take the excess into the overflow.
//
// Costs at load 0.8 to 0.94: a lookup fetches the shard's two header lines, the tag line of one
// group and, for a hit, often another line; with the 32 marks that 50 million entries leave room
// for, few missing lookups need the alternate group. An add moves about nine entries by its share
// in growing. All are O(1) but for a rebuild or split of one shard and overflows, O(log n).
//
// Ideas: quotienting, Cleary 1984; a second group by hash and a tag scan, as in the vector quotient
// filter, Pandey et al., SIGMOD 2021, but home first, so that most lookups need one group; moving
// an entry to its other group, cuckoo hashing, Pagh and Rodler 2004; extendible hashing, Fagin et
// al. 1979; range reduction to any number of groups, Lemire 2019; sequence locks, Boehm 2012.
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
