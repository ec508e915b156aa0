// Mends a damaged log, knowingly: says what is lost, and cuts the rest off behind the damage.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/file.h"
#include "engine/log_reader.h"

namespace firstseen {

// What is wrong with the log in `directory`, one entry a damage; empty for a log that
// Log::Open(after) takes and that reaches up to `highest`, the highest number known to be durable
// outside the log (in snapshots); a directory without any segment is damaged. With `apply`, mends
// it: a damaged header is written again, a shortened file gets its size back, and from the first
// record that cannot be read on everything is given up, in this and all later segments (replay must
// not skip a record). Numbers given up are not used again: the log goes on in a new segment above
// all that were seen and above `highest`. May be interrupted and run again. The caller holds the
// directory's lock.
absl::StatusOr<std::vector<LogDamage>> RepairLog(FileSystem* files, const std::string& directory,
                                                 uint64_t after, uint64_t highest, bool apply);

}  // namespace firstseen
