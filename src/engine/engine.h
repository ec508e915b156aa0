// The engine: named sets with windows, claims with owners, durable through one shared log and
// snapshots. It knows fingerprints and owner hashes only; members never come in here.
//
// Thread safety: every method may be called from any number of threads.
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
#include "keys/fingerprint.h"

namespace firstseen {

struct EngineOptions {
  std::string directory;
  FileSystem* files = FileSystem::Posix();
  const Clock* clock = Clock::Real();
  std::string key_check_value;               // recorded at creation; another one is refused
  std::string holder;                        // what the lock file says of this process
  uint64_t memory_bytes_max = ~uint64_t{0};  // of all exact sets
  uint64_t owner_bytes_max = 4ull << 30;     // of all owners; tokened claims beyond are refused
  uint64_t sets_max = 1'000'000;
  uint64_t windows_max = 1'000;  // open windows a set
  uint64_t log_segment_bytes = 64ull << 20;
  uint64_t snapshot_log_bytes = 1ull << 30;         // log size that starts a snapshot; 0 = never
  int64_t owner_keep_open_ms = 48ll * 3600 * 1000;  // open time a settled owner is kept
};

using SetId = uint32_t;

struct ClaimRequest {
  WindowId window = 0;
  Fingerprint fingerprint;
  uint64_t owner = 0;  // keyed hash of the token; 0 = no token
};

struct ClaimResult {
  absl::Status status;  // of this one request: ResourceExhausted (memory, owners, windows), ...
  Verdict verdict = Verdict::kClosed;
  // Orders claims: FIRST has its record's number x 2; REPEAT that of the original claim;
  // DUPLICATE an odd number above that of the FIRST it rests on.
  uint64_t sequence = 0;
};

// A batch of an import: one log record; after a crash all of it or nothing is there. At most 2^20
// rows. Owners are kept like those of claims: until they are settled, and owner_keep_open_ms after.
struct ImportBatch {
  struct Row {
    WindowId window = 0;
    Fingerprint fingerprint;
    uint64_t owner = 0;
  };
  std::string source;    // names what is imported (no personal data): job, file, ...
  std::string position;  // where to go on after this batch; opaque to the engine
  std::vector<Row> rows;
  bool settled = false;  // the owners are settled with the import: recorded elsewhere already
};
struct ImportResult {
  uint64_t added = 0;
  uint64_t duplicates = 0;  // already present, or twice in the batch
  uint64_t closed = 0;      // window dropped
};

struct WindowStats {
  WindowId window = 0;
  bool closed = false;
  uint64_t members = 0;
  uint64_t bytes = 0;
  uint64_t owners = 0;
  uint64_t owner_bytes = 0;
  double load_factor = 0;
};
struct SetStats {
  std::string name;
  SetOptions options;
  std::vector<WindowStats> windows;
};
struct EngineStats {
  uint64_t log_bytes = 0;
  uint64_t log_sequence = 0;
  std::optional<absl::Time> log_time;  // when the oldest segment of the log was begun
  uint64_t snapshot_bytes = 0;
  std::optional<absl::Time> snapshot_time;
  uint64_t memory_bytes = 0;
  uint64_t owner_bytes = 0;
  absl::Status snapshot_status;  // of the last snapshot that was started by the log's size
};

class Engine {
 public:
  virtual ~Engine() = default;  // closes

  // Makes an empty data directory. AlreadyExists when it holds one.
  static absl::Status Create(const EngineOptions& options);
  // Recovers: last good snapshot + log. DataLoss names the file and what `repair` would lose.
  static absl::StatusOr<std::unique_ptr<Engine>> Open(const EngineOptions& options);
  // Lists what a repair loses (`apply` false), or does it: cuts the damaged part away.
  static absl::StatusOr<std::vector<std::string>> Repair(const EngineOptions& options, bool apply);
  // Syncs and releases the directory.
  virtual absl::Status Close() = 0;

  virtual absl::StatusOr<SetId> CreateSet(std::string_view name, const SetOptions& options) = 0;
  virtual absl::StatusOr<SetId> FindSet(std::string_view name) const = 0;
  virtual absl::StatusOr<SetOptions> Options(SetId set) const = 0;
  virtual std::vector<std::string> ListSets() const = 0;

  // results.size() == requests.size(). Requests are done in order. Returns when every answer may
  // leave (see Durability). An error means nothing may be said of any of them; claims may have
  // been recorded, a retry with the same owners finds out.
  virtual absl::Status Claim(SetId set, std::span<const ClaimRequest> requests,
                             std::span<ClaimResult> results) = 0;
  // `owner` is not looked at; verdict kFirst = not in the set, kDuplicate = in it.
  virtual absl::Status Check(SetId set, std::span<const ClaimRequest> requests,
                             std::span<ClaimResult> results) = 0;
  // Takes members out. With an owner: only if it owns the member (a reversal). kDuplicate = was
  // there and is removed, kFirst = was not there (or not this owner's).
  virtual absl::Status Remove(SetId set, std::span<const ClaimRequest> requests,
                              std::span<ClaimResult> results) = 0;
  // Marks the owners' claims, in every window, as safely recorded elsewhere. Unknown owners are
  // counted, not an error. Returns how many claims were settled.
  virtual absl::StatusOr<uint64_t> Settle(SetId set, std::span<const uint64_t> owners) = 0;

  // Blocks only for room in the log; call ImportSync before reporting success.
  virtual absl::StatusOr<ImportResult> Import(SetId set, const ImportBatch& batch) = 0;
  virtual absl::Status ImportSync() = 0;
  // Totals and last position recorded for `source`; nullopt when never seen.
  struct ImportProgress {
    std::string position;
    ImportResult totals;
  };
  virtual std::optional<ImportProgress> FindImport(SetId set, std::string_view source) const = 0;
  // Forgets sources beginning with `prefix` (an import that is done).
  virtual absl::Status ForgetImports(SetId set, std::string_view prefix) = 0;

  // Immediate; memory follows in the background. The tombstone answers kClosed until Reopen.
  virtual absl::Status Drop(SetId set, WindowId window) = 0;
  virtual absl::Status Reopen(SetId set, WindowId window) = 0;

  virtual absl::StatusOr<SetStats> Stats(SetId set) const = 0;
  virtual EngineStats Stats() const = 0;
  // Writes a snapshot now and drops the log it replaces. Claims go on meanwhile.
  virtual absl::Status Snapshot() = 0;
};

// Probability that any false duplicate occurs among n keys of `bits` bits: n^2 / 2^(bits+1).
double FalseDuplicateProbability(uint64_t members, int bits);

}  // namespace firstseen
