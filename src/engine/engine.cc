// Sets, windows and statistics.
#include "engine/engine.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/status.h"
#include "base/time_text.h"
#include "engine/engine_impl.h"
#include "engine/records.h"
#include "engine/window.h"

namespace firstseen {
namespace {

constexpr size_t kNameBytesMax = 255;
constexpr size_t kFieldsMax = 64;

absl::Status CheckOptions(std::string_view name, const SetOptions& options) {
  if (name.empty() || name.size() > kNameBytesMax) {
    return InvalidArgument("a set's name has 1 to {} bytes", kNameBytesMax);
  }
  constexpr int kWidths[] = {80, 88, 96, 112, 128};
  if (std::find(std::begin(kWidths), std::end(kWidths), options.bits) == std::end(kWidths)) {
    return InvalidArgument("bits = {}: choose 80, 88, 96, 112 or 128", options.bits);
  }
  if (options.fields.empty() || options.fields.size() > kFieldsMax) {
    return InvalidArgument("a set has 1 to {} fields", kFieldsMax);
  }
  for (const FieldOptions& field : options.fields) {
    if (field.name.empty() || field.name.size() > kNameBytesMax) {
      return InvalidArgument("a field's name has 1 to {} bytes", kNameBytesMax);
    }
  }
  return LoadTimeZone(options.time_zone).status();
}

}  // namespace

absl::StatusOr<Set*> EngineImpl::GetSet(SetId id) const {
  Set* set = state_.Find(id);
  if (set == nullptr) return NotFound("no set number {}", id);
  return set;
}

absl::StatusOr<Set*> EngineImpl::GetSetForWriting(SetId id) const {
  // After the log has failed nobody knows what is on disk: nothing is answered until a restart.
  RETURN_IF_ERROR(log_->status());
  return GetSet(id);
}

absl::Status EngineImpl::LogFailure() const {
  RETURN_IF_ERROR(log_->status());
  return FailedPrecondition("the engine is closed");
}

absl::StatusOr<SetId> EngineImpl::CreateSet(std::string_view name, const SetOptions& options) {
  RETURN_IF_ERROR(log_->status());
  RETURN_IF_ERROR(CheckOptions(name, options));
  RETURN_IF_ERROR(log_->WaitForSpace());
  SetCreatedRecord record{.name = std::string(name), .options = options};
  uint64_t sequence = 0;
  {
    MutexLock lock(create_mutex_);
    if (state_.Find(name) != nullptr) return AlreadyExists("set {} exists", name);
    record.set = state_.size();
    if (record.set >= options_.sets_max) {
      return ResourceExhausted("sets_max ({}) is reached", options_.sets_max);
    }
    sequence = log_->Append(EncodeRecord(record, options.bits));
    if (sequence == 0) return LogFailure();
    state_.Add(name, options);
  }
  RETURN_IF_ERROR(AwaitAnswer(*state_.Find(record.set), sequence, true));
  return record.set;
}

absl::StatusOr<SetId> EngineImpl::FindSet(std::string_view name) const {
  const Set* set = state_.Find(name);
  if (set == nullptr) return NotFound("no set {}; `firstseen stats` lists those there are", name);
  return set->id();
}

absl::StatusOr<SetOptions> EngineImpl::Options(SetId id) const {
  ASSIGN_OR_RETURN(const Set* set, GetSet(id));
  return set->options();
}

std::vector<std::string> EngineImpl::ListSets() const {
  std::vector<std::string> names;
  for (const Set* set : state_.All()) names.push_back(set->name());
  std::sort(names.begin(), names.end());
  return names;
}

absl::Status EngineImpl::MakeWindow(Set* set, WindowId id, bool with_owners) {
  const WindowKind kind = set->options().window;
  RETURN_IF_ERROR(ParseWindow(kind, FormatWindow(kind, id)).status());
  // Large tables are made before the lock is taken, for nothing if somebody was faster.
  std::unique_ptr<ExactSet> members = state_.NewMembers(set->options(), set->options().expected);
  SetWriter lock(state_.gate(), *set);
  Window* window = set->Find(id);
  if (window == nullptr && set->OpenWindows() >= options_.windows_max) {
    return ResourceExhausted("windows_max ({}) is reached; drop old windows or raise it",
                             options_.windows_max);
  }
  if (window == nullptr) window = &set->FindOrAdd(id);
  if (window->closed) return absl::OkStatus();
  if (window->members == nullptr) window->members = std::move(members);
  if (with_owners && window->owners == nullptr) window->owners = state_.NewOwners();
  return absl::OkStatus();
}

absl::Status EngineImpl::Drop(SetId id, WindowId window_id) {
  ASSIGN_OR_RETURN(Set * set, GetSetForWriting(id));
  const WindowKind kind = set->options().window;
  RETURN_IF_ERROR(ParseWindow(kind, FormatWindow(kind, window_id)).status());
  RETURN_IF_ERROR(log_->WaitForSpace());
  const std::string record = EncodeRecord(WindowDroppedRecord{id, window_id}, set->options().bits);
  Trash trash;
  uint64_t sequence = 0;
  {
    SetWriter lock(state_.gate(), *set);
    Window& window = set->FindOrAdd(window_id);
    if (!window.closed) {
      const uint64_t dropped = log_->Append(record);
      if (dropped == 0) return LogFailure();
      window.closed = true;
      window.state_sequence = dropped;
      trash = {std::move(window.members), std::move(window.owners)};
    }
    sequence = window.state_sequence;
  }
  Discard(std::move(trash));
  return log_->WaitDurable(sequence);
}

absl::Status EngineImpl::Reopen(SetId id, WindowId window_id) {
  ASSIGN_OR_RETURN(Set * set, GetSetForWriting(id));
  RETURN_IF_ERROR(log_->WaitForSpace());
  const std::string record = EncodeRecord(WindowReopenedRecord{id, window_id}, set->options().bits);
  uint64_t sequence = 0;
  {
    SetWriter lock(state_.gate(), *set);
    Window* window = set->Find(window_id);
    if (window == nullptr) return absl::OkStatus();  // open, and empty
    if (window->closed) {
      if (set->OpenWindows() >= options_.windows_max) {
        return ResourceExhausted("windows_max ({}) is reached; drop old windows or raise it",
                                 options_.windows_max);
      }
      const uint64_t reopened = log_->Append(record);
      if (reopened == 0) return LogFailure();
      window->closed = false;
      window->state_sequence = reopened;
    }
    sequence = window->state_sequence;
  }
  return log_->WaitDurable(sequence);
}

absl::StatusOr<SetStats> EngineImpl::Stats(SetId id) const {
  ASSIGN_OR_RETURN(Set * set, GetSet(id));
  SetStats stats{.name = set->name(), .options = set->options(), .windows = {}};
  SetReader lock(state_.gate(), *set);
  for (const auto& window : set->windows()) {
    WindowStats& one = stats.windows.emplace_back();
    one.window = window->id;
    one.closed = window->closed;
    if (window->members != nullptr) {
      const uint64_t slots = window->members->slot_count();
      one.members = window->members->size();
      one.bytes = window->members->memory_bytes();
      one.load_factor =
          slots == 0 ? 0 : static_cast<double>(one.members) / static_cast<double>(slots);
    }
    if (window->owners != nullptr) {
      one.owners = window->owners->size();
      one.owner_bytes = window->owners->bytes();
    }
  }
  return stats;
}

EngineStats EngineImpl::Stats() const {
  EngineStats stats;
  stats.log_bytes = log_->bytes();
  stats.log_sequence = log_->last_appended();
  if (log_->begun_ms() != 0) stats.log_time = absl::FromUnixMillis(log_->begun_ms());
  stats.snapshot_bytes = snapshot_bytes_.load();
  const int64_t created_ms = snapshot_created_ms_.load();
  if (created_ms != 0) stats.snapshot_time = absl::FromUnixMillis(created_ms);
  stats.memory_bytes = state_.arena().bytes_reserved();
  stats.owner_bytes = state_.owner_bytes();
  MutexLock lock(background_mutex_);
  stats.snapshot_status = snapshot_status_;
  return stats;
}

double FalseDuplicateProbability(uint64_t members, int bits) {
  const auto n = static_cast<double>(members);
  // The union bound over all pairs; it exceeds 1 only where it says nothing any more.
  return std::min(1.0, n * n * std::exp2(-bits - 1));
}

}  // namespace firstseen
