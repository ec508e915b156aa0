// Memory that rebuilds of shards use and keep, so that a growing set does not allocate.
#pragma once

#include <array>
#include <vector>

#include "exact/shard.h"

namespace firstseen {

struct ShardScratch {
  std::vector<Uint128> values;
  std::array<std::vector<Shard::Key>, 2> displaced;
};

// The thread's; a quarter of a megabyte at the most. For one rebuild at a time.
ShardScratch& ThreadScratch();

}  // namespace firstseen
