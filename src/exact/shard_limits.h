// How full shards become.
#pragma once

#include <cstddef>
#include <cstdint>

namespace firstseen {

// Beyond this share of its slots in use a shard grows. Small ones fill up first.
inline constexpr uint64_t kLoadMaxPerMille = 960;
inline constexpr int kLoadLimitedFrom = 8;  // groups
// Shards of this depth belong to sets of some 100 million keys and more, where memory comes first:
// they grow by one chunk. Others grow by two, which moves each key half as often and leaves 4 per
// cent more slots unused.
inline constexpr int kLargeFromDepth = 14;
inline constexpr int kCoarseStepsFromChunks = 7;
// A shard that is built anew (split, load) is filled to this.
inline constexpr uint64_t kLoadBuiltPerMille = 940;
// Shards of a set that was told its size are made to be filled to this.
inline constexpr uint64_t kLoadExpectedPerMille = 950;
// Of an entry beside the groups: a node of std::set with its allocation.
inline constexpr size_t kOverflowEntryBytes = 64;

}  // namespace firstseen
