// What a reader must know of a shard to find a key's group, in one word; and the sizes of shards.
//
//   bits  count:16      keys in groups
//   bits  depth:5       leading bits that all keys share
//   bits  overflow:1    some keys lie beside the groups
//   bits  chunks:4      0 to 13; 0 = a block smaller than a chunk, or nothing
//   bits  size:5        with chunks: lines of a group less 1 (2 bits), units of a chunk less 7
//                       (3 bits); without: which of the small sizes
//
// Chunks of 8 different sizes let shards split, and grow in between, at different moments although
// uniform keys fill them all alike: a shard's chunks have the size that the first three bits of its
// prefix say (a set that was told its size takes the one that fits best). So the memory of a large
// set follows its keys smoothly, with every shard somewhere else between its steps.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "exact/arena.h"
#include "exact/geometry.h"

namespace firstseen {

// How much memory a shard has.
struct ShardShape {
  static constexpr int kChunksMax = 13;
  static constexpr int kUnitsMin = 7;
  // Blocks of so many groups of two lines, while smaller than a chunk.
  static constexpr std::array<uint16_t, 13> kSmallGroups = {0,  1,  2,  3,  4,  6, 8,
                                                            12, 16, 24, 32, 48, 64};

  int chunks = 0;
  int units = kUnitsMin;  // of a chunk
  int lines = 2;          // of a group
  int small = 0;          // index into kSmallGroups when chunks == 0

  static constexpr int GroupsPerChunk(int units, int lines) {
    return units * static_cast<int>(Arena::kUnitBytes / 64) / lines;
  }
  constexpr int groups() const {
    return chunks == 0 ? kSmallGroups[static_cast<size_t>(small)]
                       : chunks * GroupsPerChunk(units, lines);
  }
  size_t small_bytes() const {
    return chunks == 0 ? size_t{kSmallGroups[static_cast<size_t>(small)]} * Group::kBytesMin : 0;
  }
  // The next size; of the same chunks from the first one on. At kChunksMax there is none.
  ShardShape Next() const {
    ShardShape next = *this;
    if (chunks > 0) {
      ++next.chunks;
      return next;
    }
    const auto index = static_cast<size_t>(small) + 1;
    if (index < kSmallGroups.size() && kSmallGroups[index] < GroupsPerChunk(units, 2)) {
      ++next.small;
    } else {
      next.small = 0;
      next.chunks = 1;
    }
    return next;
  }
};

class ShardState {
 public:
  ShardState() = default;
  explicit ShardState(uint32_t word) : word_(word) {}
  ShardState(const ShardShape& shape, int depth) {
    const int size = shape.chunks == 0
                         ? shape.small
                         : (shape.lines - 1) << 3 | (shape.units - ShardShape::kUnitsMin);
    word_ = static_cast<uint32_t>(depth) << 16 | static_cast<uint32_t>(shape.chunks) << 22 |
            static_cast<uint32_t>(size) << 26;
  }

  uint32_t word() const { return word_; }
  uint32_t count() const { return word_ & 0xffff; }
  int depth() const { return static_cast<int>(word_ >> 16) & 0x1f; }
  bool overflow() const { return (word_ >> 21 & 1) != 0; }
  int chunks() const { return static_cast<int>(word_ >> 22) & 0x0f; }
  // Only with chunks.
  int lines() const { return static_cast<int>(word_ >> 29 & 3) + 1; }
  int units() const { return static_cast<int>(word_ >> 26 & 7) + ShardShape::kUnitsMin; }

  // `units`: of the shard's chunks when it will have some.
  ShardShape shape(int units_if_small) const {
    if (chunks() != 0) return {chunks(), units(), lines(), 0};
    return {0, units_if_small, 2, static_cast<int>(word_ >> 26)};
  }
  inline const GroupCount& groups() const;
  Geometry geometry(int bits) const { return Geometry(bits, depth(), groups()); }

  void set_count(uint32_t count) { word_ = (word_ & ~uint32_t{0xffff}) | count; }
  void set_overflow(bool overflow) {
    word_ = (word_ & ~(uint32_t{1} << 21)) | static_cast<uint32_t>(overflow) << 21;
  }

 private:
  uint32_t word_ = 0;
};

// The groups of every shape, by the state's bits from `chunks` on.
struct GroupCounts {
  std::array<GroupCount, 512> count{};
  constexpr GroupCounts() {
    for (size_t small = 0; small < ShardShape::kSmallGroups.size(); ++small) {
      count[small << 4] = GroupCount(ShardShape::kSmallGroups[small], 2);
    }
    for (int chunks = 1; chunks <= ShardShape::kChunksMax; ++chunks) {
      for (int units = ShardShape::kUnitsMin; units <= Arena::kUnitsMax; ++units) {
        for (int lines = 2; lines <= GroupLayouts::kLinesMax; ++lines) {
          const ShardShape shape{chunks, units, lines, 0};
          const int size = (lines - 1) << 3 | (units - ShardShape::kUnitsMin);
          count[static_cast<size_t>(chunks | size << 4)] =
              GroupCount(shape.groups(), lines, ShardShape::GroupsPerChunk(units, lines));
        }
      }
    }
  }
};
inline constexpr GroupCounts kGroupCounts;

inline const GroupCount& ShardState::groups() const { return kGroupCounts.count[word_ >> 22]; }

}  // namespace firstseen
