// Store: where sets live. Applications (ingest, billing, rta, commands, server) speak to this and
// know nothing of what is behind it: the embedded engine, or an existing Redis or Valkey.
//
// Members come in as fields; the store normalises, encodes and fingerprints them. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/file.h"
#include "firstseen/types.h"

namespace firstseen {

// One member asked about. The views must stay valid for the call.
struct MemberRequest {
  std::span<const std::string_view> fields;  // as many as the set has, in its order
  // The event's own time, which decides the window; or `window` when it is set.
  absl::Time time;
  std::optional<WindowId> window;
  std::string_view token;  // empty = no owner
};

struct MemberResult {
  absl::Status status;  // of this row alone; the others go on
  Verdict verdict = Verdict::kClosed;
  uint64_t sequence = 0;  // see ClaimResult::sequence
  WindowId window = 0;
};

struct ImportRow {
  std::span<const std::string_view> fields;
  WindowId window = 0;
  std::string_view token;
};
// What becomes of the tokens of imported rows. Either way the very transaction, met again, is a
// REPEAT; the memory of a settled one is free again after 48 hours of open time.
enum class ImportOwners {
  kUnsettled,  // kept until they are settled, like those of claims
  kSettled,    // settled at once: an export's results are recorded where it came from
};
struct ImportTotals {
  uint64_t added = 0;
  uint64_t duplicates = 0;
  uint64_t closed = 0;
};
struct ImportState {
  std::string position;
  ImportTotals totals;
};

struct StoreWindowStats {
  WindowId window = 0;
  bool closed = false;
  uint64_t members = 0;
  uint64_t bytes = 0;
  uint64_t owners = 0;
  uint64_t owner_bytes = 0;
  double load_factor = 0;
  double false_duplicate_probability = 0;
};
struct StoreSetStats {
  std::string name;
  SetOptions options;
  std::vector<StoreWindowStats> windows;
};
struct StoreStats {
  uint64_t log_bytes = 0;
  std::optional<absl::Time> log_time;  // how far back the log reaches
  uint64_t snapshot_bytes = 0;
  std::optional<absl::Time> snapshot_time;
  uint64_t memory_bytes = 0;
  uint64_t owner_bytes = 0;
};

class Store {
 public:
  virtual ~Store() = default;

  virtual absl::Status CreateSet(std::string_view name, const SetOptions& options) = 0;
  virtual absl::StatusOr<SetOptions> Options(std::string_view set) const = 0;
  virtual std::vector<std::string> ListSets() const = 0;

  // results.size() == requests.size(); done in order. The Status is of the whole call (no such
  // set, disk failed): when it is an error nothing may be said of any row.
  virtual absl::Status Claim(std::string_view set, std::span<const MemberRequest> requests,
                             std::span<MemberResult> results) = 0;
  virtual absl::Status Check(std::string_view set, std::span<const MemberRequest> requests,
                             std::span<MemberResult> results) = 0;
  // With a token: removes only what that token owns.
  virtual absl::Status Remove(std::string_view set, std::span<const MemberRequest> requests,
                              std::span<MemberResult> results) = 0;
  virtual absl::StatusOr<uint64_t> Settle(std::string_view set,
                                          std::span<const std::string_view> tokens) = 0;

  // Whether rows of this window can be imported: InvalidArgument for one that the set cannot have,
  // or that begins too far in the future. Once accepted, a window stays accepted.
  virtual absl::Status AcceptsWindow(std::string_view set, WindowId window) const = 0;
  // A batch is applied and its position recorded both or neither, whatever crashes. statuses[i]
  // tells why row i was left out (bad field count, ...); such rows are not in the totals.
  virtual absl::StatusOr<ImportTotals> Import(std::string_view set, std::string_view source,
                                              std::string_view position,
                                              std::span<const ImportRow> rows, ImportOwners owners,
                                              std::span<absl::Status> statuses) = 0;
  virtual std::optional<ImportState> FindImport(std::string_view set,
                                                std::string_view source) const = 0;
  virtual absl::Status ForgetImports(std::string_view set, std::string_view prefix) = 0;
  // Returns when everything imported so far is on disk.
  virtual absl::Status ImportSync() = 0;

  virtual absl::Status Drop(std::string_view set, WindowId window) = 0;
  virtual absl::Status Reopen(std::string_view set, WindowId window) = 0;
  virtual absl::StatusOr<StoreSetStats> SetStats(std::string_view set) const = 0;
  virtual StoreStats Stats() const = 0;
  virtual absl::Status Snapshot() = 0;
  virtual absl::Status Close() = 0;
};

}  // namespace firstseen
