// How full shards become.
#pragma once

#include <cstddef>
#include <cstdint>

namespace firstseen {

// Beyond this share of its slots in use a shard grows. Small ones fill up first.
inline constexpr uint64_t kLoadMaxPercent = 94;
inline constexpr int kLoadLimitedFrom = 8;  // groups
// A shard that is built anew (split, load) is filled to this.
inline constexpr uint64_t kLoadBuiltPercent = 90;
// Of an entry beside the groups: a node of std::set with its allocation.
inline constexpr size_t kOverflowEntryBytes = 64;

}  // namespace firstseen
