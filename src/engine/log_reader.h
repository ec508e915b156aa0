// Reads a log's segments back and judges what it finds: used by recovery and by repair.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file.h"

namespace firstseen {

struct LogSegment {
  uint64_t first_sequence = 0;
  uint64_t previous_last = 0;  // as its header says; first_sequence - 1 when it has none
  uint64_t used_bytes = 0;     // header and good frames; all of the file when it was not needed
  uint64_t file_bytes = 0;
  uint64_t full_bytes = 0;  // preallocated size as its header says, else file_bytes
  int64_t begun_ms = 0;     // as its header says
  bool mend = false;        // header damaged or file cut short, but no record lost
};

// Bytes that were once on disk and are not what was written.
struct LogDamage {
  std::string file;             // its path
  uint64_t offset = 0;          // where in it
  std::string what;             // one clause: what is wrong
  bool loses_records = false;   // else it can be mended without loss
  uint64_t first_sequence = 0;  // first record that is lost
  uint64_t last_sequence = 0;   // last one known to be lost or to lie behind the damage; below
                                // first_sequence when that is not known
};

struct LogContents {
  std::vector<LogSegment> segments;  // every segment there is, oldest first
  uint64_t last_sequence = 0;        // of the last good record
  uint64_t known_durable = 0;        // highest number that anything read shows to be durable
  uint64_t highest_sequence = 0;     // highest number seen anywhere, also behind damage
  // What is wrong. Only the last of them can lose records; nothing behind it was replayed.
  std::vector<LogDamage> damages;
  size_t good_segments = 0;  // segments whose records up to last_sequence are good; any behind
                             // them are lost

  // Of the last segment, when nothing is wrong:
  bool header_missing = false;   // never written: no frame in it counts
  uint64_t last_checksum = 0;    // of its last good frame; 0 when it has none
  uint64_t unproven_offset = 0;  // where the frames begin that nothing shows to be durable
  std::string unproven;          // these frames
};

// Called for each recovered record with seq > `after`, in order.
using LogReplayFunction =
    absl::FunctionRef<absl::Status(uint64_t sequence, std::string_view record)>;

// Reads `directory`'s log from the segment that holds `after` + 1, replaying records above `after`
// on the way. `after` counts as known durable, and so does `known_durable`. Errors: those of
// reading, and of `replay`; damage is not an error here. Memory: one segment.
absl::StatusOr<LogContents> ReadLog(FileSystem* files, const std::string& directory, uint64_t after,
                                    LogReplayFunction replay, uint64_t known_durable = 0);

// "FILE, offset N: what is wrong; what is lost".
std::string DescribeDamage(const LogDamage& damage);
// DataLoss that names file, offset and sequence numbers.
absl::Status DamageStatus(const LogDamage& damage);

}  // namespace firstseen
