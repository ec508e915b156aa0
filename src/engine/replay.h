// Replaying log records over a state that a snapshot has filled, or an empty one.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/records.h"
#include "engine/state.h"

namespace firstseen {

// Records come in the order of their numbers. Each takes effect unless the state holds it already:
// a record about a member if it is not above its shard's stamp, any record about a window if it is
// not above the window's last drop or reopening, one about imports if it is not above theirs.
class Replayer {
 public:
  // `open_ms`: open time that the snapshot knows of.
  Replayer(State* state, int64_t open_ms) : state_(state), open_ms_(open_ms) {}

  // DataLoss when the record makes no sense; ResourceExhausted at the memory limit.
  absl::Status Apply(uint64_t sequence, std::string_view bytes);

  int64_t open_ms() const { return open_ms_; }

 private:
  absl::Status Apply(uint64_t sequence, const SetCreatedRecord& record);
  absl::Status Apply(uint64_t sequence, const AddedRecord& record);
  absl::Status Apply(uint64_t sequence, const RemovedRecord& record);
  absl::Status Apply(uint64_t sequence, const SettledRecord& record);
  absl::Status Apply(uint64_t sequence, const WindowDroppedRecord& record);
  absl::Status Apply(uint64_t sequence, const WindowReopenedRecord& record);
  absl::Status Apply(uint64_t sequence, const ImportBatchRecord& record);
  absl::Status Apply(uint64_t sequence, const ImportsForgottenRecord& record);
  absl::Status Apply(uint64_t sequence, const OpenTimeRecord& record);

  absl::StatusOr<Set*> FindSet(SetId set) const;
  // The window, or nullptr when the record is older than its last drop or reopening.
  absl::StatusOr<Window*> FindWindow(SetId set, WindowId window, uint64_t sequence) const;
  // Closes or opens the window, unless the record is not above its last drop or reopening: nullptr.
  absl::StatusOr<Window*> SetState(SetId set, WindowId window, bool closed,
                                   uint64_t sequence) const;
  // Adds members that one record added, and their owners (empty = none), except in shards that
  // have the record already.
  absl::Status AddMembers(Window* window, std::span<const Fingerprint> ascending,
                          std::span<const uint64_t> owners, int64_t settled_open_ms,
                          uint64_t sequence);
  State* const state_;
  int64_t open_ms_;
  // AddMembers keeps their memory.
  std::vector<Fingerprint> fresh_;
  std::vector<AddOutcome> outcomes_;
};

}  // namespace firstseen
