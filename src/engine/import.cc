// Imports: a batch is one record, applied with all the shards it touches locked.
#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/status.h"
#include "engine/engine_impl.h"
#include "engine/records.h"

namespace firstseen {
namespace {

// The record of a batch must fit the log's queue.
constexpr size_t kImportRowsMax = 1 << 20;
constexpr size_t kImportTextMax = 1 << 20;
// Upper bound of what an owner adds to OwnerTable::bytes(): an entry with a quarter of spare room,
// two index slots at the lowest load.
constexpr uint64_t kOwnerBytesMax = 96;

struct Item {
  WindowId window;
  uint32_t row;  // in the batch
  Fingerprint print;
  friend bool operator<(const Item& a, const Item& b) {
    if (a.window != b.window) return a.window < b.window;
    if (a.print != b.print) return a.print < b.print;
    return a.row < b.row;
  }
};

// The rows of one window.
struct Group {
  WindowId id = 0;
  uint64_t rows = 0;
  std::vector<Fingerprint> prints;  // ascending, without repetitions
  std::vector<uint64_t> owners;     // of the first row with that print; empty when none has one
  Window* window = nullptr;
  ExactSet::LockedShard* shard = nullptr;
};

// Windows ascending. Of rows with the same fingerprint the first in the batch counts.
std::vector<Group> GroupRows(const ImportBatch& batch, int bits) {
  std::vector<Item> items;
  items.reserve(batch.rows.size());
  for (const ImportBatch::Row& row : batch.rows) {
    items.push_back(
        {row.window, static_cast<uint32_t>(items.size()), row.fingerprint.Truncated(bits)});
  }
  std::sort(items.begin(), items.end());
  std::vector<Group> groups;
  for (const Item& item : items) {
    if (groups.empty() || groups.back().id != item.window) groups.emplace_back().id = item.window;
    Group& group = groups.back();
    ++group.rows;
    if (!group.prints.empty() && group.prints.back() == item.print) continue;
    group.prints.push_back(item.print);
    group.owners.push_back(batch.rows[item.row].owner);
  }
  for (Group& group : groups) {
    const bool owned = std::any_of(group.owners.begin(), group.owners.end(),
                                   [](uint64_t owner) { return owner != 0; });
    if (!owned) group.owners.clear();
  }
  return groups;
}

// Adds what is new and lists it; false when memory ran out on the way.
bool AddRows(const Group& group, ImportBatchRecord::Window* added) {
  constexpr size_t kAhead = 32;
  const std::span<const Fingerprint> prints = group.prints;
  for (size_t i = 0; i < prints.size(); ++i) {
    // Looks at no more than addresses, which need no lock.
    if (i % kAhead == 0) {
      group.window->members->Prefetch(prints.subspan(i, std::min(kAhead, prints.size() - i)));
    }
    const AddOutcome outcome = group.shard->Add(group.prints[i]);
    if (outcome == AddOutcome::kNoMemory) return false;
    if (outcome == AddOutcome::kPresent) continue;
    added->added.push_back(group.prints[i]);
    if (!group.owners.empty()) added->owners.push_back(group.owners[i]);
  }
  return true;
}

void RemoveRows(const Group& group, const ImportBatchRecord::Window& added) {
  for (const Fingerprint& print : added.added) FIRSTSEEN_CHECK(group.shard->Remove(print));
}

// Leaves the record's number with the shards, and the owners in their table.
void Stamp(const Group& group, const ImportBatchRecord::Window& added, uint64_t sequence) {
  for (size_t i = 0; i < added.added.size(); ++i) {
    group.shard->set_stamp(added.added[i], sequence);
    if (added.owners.empty() || added.owners[i] == 0) continue;
    group.window->owners->Put(
        {.fingerprint = added.added[i],
         .owner = added.owners[i],
         .sequence = 2 * sequence,
         .settled_open_ms = added.settled_open_ms.value_or(Ownership::kUnsettled)});
  }
}

}  // namespace

struct EngineImpl::ImportRun {
  Set* set = nullptr;
  const ImportBatch* batch = nullptr;
  std::vector<Group> groups;  // ascending by window
  ImportResult counts;
  absl::Status status;
};

absl::StatusOr<ImportResult> EngineImpl::Import(SetId id, const ImportBatch& batch) {
  ASSIGN_OR_RETURN(Set * set, GetSetForWriting(id));
  if (batch.rows.size() > kImportRowsMax ||
      batch.source.size() + batch.position.size() > kImportTextMax) {
    return InvalidArgument("import batch of {} rows: at most {} rows and {} bytes of position",
                           batch.rows.size(), kImportRowsMax, kImportTextMax);
  }
  ImportRun run;
  run.set = set;
  run.batch = &batch;
  run.groups = GroupRows(batch, set->options().bits);
  uint64_t owned = 0;
  for (const Group& group : run.groups) owned += group.owners.size();
  if (owned > 0 && state_.owner_bytes() + owned * kOwnerBytesMax > options_.owner_bytes_max) {
    return ResourceExhausted("owner_bytes_max ({} bytes) is reached; settle claims or raise it",
                             options_.owner_bytes_max);
  }
  RETURN_IF_ERROR(log_->WaitForSpace());
  while (!TryImport(&run)) {
    for (const Group& group : run.groups) {
      RETURN_IF_ERROR(MakeWindow(set, group.id, !group.owners.empty()));
    }
  }
  RETURN_IF_ERROR(run.status);
  RETURN_IF_ERROR(log_->status());
  return run.counts;
}

// False when a window is not ready.
bool EngineImpl::TryImport(ImportRun* run) {
  SetReader lock(state_.gate(), *run->set);
  for (Group& group : run->groups) {
    group.window = run->set->Find(group.id);
    if (group.window == nullptr) return false;
    if (group.window->closed) continue;
    if (group.window->members == nullptr) return false;
    if (!group.owners.empty() && group.window->owners == nullptr) return false;
  }
  LockAndApply(run, 0);
  return true;
}

// Locks the shards of all groups, window by window, then applies the batch.
void EngineImpl::LockAndApply(ImportRun* run, size_t index) {
  while (index < run->groups.size() && run->groups[index].window->closed) ++index;
  if (index == run->groups.size()) {
    ApplyImport(run);
    return;
  }
  Group& group = run->groups[index];
  group.window->members->WithShards(group.prints, [&](ExactSet::LockedShard& shard) {
    group.shard = &shard;
    LockAndApply(run, index + 1);
  });
}

// All shards of the batch are locked. Adds the rows, or none of them.
void EngineImpl::ApplyImport(ImportRun* run) {
  ImportBatchRecord record;
  record.set = run->set->id();
  record.source = run->batch->source;
  record.position = run->batch->position;
  std::vector<Group*> open;  // as record.windows
  for (Group& group : run->groups) {
    if (group.window->closed) {
      record.counts.closed += group.rows;
      continue;
    }
    open.push_back(&group);
    ImportBatchRecord::Window& added = record.windows.emplace_back();
    added.window = group.id;
    if (run->batch->settled) added.settled_open_ms = OpenMs();
    if (!AddRows(group, &added)) {
      run->status =
          ResourceExhausted("memory_bytes_max ({} bytes) is reached; raise it or drop a window",
                            options_.memory_bytes_max);
      break;
    }
    record.counts.added += added.added.size();
    record.counts.duplicates += group.rows - added.added.size();
  }
  if (!run->status.ok()) {
    for (size_t i = 0; i < open.size(); ++i) RemoveRows(*open[i], record.windows[i]);
    return;
  }
  run->counts = record.counts;
  const std::string bytes = EncodeRecord(record, run->set->options().bits);
  uint64_t sequence = 0;
  {
    // Positions of all sources follow the order of the log.
    MutexLock lock(state_.imports_mutex());
    sequence = log_->Append(bytes);
    if (sequence == 0) return;  // the log has failed, which Import reports
    state_.imports()[run->set->id()].Apply(sequence, record);
  }
  for (size_t i = 0; i < open.size(); ++i) Stamp(*open[i], record.windows[i], sequence);
}

absl::Status EngineImpl::ImportSync() {
  RETURN_IF_ERROR(log_->status());
  return log_->WaitDurable(log_->last_appended());
}

std::optional<Engine::ImportProgress> EngineImpl::FindImport(SetId id,
                                                             std::string_view source) const {
  MutexLock lock(state_.imports_mutex());
  const auto imports = state_.imports().find(id);
  if (imports == state_.imports().end()) return std::nullopt;
  const auto it = imports->second.sources.find(source);
  if (it == imports->second.sources.end()) return std::nullopt;
  return it->second;
}

absl::Status EngineImpl::ForgetImports(SetId id, std::string_view prefix) {
  ASSIGN_OR_RETURN(Set * set, GetSetForWriting(id));
  RETURN_IF_ERROR(log_->WaitForSpace());
  const ImportsForgottenRecord record{.set = id, .prefix = std::string(prefix)};
  uint64_t sequence = 0;
  {
    MutexLock lock(state_.imports_mutex());
    sequence = log_->Append(EncodeRecord(record, set->options().bits));
    if (sequence == 0) return LogFailure();
    state_.imports()[id].Apply(sequence, record);
  }
  return log_->WaitDurable(sequence);
}

}  // namespace firstseen
