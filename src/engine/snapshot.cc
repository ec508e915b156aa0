// Writing snapshots while claims go on.
//
// Why replaying the log over a snapshot that was written piece by piece gives one consistent
// state. Let S be the first sequence number of the segment that is begun at the start; the log
// from S on is replayed over the snapshot.
//
//  - Members. A shard's copy is taken with the shard locked and carries its stamp, the number of
//  the
//    last record about any of its members. Records up to the stamp are in the copy, later ones are
//    not. A record about a member is skipped if its number is not above the stamp. Records before S
//    were appended, and applied, under locks that were released before the copy was taken.
//  - Owners of a window are copied after its shards, so they may show records above the stamp of
//    their member's shard, but lack none below it. Those later records are all replayed, in order;
//    each sets the owner outright (added: this owner; removed: none; settled: settled if it is
//    still this owner's), so the last one decides, wherever the replay starts from.
//  - A dropped or reopened window has the number of that record as its state sequence. If it is
//    dropped while it is being written, the rest is left out: the drop is above S and clears the
//    window when it is replayed. If it was dropped and filled again before it was written, records
//    up to the state sequence are skipped.
//  - Import positions of a set carry the number of the last record that changed them.
//  - None of this may rest on a record that a crash can still take away: before the snapshot gets
//  its
//    name, the log is made durable up to the last record appended by then.
#include <sys/types.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "engine/engine_impl.h"
#include "engine/snapshot_format.h"

namespace firstseen {
namespace {

constexpr size_t kOwnersPerSection = 4096;

}  // namespace

absl::Status EngineImpl::Snapshot() {
  RETURN_IF_ERROR(log_->status());
  MutexLock lock(snapshot_mutex_);
  ASSIGN_OR_RETURN(const uint64_t first, log_->Rotate());
  const uint64_t after = first - 1;
  if (!has_snapshot_ || after != snapshot_after_) {
    RETURN_IF_ERROR(WriteSnapshot(after));
    has_snapshot_ = true;
    snapshot_after_ = after;
  }
  RETURN_IF_ERROR(RemoveReplaced(after));
  log_bytes_base_ = log_->bytes();
  return absl::OkStatus();
}

absl::Status EngineImpl::WriteSnapshot(uint64_t after) {
  const SnapshotHeader header{
      .after = after, .open_ms = OpenMs(), .created_ms = absl::ToUnixMillis(options_.clock->Now())};
  ASSIGN_OR_RETURN(std::unique_ptr<SnapshotWriter> writer,
                   SnapshotWriter::Create(options_.files, options_.directory, header));
  FooterSection totals;
  for (Set* set : state_.All()) RETURN_IF_ERROR(WriteSet(set, writer.get(), &totals));
  RETURN_IF_ERROR(WriteImports(writer.get()));
  totals.durable = log_->last_appended();
  RETURN_IF_ERROR(log_->WaitDurable(totals.durable));
  totals.sections = writer->sections();
  RETURN_IF_ERROR(writer->Publish(totals));
  snapshot_bytes_ = writer->bytes();
  snapshot_created_ms_ = header.created_ms;
  return absl::OkStatus();
}

absl::Status EngineImpl::WriteSet(Set* set, SnapshotWriter* writer, FooterSection* totals) {
  RETURN_IF_ERROR(writer->Write(SectionType::kSet,
                                EncodeSection(SetSection{set->id(), set->name(), set->options()})));
  std::vector<WindowSection> windows;
  {
    SetReader lock(state_.gate(), *set);
    for (const auto& window : set->windows()) {
      windows.push_back({.set = set->id(),
                         .window = window->id,
                         .closed = window->closed,
                         .state_sequence = window->state_sequence});
    }
  }
  for (const WindowSection& window : windows) {
    RETURN_IF_ERROR(writer->Write(SectionType::kWindow, EncodeSection(window)));
    RETURN_IF_ERROR(WriteWindow(set, window, writer, totals));
    RETURN_IF_ERROR(WriteOwners(set, window, writer, totals));
  }
  return absl::OkStatus();
}

absl::Status EngineImpl::WriteWindow(Set* set, const WindowSection& section, SnapshotWriter* writer,
                                     FooterSection* totals) {
  Fingerprint cursor;
  ShardSection shard{.set = section.set, .window = section.window, .image = {}};
  for (bool more = true; more;) {
    {
      SetReader lock(state_.gate(), *set);
      const Window* window = set->Find(section.window);
      // Empty, or dropped meanwhile.
      if (window->members == nullptr || window->state_sequence != section.state_sequence) {
        return absl::OkStatus();
      }
      more = window->members->CopyShard(&cursor, &shard.image);
    }
    totals->members += shard.image.fingerprints.size();
    RETURN_IF_ERROR(writer->Write(SectionType::kShard, EncodeSection(shard, set->options().bits)));
  }
  return absl::OkStatus();
}

absl::Status EngineImpl::WriteOwners(Set* set, const WindowSection& section, SnapshotWriter* writer,
                                     FooterSection* totals) {
  size_t stripes = 1;
  for (size_t i = 0; i < stripes; ++i) {
    std::vector<Ownership> owners;
    {
      SetReader lock(state_.gate(), *set);
      const Window* window = set->Find(section.window);
      if (window->owners == nullptr || window->state_sequence != section.state_sequence) {
        return absl::OkStatus();
      }
      // When a table is spread over more stripes after the first was copied, some owners are
      // written twice: harmless.
      stripes = window->owners->CopyStripe(i, &owners);
    }
    totals->owners += owners.size();
    for (size_t at = 0; at < owners.size(); at += kOwnersPerSection) {
      const auto begin = owners.begin() + static_cast<ptrdiff_t>(at);
      const auto end =
          owners.begin() + static_cast<ptrdiff_t>(std::min(at + kOwnersPerSection, owners.size()));
      RETURN_IF_ERROR(
          writer->Write(SectionType::kOwners,
                        EncodeSection(OwnersSection{section.set, section.window, {begin, end}},
                                      set->options().bits)));
    }
  }
  return absl::OkStatus();
}

absl::Status EngineImpl::WriteImports(SnapshotWriter* writer) {
  std::vector<ImportsSection> sections;
  {
    MutexLock lock(state_.imports_mutex());
    for (const auto& [set, imports] : state_.imports()) {
      sections.push_back({.set = set,
                          .sequence = imports.sequence,
                          .sources = {imports.sources.begin(), imports.sources.end()}});
    }
  }
  std::sort(sections.begin(), sections.end(),
            [](const ImportsSection& a, const ImportsSection& b) { return a.set < b.set; });
  for (const ImportsSection& section : sections) {
    RETURN_IF_ERROR(writer->Write(SectionType::kImports, EncodeSection(section)));
  }
  return absl::OkStatus();
}

absl::Status EngineImpl::RemoveReplaced(uint64_t after) {
  ASSIGN_OR_RETURN(const std::vector<uint64_t> snapshots,
                   ListSnapshots(options_.files, options_.directory));
  for (uint64_t number : snapshots) {
    if (number >= after) continue;
    RETURN_IF_ERROR(options_.files->Remove(options_.directory + "/" + SnapshotName(number)));
  }
  return log_->RemoveUpTo(after);
}

}  // namespace firstseen
