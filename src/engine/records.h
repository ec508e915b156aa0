// Log records: what happened, not what was asked for. Every byte is in docs/format.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/coding.h"
#include "engine/engine.h"
#include "firstseen/types.h"
#include "keys/fingerprint.h"

namespace firstseen {

struct SetCreatedRecord {
  SetId set = 0;  // numbered from 0 in the order of creation
  std::string name;
  SetOptions options;
};
struct AddedRecord {
  SetId set = 0;
  WindowId window = 0;
  uint64_t owner = 0;  // 0 = none
  Fingerprint fingerprint;
};
struct RemovedRecord {  // the member and its owner
  SetId set = 0;
  WindowId window = 0;
  Fingerprint fingerprint;
};
struct SettledRecord {
  SetId set = 0;
  WindowId window = 0;
  uint64_t owner = 0;
  int64_t open_ms = 0;  // open time at which the owner was settled
  Fingerprint fingerprint;
};
struct WindowDroppedRecord {
  SetId set = 0;
  WindowId window = 0;
};
struct WindowReopenedRecord {
  SetId set = 0;
  WindowId window = 0;
};
struct ImportBatchRecord {
  struct Window {
    WindowId window = 0;
    std::vector<Fingerprint> added;  // ascending
    std::vector<uint64_t> owners;    // empty, or as many as `added` (0 = none)
    // Open time at which these owners were settled, by the import itself; nullopt = they are not.
    std::optional<int64_t> settled_open_ms = std::nullopt;
  };
  SetId set = 0;
  std::string source;
  std::string position;
  ImportResult counts;          // of this batch
  std::vector<Window> windows;  // ascending
};
struct ImportsForgottenRecord {
  SetId set = 0;
  std::string prefix;
};
struct OpenTimeRecord {
  int64_t open_ms = 0;
};

using Record =
    std::variant<SetCreatedRecord, AddedRecord, RemovedRecord, SettledRecord, WindowDroppedRecord,
                 WindowReopenedRecord, ImportBatchRecord, ImportsForgottenRecord, OpenTimeRecord>;

// `bits`: width of the set's fingerprints; not used by records without any.
std::string EncodeRecord(const Record& record, int bits);
// The record of nearly every claim, without the detour over a variant.
void EncodeAdded(const AddedRecord& record, int bits, std::string* out);
// DataLoss when it is none of the above, to the last byte.
absl::StatusOr<Record> DecodeRecord(std::string_view bytes);

// The set that the record is about.
std::optional<SetId> SetOf(const Record& record);

// A set's options as they stand in records and snapshots.
void EncodeOptions(const SetOptions& options, ByteWriter* out);
SetOptions DecodeOptions(ByteReader* in);

}  // namespace firstseen
