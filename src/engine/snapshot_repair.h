// What is left of a damaged snapshot, and a new one made of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/file.h"
#include "engine/engine.h"

namespace firstseen {

struct SnapshotDamage {
  std::vector<std::string> losses;  // one line each; empty = the snapshot is good
  uint64_t highest_sequence = 0;    // of any record the snapshot shows to have been on disk
  SetId sets = 0;                   // that are left, placeholders included
};

// Reads the snapshot `after` in `directory` section by section. With `apply`, and if it is damaged,
// writes what is good into a new snapshot of the same name; interrupted, it leaves the old one.
// Sets whose own section is lost keep their number under the name lost-N, without members, so that
// the log's records still find theirs; of a damaged snapshot at least `sets_min` sets are made.
absl::StatusOr<SnapshotDamage> RepairSnapshot(FileSystem* files, const std::string& directory,
                                              uint64_t after, SetId sets_min, bool apply);

}  // namespace firstseen
