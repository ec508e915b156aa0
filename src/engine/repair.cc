// Repair: says what is damaged and what that costs; cuts the damaged part away when told to.
#include <utility>

#include "base/status.h"
#include "engine/engine_impl.h"
#include "engine/log_repair.h"

namespace firstseen {

absl::StatusOr<std::vector<std::string>> Engine::Repair(const EngineOptions& options, bool apply) {
  RETURN_IF_ERROR(CheckMeta(options));
  ASSIGN_OR_RETURN(const std::unique_ptr<FileLock> lock,
                   options.files->Lock(LockPath(options.directory), options.holder));
  std::vector<std::string> losses;
  ASSIGN_OR_RETURN(const std::vector<uint64_t> snapshots,
                   ListSnapshots(options.files, options.directory));
  const uint64_t after = snapshots.empty() ? 0 : snapshots.back();
  ASSIGN_OR_RETURN(const std::vector<LogDamage> damages,
                   RepairLog(options.files, options.directory, after, after, apply));
  for (const LogDamage& damage : damages) losses.push_back(DescribeDamage(damage));
  return losses;
}

}  // namespace firstseen
