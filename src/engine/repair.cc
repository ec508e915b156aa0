// Repair: says what is damaged and what that costs; cuts the damaged part away when told to.
#include <optional>
#include <utility>
#include <variant>

#include "base/status.h"
#include "engine/engine_impl.h"
#include "engine/log_repair.h"
#include "engine/records.h"
#include "engine/snapshot_repair.h"

namespace firstseen {
namespace {

// Repairs one directory, or only says what that would cost.
class Repairer {
 public:
  Repairer(const EngineOptions& options, bool apply)
      : files_(options.files), directory_(options.directory), apply_(apply) {}

  absl::StatusOr<std::vector<std::string>> Run() {
    ASSIGN_OR_RETURN(const std::vector<uint64_t> snapshots, ListSnapshots(files_, directory_));
    const uint64_t after = snapshots.empty() ? 0 : snapshots.back();
    uint64_t highest = after;
    if (!snapshots.empty()) {
      ASSIGN_OR_RETURN(SnapshotDamage damage, RepairSnapshot(files_, directory_, after, 0, false));
      highest = damage.highest_sequence;
      if (!damage.losses.empty()) {
        ASSIGN_OR_RETURN(const bool replaceable, Replaceable(snapshots, highest));
        if (replaceable) return RemoveSnapshot(after);
        ASSIGN_OR_RETURN(const SetId sets, SetsOfLog(after, damage.sets));
        ASSIGN_OR_RETURN(damage, RepairSnapshot(files_, directory_, after, sets, apply_));
        losses_ = std::move(damage.losses);
      }
    }
    ASSIGN_OR_RETURN(const std::vector<LogDamage> log,
                     RepairLog(files_, directory_, after, highest, apply_));
    for (const LogDamage& damage : log) losses_.push_back(DescribeDamage(damage));
    if (snapshots.empty() && !log.empty() && log.back().file == directory_) {
      losses_.push_back(fmt::format(
          "{}: there is no snapshot either: every set and all its members are lost; restore a "
          "backup if you have one",
          directory_));
    }
    return losses_;
  }

 private:
  // Whether the log, alone or over the snapshot before, holds all that the last snapshot does.
  absl::StatusOr<bool> Replaceable(const std::vector<uint64_t>& snapshots, uint64_t highest) {
    uint64_t after = 0;
    if (snapshots.size() > 1) {
      after = snapshots[snapshots.size() - 2];
      ASSIGN_OR_RETURN(const SnapshotDamage older,
                       RepairSnapshot(files_, directory_, after, 0, false));
      if (!older.losses.empty()) return false;
    }
    ASSIGN_OR_RETURN(const std::vector<LogDamage> log,
                     RepairLog(files_, directory_, after, highest, false));
    return log.empty();
  }

  absl::StatusOr<std::vector<std::string>> RemoveSnapshot(uint64_t after) {
    const std::string path = directory_ + "/" + SnapshotName(after);
    if (apply_) {
      RETURN_IF_ERROR(files_->Remove(path));
      RETURN_IF_ERROR(files_->SyncDirectory(directory_));
    }
    return std::vector<std::string>{path +
                                    ": damaged, but the log holds all of it: nothing is lost"};
  }

  // How many sets must be there for the log's records to make sense, when it begins with `sets`.
  absl::StatusOr<SetId> SetsOfLog(uint64_t after, SetId sets) {
    SetId needed = sets;
    const auto look = [&](uint64_t, std::string_view bytes) -> absl::Status {
      ASSIGN_OR_RETURN(const Record record, DecodeRecord(bytes));
      const std::optional<SetId> set = SetOf(record);
      if (!set.has_value() || *set < sets) return absl::OkStatus();
      sets = *set + 1;
      needed = std::holds_alternative<SetCreatedRecord>(record) ? *set : *set + 1;
      return absl::OkStatus();
    };
    RETURN_IF_ERROR(ReadLog(files_, directory_, after, look).status());
    return needed;
  }

  FileSystem* const files_;
  const std::string directory_;
  const bool apply_;
  std::vector<std::string> losses_;
};

}  // namespace

absl::StatusOr<std::vector<std::string>> Engine::Repair(const EngineOptions& options, bool apply) {
  RETURN_IF_ERROR(CheckMeta(options));
  ASSIGN_OR_RETURN(const std::unique_ptr<FileLock> lock,
                   options.files->Lock(LockPath(options.directory), options.holder));
  return Repairer(options, apply).Run();
}

}  // namespace firstseen
