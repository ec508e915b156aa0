// The key file: the secret without which a data directory's fingerprints mean nothing.
//
// Text, mode 0600 (docs/format.md, "Key file"):
//   # comments and blank lines are skipped
//   firstseen-key-file 1
//   key 1 0f1e2d3c4b5a69788796a5b4c3d2e1f0
//   key 2 8d1c0a97b65e4f3322110ffeeddccbba from 2027-01-01
// Key 1 is used from the beginning; each further key from its day on, by windows that begin then
// or later. A key, once used, is never changed or taken out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/file.h"
#include "keys/keyring.h"

namespace firstseen {

// InvalidArgument names the line and what is wrong with it, never its content.
absl::StatusOr<std::vector<KeyEntry>> ParseKeyFile(std::string_view text);
std::string FormatKeyFile(const std::vector<KeyEntry>& entries);

// NotFound when there is none (restore the backup), FailedPrecondition when others than its owner
// may read or write it or it is malformed. Every message names `path` and the remedy.
absl::StatusOr<std::vector<KeyEntry>> ReadKeyFile(FileSystem* files, const std::string& path);

// Makes `path` with one random key, mode 0600, durably and whole. AlreadyExists, and nothing done,
// when it is there; FailedPrecondition while somebody else makes it. May leave `path`.lock and,
// after a crash, `path`.tmp behind.
absl::Status CreateKeyFile(FileSystem* files, const std::string& path);

}  // namespace firstseen
