// The embedded store: our engine in this process, on a data directory.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/file.h"
#include "store/store.h"

namespace firstseen {

struct EmbeddedStoreOptions {
  std::string directory;
  std::string key_file;  // empty = DIRECTORY/key
  FileSystem* files = FileSystem::Posix();
  const Clock* clock = Clock::Real();
  std::string holder = "firstseen";  // shown to whoever finds the directory locked
  uint64_t memory_bytes_max = ~uint64_t{0};
  uint64_t owner_bytes_max = 4ull << 30;
  uint64_t log_segment_bytes = 64ull << 20;  // the log grows in steps of it
  uint64_t snapshot_log_bytes = 1ull << 30;
  // Claims for windows that start later than this after now are refused (a typo must not open
  // the year 2203).
  absl::Duration future_max = absl::Hours(48);
};

// `firstseen init`: makes the directory and the key file (0600, 128 random bits) unless there.
// `made`, when given, says whether there was no data directory before.
absl::Status InitEmbeddedStore(const EmbeddedStoreOptions& options, bool* made = nullptr);
absl::StatusOr<std::unique_ptr<Store>> OpenEmbeddedStore(const EmbeddedStoreOptions& options);
// See Engine::Repair. OK with nothing to repair, and OK with `apply`, mean that the store opens: it
// is opened and closed once.
absl::StatusOr<std::vector<std::string>> RepairEmbeddedStore(const EmbeddedStoreOptions& options,
                                                             bool apply);

}  // namespace firstseen
