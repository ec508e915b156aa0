#include "engine/replay.h"

#include <algorithm>
#include <span>

#include "base/status.h"

namespace firstseen {

absl::Status Replayer::Apply(uint64_t sequence, std::string_view bytes) {
  absl::StatusOr<Record> record = DecodeRecord(bytes);
  absl::Status status = record.status();
  if (status.ok()) {
    status = std::visit([&](const auto& one) { return Apply(sequence, one); }, *record);
  }
  return Annotate(status, fmt::format("log record {}", sequence));
}

absl::StatusOr<Set*> Replayer::FindSet(SetId id) const {
  Set* set = state_->Find(id);
  if (set == nullptr) return DataLoss("there is no set number {}", id);
  return set;
}

absl::StatusOr<Window*> Replayer::FindWindow(SetId id, WindowId window_id,
                                             uint64_t sequence) const {
  ASSIGN_OR_RETURN(Set * set, FindSet(id));
  Window* window = &set->FindOrAdd(window_id);
  if (sequence <= window->state_sequence) return nullptr;
  if (window->closed) return DataLoss("belongs to a window that was dropped before");
  if (window->members == nullptr) {
    window->members = state_->NewMembers(set->options(), set->options().expected);
  }
  return window;
}

absl::StatusOr<Window*> Replayer::SetState(SetId id, WindowId window_id, bool closed,
                                           uint64_t sequence) const {
  ASSIGN_OR_RETURN(Set * set, FindSet(id));
  Window& window = set->FindOrAdd(window_id);
  if (sequence <= window.state_sequence) return nullptr;
  window.closed = closed;
  window.state_sequence = sequence;
  return &window;
}

// Nobody else is at work yet, so nothing has to be locked for longer than one look.
absl::Status Replayer::AddMembers(Window* window, std::span<const Fingerprint> ascending,
                                  std::span<const uint64_t> owners, int64_t settled_open_ms,
                                  uint64_t sequence) {
  // All stamps are read before the first is set: several members may be in one shard.
  fresh_.clear();
  for (size_t i = 0; i < ascending.size(); ++i) {
    window->members->WithShard(ascending[i], [&](ExactSet::LockedShard& shard) {
      if (sequence > shard.stamp(ascending[i])) fresh_.push_back(ascending[i]);
    });
  }
  outcomes_.resize(fresh_.size());
  window->members->AddBatch(fresh_, outcomes_);
  if (std::find(outcomes_.begin(), outcomes_.end(), AddOutcome::kNoMemory) != outcomes_.end()) {
    return ResourceExhausted("memory_bytes_max is reached; raise it");
  }
  size_t next = 0;
  for (size_t i = 0; i < ascending.size() && next < fresh_.size(); ++i) {
    const Fingerprint& print = ascending[i];
    if (print != fresh_[next]) continue;
    ++next;
    window->members->WithShard(
        print, [&](ExactSet::LockedShard& shard) { shard.set_stamp(print, sequence); });
    const uint64_t owner = owners.empty() ? 0 : owners[i];
    if (owner != 0) {
      if (window->owners == nullptr) window->owners = state_->NewOwners();
      window->owners->Put({.fingerprint = print,
                           .owner = owner,
                           .sequence = 2 * sequence,
                           .settled_open_ms = settled_open_ms});
    } else if (window->owners != nullptr) {
      // The snapshot may know the owner of a later claim, which a repaired log no longer has.
      window->owners->Erase(print);
    }
  }
  return absl::OkStatus();
}

absl::Status Replayer::Apply(uint64_t, const SetCreatedRecord& record) {
  const Set* set = state_->Find(record.set);
  if (set != nullptr && set->name() == record.name) return absl::OkStatus();
  if (record.set != state_->size() || state_->Find(record.name) != nullptr) {
    return DataLoss("creates set number {} out of order", record.set);
  }
  state_->Add(record.name, record.options);
  return absl::OkStatus();
}

absl::Status Replayer::Apply(uint64_t sequence, const AddedRecord& record) {
  ASSIGN_OR_RETURN(Window * window, FindWindow(record.set, record.window, sequence));
  if (window == nullptr) return absl::OkStatus();
  return AddMembers(window, {&record.fingerprint, 1}, {&record.owner, 1}, Ownership::kUnsettled,
                    sequence);
}

absl::Status Replayer::Apply(uint64_t sequence, const RemovedRecord& record) {
  ASSIGN_OR_RETURN(Window * window, FindWindow(record.set, record.window, sequence));
  if (window == nullptr) return absl::OkStatus();
  const Fingerprint& print = record.fingerprint;
  window->members->WithShard(print, [&](ExactSet::LockedShard& shard) {
    if (sequence <= shard.stamp(print)) return;
    shard.Remove(print);
    shard.set_stamp(print, sequence);
    if (window->owners != nullptr) window->owners->Erase(print);
  });
  return absl::OkStatus();
}

absl::Status Replayer::Apply(uint64_t sequence, const SettledRecord& record) {
  open_ms_ = std::max(open_ms_, record.open_ms);
  ASSIGN_OR_RETURN(Window * window, FindWindow(record.set, record.window, sequence));
  if (window == nullptr) return absl::OkStatus();
  const Fingerprint& print = record.fingerprint;
  window->members->WithShard(print, [&](ExactSet::LockedShard& shard) {
    if (sequence <= shard.stamp(print)) return;
    shard.set_stamp(print, sequence);
    if (window->owners != nullptr) window->owners->Settle(print, record.owner, record.open_ms);
  });
  return absl::OkStatus();
}

absl::Status Replayer::Apply(uint64_t sequence, const WindowDroppedRecord& record) {
  ASSIGN_OR_RETURN(Window * window, SetState(record.set, record.window, true, sequence));
  if (window == nullptr) return absl::OkStatus();
  window->members.reset();
  window->owners.reset();
  return absl::OkStatus();
}

absl::Status Replayer::Apply(uint64_t sequence, const WindowReopenedRecord& record) {
  return SetState(record.set, record.window, false, sequence).status();
}

absl::Status Replayer::Apply(uint64_t sequence, const ImportBatchRecord& record) {
  for (const ImportBatchRecord::Window& part : record.windows) {
    ASSIGN_OR_RETURN(Window * window, FindWindow(record.set, part.window, sequence));
    open_ms_ = std::max(open_ms_, part.settled_open_ms.value_or(0));
    if (window == nullptr) continue;
    RETURN_IF_ERROR(AddMembers(window, part.added, part.owners,
                               part.settled_open_ms.value_or(Ownership::kUnsettled), sequence));
  }
  MutexLock lock(state_->imports_mutex());
  state_->imports()[record.set].Apply(sequence, record);
  return absl::OkStatus();
}

absl::Status Replayer::Apply(uint64_t sequence, const ImportsForgottenRecord& record) {
  MutexLock lock(state_->imports_mutex());
  state_->imports()[record.set].Apply(sequence, record);
  return absl::OkStatus();
}

absl::Status Replayer::Apply(uint64_t, const OpenTimeRecord& record) {
  open_ms_ = std::max(open_ms_, record.open_ms);
  return absl::OkStatus();
}

}  // namespace firstseen
