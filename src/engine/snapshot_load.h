// Loading a snapshot into an empty state.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "base/file.h"
#include "engine/snapshot_format.h"
#include "engine/state.h"

namespace firstseen {

struct LoadedSnapshot {
  SnapshotHeader header;
  FooterSection footer;
  uint64_t bytes = 0;
};

// One thread reads and checks sections, two more decode shards and owners and put them into their
// tables: 50 million members in seconds. Memory besides the state: some 40 MiB of sections.
// DataLoss names the file and the place when any byte is not as written: then nothing in `state`
// may be used. ResourceExhausted: the members do not fit into the memory limit.
absl::StatusOr<LoadedSnapshot> LoadSnapshot(FileSystem* files, const std::string& path,
                                            State* state);

}  // namespace firstseen
